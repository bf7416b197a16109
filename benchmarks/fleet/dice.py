"""Chance from one seed. Only ``Random.random`` is used: the one method whose numbers Python promises to keep."""

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of draws."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def u(self) -> float:
        """Uniform in [0, 1)."""
        return self._random.random()

    def chance(self, p: float) -> bool:
        """True with probability ``p``."""
        return self.u() < p

    def among(self, items: Sequence[T]) -> T:
        """One item, each equally likely."""
        return items[int(self.u() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One item by weight."""
        edges = list(accumulate(weights))
        return items[min(bisect_right(edges, self.u() * edges[-1]), len(items) - 1)]

    def between(self, low: float, high: float) -> int:
        """A whole number in [low, high)."""
        return int(low + self.u() * (high - low))

    def exponential(self, mean: float) -> int:
        """Whole seconds, say, with the given mean."""
        return int(-mean * math.log(1 - self.u()))

    def lognormal(self, mu: float, sigma: float) -> float:
        """exp of a normal variate."""
        return math.exp(NormalDist(mu, sigma).inv_cdf(min(max(self.u(), 1e-12), 1 - 1e-12)))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        return [item for _, _, item in sorted((self.u(), i, item) for i, item in enumerate(items))]
