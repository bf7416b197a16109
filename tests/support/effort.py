"""How much every property test does: one number scales the examples of them all.

`JOBTREE_EFFORT` is a share of what a change must pass: 1 in CI, a tenth at a desk, a hundred at night (`make nightly`).
Nothing else sets the number of examples, and ruff refuses hypothesis' own `settings` in tests (TID251).
"""

import math
import os
from typing import Final

from hypothesis import settings

IN_CI: Final = os.environ.get("CI") == "true"
DESK: Final = 0.1
DEFAULT: Final = 100
"""Examples of a test that names no number, at effort 1."""


def effort(said: str | None, *, in_ci: bool) -> float:
    """The share that ``said`` asks for; where nothing is said, all of it in CI and `DESK` elsewhere."""
    try:
        share = float(said) if said else 1.0 if in_ci else DESK
    except ValueError:
        share = math.nan
    if not 0 < share < math.inf:
        raise ValueError(f"JOBTREE_EFFORT is {said}; it is a number above 0, such as 0.2, 1 or 100")
    return share


EFFORT: Final = effort(os.environ.get("JOBTREE_EFFORT"), in_ci=IN_CI)


def share(full: int) -> int:
    """So many of ``full``, at least one."""
    return max(1, round(full * EFFORT))


def examples(full: int = DEFAULT) -> settings:
    """What decorates a property test of ``full`` examples at effort 1."""
    return settings(max_examples=share(full))
