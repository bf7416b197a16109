"""Ways for money to flow while runs are added one by one: where the payers of a start pay, and under what caps.

Hundreds of purses share some hundred payers, which are asked again at every try: looked up once, then remembered.
"""

from collections.abc import Iterator, Mapping

from policies.caps.leeway import Touches
from policies.caps.uses import Watch
from policies.model.payers import Payer
from policies.model.problem import Candidate, Problem

Reach = Mapping[int, Touches]
"""Region of money where a payer pays → (cap, weight per milli-GPU) of what it pays there."""

_Sort = tuple[int, bool, int | None, Watch]
"""What caps see of a payer: envelope, whether it lends, seconds that a claim may last, use caps that look."""


class Ways:
    """Ways of the payers of a problem's candidates."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._reaches: dict[_Sort, Reach] = {}
        self._onto: dict[tuple[_Sort, frozenset[int]], tuple[Touches, ...]] = {}
        self._known: dict[tuple[int, bool, int], Mapping[int, tuple[Payer, Touches]]] = {}

    def of(self, candidate: Candidate, region: int) -> Mapping[int, tuple[Payer, Touches]]:
        """The payers of a start that pay in a region, by envelope, nearest first, and what they touch there."""
        key = candidate.purse, bool(candidate.payers), region
        found = self._known.get(key)
        if found is None:
            reaches = ((payer, self._reach_of(payer).get(region)) for payer in candidate.payers)
            found = {payer.envelope: (payer, touches) for payer, touches in reaches if touches is not None}
            self._known[key] = found
        return found

    def onto(self, candidate: Candidate, sites: frozenset[int]) -> Iterator[tuple[Payer, tuple[Touches, ...]]]:
        """The payers of a start that pay on some of ``sites``, nearest first, and what they touch there."""
        for payer in candidate.payers:
            key = (_sort(payer), sites)
            found = self._onto.get(key)
            if found is None:
                region = self._problem.book.money.region
                reach = self._reach_of(payer)
                here = (reach[r] for r in sorted({region[site] for site in sites}) if r in reach)
                found = self._onto[key] = tuple(dict.fromkeys(here))
            if found:
                yield payer, found

    def _reach_of(self, payer: Payer) -> Reach:
        key = _sort(payer)
        if key not in self._reaches:
            money = self._problem.book.money
            regions = sorted({money.region[site] for site in self._problem.pays_on(payer)})
            lanes = ((region, self._problem.lane(payer, region)) for region in regions)
            self._reaches[key] = {region: self._problem.book.touches(lane) for region, lane in lanes}
        return self._reaches[key]


def _sort(payer: Payer) -> _Sort:
    return payer.envelope, payer.loan, payer.limit, payer.watch
