"""A quick look at money: at most how many GPUs a pool of payers could still hold, region by region, in arrays.

Each payer counts alone, with all that its tightest cap leaves in a region; what payers share is counted for each of
them. So a ceiling is never below what can be paid, and most runs that nobody can pay are told apart by it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from jobtree.world.values import Ints
from policies.payers import Source
from policies.problem import Problem, RunType

_MANY: Final = 1 << 40
"""More GPUs than there are, and few enough that sums of them stay in 64 bits."""


@dataclass(frozen=True)
class _Pool:
    """Lanes of its payers twice: region by region, each beginning at ``starts``, and payer by payer (``firsts``)."""

    regions: list[int]
    by_region: Ints
    starts: Ints
    by_payer: Ints
    firsts: Ints


class Ceilings:
    """Ceilings against ``used``, what each cap has taken; whoever changes that says so (``changed``)."""

    def __init__(self, problem: Problem, used: list[int]) -> None:
        self._problem = problem
        self._used = used
        self._changed = set(range(len(used)))
        self._left = np.zeros(len(used), dtype=np.int64)
        self._lane_of: dict[tuple[tuple[int, int], ...], int] = {}
        self._routes: dict[tuple[Source, frozenset[int]], tuple[Ints, Ints]] = {}
        self._pools: dict[tuple[int, frozenset[int]], _Pool] = {}
        for kind in problem.types:
            if (kind.pool, kind.sites) not in self._pools:
                self._pools[kind.pool, kind.sites] = self._pool(kind.sources, kind.sites)
        touched = [pair for lane in self._lane_of for pair in lane]
        self._caps = np.asarray([cap for cap, _ in touched], dtype=np.int64)
        self._weights = np.asarray([min(1000 * weight, _MANY << 20) for _, weight in touched], dtype=np.int64)
        self._starts = np.cumsum([0, *(len(lane) for lane in self._lane_of)], dtype=np.int64)[:-1]
        self._rooms = np.zeros(len(self._lane_of), dtype=np.int64)

    def changed(self, cap: int) -> None:
        """What the cap has taken is no longer what it was."""
        self._changed.add(cap)

    def by_region(self, kind: RunType) -> dict[int, int]:
        """GPUs that the type's payers could hold in each region alone."""
        pool = self._pools[kind.pool, kind.sites]
        if not pool.regions:
            return {}
        sums = np.add.reduceat(self._lane_rooms()[pool.by_region], pool.starts)
        return dict(zip(pool.regions, sums.tolist(), strict=True))

    def anywhere(self, kind: RunType) -> int:
        """GPUs that they could hold, each where it has most room."""
        pool = self._pools[kind.pool, kind.sites]
        if not pool.regions:
            return 0
        return int(np.maximum.reduceat(self._lane_rooms()[pool.by_payer], pool.firsts).sum())

    def _lane_rooms(self) -> Ints:
        if self._changed:
            for cap in self._changed:
                left = self._problem.book.caps[cap].limit - self._used[cap]
                self._left[cap] = max(0, min(left, _MANY << 20))
            self._changed.clear()
            rooms = np.minimum(self._left[self._caps] // self._weights, _MANY)
            self._rooms = np.minimum.reduceat(rooms, self._starts) if len(rooms) else rooms
        return self._rooms

    def _pool(self, sources: tuple[Source, ...], sites: frozenset[int]) -> _Pool:
        routes = [route for source in sources if len((route := self._route(source, sites))[0])]
        regions = np.concatenate([np.zeros(0, np.int64), *(region for region, _ in routes)])
        lanes = np.concatenate([np.zeros(0, np.int64), *(lane for _, lane in routes)])
        order = np.argsort(regions, kind="stable")
        found, starts = np.unique(regions[order], return_index=True)
        firsts = np.cumsum([0, *(len(region) for region, _ in routes)], dtype=np.int64)[:-1]
        return _Pool(found.tolist(), lanes[order], starts, lanes, firsts)

    def _route(self, source: Source, sites: frozenset[int]) -> tuple[Ints, Ints]:
        """Regions in which a source pays for what may lie on ``sites``, and its lanes there."""
        key = (source, sites)
        if key not in self._routes:
            problem = self._problem
            money = problem.book.money
            regions = sorted({money.region[site] for site in money.pays_on[source.envelope] & sites})
            touched = [problem.book.touches(problem.lane(source, region)) for region in regions]
            lanes = [self._lane_of.setdefault(caps, len(self._lane_of)) for caps in touched]
            self._routes[key] = np.asarray(regions, dtype=np.int64), np.asarray(lanes, dtype=np.int64)
        return self._routes[key]
