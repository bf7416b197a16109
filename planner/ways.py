"""Ways for money to flow while runs are added one by one: which payers of a start pay in a region, and under what caps.

Hundreds of purses share some hundred payers, and a purse is asked again at every try: looked up once, then remembered.
"""

from collections.abc import Iterator
from typing import NamedTuple

from policies.leeway import Touches
from policies.payers import Payer
from policies.problem import Candidate, Problem


class Way(NamedTuple):
    """A payer in a region of money. ``touches``: (cap, weight per milli-GPU) of what it pays there."""

    payer: Payer
    touches: Touches


_Sort = tuple[int, bool, int | None]
"""What of a payer caps look at: envelope, whether it lends, seconds that a claim may last."""


class Ways:
    """Of the payers of a problem's candidates."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._purses: dict[tuple[int, int], list[Way]] = {}
        self._regions: dict[_Sort, dict[int, Touches]] = {}
        self._anywhere: dict[tuple[_Sort, frozenset[int]], tuple[Touches, ...]] = {}

    def into(self, candidate: Candidate, region: int) -> list[Way]:
        """The payers of a start that pay in a region, nearest first."""
        key = (candidate.purse, region)
        if key not in self._purses:
            lanes = ((payer, self._by_region(payer).get(region)) for payer in candidate.payers)
            self._purses[key] = [Way(payer, touches) for payer, touches in lanes if touches is not None]
        return self._purses[key]

    def onto(self, candidate: Candidate, sites: frozenset[int]) -> Iterator[tuple[Payer, tuple[Touches, ...]]]:
        """The payers of a start that pay on some of ``sites``, nearest first, and what they touch there."""
        for payer in candidate.payers:
            key = (_sort(payer), sites)
            touched = self._anywhere.get(key)
            if touched is None:
                region = self._problem.book.money.region
                lanes = self._by_region(payer)
                here = (lanes[r] for r in sorted({region[site] for site in sites}) if r in lanes)
                touched = self._anywhere[key] = tuple(dict.fromkeys(here))
            if touched:
                yield payer, touched

    def _by_region(self, payer: Payer) -> dict[int, Touches]:
        key = _sort(payer)
        if key not in self._regions:
            money = self._problem.book.money
            regions = sorted({money.region[site] for site in money.pays_on[payer.envelope]})
            lanes = ((region, self._problem.lane(payer, region)) for region in regions)
            self._regions[key] = {region: self._problem.book.touches(lane) for region, lane in lanes}
        return self._regions[key]


def _sort(payer: Payer) -> _Sort:
    return payer.envelope, payer.loan, payer.limit
