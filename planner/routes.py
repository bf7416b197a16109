"""Money that is missing, for many runs at once: the nearest route over which the rest could be paid (spec §3.9).

What the run's payers can still give is counted nearest first; the rest, D milli-GPUs, would come over one payer:

    rise(cap) = max(0, weight × D − what the cap has left)     for every cap that the payer touches

and the payer with the least Σ rises is named, the nearest of equal ones. That is the optimum of the LP in
``planner.shortage`` wherever one payer carries the rest; the LP also mixes payers, and is solved where runs are few.
"""

from dataclasses import dataclass

from planner.missing import Missing, missing_at, over_borrow_limit
from planner.purses import Purses
from policies.caps import Lane
from policies.payers import Payer
from policies.problem import Candidate, Problem

_Key = tuple[int, frozenset[int], int | None]
"""(purse, sites, borrow limit)."""


@dataclass(frozen=True)
class _Profile:
    """``available``: milli-GPUs that the payers still give together; ``left``: per cap, after that."""

    available: int
    borrowed: int
    routes: list[tuple[Payer, Lane]]
    left: dict[int, int]


class Routes:
    """Shortages against one state of the purses; what runs share is computed once."""

    def __init__(self, problem: Problem, purses: Purses) -> None:
        self._problem = problem
        self._purses = purses
        self._profiles: dict[_Key, _Profile] = {}
        self._known: dict[tuple[_Key, int], list[Missing]] = {}

    def money(self, candidate: Candidate) -> list[Missing]:
        """What is missing for the least width of a run, largest first."""
        kind = self._problem.types[candidate.type]
        spares = sum(shape.spare_gpus for shape in kind.lowered.pieces())
        need = 1000 * kind.base_gpus + self._problem.milli(active=False) * spares
        key = (candidate.purse, kind.sites, kind.max_borrow)
        if (key, need) not in self._known:
            if key not in self._profiles:
                self._profiles[key] = self._profile(candidate.payers, kind.sites, kind.max_borrow)
            self._known[key, need] = self._cheapest(self._profiles[key], need, kind.max_borrow)
        return self._known[key, need]

    def _profile(self, payers: tuple[Payer, ...], sites: frozenset[int], max_borrow: int | None) -> _Profile:
        problem = self._problem
        left: dict[int, int] = {}
        available = borrowed = 0
        routes = []
        for payer in payers:
            regions = {problem.book.money.region[s] for s in sites & problem.book.money.pays_on[payer.envelope]}
            for region in sorted(regions):
                lane = problem.lane(payer, region)
                routes.append((payer, lane))
                touched = problem.book.touches(lane)
                for cap, _ in touched:
                    left.setdefault(cap, max(0, problem.book.caps[cap].limit - self._purses.used[cap]))
                most = min((left[cap] // weight for cap, weight in touched), default=0)
                if payer.loan and max_borrow is not None:
                    most = min(most, 1000 * max_borrow - borrowed)
                if payer.run_gpus is not None:
                    most = min(most, 1000 * payer.run_gpus)
                most -= most % 1000  # whole GPUs
                available += most
                borrowed += most if payer.loan else 0
                for cap, weight in touched:
                    left[cap] -= weight * most
        return _Profile(available, borrowed, routes, left)

    def _cheapest(self, profile: _Profile, need: int, max_borrow: int | None) -> list[Missing]:
        rest = need - profile.available
        if rest <= 0 or not profile.routes:
            return []
        best: tuple[int, list[tuple[int, int]], Payer] | None = None
        for payer, lane in profile.routes:
            rises, price = [], 0
            for cap, weight in self._problem.book.touches(lane):
                rise = weight * rest - profile.left[cap]
                if rise > 0:
                    rises.append((cap, rise))
                    price += rise // weight if self._problem.book.caps[cap].ahead else rise
            if payer.loan and max_borrow is not None:
                price += max(0, profile.borrowed + rest - 1000 * max_borrow)
            if best is None or price < best[0]:
                best = price, rises, payer
        assert best is not None
        _, rises, payer = best
        found = [missing_at(self._problem.book.caps[cap], rise, self._purses.used[cap]) for cap, rise in rises]
        if payer.loan and max_borrow is not None and profile.borrowed + rest > 1000 * max_borrow:
            found.append(over_borrow_limit(-(-(profile.borrowed + rest - 1000 * max_borrow) // 1000), max_borrow))
        return sorted(found, key=Missing.order)
