"""Near payments of a relaxation told apart by type, as far as its point makes use of them (policies.recall_types)."""

from typing import Final

import numpy as np

from planner.relaxed import Found, Relaxed
from planner.solver import NOISE, Floats
from policies.recall_types import Parts

ROUNDS: Final = 3
"""Most relaxations after which what they newly make use of is told apart."""
LITTLE: Final = 1e-5
"""Part of the bound that it may cost to do without all others."""


def tell_apart(relaxed: Relaxed, parts: Parts, point: Floats, bound: float) -> Found:
    """The best point now, and what no plan is worth more than; ``point``, ``bound``: the same before.

    What is told apart stays so. What is not is fixed at 0 if that costs next to nothing, until bounds are reset.
    """
    for _ in range(ROUNDS):
        more = parts.of([column for column in parts.together if point[column] > NOISE])
        if not more.rows:
            break
        relaxed.add(more)
        found, value = relaxed.best()
        if found is None:
            return None, bound
        point, bound = found, min(bound, value)
    rest = np.asarray(parts.together, np.int64)
    without, value = relaxed.within(rest, np.zeros(len(rest)))
    if without is not None and value >= bound * (1 - LITTLE):
        return without, bound
    relaxed.undo()
    return point, bound
