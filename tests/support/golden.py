"""Plans that stay: SHA-256 digests of plans' canonical bytes, by what was planned (`tests/golden/plans.json`).

A change that means to keep plans proves with them that it does, byte for byte; one that means to change plans rewrites
the file (`make golden`), and the review sees which. What a test of the cases plans is held under the test's name from
the next rewrite on; worlds of `tests/golden` must be in the file.

Equal bytes are certain with the locked packages on x86-64: they were the same where numpy, OpenBLAS, Arrow and the C
library were kept from everything newer than SSE4. Another architecture or another build of the solver may round a sum
of floats another way, and where several plans are equally good, find another of them.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parents[1] / "golden" / "plans.json"
REWRITES: Final = os.environ.get("JOBTREE_GOLDEN") in ("all", "some")
WHOLE: Final = os.environ.get("JOBTREE_GOLDEN") == "all"
"""Names that nothing was found for go; after "some", or where a test failed, they stay."""
HELD: Final[Mapping[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))

_planned: list[bytes] = []
found: Final[dict[str, str]] = {}
"""What is to be written."""


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


def hold(digests: Mapping[str, str]) -> None:
    """Asserts that these digests are those of the file, or under `make golden` has them written there."""
    if REWRITES:
        found.update(digests)
        return
    other = sorted(name for name in digests if digests[name] != HELD.get(name))
    assert other == [], (
        f"{len(other)} of {len(digests)} plans are not those of {FILE.name}: {', '.join(other[:5])}; "
        "if this change means to plan them otherwise, run `make golden` and commit what it writes"
    )


def rewrite(*, passed: bool) -> None:
    """Writes what was found into the file, one line a name, sorted."""
    digests = found if WHOLE and passed else {**HELD, **found}
    FILE.write_text(json.dumps(digests, indent=0, sort_keys=True) + "\n", encoding="utf-8")
