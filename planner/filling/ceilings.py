"""A quick look at money: at most how many GPUs a pool of payers could still hold, region by region, in arrays.

Each payer counts alone, with all that its tightest cap leaves in a region; what payers share is counted for each of
them. So a ceiling is never below what can be paid, and most runs that nobody can pay are told apart by it.
"""

import numpy as np

from jobtree.world.tables.values import Ints
from planner.filling.lanes import MOST, Lanes, left_of
from policies.model.problem import Problem, RunType


class Ceilings:
    """Ceilings against ``used``, what each cap has taken; whoever changes that says so (``changed``)."""

    def __init__(self, problem: Problem, used: list[int]) -> None:
        self._problem = problem
        self._used = used
        self._changed: set[int] = set()
        self._left = left_of(problem, used)
        self._lanes = Lanes(problem, {(k.pool, k.sites): (k.sources, k.sites) for k in problem.types})
        self._rooms = self._lanes.rooms(self._left)

    def changed(self, cap: int) -> None:
        """Note that the cap has taken more or less than before."""
        self._changed.add(cap)

    def by_region(self, kind: RunType) -> dict[int, int]:
        """GPUs that the type's payers could hold in each region alone."""
        grid = self._lanes.grids[kind.pool, kind.sites]
        return dict(zip(grid.regions, self._lane_rooms()[grid.lanes].sum(axis=0).tolist(), strict=True))

    def anywhere(self, kind: RunType) -> int:
        """GPUs that they could hold, each where it has most room."""
        return int(np.max(self._lane_rooms()[self._lanes.grids[kind.pool, kind.sites].lanes], axis=1, initial=0).sum())

    def _lane_rooms(self) -> Ints:
        if self._changed:
            for cap in self._changed:
                left = self._problem.book.caps[cap].limit - self._used[cap]
                self._left[cap] = max(0, min(left, MOST))
            self._changed.clear()
            self._rooms = self._lanes.rooms(self._left)
        return self._rooms
