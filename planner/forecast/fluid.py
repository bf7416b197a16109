"""A fluid picture of what comes free: GPUs per site and money per cap, at the times of a grid (spec §5).

Exact starts cost a world each (`planner.forecast.moments`). Here slots are amounts and time is cells that widen with
their distance, as Slurm's backfill has them: what a run of one shape finds at a time is

    Σ over sites  max(0, room for that shape as what runs ends − what was taken)      GPUs
    Σ over payers min over the caps that they touch of what is left / weight          GPUs

so fragments of what runs count, those of what is yet to start do not. What is paid for hours and credits comes back
never: a cap on these has what it has now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.state.payer_lists import PayerList
from planner.state.state import State
from policies.caps.cap import Lane
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import Shape

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FAR: Final = 1 << 50
"""More than any amount; later than any time."""
CELLS: Final = ((6 * 3600, 1), (3 * 86400, 12), (FAR, 72))
"""Up to so many seconds from now, cells of so many of the Policy's ``bucket``."""
HAIR: Final = 1e-6
"""What rounding may take of a whole GPU."""
MILLI: Final = 1000
"""Of an Active GPU."""
NEAR: Final = 4
"""Times at which it is tried to pay, before one is taken as it is."""


class Ask(NamedTuple):
    """What a run asks. ``gpus``: at its least width; ``shape``: its largest piece; ``span``: seconds, None for good."""

    purse: int
    sites: tuple[int, ...]
    gpus: int
    shape: Shape
    span: int | None


class Lanes(NamedTuple):
    """Payers of a list as arrays: ``caps`` that each touches (payers × caps, padded), and GPUs for a unit of each,
    its ``shares``; ``sites``: the sets of sites on which any of them pays (sets × sites of the asker, 0 or 1), and the
    ``place`` of each among these; ``most`` GPUs of one run.
    """

    caps: Ints
    shares: Floats
    sites: Floats
    place: Ints
    most: Floats


def grid(now: int, until: int, bucket: int) -> Ints:
    """The times after ``now`` at which cells end, Unix seconds, up to ``until``; they hang on no event."""
    found: list[int] = []
    at = now
    while True:
        cell = bucket * next(times for far, times in CELLS if at - now < far)
        at = (at // cell + 1) * cell
        if at > until:
            return np.array(found, np.int64)
        found.append(at)


@dataclass
class LanesOf:
    """The lanes of each purse and set of sites, made when they are first asked for; they know no clock."""

    state: State
    _known: dict[tuple[int, tuple[int, ...]], Lanes] = field(default_factory=dict, repr=False)

    def of(self, ask: Ask, purse: PayerList) -> Lanes:
        """How the payers of a list, which has one number, pay on the sites that it asks for."""
        asked = purse.number, ask.sites
        if asked not in self._known:
            book, money, near = self.state.book, self.state.money, purse.payers
            pays_on = [money.paid_on(payer.envelope, payer.watch.shut).intersection(ask.sites) for payer in near]
            payers = [(payer, min(sites), sites) for payer, sites in zip(near, pays_on, strict=True) if sites]
            touched = [
                book.touches(Lane(payer.envelope, payer.loan, money.region[site], payer.limit, payer.watch.on))
                for payer, site, _ in payers
            ]
            shape = len(touched), max((len(each) for each in touched), default=0)
            caps, shares = np.full(shape, len(book.caps), np.int64), np.ones(shape)
            for payer, mine in enumerate(touched):
                for place, (cap, weight) in enumerate(mine):
                    caps[payer, place], shares[payer, place] = cap, 1 / (MILLI * weight)
            kinds = sorted({tuple(sorted(sites)) for _, _, sites in payers})
            among = np.array([[site in kind for site in ask.sites] for kind in kinds], np.float64)
            places = np.array([kinds.index(tuple(sorted(sites))) for _, _, sites in payers], np.int64)
            most = np.array([FAR if each.run_gpus is None else each.run_gpus for each, *_ in payers], np.float64)
            self._known[asked] = Lanes(caps, shares, among.reshape(len(kinds), len(ask.sites)), places, most)
        return self._known[asked]


class Places(NamedTuple):
    """What of the fleet lies in one domain and site. ``order``: nodes, those of a place together, places of a site
    together; ``nodes``: where each place begins in that order, ``domains``: where the places of each of the ``sites``.
    """

    order: Ints
    nodes: Ints
    domains: Ints
    sites: Ints

    @classmethod
    def of(cls, fleet: Fleet) -> "Places":
        """Of a fleet."""
        order = np.lexsort((fleet.domain, fleet.site))
        pairs = np.stack([fleet.site, fleet.domain])[:, order]
        nodes = np.flatnonzero(np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))[: len(order)])
        sites, domains = np.unique(pairs[0, nodes], return_index=True)
        return cls(order, nodes, domains, sites)


@dataclass
class Fluid:
    """``times``: of the grid, T; ``free``: GPUs (nodes × T), nodes by ``places``; ``taken``: (sites × T); ``left``:
    (caps × T), in the caps' units, the last row without bound; ``lanes``: how money flows.
    """

    state: State
    times: Ints
    free: Ints
    left: Floats
    taken: Floats
    lanes: LanesOf
    places: Places
    _shapes: dict[Shape, Floats] = field(default_factory=dict, repr=False)
    _first: dict[Ask, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, state: State, ends: Mapping[RunKey, int | None], times: Ints, lanes: LanesOf) -> "Fluid":
        """What is left as runs end; ``ends``: Unix seconds, by run, None where that is not known."""
        fleet, book = state.fleet, state.book
        cell = {key: int(np.searchsorted(times, FAR if end is None else end)) for key, end in ends.items()}
        freed = np.zeros((len(fleet.names), len(times) + 1), np.int64)
        for key, leases in state.held.items():
            for lease in leases:
                node = fleet.index.get(lease.node)
                if node is not None and fleet.takes_work[node]:
                    freed[node, cell[key]] += lease.gpus
        free = np.asarray(state.room().free, np.int64)[:, None] + np.cumsum(freed, axis=1)[:, :-1]
        back = np.zeros((len(book.caps) + 1, len(times) + 1), np.int64)
        back[:, 0] = [*(cap.limit - used for cap, used in zip(book.caps, state.funded.used, strict=True)), FAR]
        for part, funded in zip(state.funded.parts, state.funded.outcome.funded, strict=True):
            if funded:
                for cap, weight in part.touched.items():
                    if not book.caps[cap].ahead:
                        back[cap, cell[part.leases[0].run_key]] += weight
        left = np.cumsum(back, axis=1)[:, :-1].astype(np.float64)
        places = Places.of(fleet)
        free = np.minimum(free, fleet.gpus[:, None])[places.order]
        return cls(state, times, free, left, np.zeros((fleet.site_count, len(times))), lanes, places)

    def start(self, ask: Ask, purse: PayerList) -> int | None:
        """The first time at which it fits in room and money, and it is taken from then on; None where it never does.

        Runs that ask the same start one after another.
        """
        first = self._first.get(ask, 0)
        times = self.times[first:]
        if not len(times):
            return None
        lanes = self.lanes.of(ask, purse)
        room = self._room(ask, first)
        money = self._money(lanes, ask, room, first)
        fits = (room.sum(axis=0) >= ask.gpus) & (money.sum(axis=0) >= ask.gpus)
        ends = np.searchsorted(times, times + (FAR if ask.span is None else ask.span))
        short = np.append(np.flatnonzero(~fits), len(times))
        until = short[np.searchsorted(short, np.arange(len(times)))]
        starts = np.flatnonzero(fits & (until >= ends))[:NEAR].tolist()
        for begin in starts:
            window = slice(begin, int(ends[begin]))
            there = slice(first + window.start, first + window.stop)
            if self._pay(lanes, ask, money[:, window].min(axis=1), there, anyway=begin == starts[-1]):
                self._occupy(ask, room[:, window].min(axis=1), there)
                self._first[ask] = first + begin
                return int(times[begin])
        self._first[ask] = len(self.times)
        return None

    def hold(self, gpus: Mapping[int, int], caps: Mapping[int, int], at: int, end: int | None) -> None:
        """Take what a promised start holds, GPUs by site and amounts by cap, from ``at`` to ``end``, Unix seconds."""
        begin, over = np.searchsorted(self.times, (at, FAR if end is None else end)).tolist()
        for site, count in gpus.items():
            self.taken[site, begin:over] += count
        for cap, amount in caps.items():
            self._take(cap, amount, slice(begin, over))

    def _room(self, ask: Ask, first: int) -> Floats:
        """GPUs in whole pieces of its shape, (its sites × times from ``first`` on)."""
        if ask.shape not in self._shapes:
            unit, size, places = ask.shape.pod or 1, ask.shape.size, self.places
            whole = np.add.reduceat(self.free // unit * unit, places.nodes, axis=0)
            room = np.zeros_like(self.taken)
            room[places.sites] = np.add.reduceat(whole // size * size, places.domains, axis=0)
            self._shapes[ask.shape] = room
        there = list(ask.sites)
        return np.maximum(self._shapes[ask.shape][there, first:] - self.taken[there, first:], 0.0)

    def _money(self, lanes: Lanes, ask: Ask, room: Floats, first: int) -> Floats:
        """GPUs that each payer pays, (payers × times from ``first`` on)."""
        money = np.full((len(lanes.caps), len(self.times) - first), float(FAR))
        for caps, shares in zip(lanes.caps.T, lanes.shares.T, strict=True):  # cap by cap: a payer touches but a few
            np.minimum(money, self.left[caps, first:] * shares[:, None], out=money)
        money += HAIR
        np.floor(money, out=money)
        np.minimum(money, np.minimum(lanes.most, ask.gpus)[:, None], out=money)
        np.minimum(money, (lanes.sites @ room)[lanes.place], out=money)
        np.maximum(money, 0.0, out=money)
        return money

    def _pay(self, lanes: Lanes, ask: Ask, most: Floats, window: slice, *, anyway: bool) -> bool:
        """Nearest payers first; payers may share a cap, and so have less than the sum of each."""
        wanted = float(ask.gpus)
        paid: list[tuple[Ints, Floats, float]] = []
        for payer in np.flatnonzero(most).tolist():
            caps, shares = lanes.caps[payer], lanes.shares[payer]
            left = (self.left[caps, window] * shares[:, None]).min() + HAIR if paid else most[payer]
            gpus = max(0.0, min(wanted, float(most[payer]), float(np.floor(left))))
            if gpus:
                paid.append((caps, shares, gpus))
                self._charge(*paid[-1], window)
                wanted -= gpus
            if not wanted:
                return True
        for caps, shares, gpus in () if anyway else paid:
            self._charge(caps, shares, -gpus, window)
        return anyway

    def _charge(self, caps: Ints, shares: Floats, gpus: float, window: slice) -> None:
        for cap, share in zip(caps.tolist(), shares.tolist(), strict=True):
            if cap < len(self.state.book.caps):
                self._take(cap, gpus / share, window)

    def _take(self, cap: int, amount: float, window: slice) -> None:
        """Of hours and credits for good."""
        self.left[cap, window.start : None if self.state.book.caps[cap].ahead else window.stop] -= amount

    def _occupy(self, ask: Ask, there: Floats, window: slice) -> None:
        """Slots of the sites with most room first."""
        wanted = float(ask.gpus)
        for place in np.argsort(-there, kind="stable").tolist():
            gpus = min(wanted, float(there[place]))
            self.taken[ask.sites[place], window] += gpus
            wanted -= gpus
            if not wanted:
                return
