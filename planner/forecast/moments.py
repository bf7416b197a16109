"""Moments: the worlds of the known times, each derived when it is first asked for, with what promises take of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from planner.filling.filler import Filler, Learnt, Settled, demand
from planner.filling.purses import Demand, Paid, Purses
from planner.forecast.later import Later
from planner.placement.draft import Draft
from planner.placement.place import Piece, Start, pieces_of
from planner.placement.room import Room
from planner.state.derive import State
from policies.inputs.claims import RunKey
from policies.model.problem import Problem


@dataclass
class Moment:
    """One known time. ``source``: what makes it known."""

    at: int
    source: str
    later: Later = field(repr=False)

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
        return self.state.problem()

    @cached_property
    def filler(self) -> Filler:
        """What is left then, to be filled."""
        room: Room = self.state.room()
        return Filler(self.problem, room, Purses.after(self.problem, Draft()))

    def try_start(self, key: RunKey) -> Settled | None:
        """Place and pay a run, funded, at its widest; None, with nothing taken, where it cannot start."""
        problem = self.problem
        for index in problem.ways.get(key, ()):
            kind = problem.types[problem.candidates[index].type]
            for steps in () if kind.unfunded else range(kind.lowered.steps, -1, -1):
                found = self.filler.try_start(kind, Start(index, steps))
                if found is not None:
                    return found
        return None

    def lay(self, key: RunKey, nodes: frozenset[int]) -> Settled | None:
        """The same on some nodes alone."""
        problem = self.problem
        for index in problem.ways.get(key, ()):
            kind = problem.types[problem.candidates[index].type]
            for steps in () if kind.unfunded else range(kind.lowered.steps, -1, -1):
                start = Start(index, steps)
                placed = self._place(start, nodes) if self.filler.purses.trees_allow(start) else []
                paid = self._pay(start, demand(problem, self.filler.room, placed)) if placed else None
                if paid is not None:
                    return Settled(start, placed, paid)
                self._free(placed)
        return None

    def _place(self, start: Start, nodes: frozenset[int]) -> list[Piece]:
        """Slots on these nodes for all of its pieces; empty, with nothing taken, where one has none."""
        room = self.filler.room
        domains = sorted({int(room.fleet.domain[node]) for node in nodes})
        placed: list[Piece] = []
        for piece in pieces_of(self.problem, start):
            for piece.domain in domains:
                chunks = room.settle(piece.domain, piece.sites, list(piece.groups), piece.load, nodes)
                if chunks is not None:
                    piece.chunks = chunks
                    placed.append(piece)
                    self.filler.vacancies.changed(piece.domain)
                    break
            else:
                self._free(placed)
                return []
        return placed

    def take(self, key: RunKey, found: Settled, *, anyway: bool = False) -> Settled | None:
        """Hold at this moment the slots of a start that was found at another one; None where they are not free.

        Who pays for it is looked up anew: envelopes may have other room now. ``anyway``: also where nobody would.
        """
        room, problem = self.filler.room, self.problem
        needed: dict[int, int] = {}
        for piece in found.pieces:
            for chunk in piece.chunks:
                needed[chunk.node] = needed.get(chunk.node, 0) + chunk.count
        if any(room.free[node] < count for node, count in needed.items()):
            return None
        mine = [c for c in problem.ways.get(key, ()) if not problem.types[problem.candidates[c].type].unfunded]
        start = Start(mine[0] if mine else -1, found.start.steps)
        paid = self._pay(start, demand(problem, room, found.pieces)) if mine else {}
        if paid is None and not anyway:
            return None
        for piece in found.pieces:
            room.take(piece.chunks, piece.load)
            self.filler.vacancies.changed(piece.domain)
        return Settled(Start(-1, start.steps) if paid is None else start, found.pieces, paid or {})

    def _pay(self, start: Start, needed: Demand) -> Paid | None:
        """Payers of what it needs, if need be by what it may recall; counted in its trees."""
        asks, purses = self.problem.candidates[start.candidate], self.filler.purses
        paid = purses.pay(asks, needed)
        if paid is None and asks.recalls:
            paid = purses.pay(asks, needed, recalls=True)
        if paid is not None:
            purses.count_trees(start)
        return paid

    def give_back(self, taken: Settled) -> None:
        """Undo `take`, or a start."""
        self._free(taken.pieces)
        if taken.start.candidate >= 0:
            self.filler.purses.take_back([(taken.start, taken.paid)])
        self.filler.learnt = Learnt()

    def put_back(self, taken: Settled) -> None:
        """Undo `give_back`."""
        for piece in taken.pieces:
            self.filler.room.take(piece.chunks, piece.load)
            self.filler.vacancies.changed(piece.domain)
        if taken.start.candidate >= 0:
            self.filler.purses.put_back(taken.start, taken.paid)

    def _free(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self.filler.room.give_back(piece.chunks, piece.load)
            self.filler.vacancies.changed(piece.domain)
