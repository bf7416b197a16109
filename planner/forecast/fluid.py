"""A fluid picture of what comes free: GPUs per site and money per cap, at the times of a grid (spec §5).

Exact starts cost a world each (`planner.forecast.moments`). Here slots are amounts and time is cells that widen with
their distance, as Slurm's backfill has them: what a run of one shape finds at a time is

    Σ over sites  max(0, room for that shape as what runs ends − what was taken)      GPUs
    Σ over payers min over the caps that they touch of what is left / weight          GPUs

so fragments of what runs count, those of what is yet to start do not. What is paid for hours and credits comes back
never: a cap on these has what it has now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints
from planner.forecast.calendar import FAR
from planner.forecast.lanes import MOST, Counts, LaneBook, Lanes
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import Shape

CELLS: Final = ((6 * 3600, 1), (3 * 86400, 12), (FAR, 72))
"""Up to so many seconds from now, cells of so many of the Policy's ``bucket``."""
NEAR: Final = 48
"""Times at which it is tried to pay, before one is taken as it is."""


class Ask(NamedTuple):
    """What a run asks. ``gpus``: at its least width; ``shape``: its largest piece; ``span``: seconds, None for good."""

    purse: int
    sites: tuple[int, ...]
    gpus: int
    shape: Shape
    span: int | None


Alike = tuple[int, tuple[int, ...], Shape]
"""Purse, sites and shape: asks that differ in how much and how long alone."""


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


class Places(NamedTuple):
    """What of the fleet lies in one domain and site, ``number`` of them. ``of``: the place of each node, places of a
    site together; ``domains``: where the places of each of the ``sites`` begin.
    """

    number: int
    of: Ints
    domains: Ints
    sites: Ints

    @classmethod
    def in_fleet(cls, fleet: Fleet) -> "Places":
        """All that there are."""
        many = len(fleet.domains)
        places, of = np.unique(fleet.site * many + fleet.domain, return_inverse=True)
        sites, domains = np.unique(places // many, return_index=True)
        return cls(len(places), of, domains, sites)


class Held(NamedTuple):
    """What the ``runs`` hold now: ``slots``: node, GPUs and run of each lease (3 × leases), runs by their number;
    ``funds``: cap, what comes back to it and run (3 × amounts). ``free``, ``left``: what nobody holds, by node and by
    cap, the last one without bound.
    """

    runs: list[RunKey]
    slots: Ints
    funds: Ints
    free: Ints
    left: Ints

    @classmethod
    def of(cls, state: State) -> "Held":
        """Of a state."""
        fleet, book, runs = state.fleet, state.book, list(state.held)
        number = {key: place for place, key in enumerate(runs)}
        slots = [
            (node, lease.gpus, number[key])
            for key, leases in state.held.items()
            for lease in leases
            if (node := fleet.index.get(lease.node)) is not None and fleet.takes_work[node]
        ]
        funds = [
            (cap, weight, number[part.leases[0].run_key])
            for part, funded in zip(state.funded.parts, state.funded.outcome.funded, strict=True)
            for cap, weight in (part.touched.items() if funded else ())
            if not book.caps[cap].ahead
        ]
        left = [*(cap.limit - used for cap, used in zip(book.caps, state.funded.used, strict=True)), FAR]
        free = np.asarray(state.room().free, np.int64)
        return cls(runs, _columns(slots), _columns(funds), free, np.array(left, np.int64))


def _columns(rows: Sequence[tuple[int, int, int]]) -> Ints:
    return np.array(rows, np.int64).reshape(len(rows), 3).T


class Steps(NamedTuple):
    """How many GPUs of a ``node`` are ``free`` from a ``cell`` on, by node and cell; each has its ``first`` step."""

    node: Ints
    cell: Ints
    free: Ints
    first: Bools

    @classmethod
    def of(cls, held: Held, over: Ints, gpus: Ints, cells: int) -> "Steps":
        """As runs are ``over`` in these cells; ``gpus``: of each node."""
        node, freed, run = held.slots[:, over[held.slots[2]] < cells]
        steps = np.concatenate([np.arange(len(gpus)) * cells, node * cells + over[run]])
        steps, step = np.unique(steps, return_inverse=True)
        more = np.zeros(len(steps), np.int64)
        np.add.at(more, step, np.concatenate([held.free, freed]))
        node, cell = np.divmod(steps, cells)
        first, free = np.append(True, node[1:] != node[:-1])[: len(node)], np.cumsum(more)
        free -= (free - more)[first][node]
        return cls(node, cell, np.minimum(free, gpus[node]), first)


@dataclass
class Fluid:
    """``times``: of the grid, T; ``free``: GPUs of nodes; ``taken``: (sites × T); ``left``: (caps × T), in the caps'
    units, the last one without bound; ``lanes``: how money flows, ``pays``: GPUs for which each of its rows has some
    (rows × T), but for caps that are ``stale``. ``_asked``: GPUs, seconds and cell of starts, by
    what is alike in who asked.
    """

    state: State
    times: Ints
    free: Steps
    left: Ints
    taken: Floats
    lanes: LaneBook
    places: Places
    pays: Counts = field(init=False, repr=False)
    stale: set[int] = field(default_factory=set, repr=False)
    _shapes: dict[Shape, Floats] = field(default_factory=dict, repr=False)
    _spans: dict[int, Ints] = field(default_factory=dict, repr=False)
    _asked: dict[Alike, list[tuple[int, int, int]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Begin with nothing known of what caps pay."""
        self.pays = np.full((len(self.lanes.caps), len(self.times)), MOST, np.int32)
        self.stale.update(self.lanes.caps[1:])

    @classmethod
    def of(cls, state: State, held: Held, ends: Mapping[RunKey, int | None], times: Ints, lanes: LaneBook) -> "Fluid":
        """What is left as what is ``held`` ends; ``ends``: Unix seconds, by run, None where that is not known."""
        fleet, cells = state.fleet, len(times)
        over = np.searchsorted(times, [FAR if (end := ends[key]) is None else end for key in held.runs])
        back = np.zeros((len(held.left), cells + 1), np.int64)
        back[:, 0] = held.left
        cap, amount, run = held.funds
        np.add.at(back, (cap, over[run]), amount)
        left = np.cumsum(back, axis=1)[:, :-1]
        free = Steps.of(held, over, fleet.gpus, max(1, cells))  # the horizon may end before the first one
        taken = np.zeros((fleet.site_count, cells))
        return cls(state, times, free, left, taken, lanes, Places.in_fleet(fleet))

    def starts(self, ask: Ask, lanes: Lanes, count: int) -> list[int]:
        """The first times at which so many that ask the same fit in room and money, each beside those before, and they
        are taken from then on; fewer where the others never do.
        """
        found: list[int] = []
        while len(found) < count and (start := self._start(ask, lanes, count - len(found))):
            found += start
        return found

    def _start(self, ask: Ask, lanes: Lanes, count: int) -> list[int]:
        """Of so many the first, and those that are sure to start with it; none where it never does.

        What is left only gets less: who asks as much or more, for as long or longer, starts no earlier than who asked
        before.
        """
        span, key = FAR if ask.span is None else ask.span, (ask.purse, ask.sites, ask.shape)
        asked = self._asked.setdefault(key, [])
        first = max((cell for gpus, lasting, cell in asked if gpus <= ask.gpus and lasting <= span), default=0)
        if first == len(self.times):
            return []
        room = self._room(ask, first)
        money = self._money(lanes, ask, room, first)
        fits = (room.sum(axis=0) >= ask.gpus) & (money.sum(axis=0) >= ask.gpus)
        unfit, ends = np.append(0, np.cumsum(~fits)), self._ends(span)[first:] - first
        starts = np.flatnonzero(unfit[ends] == unfit[:-1])[:NEAR].tolist()
        start, many = len(self.times), 1
        for begin in starts:
            window = slice(begin, int(ends[begin]))
            there = slice(first + window.start, first + window.stop)
            free, most = room[:, window].min(axis=1), money[:, window].min(axis=1)
            many = self._alike(lanes, ask, free, most, there, count)
            if self._pay(lanes, ask, most, there, many, anyway=begin == starts[-1]):
                self._occupy(ask, free, there, many)
                start = first + begin
                break
        if start > first:
            told = (each for each in asked if each[0] < ask.gpus or each[1] < span or each[2] > start)
            self._asked[key] = [*told, (ask.gpus, span, start)]
        return [int(self.times[start])] * many if start < len(self.times) else []

    def _alike(self, lanes: Lanes, ask: Ask, free: Floats, most: Counts, window: slice, count: int) -> int:
        """How many of ``count`` that ask the same have room on their one site and money of the nearest payer that has
        any: each of them would be found to start there, one after the other.
        """
        nearest = int((most > 0).argmax())
        if count == 1 or len(free) > 1 or most[nearest] < ask.gpus:
            return 1
        money = int(self._pays()[lanes.rows[nearest], window].min())
        return max(1, min(count, int(free[0]) // ask.gpus, money // ask.gpus))

    def _ends(self, span: int) -> Ints:
        """Cell in which a start in each is over after so many seconds."""
        if span not in self._spans:
            self._spans[span] = np.searchsorted(self.times, self.times + span)
        return self._spans[span]

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
            self._shapes[ask.shape] = self._pieces(ask.shape)
        there = list(ask.sites)
        return np.maximum(self._shapes[ask.shape][there, first:] - self.taken[there, first:], 0.0)

    def _pieces(self, shape: Shape) -> Floats:
        """GPUs in whole pieces of a shape beside what runs, (sites × times)."""
        steps, places, cells = self.free, self.places, len(self.times)
        whole = steps.free // (unit := shape.pod or 1) * unit
        more = np.where(steps.first, whole, np.diff(whole, prepend=0))
        cell = places.of[steps.node] * cells + steps.cell
        room = np.bincount(cell, more, places.number * cells).reshape(-1, cells).cumsum(axis=1).astype(np.int64)
        found = np.zeros_like(self.taken)
        found[places.sites] = np.add.reduceat(room // shape.size * shape.size, places.domains, axis=0)
        return found

    def _money(self, lanes: Lanes, ask: Ask, room: Floats, first: int) -> Counts:
        """GPUs that each payer pays, (payers × times from ``first`` on)."""
        most = np.minimum(lanes.sites @ room, ask.gpus).astype(np.int32)[lanes.place]
        pays = self._pays()
        for rows in lanes.rows.T:  # cap by cap: a payer touches but a few
            np.minimum(most, pays[rows, first:], out=most)
        if (lanes.most < ask.gpus).any():
            np.minimum(most, lanes.most[:, None], out=most)
        return most

    def _pays(self) -> Counts:
        """GPUs for which each row of the lanes has money, (rows × times)."""
        if self.stale:
            rows = [row for cap in sorted(self.stale) for row in self.lanes.of_cap.get(cap, ())]
            caps = [self.lanes.caps[row] for row in rows]
            weights = np.array([self.lanes.weights[row] for row in rows], np.int64)
            self.pays[rows] = np.minimum(
                np.maximum(self.left[caps] // weights[:, None], 0), MOST
            )  # clip asks more than it does
            self.stale.clear()
        return self.pays

    def _pay(self, lanes: Lanes, ask: Ask, most: Counts, window: slice, many: int, *, anyway: bool) -> bool:
        """Nearest payers first, each for so ``many``; they may share a cap: then they have less than their sum."""
        wanted = ask.gpus
        paid: list[tuple[list[int], int]] = []
        for payer in np.flatnonzero(most).tolist():
            rows, left = lanes.rows[payer], int(most[payer])
            gpus = min(wanted, left, int(self._pays()[rows, window].min(initial=MOST)) if paid else left)
            if gpus:
                paid.append((rows.tolist(), many * gpus))
                self._charge(*paid[-1], window)
                wanted -= gpus
            if not wanted:
                return True
        for rows, gpus in () if anyway else paid:
            self._charge(rows, -gpus, window)
        return anyway

    def _charge(self, rows: Sequence[int], gpus: int, window: slice) -> None:
        for row in rows:
            if row:
                self._take(self.lanes.caps[row], gpus * self.lanes.weights[row], window)

    def _take(self, cap: int, amount: int, window: slice) -> None:
        """Of hours and credits for good."""
        self.left[cap, window.start : None if self.state.book.caps[cap].ahead else window.stop] -= amount
        self.stale.add(cap)

    def _occupy(self, ask: Ask, there: Floats, window: slice, many: int) -> None:
        """Slots for as ``many`` of the sites with most room first."""
        wanted = float(ask.gpus)
        for place in np.argsort(-there, kind="stable").tolist():
            gpus = min(wanted, float(there[place]))
            self.taken[ask.sites[place], window] += many * gpus
            wanted -= gpus
            if not wanted:
                return
