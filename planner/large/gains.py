"""What branching on a count brings, learned from the sides that were solved: pseudo-costs.

Achterberg, Koch, Martin: "Branching rules revisited", Operations Research Letters 33 (2005). A count of which both
sides fall far is the better one to branch on: that the lesser falls counts as much as that the greater does, so both
are multiplied.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from jobtree.world.tables.values import Floats, Ints
from policies.model.linear import INF

_LITTLE: Final = 1e-6
"""A side that does not fall counts so much, lest nothing else be told apart."""


class Gains:
    """``fell``: by how much bounds fell in all, per unit that a count was moved; ``times``: how often; (2, columns), of
    which the first row is down."""

    def __init__(self, columns: int) -> None:
        self.fell = np.zeros((2, columns))
        self.times = np.zeros((2, columns), np.int64)

    def learn(self, column: int, up: int, fell: float, moved: float) -> None:
        """Add a side that was solved."""
        self.fell[up, column] += fell / moved
        self.times[up, column] += 1

    def knows(self, column: int) -> bool:
        """Whether it was moved both ways."""
        return bool(self.times[:, column].all())

    def scores(self, columns: Ints, values: Floats) -> Floats:
        """How much a branching on each is to bring, (columns,), where they have these values; like any other where
        nothing is known of it."""
        fell, times = self.fell, self.times
        usual = fell.sum(axis=1) / np.maximum(times.sum(axis=1), 1)
        rate = np.where(times > 0, fell / np.maximum(times, 1), usual[:, None])[:, columns]
        down = values - np.floor(values)
        return _product(rate[0] * down, rate[1] * (1 - down))

    def score(self, bound: float, sides: Sequence[float]) -> float:
        """The same of one whose sides have these bounds; there is no better one than one of which a side has none."""
        return float(_product(*(bound - side for side in sides))) if len(sides) == 2 else INF


def _product(down: Floats | float, up: Floats | float) -> Floats:
    return np.maximum(down, _LITTLE) * np.maximum(up, _LITTLE)
