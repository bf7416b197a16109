"""Lanes: how money flows to runs that wait, as arrays: through which caps each payer pays (spec §3.4)."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jobtree.world.tables.values import Floats, Ints
from planner.state.payer_lists import PayerList
from planner.state.state import State
from policies.caps.cap import Lane

Counts = npt.NDArray[np.int32]
MOST: Final = (1 << 31) - 1
"""GPUs that are told apart."""
MILLI: Final = 1000
"""Of an Active GPU."""


class Lanes(NamedTuple):
    """Payers of a list as arrays: ``rows`` of `LaneBook` that each touches (payers × rows, padded); ``sites``: the sets
    of sites on which any of them pays (sets × sites of the asker, 0 or 1), and the ``place`` of each among these;
    ``most`` GPUs of one run.
    """

    rows: Ints
    sites: Floats
    place: Ints
    most: Counts


@dataclass
class LaneBook:
    """The lanes of each purse and set of sites, made when they are first asked for; they know no clock.

    By row, ``caps`` that are touched and ``weights`` of a GPU on each, in the cap's units; row 0 has no bound.
    ``of_cap``: rows by cap.
    """

    state: State
    caps: list[int] = field(init=False)
    weights: list[int] = field(init=False)
    of_cap: dict[int, list[int]] = field(default_factory=dict)
    _rows: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)
    _known: dict[tuple[int, tuple[int, ...]], Lanes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Begin with the row without bound."""
        self.caps, self.weights = [len(self.state.book.caps)], [1]

    def of(self, purse: PayerList, sites: tuple[int, ...]) -> Lanes:
        """How the payers of a list, which has one number, pay on sites."""
        asked = purse.number, sites
        if asked not in self._known:
            self._known[asked] = self._lanes(purse, sites)
        return self._known[asked]

    def _lanes(self, purse: PayerList, asked: tuple[int, ...]) -> Lanes:
        book, money, near = self.state.book, self.state.money, purse.payers
        pays_on = [money.paid_on(payer.envelope, payer.watch.off).intersection(asked) for payer in near]
        payers = [
            (payer, min(sites), tuple(sorted(sites))) for payer, sites in zip(near, pays_on, strict=True) if sites
        ]
        touched = [
            book.touches(Lane(payer.envelope, payer.loan, money.region[site], payer.limit, payer.watch.on))
            for payer, site, _ in payers
        ]
        rows = np.zeros((len(touched), max((len(each) for each in touched), default=0)), np.int64)
        for payer, mine in enumerate(touched):
            rows[payer, : len(mine)] = [self._row(cap, MILLI * weight) for cap, weight in mine]
        kinds = sorted({sites for *_, sites in payers})
        among = np.array([[site in kind for site in asked] for kind in kinds], np.float64)
        places = np.array([kinds.index(sites) for *_, sites in payers], np.int64)
        most = np.array([MOST if each.run_gpus is None else min(MOST, each.run_gpus) for each, *_ in payers], np.int32)
        return Lanes(rows, among.reshape(len(kinds), len(asked)), places, most)

    def _row(self, cap: int, weight: int) -> int:
        if (cap, weight) not in self._rows:
            self._rows[cap, weight] = len(self.caps)
            self.of_cap.setdefault(cap, []).append(len(self.caps))
            self.caps.append(cap)
            self.weights.append(weight)
        return self._rows[cap, weight]
