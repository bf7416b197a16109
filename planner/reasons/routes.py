"""Money that is missing, for many runs at once: the nearest route over which the rest could be paid (spec §3.9).

In a region, what the run's payers can still give is counted nearest first; the rest, D milli-GPUs, would come over one
payer:

    rise(cap) = max(0, weight × D − what the cap has left)     for every cap that the payer touches; less than nothing
                                                               is left of one that is overdrawn

and the payer with the least Σ rises is named, the nearest of equal ones. That is the optimum of the model in
``reasons.shortage`` wherever one payer carries the rest; the model also mixes payers, and is solved where runs are few.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints
from planner.filling.lanes import Lanes, left_of
from planner.filling.purses import Demand, Purses
from planner.reasons.missing import (
    BORROW_PRICE,
    RUN_PRICE,
    Gap,
    Missing,
    missing_at,
    over_borrow_limit,
    over_run_limit,
    over_use_limit,
)
from policies.caps.leeway import Touches
from policies.caps.uses import each_of
from policies.inputs.money import bits
from policies.model.payers import Payer
from policies.model.problem import Candidate, Problem


class _Asked(NamedTuple):
    """Question: payers in their order, where, and how many GPUs may be lent."""

    purse: int
    sites: frozenset[int]
    max_borrow: int | None


class _Payers(NamedTuple):
    """``near``: the payers of a purse, nearest first. ``lent``: which are sponsors; ``lends``: is any; ``most``: their
    perRun.maxGPUs in milli-GPUs, None where no one has any.
    """

    near: tuple[Payer, ...]
    lent: Bools
    lends: bool
    most: Floats | None

    @classmethod
    def of(cls, payers: tuple[Payer, ...]) -> "_Payers":
        """Arrange these payers."""
        lent = np.asarray([payer.loan for payer in payers], dtype=np.bool_)
        most = [payer.run_gpus for payer in payers]
        if all(gpus is None for gpus in most):
            return cls(payers, lent, bool(lent.any()), None)
        gpus = np.asarray([np.inf if gpus is None else 1000.0 * gpus for gpus in most])
        return cls(payers, lent, bool(lent.any()), gpus)


@dataclass(frozen=True)
class _Ways:
    """Lanes of a run's payers (rows, in the order of the ``payers``) in ``regions`` (columns).

    ``open``: places of regions in which something is left; ``uses``: use caps that bound the single run, by place.
    """

    asked: _Asked
    payers: _Payers
    regions: list[int]
    lanes: Ints
    open: list[int]
    uses: list[tuple[int, ...]]


@dataclass
class _Taken:
    """Takings of one run while its payments are put together.

    ``left``: of caps that it touches; ``paid``: milli-GPUs by envelope; ``borrowed``: of lenders; ``used``: where use
    caps bound the single run, by use cap; ``rises``: by cap; ``spares``: milli-GPUs that a borrow limit does not count,
    whoever pays them.
    """

    left: dict[int, int] = field(default_factory=dict)
    paid: dict[int, int] = field(default_factory=dict)
    borrowed: int = 0
    used: dict[int, int] = field(default_factory=dict)
    rises: dict[int, int] = field(default_factory=dict)
    spares: int = 0

    def pay(self, payer: Payer, touched: Touches, milli: int, uses: Iterable[int]) -> None:
        """Take ``milli`` milli-GPUs over a payer where ``uses`` count. ``left`` has all its caps; they hold as much."""
        for cap, weight in touched:
            self.left[cap] -= weight * milli
        self._count(payer, milli, uses)

    def raise_caps(self, payer: Payer, touched: Touches, milli: int, uses: Iterable[int]) -> None:
        """Price the same where caps may hold less, and rise."""
        for cap, weight in touched:
            rise = weight * milli - self.left[cap]
            if rise > 0:
                self.rises[cap] = self.rises.get(cap, 0) + rise
            self.left[cap] = max(0, -rise)
        self._count(payer, milli, uses)

    def _count(self, payer: Payer, milli: int, uses: Iterable[int]) -> None:
        for use in uses:
            self.used[use] = self.used.get(use, 0) + milli
        self.paid[payer.envelope] = self.paid.get(payer.envelope, 0) + milli
        self.borrowed += milli if payer.loan else 0


class Routes:
    """Shortages against one state of the purses; what runs share is computed once."""

    def __init__(self, problem: Problem, purses: Purses) -> None:
        self._problem = problem
        self._used = purses.used
        self._contested = purses.levels.keys()
        self._payers = {
            number: _Payers.of(mine)
            for number, mine in {c.purse: c.payers for c in problem.candidates if c.payers}.items()
        }
        sources = {number: [payer.source for payer in mine.near] for number, mine in self._payers.items()}
        asked = dict.fromkeys((c.purse, problem.types[c.type].sites) for c in problem.candidates if c.payers)
        self._lanes = Lanes(problem, {(number, sites): (sources[number], sites) for number, sites in asked})
        self._first: dict[tuple[bytes, frozenset[int]], int] = {}
        self._same: dict[_Asked, _Asked] = {}
        left = left_of(problem, purses.used)
        self._whole = [cap.limit - taken for cap, taken in zip(problem.book.caps, purses.used, strict=True)]
        self._rooms = self._lanes.rooms(left)
        self._left = np.append(left.astype(np.float64), np.inf)  # the last one fills rows up
        self._caps, self._weights = self._lanes.rows(len(left))
        caps = problem.book.caps
        prices = np.asarray([cap.family.price for cap in caps] + [0.0])
        ahead = np.asarray([cap.ahead for cap in caps] + [False], dtype=np.bool_)
        unit = np.where(ahead[self._caps], np.maximum(1.0, self._weights), 1.0)
        self._prices = prices[self._caps] / unit
        self._ways: dict[_Asked, _Ways] = {}
        self._given: dict[tuple[_Asked, int, int], tuple[int, _Taken]] = {}
        self._gaps: dict[object, Gap] = {}
        self._known: dict[tuple[_Asked, int, int], dict[int, float]] = {}

    def alike(self, candidate: Candidate) -> tuple[Hashable, ...]:
        """Equal for candidates with the same payers, in whatever order, as far as a price may tell."""
        return self._unordered(self._asked(candidate))

    def by_region(self, candidate: Candidate, active: int, spare: int) -> dict[int, float]:
        """Prices of so many Active and spare GPUs if all of them lie in one region, by region."""
        asked = self._unordered(self._asked(candidate))
        spares = self._problem.milli(active=False) * spare
        need = 1000 * active + spares
        key = asked, need, spares if asked.max_borrow is not None else 0
        if key not in self._known:
            ways = self._of(asked)
            prices = self._price(ways, slice(None), need, _Taken(spares=spares)).min(axis=0).tolist()
            for place in ways.open:
                prices[place] = self._rest(ways, place, *key[1:])
            self._known[key] = dict(zip(ways.regions, prices, strict=True))
        return self._known[key]

    def missing(self, candidate: Candidate, demand: Demand) -> Gap:
        """Find what is missing if they lie so."""
        asked = self._asked(candidate)
        needs: dict[int, int] = {}
        spares = 0
        for (active, region), gpus in sorted(demand.items(), key=lambda d: d[0][1]):
            milli = self._problem.milli(active) * gpus
            needs[region] = needs.get(region, 0) + milli
            spares += 0 if active else milli
        key = (asked, spares, *needs.items())
        if key not in self._gaps:
            self._gaps[key] = self._gap(self._of(asked), needs, spares)
        return self._gaps[key]

    def _asked(self, candidate: Candidate) -> _Asked:
        lends = self._payers[candidate.purse].lends
        sites = self._problem.types[candidate.type].sites
        return _Asked(candidate.purse, sites, candidate.run.max_borrow if lends else None)

    def _unordered(self, asked: _Asked) -> _Asked:
        """The first that asked for the same payers, in whatever order: prices hardly depend on that."""
        if asked not in self._same:
            rows = np.sort(self._lanes.grids[asked.purse, asked.sites].rows).tobytes()
            self._same[asked] = asked._replace(purse=self._first.setdefault((rows, asked.sites), asked.purse))
        return self._same[asked]

    def _gap(self, ways: _Ways, needs: Mapping[int, int], spares: int) -> Gap:
        taken = _Taken(spares=spares)
        price = 0.0
        for region, need in needs.items():
            place = ways.regions.index(region)
            left = need - (self._take(ways, place, need, taken) if place in ways.open else 0)
            if left > 0:
                prices = self._price(ways, slice(place, place + 1), left, taken)
                price += float(prices.min())
                near = int(prices.argmin())
                touched = self._touched(int(ways.lanes[near, place]), taken)
                taken.raise_caps(ways.payers.near[near], touched, left, ways.uses[place])
        return Gap(price, sorted(self._named(ways, taken), key=Missing.order))

    def _rest(self, ways: _Ways, place: int, need: int, spares: int) -> float:
        """The price in a region where something is left."""
        key = (ways.asked, place, spares)
        if key not in self._given:
            taken = _Taken(spares=spares)
            self._given[key] = self._take(ways, place, 1 << 60, taken), taken
        given, taken = self._given[key]
        if need <= given:
            return 0.0
        return float(self._price(ways, slice(place, place + 1), need - given, taken).min())

    def _take(self, ways: _Ways, place: int, need: int, taken: _Taken) -> int:
        """Pay as much of ``need`` milli-GPUs as there is, in whole GPUs, nearest payers first; how much that was."""
        total = 0
        lanes = ways.lanes[:, place]
        there = np.flatnonzero(self._rooms[lanes])
        for near, lane in zip(there.tolist(), lanes[there].tolist(), strict=True):
            payer = ways.payers.near[near]
            touched = self._touched(lane, taken)
            most = [-(-(need - total) // 1000) * 1000, *(taken.left[cap] // weight for cap, weight in touched)]
            if payer.loan and ways.asked.max_borrow is not None:
                most.append(1000 * ways.asked.max_borrow + taken.spares - taken.borrowed)
            if payer.run_gpus is not None:
                most.append(1000 * payer.run_gpus - taken.paid.get(payer.envelope, 0))
            most += [1000 * self._per_run(use) - taken.used.get(use, 0) for use in ways.uses[place]]
            here = min(most) // 1000 * 1000
            if here > 0:
                taken.pay(payer, touched, here, ways.uses[place])
                total += here
        return total

    def _touched(self, lane: int, taken: _Taken) -> Touches:
        touched = self._lanes.touches[lane]
        for cap, _ in touched:
            if cap not in taken.left:
                taken.left[cap] = self._whole[cap]
        return touched

    def _price(self, ways: _Ways, places: slice, milli: int, taken: _Taken) -> Floats:
        """GPUs of rises that ``milli`` milli-GPUs beyond what is ``taken`` would cost over each payer in regions."""
        lanes = ways.lanes[:, places]
        left = self._left
        if taken.left:
            left = left.copy()
            left[[*taken.left]] = [float(rest) for rest in taken.left.values()]
        rises = np.maximum(0.0, self._weights[lanes] * milli - left[self._caps[lanes]])
        price = (rises * self._prices[lanes]).sum(axis=2)
        if ways.asked.max_borrow is not None:
            over = max(0, taken.borrowed - taken.spares + milli - 1000 * ways.asked.max_borrow)
            price[ways.payers.lent] += BORROW_PRICE * over
        if ways.payers.most is not None:
            paid = np.asarray([taken.paid.get(payer.envelope, 0) for payer in ways.payers.near])
            price += RUN_PRICE * np.maximum(0.0, paid + milli - ways.payers.most)[:, None]
        for use in {use for there in ways.uses[places] for use in there}:
            over = max(0, taken.used.get(use, 0) + milli - 1000 * self._per_run(use))
            price[:, [use in there for there in ways.uses[places]]] += RUN_PRICE * over
        price[lanes < 0] = np.inf
        return np.asarray(price / 1000)

    def _named(self, ways: _Ways, taken: _Taken) -> list[Missing]:
        found = []
        for cap, rise in taken.rises.items():
            recalls = cap in self._contested and self._whole[cap] < 0
            found.append(missing_at(self._problem, cap, rise, self._used[cap], recalls=recalls))
        limit = ways.asked.max_borrow
        borrowed = taken.borrowed - taken.spares
        if limit is not None and borrowed > 1000 * limit:
            found.append(over_borrow_limit(-(-borrowed // 1000) - limit, limit))
        for payer in ways.payers.near if ways.payers.most is not None else ():
            over = 0 if payer.run_gpus is None else taken.paid.get(payer.envelope, 0) - 1000 * payer.run_gpus
            if over > 0 and payer.run_gpus is not None:
                label = self._problem.book.money.envelopes[payer.envelope].label
                found.append(over_run_limit(-(-over // 1000), label, payer.run_gpus))
        for use, milli in taken.used.items():
            if milli > 1000 * self._per_run(use):
                found.append(over_use_limit(self._problem.book.money.uses[use], milli - 1000 * self._per_run(use)))
        return found

    def _per_run(self, use: int) -> int:
        return self._problem.book.money.uses[use].per_run_gpus or 0

    def _of(self, asked: _Asked) -> _Ways:
        if asked not in self._ways:
            grid = self._lanes.grids[asked.purse, asked.sites]
            there = np.flatnonzero(self._rooms[grid.lanes].any(axis=0)).tolist()
            payers, uses = self._payers[asked.purse], self._problem.book.money.uses
            each = list(bits(each_of(payer.watch for payer in payers.near)))
            bounding = [tuple(i for i in each if region in uses[i].sites) for region in grid.regions]
            self._ways[asked] = _Ways(asked, payers, grid.regions, grid.lanes, there, bounding)
        return self._ways[asked]
