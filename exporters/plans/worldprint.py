"""What a plan was made from, object by object, small enough for a plan file: to say later what has changed since."""

import base64
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from exporters.plans import jsonfile
from jobtree.api import Refusal
from jobtree.api.kinds.meta import name_of
from jobtree.world.tables.snapshot import Snapshot

_KINDS: Final = {"nodes": "Node", "pods": "Pod", "runs": "Run", "leases": "Lease"}
_LETTERS: Final = 8
"""Of a digest: enough to tell two forms of one object apart."""
SHOWN: Final = 10
"""Most objects that a sentence names."""

Prints = Mapping[str, str]
"""Subject of an object → the begin of the SHA-256 of what planning reads of it."""


def prints(snapshot: Snapshot) -> Prints:
    """Those of all objects that a snapshot was taken from."""
    found: dict[str, list[object]] = defaultdict(list)
    for name, table in snapshot.tables.items():
        for row in table.to_pylist():
            if name in _KINDS:
                found[name_of(_KINDS[name], row.get("namespace") or "", row["name"])].append(row)
            elif name == "quarantine":
                found[name_of(row["kind"], row["namespace"] or "", row["name"])].append(row)
            elif name == "budgets" or ("budget" in row and not name.startswith(("seen_", "balances"))):
                found[name_of("Budget", "", row.get("budget") or row["name"])].append(row)
    digests = {subject: hashlib.sha256(msgspec.json.encode(rows)).hexdigest() for subject, rows in found.items()}
    digests["Policy default"] = snapshot.policy_digest
    return {subject: digests[subject][:_LETTERS] for subject in sorted(digests)}


def pack(found: Prints) -> str:
    """As one word."""
    return base64.b64encode(zlib.compress(msgspec.json.encode(found), 9)).decode()


def unpack(word: object) -> Prints | None:
    """What was packed; None where that is not to be read."""
    try:
        return jsonfile.decode(zlib.decompress(base64.b64decode(str(word))), dict[str, str], "")
    except (ValueError, zlib.error, Refusal):
        return None


def changes(before: Prints, now: Prints) -> str:
    """What is new, gone or changed, at most `SHOWN` of it by name: ``Node a01 (changed), Run default/r (new)``."""
    found = list(_changes(before, now))
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more}"


def _changes(before: Prints, now: Prints) -> Iterator[str]:
    for subject in sorted(before.keys() | now.keys()):
        if subject not in now:
            yield f"{subject} (gone)"
        elif subject not in before:
            yield f"{subject} (new)"
        elif before[subject] != now[subject]:
            yield f"{subject} (changed)"
