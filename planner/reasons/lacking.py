"""Least lack of a run: room and money of one and the same place (spec §3.9, §5 Deficit).

Money is of regions and room is of domains. Least Σ GPUs to be freed + rises of caps, with all of the run in one region,
or spread as room is cheapest.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass

from planner.filling.purses import Demand
from planner.reasons.missing import Missing, Money
from planner.reasons.space import Spaces
from policies.model.problem import Candidate, Problem, RunType


@dataclass(frozen=True)
class Lack:
    """``sites``: where; ``deficit``: GPUs to be freed there; ``missing``: the money, largest first."""

    sites: frozenset[int]
    deficit: int
    missing: list[Missing]


@dataclass(frozen=True)
class _Place:
    """``demand``: (active, region) → GPUs of a run's least width; empty where it would have no room anyway."""

    sites: frozenset[int]
    deficit: int
    demand: Demand


class Lacking:
    """Least lacks of runs against one state of room and money; what runs of a type and with the same payers share.

    ``money``: in a world that has just changed, as it has once a bound rises; ``as_it_is``: in the one of now, where
    that differs; ``bare``: the room if nodes lacked nothing but GPUs, for runs that have no place otherwise.
    """

    def __init__(
        self, problem: Problem, money: Money, spaces: Spaces, bare: Spaces, as_it_is: Money | None = None
    ) -> None:
        self._problem = problem
        self._money = money
        self._as_it_is = as_it_is or money
        self._spaces = spaces
        self._bare = bare
        self._places: dict[Hashable, _Place] = {}
        self._known: dict[Hashable, Lack] = {}
        self._regions: dict[int, list[tuple[int, frozenset[int], int]]] = {}
        self._parts: dict[tuple[frozenset[int], int], frozenset[int]] = {}

    def of(self, candidate: Candidate) -> Lack:
        """Least lack of a run's least width."""
        key = (candidate.type, candidate.purse, candidate.run.max_borrow)
        if key not in self._known:
            alike = (candidate.type, self._money.alike(candidate) if candidate.payers else None)
            if alike not in self._places:
                self._places[alike] = self._place(candidate, self._problem.types[candidate.type])
            place = self._places[alike]
            self._known[key] = Lack(place.sites, place.deficit, self._missing(candidate, place))
        return self._known[key]

    def _missing(self, candidate: Candidate, place: _Place) -> list[Missing]:
        """Largest first. Where it lacks nothing but that the world changes, the least rise: any would do."""
        if not place.demand:
            return []
        missing = self._money.missing(candidate, place.demand).missing
        if missing or place.deficit:
            return missing
        return [each.least for each in self._as_it_is.missing(candidate, place.demand).missing[:1]]

    def _place(self, candidate: Candidate, kind: RunType) -> _Place:
        spaces = self._spaces if self._spaces.fits(kind) else self._bare
        if kind.unfunded or not spaces.fits(kind):
            return _Place(kind.sites, spaces.deficit(kind, kind.sites) or 0, {})
        active, spare = kind.base_gpus, kind.lowered.spare_gpus
        best: _Place | None = None
        least = (math.inf, math.inf)
        prices = self._money.by_region(candidate, active, spare)
        for region, sites, here in self._rooms(kind, spaces):
            price = prices[region]
            if (here + price, price) < least:
                least = here + price, price
                best = _Place(sites, here, {(True, region): active, (False, region): spare})
        if best is not None and not least[0]:
            return best
        return (
            self._spread(candidate, kind, spaces, least[0])
            or best
            or _Place(kind.sites, spaces.deficit(kind, kind.sites) or 0, {})
        )

    def _spread(self, candidate: Candidate, kind: RunType, spaces: Spaces, least: float) -> _Place | None:
        """Places where room is cheapest, if that is in several regions and lacks less than ``least``."""
        deficit = spaces.deficit(kind, kind.sites) or 0
        if deficit >= least:
            return None
        homes = spaces.homes(kind.sites, self._problem.book.money.region)
        demand: Demand = {}
        for lot in spaces.of(kind).lots:
            region = int(homes[lot.domain])
            for active, gpus in ((True, lot.shape.gpus), (False, lot.shape.spare_gpus)):
                demand[active, region] = demand.get((active, region), 0) + gpus * lot.groups
        if len({region for _, region in demand}) == 1:
            return None
        price = self._money.missing(candidate, demand).price
        return _Place(kind.sites, deficit, demand) if deficit + price < least else None

    def _rooms(self, kind: RunType, spaces: Spaces) -> list[tuple[int, frozenset[int], int]]:
        """(region, its sites, GPUs to be freed there) wherever all of a run has room in one region."""
        if kind.index not in self._regions:
            region = self._problem.book.money.region
            parts = [(r, self._in(kind.sites, r)) for r in sorted({region[site] for site in kind.sites})]
            found = [(r, sites, spaces.deficit(kind, sites)) for r, sites in parts]
            self._regions[kind.index] = [(r, sites, deficit) for r, sites, deficit in found if deficit is not None]
        return self._regions[kind.index]

    def _in(self, sites: frozenset[int], region: int) -> frozenset[int]:
        key = (sites, region)
        if key not in self._parts:
            regions = self._problem.book.money.region
            self._parts[key] = frozenset(site for site in sites if regions[site] == region)
        return self._parts[key]
