"""Ranging: what the optimum of a relaxation gains where limits of its rows rise.

Where the optimal basis B stays feasible with limits risen, that is x_B + B⁻¹ rise is within its limits, it stays
optimal and the duals are the gain: one solve with a factor that is there. Elsewhere the relaxation is solved again,
from its basis, in a few steps of simplex. The duals y found there bound every other gain too, for they are feasible
whatever the limits are: LP(b + rise) ≤ y·(b + rise). Where that leaves nothing to gain, nothing need be solved.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import highspy
import numpy as np

from jobtree.world.tables.values import Floats
from planner.solver.highs import Settings, Solution, new_highs, pass_model, relax, to_highs
from policies.model.linear import INF, Model

_EXACT: Final = 1e-9
"""What a basis may be outside of its limits and still count as feasible: less than the solver lets pass."""

Rises = Mapping[int, float]
"""Row → how much its upper limit rises."""
Gain = tuple[float, float]
"""What is gained by rises: of the objective, and of the sum that is ``counted`` beside it."""


class _Ceiling(NamedTuple):
    """Proof by duals of rows: with limits risen the optimum gains at most ``least`` + duals × rises."""

    least: float
    duals: Floats

    def over(self, rises: Rises) -> float:
        """The most that these rises gain."""
        return self.least + float(sum(rise * self.duals[row] for row, rise in rises.items()))


class Ranging:
    """The relaxation of a model for its objective. ``optimum``: None where none is found."""

    def __init__(self, model: Model, counted: Floats, settings: Settings) -> None:
        """``counted``: (columns,), what a unit of each counts in the sum beside the objective."""
        self._limits, self._counted, self._columns = model.row_upper, counted, len(model.cost)
        self._highs = new_highs(settings | {"solver": "simplex"})
        pass_model(self._highs, to_highs(model, relaxed=True))
        found = relax(self._highs)
        self.optimum = None if found.values is None else found.objective
        if found.values is None:
            return
        self._basis = self._highs.getBasis()
        solution = self._highs.getSolution()
        self._ceilings = [_Ceiling(0.0, np.asarray(solution.row_dual, dtype=np.float64))]
        self._first = found
        inside = np.asarray(self._highs.getBasicVariables()[1], dtype=np.int64)  # type: ignore[attr-defined]  # not in its stubs
        # HiGHS has minus the activity of row r in the basis, as -1 - r; here rows are numbered on from the columns.
        self._inside = np.where(inside < 0, self._columns - 1 - inside, inside)
        self._signs = np.where(inside < 0, -1.0, 1.0)
        self._values: Floats = np.asarray([*solution.col_value, *solution.row_value], dtype=np.float64)[self._inside]
        self._least: Floats = np.asarray([*model.lower, *model.row_lower], dtype=np.float64)[self._inside]
        self._most: Floats = np.asarray([*model.upper, *model.row_upper], dtype=np.float64)
        # So near an optimum, perturbed costs lead hundreds of steps away from it and back.
        self._highs.setOptionValue("dual_simplex_cost_perturbation_multiplier", 0.0)

    def most(self, rises: Rises) -> float:
        """The most that the optimum can gain by these rises, as far as is known."""
        return min(ceiling.over(rises) for ceiling in self._ceilings)

    def steady(self, rises: Rises) -> Gain | None:
        """Answer as `risen`, where the basis stays feasible and so optimal; else None. Asked before any `risen`."""
        most = self._most.copy()
        held = np.zeros(len(self._limits))
        for row, rise in rises.items():
            most[self._columns + row] += rise
            held[row] = rise
        held[self._inside[self._inside >= self._columns] - self._columns] = 0.0  # rows in the basis are not full
        status, steps = self._highs.getBasisSolve(held)  # type: ignore[attr-defined]  # not in its stubs
        if status != highspy.HighsStatus.kOk:
            return None
        moved = self._values + self._signs * steps
        if (moved < self._least - _EXACT).any() or (moved > most[self._inside] + _EXACT).any():
            return None
        columns = self._inside < self._columns
        return self._ceilings[0].over(rises), float(self._counted[self._inside[columns]] @ steps[columns])

    def risen(self, rises: Rises) -> Gain:
        """Gain by them, solved again from the first optimum's basis; nothing where no optimum is found."""
        for row, rise in rises.items():
            self._highs.changeRowBounds(row, -INF, self._limits[row] + rise)
        found, gain = relax(self._highs), (0.0, 0.0)
        if found.values is not None:
            gained = found.objective - self._first.objective
            gain = gained, self._sum(found) - self._sum(self._first)
            duals = np.asarray(self._highs.getSolution().row_dual, dtype=np.float64)
            self._ceilings.append(_Ceiling(gained - _Ceiling(0.0, duals).over(rises), duals))
        for row in rises:
            self._highs.changeRowBounds(row, -INF, self._limits[row])
        self._highs.setBasis(self._basis)
        return gain

    def _sum(self, found: Solution) -> float:
        return 0.0 if found.values is None else float(self._counted @ found.values)
