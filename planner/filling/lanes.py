"""Every way for money to flow in a problem, as arrays: which caps a payment touches in which region, and how heavily.

Payments that touch the same caps with the same weights are one lane. A hundred payers in ten regions are looked at in
one go where a loop over them would take most of a plan's time.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from jobtree.world.tables.values import Floats, Ints
from policies.caps.leeway import Touches
from policies.model.payers import Source
from policies.model.problem import Problem

MANY: Final = 1 << 40
"""More GPUs than there are, and few enough that sums of them stay in 64 bits."""
MOST: Final = MANY << 20
"""Where numbers of caps are cut off: some count more than 64 bits hold, and none that large ever binds."""


Sites = frozenset[int]
Key = tuple[int, Sites]
"""Whatever lanes are asked for by: a number, and where."""


class Grid(NamedTuple):
    """Lanes of some sources (rows, in their order) in each of ``regions`` (columns); -1 where one does not pay.

    ``rows``: equal numbers for equal rows.
    """

    regions: list[int]
    rows: Ints
    lanes: Ints


class Lanes:
    """``grids``: as they were asked for; ``touches``: of each lane; ``caps``, ``weights`` (per milli-GPU): of all
    lanes, one after the other, each from its ``starts``. A lane -1 carries nothing.
    """

    def __init__(self, problem: Problem, asked: Mapping[Key, tuple[Iterable[Source], Sites]]) -> None:
        number: dict[Touches, int] = {}
        regions = {sites: _regions(problem, sites) for sites in dict.fromkeys(sites for _, sites in asked.values())}
        rows: dict[Sites, list[list[int]]] = {sites: [] for sites in regions}
        row_of: dict[Sites, dict[Source, int]] = {sites: {} for sites in regions}
        places: dict[Key, Ints] = {}
        for key, (sources, sites) in asked.items():
            known = row_of[sites]
            mine = []
            for source in sources:
                place = known.get(source)
                if place is None:
                    place = known[source] = len(known)
                    rows[sites].append([_lane(problem, source, region, number) for region in regions[sites]])
                mine.append(place)
            places[key] = np.asarray(mine, dtype=np.int64)
        table = {s: np.asarray(mine, dtype=np.int64).reshape(len(mine), len(regions[s])) for s, mine in rows.items()}
        self.grids = {
            key: Grid(regions[sites], places[key], table[sites][places[key]]) for key, (_, sites) in asked.items()
        }
        self.touches: list[Touches] = [*number, ()]
        touched = [pair for lane in number for pair in lane]
        self.caps: Ints = np.asarray([cap for cap, _ in touched], dtype=np.int64)
        self.weights: Ints = np.asarray([min(weight, MOST) for _, weight in touched], dtype=np.int64)
        self.starts: Ints = np.cumsum([0, *(len(lane) for lane in number)], dtype=np.int64)[:-1]

    def rooms(self, left: Ints) -> Ints:
        """GPUs that each lane could carry alone, and lane -1. ``left``: by cap, see `left_of`."""
        if not len(self.caps):
            return np.zeros(1, dtype=np.int64)
        gpus = np.maximum(left, 0)[self.caps] // 1000 // self.weights  # floors twice as it would once
        return np.append(np.minimum.reduceat(np.minimum(gpus, MANY), self.starts), np.int64(0))

    def rows(self, filler: int) -> tuple[Ints, Floats]:
        """Caps and weights as a row per lane, and of lane -1, filled up with cap ``filler`` at weight 0."""
        lengths = np.append(np.diff(np.append(self.starts, len(self.caps))), 0)
        there = np.arange(lengths.max(initial=0)) < lengths[:, None]
        caps = np.full(there.shape, filler, dtype=np.int64)
        weights = np.zeros(there.shape, dtype=np.float64)
        caps[there], weights[there] = self.caps, self.weights
        return caps, weights


def _regions(problem: Problem, sites: Sites) -> list[int]:
    return sorted({problem.book.money.region[site] for site in sites})


def _lane(problem: Problem, source: Source, region: int, number: dict[Touches, int]) -> int:
    if region not in problem.pays_on(source):
        return -1
    return number.setdefault(problem.book.touches(problem.lane(source, region)), len(number))


def left_of(problem: Problem, used: list[int]) -> Ints:
    """Rest of each cap, (caps,), -MOST to MOST: negative where it is overdrawn."""
    left = [max(-MOST, min(cap.limit - taken, MOST)) for cap, taken in zip(problem.book.caps, used, strict=True)]
    return np.asarray(left, dtype=np.int64)
