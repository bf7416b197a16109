"""Money that is missing, for many runs at once: the nearest route over which the rest could be paid (spec §3.9).

What the run's payers can still give is counted nearest first; the rest, D milli-GPUs, would come over one payer:

    rise(cap) = max(0, weight × D − what the cap has left)     for every cap that the payer touches

and the payer with the least Σ rises is named, the nearest of equal ones. That is the optimum of the LP in
``planner.shortage`` wherever one payer carries the rest; the LP also mixes payers, and is solved where runs are few.
"""

from dataclasses import dataclass

from planner.missing import (
    BORROW_PRICE,
    LENDING_PRICE,
    RUN_PRICE,
    Missing,
    missing_at,
    over_borrow_limit,
    over_run_limit,
)
from planner.purses import Purses
from policies.caps import Lane
from policies.payers import Payer
from policies.problem import Candidate, Problem

_Key = tuple[int, frozenset[int], int | None]
"""(purse, sites, borrow limit)."""


@dataclass(frozen=True)
class _Profile:
    """What the payers still give together, nearest first, in milli-GPUs (``available``), and what is left after that.

    ``left``: per cap; ``paid``: per envelope; ``borrowed``: by sponsors together.
    """

    available: int
    borrowed: int
    paid: dict[int, int]
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
        most = candidate.run.max_borrow
        key = (candidate.purse, kind.sites, most)
        if (key, need) not in self._known:
            if key not in self._profiles:
                self._profiles[key] = self._profile(candidate.payers, kind.sites, most)
            self._known[key, need] = self._cheapest(self._profiles[key], need, most)
        return self._known[key, need]

    def _profile(self, payers: tuple[Payer, ...], sites: frozenset[int], max_borrow: int | None) -> _Profile:
        left: dict[int, int] = {}
        paid: dict[int, int] = {}
        borrowed = 0
        routes = []
        for payer in payers:
            money = self._problem.book.money
            for region in sorted({money.region[s] for s in sites & money.pays_on[payer.envelope]}):
                lane = self._problem.lane(payer, region)
                routes.append((payer, lane))
                touched = self._problem.book.touches(lane)
                for cap, _ in touched:
                    left.setdefault(cap, max(0, self._problem.book.caps[cap].limit - self._purses.used[cap]))
                most = [left[cap] // weight for cap, weight in touched]
                if payer.loan and max_borrow is not None:
                    most.append(1000 * max_borrow - borrowed)
                if payer.run_gpus is not None:
                    most.append(1000 * payer.run_gpus - paid.get(payer.envelope, 0))
                here = min(most, default=0) // 1000 * 1000  # whole GPUs
                paid[payer.envelope] = paid.get(payer.envelope, 0) + here
                borrowed += here if payer.loan else 0
                for cap, weight in touched:
                    left[cap] -= weight * here
        return _Profile(sum(paid.values()), borrowed, paid, routes, left)

    def _cheapest(self, profile: _Profile, need: int, max_borrow: int | None) -> list[Missing]:
        rest = need - profile.available
        if rest <= 0 or not profile.routes:
            return []
        routes = [self._route(profile, payer, lane, rest, max_borrow) for payer, lane in profile.routes]
        _, found = min(routes, key=lambda route: route[0])  # the first of equal ones: the nearest
        return sorted(found, key=Missing.order)

    def _route(
        self, profile: _Profile, payer: Payer, lane: Lane, rest: int, max_borrow: int | None
    ) -> tuple[float, list[Missing]]:
        """(price in milli-GPUs, shortages) of paying ``rest`` over one payer."""
        price = 0.0
        found = []
        for number, weight in self._problem.book.touches(lane):
            cap = self._problem.book.caps[number]
            rise = weight * rest - profile.left[number]
            if rise > 0:
                gpus = rise // weight if cap.ahead else rise
                price += gpus * LENDING_PRICE if cap.rule == "lending" else gpus
                found.append(missing_at(cap, rise, self._purses.used[number]))
        over = profile.borrowed + rest - 1000 * max_borrow if payer.loan and max_borrow is not None else 0
        if over > 0 and max_borrow is not None:
            price += over * BORROW_PRICE
            found.append(over_borrow_limit(-(-over // 1000), max_borrow))
        if payer.run_gpus is not None:
            over = profile.paid.get(payer.envelope, 0) + rest - 1000 * payer.run_gpus
            if over > 0:
                price += over * RUN_PRICE
                label = self._problem.book.money.envelopes[payer.envelope].label
                found.append(over_run_limit(-(-over // 1000), label, payer.run_gpus))
        return price, found
