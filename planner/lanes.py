"""Every way for money to flow in a problem, as arrays: which caps a payment touches in which region, and how heavily.

Payments that touch the same caps with the same weights are one lane. A hundred payers in ten regions are looked at in
one go where a loop over them would take most of a plan's time.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from jobtree.world.values import Ints
from planner.solver import Floats
from policies.payers import Source
from policies.problem import Problem

MANY: Final = 1 << 40
"""More GPUs than there are, and few enough that sums of them stay in 64 bits."""
MOST: Final = MANY << 20
"""Where numbers of caps are cut off: some count more than 64 bits hold, and none that large ever binds."""


class Grid(NamedTuple):
    """Lanes of sources (rows, in their order) in each of ``regions`` (columns); -1 where one does not pay."""

    regions: list[int]
    lanes: Ints


Ask = tuple[int, frozenset[int], Sequence[Source]]
"""(number of a group of payers, sites, the payers as caps see them)."""


class Lanes:
    """``caps``, ``weights`` (per milli-GPU): of all lanes, one after the other, each from its ``starts``.

    A lane -1 carries nothing.
    """

    def __init__(self, problem: Problem, asked: Iterable[Ask]) -> None:
        """``asked``: payers by a number of their own, and the sites where they are to pay."""
        number: dict[tuple[tuple[int, int], ...], int] = {}
        self._problem = problem
        self._rows: dict[tuple[Source, frozenset[int]], list[int]] = {}
        self._grids: dict[tuple[int, frozenset[int]], Grid] = {}
        for group, sites, sources in asked:
            if (group, sites) not in self._grids:
                self._grids[group, sites] = self._grid(sites, sources, number)
        touched = [pair for lane in number for pair in lane]
        self.caps: Ints = np.asarray([cap for cap, _ in touched], dtype=np.int64)
        self.weights: Ints = np.asarray([min(weight, MOST) for _, weight in touched], dtype=np.int64)
        self.starts: Ints = np.cumsum([0, *(len(lane) for lane in number)], dtype=np.int64)[:-1]

    def of(self, group: int, sites: frozenset[int]) -> Grid:
        """Those of one group of payers on such sites."""
        return self._grids[group, sites]

    def _grid(
        self, sites: frozenset[int], sources: Sequence[Source], number: dict[tuple[tuple[int, int], ...], int]
    ) -> Grid:
        money, book = self._problem.book.money, self._problem.book
        regions = sorted({money.region[site] for site in sites})
        for source in sources:
            if (source, sites) not in self._rows:
                there = [r if r in money.pays_on[source.envelope] else None for r in regions]
                self._rows[source, sites] = [
                    -1 if r is None else number.setdefault(book.touches(self._problem.lane(source, r)), len(number))
                    for r in there
                ]
        rows = [self._rows[source, sites] for source in sources]
        return Grid(regions, np.asarray(rows, dtype=np.int64).reshape(len(rows), len(regions)))

    def rooms(self, left: Ints) -> Ints:
        """GPUs that each lane could carry alone, and lane -1. ``left``: by cap, 0 to MOST."""
        if not len(self.caps):
            return np.zeros(1, dtype=np.int64)
        gpus = left[self.caps] // 1000 // self.weights  # floors twice as it would once
        return np.append(np.minimum.reduceat(np.minimum(gpus, MANY), self.starts), np.int64(0))

    def rows(self, filler: int) -> tuple[Ints, Floats]:
        """Caps and weights as a row per lane, and of lane -1, filled up with cap ``filler`` at weight 0."""
        lengths = np.append(np.diff(np.append(self.starts, len(self.caps))), 0)
        there = np.arange(lengths.max(initial=0)) < lengths[:, None]
        caps = np.full(there.shape, filler, dtype=np.int64)
        weights = np.zeros(there.shape, dtype=np.float64)
        caps[there], weights[there] = self.caps, self.weights
        return caps, weights


def left_of(problem: Problem, used: list[int]) -> Ints:
    """What each cap still leaves, 0 to MOST."""
    left = [max(0, min(cap.limit - taken, MOST)) for cap, taken in zip(problem.book.caps, used, strict=True)]
    return np.asarray(left, dtype=np.int64)
