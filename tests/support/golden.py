"""Plans that stay: SHA-256 digests of plans' canonical bytes, by what was planned (`tests/golden/plans.json`).

A change that means to keep plans proves with them that it does, byte for byte; one that means to change plans rewrites
the file (`make golden`), and the review sees which. What a test of the cases plans is held under the test's name from
the next rewrite on; worlds of `tests/golden` must be in the file.

Equal bytes are certain on one kind of machine with the locked packages. Another kind may round a sum of floats inside
the solver or numpy another way, and where several plans are equally good, find another of them.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parents[1] / "golden" / "plans.json"
REWRITES: Final = os.environ.get("JOBTREE_GOLDEN") == "rewrite"
HELD: Final[Mapping[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))

_planned: list[bytes] = []
_found: dict[str, str] = {}


def planned(encoded: bytes) -> None:
    """Notes the bytes of a plan that a cycle has made, for the `case` that goes on."""
    _planned.append(encoded)


def digest(plans: list[bytes]) -> str:
    """One digest of several plans, in their order."""
    return hashlib.sha256(b"\n".join(plans)).hexdigest()


@contextmanager
def case(name: str) -> Iterator[None]:
    """Holds what cycles plan inside the block to what they planned before, if that is known."""
    _planned.clear()
    yield
    if _planned and (REWRITES or name in HELD):
        hold({name: digest(_planned)})


def hold(found: Mapping[str, str]) -> None:
    """Asserts that these digests are those of the file, or under `make golden` has them written there."""
    if REWRITES:
        _found.update(found)
        return
    other = sorted(name for name in found if found[name] != HELD.get(name))
    assert other == [], (
        f"{len(other)} of {len(found)} plans are not those of {FILE.name}: {', '.join(other[:5])}; "
        "if this change means to plan them otherwise, run `make golden` and commit what it writes"
    )


def rewrite() -> None:
    """Writes what was found, all of it, in place of the file: one line a name, sorted."""
    FILE.write_text(json.dumps(_found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
