"""Plans that are filled, run after run, the heaviest first: the first one, and what a solution leaves room for."""

from collections.abc import Callable, Set
from dataclasses import dataclass

from planner.filling import greedy
from planner.filling.filler import Filler
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.search.beside import drop_lost
from planner.search.certificates import Certificates, Outcome
from planner.search.objective import START_STAGES
from policies.model.problem import Problem


@dataclass(frozen=True)
class Fills:
    """Fills of one problem. ``new_room``: what is free before anything starts."""

    problem: Problem
    new_room: Callable[[], Room]
    certificates: Certificates

    def by_age(self) -> Outcome:
        """The heaviest first."""
        room, draft = self.room(), Draft()
        self.top_up(room, draft)
        return Outcome(draft, room, self.certificates.settings)

    def room(self) -> Room:
        """A fresh room that knows which sites are wanted by how many types."""
        room = self.new_room()
        for runs in self.problem.types:
            for site in runs.sites:
                room.wanted[site] += 1
        return room

    def top_up(self, room: Room, draft: Draft) -> None:
        """Add what still fits, so that the plan is maximal, in the order of the stages.

        The pass over all claims has the last word: what it leaves unfunded goes, and does not come back but alone.
        """
        self._fill(room, draft, set())
        gone = drop_lost(self.problem, room, draft)
        while gone:
            self._fill(room, draft, gone)
            lost = drop_lost(self.problem, room, draft)
            if not lost:
                break
            gone |= lost
        for candidate in sorted(gone, key=lambda c: self.problem.candidates[c].order):
            self._fill(room, draft, gone - {candidate})
            drop_lost(self.problem, room, draft)

    def _fill(self, room: Room, draft: Draft, gone: Set[int]) -> None:
        filler = Filler(self.problem, room, Purses.after(self.problem, draft))
        stages = [[c for c in self._by_age(stage) if c not in gone] for stage in self.certificates.order]
        due = sorted(set(self.problem.due).difference(gone), key=lambda c: self.problem.candidates[c].order)
        if due:  # before every stage that the Policy orders
            greedy.fill(filler, draft, due, least=True)
        before = [candidate for candidate in due if candidate not in stages[0]]
        for order in stages:
            greedy.fill(filler, draft, order, before)
            before += order
        if due:
            greedy.widen_unpaid(filler, draft, due)

    def _by_age(self, stage: str) -> list[int]:
        """Candidates of a stage, heaviest first, then by creation and name."""
        candidates, types = self.problem.candidates, self.problem.types
        mine = [i for i, c in enumerate(candidates) if types[c.type].unfunded == START_STAGES[stage]]
        return sorted(mine, key=lambda i: candidates[i].order)
