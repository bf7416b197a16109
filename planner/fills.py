"""Plans that are filled, run after run: by age, and beside a master too large to be made whole, by its relaxation.

What the relaxation starts for more than a half comes first, once by age and once by worth, then all by age. It knows
which starts go together; in which order they find room and payers shows when they are made.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner import greedy
from planner.certificates import Certificates, Outcome
from planner.draft import Draft
from planner.master import Master
from planner.purses import Purses
from planner.reached import START_STAGES, recalled
from planner.room import Room
from planner.solver import Floats
from policies.problem import Problem

HALF = 0.5


@dataclass(frozen=True)
class Fills:
    """Of one problem. ``new_room``: what is free before anything starts."""

    problem: Problem
    new_room: Callable[[], Room]
    certificates: Certificates

    def by_age(self) -> Outcome:
        """The heaviest first."""
        return self._in_order([])

    def by_relaxation(self, master: Master, point: Floats) -> Iterator[Outcome]:
        """What starts at a point of the master's relaxation first, by age and by worth."""
        begun = [c for c in self._by_age(self.certificates.leading) if _begins(master, point, c)]
        worth = self.certificates.worth()
        yield self._in_order(begun)
        yield self._in_order(sorted(begun, key=lambda candidate: -worth[candidate]))

    def room(self) -> Room:
        """A fresh room that knows which sites are wanted by how many types."""
        room = self.new_room()
        for runs in self.problem.types:
            for site in runs.sites:
                room.wanted[site] += 1
        return room

    def top_up(self, room: Room, draft: Draft) -> Purses:
        """Add what still fits, so that the plan is maximal, in the order of the stages; what is left then."""
        purses = Purses.after(self.problem, draft)
        before: list[int] = []
        for stage in self.certificates.order:
            order = self._by_age(stage)
            greedy.fill(self.problem, room, purses, draft, order, before)
            before += order
        return purses

    def _in_order(self, first: Sequence[int]) -> Outcome:
        """A plan in which these candidates are tried first."""
        room, draft = self.room(), Draft()
        if first:
            greedy.fill(self.problem, room, Purses.after(self.problem, draft), draft, first)
        self.top_up(room, draft)
        return Outcome(draft, room, self.certificates.settings, recalled(self.problem, draft))

    def _by_age(self, stage: str) -> list[int]:
        """Candidates of a stage, heaviest first, then by creation and name."""
        candidates, types = self.problem.candidates, self.problem.types
        mine = [i for i, c in enumerate(candidates) if types[c.type].unfunded == START_STAGES[stage]]
        return sorted(mine, key=lambda i: candidates[i].order)


def _begins(master: Master, point: Floats, candidate: int) -> bool:
    """Does more than half of it start? What has no place has no column."""
    column = master.starts.start.get(candidate)
    return column is not None and float(point[column]) > HALF
