"""Starting one run after another: the first incumbent, and the fill that makes a plan maximal (spec §4).

Heaviest (oldest) first; each takes the nearest payers that still have room, then slots. Nothing is ever taken back, so
a run type that once did not fit will not fit later in the same pass, and is skipped.
"""

from collections.abc import Iterable

import numpy as np

from planner.draft import Draft
from planner.place import Piece, Start, pieces_of
from planner.purses import Demand, Paid, Purses
from planner.room import Room
from planner.vacancy import Vacancies
from policies.problem import Problem, RunType


def fill(problem: Problem, room: Room, purses: Purses, draft: Draft, order: Iterable[int]) -> None:
    """Add to ``draft`` whatever still fits, candidates in ``order``; gangs are left to the master."""
    in_gang = {key for gang in problem.gangs for key in gang}
    started = draft.started(problem)
    hopeless: set[tuple[int, int, int]] = set()
    filler = _Filler(problem, room, purses)
    for index in order:
        candidate = problem.candidates[index]
        kind = problem.types[candidate.type]
        if candidate.run.key in started or candidate.run.key in in_gang:
            continue
        for steps in range(kind.lowered.steps, -1, -1):
            case = (kind.index, steps, candidate.purse)
            if case in hopeless:
                continue
            start = Start(index, steps)
            found = filler.try_start(kind, start)
            if found is None:
                hopeless.add(case)
                continue
            pieces, paid = found
            draft.starts.append(start)
            draft.pieces += pieces
            draft.paid[index] = paid
            started.add(candidate.run.key)
            break


class _Filler:
    """Tries single starts against what is left."""

    def __init__(self, problem: Problem, room: Room, purses: Purses) -> None:
        self.problem = problem
        self.room = room
        self.purses = purses
        self.vacancies = Vacancies(room)
        self.roomless: set[tuple[int, int]] = set()

    def try_start(self, kind: RunType, start: Start) -> tuple[list[Piece], Paid] | None:
        """Place and pay one start; None, with nothing taken, where either fails."""
        gpus = kind.base_gpus + start.steps * kind.step_gpus
        candidate = self.problem.candidates[start.candidate]
        payable = kind.unfunded or self.purses.could_pay(kind, gpus)
        if (kind.index, start.steps) in self.roomless or not self.purses.trees_allow(start):
            return None
        if not payable and not self.purses.could_recall(candidate, kind.sites, gpus):
            return None
        for sites in self._parts(kind):
            placed = self._settle(start, sites)
            if not placed:
                if sites == kind.sites:
                    self.roomless.add((kind.index, start.steps))
                break  # less of the fleet will not hold it either
            paid = self._pay(start, placed)
            if paid is not None:
                self.purses.count_trees(start)
                return placed, paid
            self._give_back(placed)
        return None

    def _parts(self, kind: RunType) -> list[frozenset[int]]:
        """Where to try: anywhere it may be, then in each region of money alone (nodes do not know who pays)."""
        region = self.problem.book.money.region
        regions = sorted({region[site] for site in kind.sites})
        if kind.unfunded or len(regions) == 1:
            return [kind.sites]
        return [kind.sites, *(frozenset(s for s in kind.sites if region[s] == r) for r in regions)]

    def _settle(self, start: Start, sites: frozenset[int]) -> list[Piece]:
        """Slots for every piece of a start; an empty list, with nothing taken, where one finds none."""
        pieces = pieces_of(self.problem, start)
        placed: list[Piece] = []
        mine: set[int] = set()
        for i, piece in enumerate(pieces):
            piece.sites = sites
            if not self._place(piece, mine, len(pieces) - i):
                self._give_back(placed)
                return []
            placed.append(piece)
            mine.add(piece.domain)
        return placed

    def _give_back(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self.room.give_back(piece.chunks, piece.load)
            self.vacancies.changed(piece.domain)

    def _place(self, piece: Piece, mine: set[int], rest: int) -> bool:
        """The run's own domains first, then one that takes most of the rest, then the tightest fit."""
        left = self.vacancies.of(piece.sites, piece.shape.pod, piece.load)
        options = np.flatnonzero(left >= piece.shape.size)
        here = left[options]
        most = -np.minimum(rest, here // piece.shape.size)
        others = np.asarray([domain not in mine for domain in options.tolist()], dtype=np.bool_)
        for domain in options[np.lexsort((options, here, most, others))].tolist():
            chunks = self.room.settle(domain, piece.sites, list(piece.groups), piece.load)
            if chunks is not None:
                piece.domain, piece.chunks = domain, chunks
                self.vacancies.changed(domain)
                return True
        return False

    def _pay(self, start: Start, pieces: list[Piece]) -> Paid | None:
        candidate = self.problem.candidates[start.candidate]
        if self.problem.types[candidate.type].unfunded:
            return {}
        wanted = demand(self.problem, self.room, pieces)
        return self.purses.pay(candidate, wanted) or self.purses.recall(candidate, wanted)


def demand(problem: Problem, room: Room, pieces: Iterable[Piece]) -> Demand:
    """GPUs to be paid per (active, region)."""
    region = problem.book.money.region
    total: Demand = {}
    for piece in pieces:
        for chunk in piece.chunks:
            key = (chunk.active, region[int(room.fleet.site[chunk.node])])
            total[key] = total.get(key, 0) + chunk.count
    return total
