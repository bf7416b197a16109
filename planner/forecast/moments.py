"""Moments: the worlds of the known times, each derived when it is first asked for, with what promises take of them."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from jobtree.world.tables.values import Ints
from planner.filling.filler import Filler, Settled, demand
from planner.filling.purses import Demand, Paid, Purses
from planner.forecast.later import Later
from planner.placement.draft import Draft
from planner.placement.place import Start
from planner.placement.room import Chunk, Room
from planner.state.state import State
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.shapes import PodLoad
from policies.model.problem import Problem, RunType
from policies.model.recall import FARTHEST


class Cut(NamedTuple):
    """Starts that a moment holds in the room of leases that are cut for them. ``loads``: what these used beside GPUs;
    ``freed``: their GPUs by node; ``drawn``: how many of all that is cut the starts take.
    """

    taken: list[Settled]
    loads: list[tuple[Chunk, PodLoad]]
    freed: Mapping[int, int]
    drawn: Mapping[int, int]


@dataclass
class Moment:
    """One known time. ``source``: what makes it known; ``left``: by node, GPUs that are cut for promises and that none
    of these takes: for those alone that count on cuts; ``since``: the first promised time that it stands for, as the
    next known one that is looked at; ``charged``: by cap on hours or credits, what starts have taken that are over.
    """

    at: int
    source: str
    later: Later = field(repr=False)
    left: dict[int, int] = field(default_factory=dict, repr=False)
    since: int = 0
    charged: Mapping[int, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """It stands for its own time at least."""
        self.since = self.since or self.at

    @classmethod
    def of(cls, state: State, later: Later) -> "Moment":
        """The present, whose state is known."""
        moment = cls(state.at, "now", later)
        moment.__dict__["state"] = state
        return moment

    @cached_property
    def state(self) -> State:
        """The world's state then."""
        return self.later.at(self.at)

    @cached_property
    def problem(self) -> Problem:
        """All that waits then, lowered."""
        return self.later.problem(self.state)

    @cached_property
    def filler(self) -> Filler:
        """What is left then, to be filled."""
        room: Room = self.state.room()
        return Filler(self.problem, room, Purses.after(self.problem, Draft()))

    def try_start(self, key: RunKey, *, least: bool = False) -> Settled | None:
        """Place and pay a run, funded, at its widest, or at its ``least`` width; None, with nothing taken, where it
        cannot start.
        """
        problem = self.problem
        for index in problem.ways.get(key, ()):
            kind = problem.types[problem.candidates[index].type]
            for steps in () if kind.unfunded else _widths(kind, least=least):
                found = self.filler.try_start(kind, Start(index, steps))
                if found is not None:
                    return found
        return None

    def lets(self, keys: Collection[RunKey]) -> bool:
        """Could all of these runs start, at their least widths? Nothing is taken."""
        started: list[Settled] = []
        for key in keys:
            if (found := self.try_start(key, least=True)) is None:
                break
            started.append(found)
        for each in reversed(started):
            self.give_back(each)
        return len(started) == len(keys)

    def could_lie(self, key: RunKey, free: Ints) -> bool:
        """A quick look: is there a domain for the run's largest piece, at its least width, in ``free`` slots by node?

        Σ over nodes of the domain and the run's sites  free in whole pods  ≥  GPUs of the piece
        """
        problem = self.problem
        kinds = (problem.types[problem.candidates[index].type] for index in problem.ways.get(key, ()))
        return bool(free.any()) and any(not kind.unfunded and self._has_piece(kind, free) for kind in kinds)

    def _has_piece(self, kind: RunType, free: Ints) -> bool:
        fleet, lowered = self.state.fleet, kind.lowered
        usable = np.zeros(fleet.site_count, np.bool_)
        usable[[*kind.sites]] = True
        whole = np.where(usable[fleet.site], free if lowered.pod <= 1 else free // lowered.pod * lowered.pod, 0)
        return bool(np.bincount(fleet.domain, whole).max(initial=0) >= lowered.largest(0))

    def lay(self, key: RunKey, nodes: frozenset[int], *, anyway: bool = False, least: bool = False) -> Settled | None:
        """The same as `try_start` on some nodes alone; ``anyway``: also where nobody pays."""
        problem = self.problem
        for index in problem.ways.get(key, ()):
            kind = problem.types[problem.candidates[index].type]
            for steps in () if kind.unfunded else _widths(kind, least=least):
                start = Start(index, steps)
                placed = self.filler.place_on(start, nodes) if self.filler.purses.trees_allow(start) else []
                paid = self.filler.purses.pay_for(start, demand(problem, self.filler.room, placed)) if placed else None
                if paid is not None:
                    return Settled(start, placed, paid)
                if placed and anyway:
                    return Settled(Start(-1, steps), placed, {})
                self.filler.give_back(placed)
        return None

    def find(self, where: Mapping[RunKey, frozenset[int]], leases: Iterable[LeaseRow]) -> dict[RunKey, Settled]:
        """Slots of starts on their nodes, whoever pays, were these leases cut; empty where one has none. Takes none."""
        _, freed = self._ending(leases)
        more = {node: freed.get(node, 0) + self.left.get(node, 0) for node in freed.keys() | self.left.keys()}
        self._add(more)
        found: dict[RunKey, Settled] = {}
        for key, nodes in where.items():
            settled = self.lay(key, nodes, anyway=True, least=len(where) > 1)
            if settled is not None:
                found[key] = settled
        for settled in found.values():
            self.give_back(settled)
        self._add({node: -gpus for node, gpus in more.items()})
        return found if len(found) == len(where) else {}

    def cut(self, starts: Mapping[RunKey, Settled], leases: Iterable[LeaseRow]) -> Cut | None:
        """Hold starts where leases, those that are still open then, are cut for them; None where they have no room."""
        loads, freed = self._ending(leases)
        needed = gpus_of(*starts.values())
        drawn = {node: min(freed.get(node, 0) + self.left.get(node, 0), gpus) for node, gpus in needed.items()}
        if any(self.filler.room.free[node] + drawn[node] < gpus for node, gpus in needed.items()):
            return None
        held = Cut([], loads, freed, drawn)
        self._count(held, 1)
        held.taken.extend(
            taken for key, found in starts.items() if (taken := self.take(key, found, anyway=True)) is not None
        )
        return held

    def undo(self, held: Cut) -> None:
        """As if these had not been cut."""
        for taken in held.taken:
            self.give_back(taken)
        self._count(held, -1)

    def _count(self, held: Cut, sign: int) -> None:
        for chunk, load in held.loads:
            self.filler.room.give_back([replace(chunk, pods=sign * chunk.pods)], load)
        for node in held.freed.keys() | held.drawn.keys():
            more = held.freed.get(node, 0) - held.drawn.get(node, 0)
            self.left[node] = self.left.get(node, 0) + sign * more
        self._add({node: sign * gpus for node, gpus in held.drawn.items()})

    def _add(self, gpus: Mapping[int, int]) -> None:
        """Count so many more GPUs as free, by node."""
        for node, more in gpus.items():
            self.filler.room.free[node] += more
            self.filler.vacancies.changed(int(self.state.fleet.domain[node]))
        self.filler.forget()

    def _ending(self, leases: Iterable[LeaseRow]) -> tuple[list[tuple[Chunk, PodLoad]], dict[int, int]]:
        """What leases that are still open then use beside GPUs, and their GPUs by node."""
        fleet, loads = self.state.fleet, list[tuple[Chunk, PodLoad]]()
        freed: dict[int, int] = {}
        for lease in leases:
            node, run = fleet.index.get(lease.node), self.state.runs.get(lease.run_key)
            if node is None or run is None or lease.key not in self._open or not fleet.takes_work[node]:
                continue
            pods = run.pods_of(lease.gpus) if lease.active else 0
            loads.append((Chunk(lease.group, node, 0, pods, lease.active), run.load))
            freed[node] = freed.get(node, 0) + lease.gpus
        return loads, freed

    @cached_property
    def _open(self) -> frozenset[LeaseKey]:
        """Leases that are open then, if nothing is cut."""
        return frozenset(lease.key for mine in self.state.held.values() for lease in mine)

    def pays(self, keys: Collection[RunKey]) -> bool:
        """Would the money of then pay for these runs together, were every GPU free but those of others than runs?"""
        filler, problem = Filler(self.problem, self.state.emptied_room(), self.filler.purses), self.problem
        found: list[Settled] = []
        for key in keys:
            types = ((index, problem.types[problem.candidates[index].type]) for index in problem.ways.get(key, ()))
            tries = (filler.try_start(kind, Start(index, 0)) for index, kind in types if not kind.unfunded)
            found += islice(filter(None, tries), 1)
        filler.take_back(found)
        return len(found) == len({*keys})

    def admits(self, starts: Mapping[RunKey, Settled]) -> bool:
        """May runs lie on their nodes then, whatever is free there and whoever pays? Maintenance may say no."""
        site, runs = self.state.fleet.site, self.state.runs
        return all(
            self.state.sites_for(runs[key].waiting()).issuperset(site[found.nodes].tolist())
            for key, found in starts.items()
        )

    @property
    def changes(self) -> int:
        """How often its ``free`` slots have changed, from 1 on; 0 where it was not looked at, and its world costs."""
        return self.filler.vacancies.changes + 1 if "filler" in self.__dict__ else 0

    @property
    def free(self) -> Ints:
        """Free slots by node, (nodes,); not to be written to."""
        return self.filler.vacancies.free()

    def has(self, gpus: Mapping[int, int]) -> bool:
        """Are so many GPUs free, by node?"""
        free = self.filler.room.free
        return all(free[node] >= count for node, count in gpus.items())

    def take(self, key: RunKey, found: Settled, *, anyway: bool = False, keeps: bool = False) -> Settled | None:
        """Hold at this moment the slots of a start that was found at another one; None where they are not free.

        Who pays for it is looked up anew, for envelopes may have other room now, unless it ``keeps`` its payers.
        ``anyway``: also where nobody pays.
        """
        room, problem = self.filler.room, self.problem
        if not self.has(gpus_of(found)):
            return None
        mine = [c for c in problem.ways.get(key, ()) if not problem.types[problem.candidates[c].type].unfunded]
        start = Start(mine[0] if mine else -1, found.start.steps)
        paid: Paid | None = {}
        if mine:
            needed = demand(problem, room, found.pieces)
            kept = self._keep(start, found, needed) if keeps else None
            paid = kept or self.filler.purses.pay_for(start, needed)
        if paid is None and not anyway:
            return None
        for piece in found.pieces:
            room.take(piece.chunks, piece.load)
            self.filler.vacancies.changed(piece.domain)
        return Settled(Start(-1, start.steps) if paid is None else start, found.pieces, paid or {})

    def _keep(self, start: Start, found: Settled, needed: Demand) -> Paid | None:
        """Payments of a start by the payers that it has at another moment, in the regions of this one.

        One whose window is over by then pays nothing, and nobody does in its stead. None where they do not leave it
        that much.
        """
        purses, candidate = self.filler.purses, self.problem.candidates[start.candidate]
        left, paid = {True: Counter[int](), False: Counter[int]()}, Paid()
        for (active, _), payments in found.paid.items():
            left[active].update(payments)
        for (active, region), gpus in needed.items():
            mine = paid[active, region] = {}
            for envelope in purses.ways.of(candidate, region):
                if pays := min(gpus - sum(mine.values()), left[active][envelope]):
                    mine[envelope] = pays
            left[active].subtract(mine)
        if not purses.leave(start, paid):
            return None
        purses.put_back(start, paid)
        return paid

    def keeps_money(self, others: Iterable[Settled], key: RunKey, found: Settled, leases: Iterable[LeaseRow]) -> bool:
        """Do ``others``, or those that are over, keep a start that holds its slots from its money, which ``leases`` cut
        for it do not give back?

        Nothing is taken.
        """
        purses, given_back = self.filler.purses, self._money_of({lease.key for lease in leases})
        for cap, weight in given_back.items():
            purses.count(cap, -weight, FARTHEST)
        is_paid = self._would_pay(key, found)
        for cap, weight in given_back.items():
            purses.count(cap, weight, FARTHEST)
        if is_paid:
            return False
        paying, charged = [(each.start, each.paid) for each in others if each.start.candidate >= 0], self.charged
        purses.take_back(paying)
        self.charge({})
        is_paid = self._would_pay(key, found)
        self.charge(charged)
        for each in paying:
            purses.put_back(*each)
        return is_paid

    def _would_pay(self, key: RunKey, found: Settled) -> bool:
        problem, purses = self.problem, self.filler.purses
        for candidate in problem.ways.get(key, ()):
            if not problem.types[problem.candidates[candidate].type].unfunded:
                start = Start(candidate, found.start.steps)
                paid = purses.pay_for(start, demand(problem, self.filler.room, found.pieces))
                purses.take_back([] if paid is None else [(start, paid)])
                return paid is not None
        return False

    def _money_of(self, leases: Container[LeaseKey]) -> dict[int, int]:
        """What funded claims that have no other leases take, by cap."""
        funded, found = self.state.funded, dict[int, int]()
        for part, is_funded in zip(funded.parts, funded.outcome.funded, strict=True):
            if is_funded and all(lease.key in leases for lease in part.leases):
                for cap, weight in part.touched.items():
                    found[cap] = found.get(cap, 0) + weight
        return found

    def charge(self, charged: Mapping[int, int]) -> None:
        """Count what starts that are over have taken of hours and credits, and only that."""
        for cap in self.charged.keys() | charged.keys():
            if more := charged.get(cap, 0) - self.charged.get(cap, 0):
                self.filler.purses.count(cap, more, 0)
        self.charged = charged

    def ahead(self, taken: Settled) -> dict[int, int]:
        """What a start takes of the caps on hours and credits."""
        return {} if taken.start.candidate < 0 else self.filler.purses.ahead(taken.start, taken.paid)

    def give_back(self, taken: Settled) -> None:
        """Undo `take`, or a start."""
        self.filler.give_back(taken.pieces)
        if taken.start.candidate >= 0:
            self.filler.purses.take_back([(taken.start, taken.paid)])
        self.filler.forget()

    def fits(self, taken: Settled) -> bool:
        """Is it free, and do its payers have that much left?"""
        if not self.has(gpus_of(taken)):
            return False
        return taken.start.candidate < 0 or self.filler.purses.leave(taken.start, taken.paid)

    def put_back(self, taken: Settled) -> None:
        """Undo `give_back`."""
        for piece in taken.pieces:
            self.filler.room.take(piece.chunks, piece.load)
            self.filler.vacancies.changed(piece.domain)
        if taken.start.candidate >= 0:
            self.filler.purses.put_back(taken.start, taken.paid)


def _widths(kind: RunType, *, least: bool) -> range:
    """Steps above the least width that are tried, the widest first."""
    return range(0 if least else kind.lowered.steps, -1, -1)


def gpus_of(*starts: Settled) -> dict[int, int]:
    """GPUs of starts by node."""
    found: dict[int, int] = {}
    for start in starts:
        for piece in start.pieces:
            for chunk in piece.chunks:
                found[chunk.node] = found.get(chunk.node, 0) + chunk.count
    return found
