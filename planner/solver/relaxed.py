"""A relaxation whose bounds, rows or objective move: each solve goes on from where the one before ended.

After bounds by some steps of dual simplex, after an objective by some of primal simplex: cold, with what was reached as
a dense row, takes ten times as long. From the basis of bounds that were taken back, or of a solve without a point, the
way can be as long as from nothing: so `undo` takes the basis back as well.

It may be solved without what its bounds decide (solver.shrunk): most of a large model, once it is settled who gives
way and which starts are out of the question. What is left out is back as soon as a bound is loosened.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import highspy
import numpy as np

from jobtree.world.tables.values import Floats, Ints
from planner.solver.basis import Basis
from planner.solver.highs import Settings, Solution, new_highs, pass_model, relax, to_highs
from planner.solver.shrunk import Shrunk, shrink
from policies.model.linear import INF, Model, held_at

_PRIMAL: Final = 4
"""HiGHS' number for primal simplex."""
Found = tuple[Floats | None, float]
"""The point that is best under some bounds, and its value; None: there is none."""


class Relaxed:
    """``least``, ``most``: bounds of the model's columns; ``lower``, ``upper``: those that hold now."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.least = np.asarray(model.lower, dtype=np.float64)
        self.most = np.asarray(model.upper, dtype=np.float64)
        self.lower, self.upper = self.least.copy(), self.most.copy()
        self._last: tuple[Ints, Floats, Floats] = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        self._settings = settings | {"solver": "simplex"}
        self._highs = self._whole = new_highs(self._settings)
        pass_model(self._whole, to_highs(model, relaxed=True))
        self._left: Shrunk | None = None
        self._here: Basis | None = None
        self._before = self.basis()
        self._is_solved = False

    def put(self, columns: Ints, low: Floats, high: Floats) -> None:
        """Bounds of some columns."""
        self.lower[columns], self.upper[columns] = low, high
        if self._left is not None and not self._left.holds(columns, self.lower[columns], self.upper[columns]):
            self._grow()
            return
        places = columns if self._left is None else self._left.place[columns]
        there = places >= 0
        places, columns = places[there].astype(np.int32), columns[there]
        self._highs.changeColsBounds(len(places), places, self.lower[columns], self.upper[columns])

    def only(self, fixings: Mapping[int, tuple[float, float]], basis: Basis | None = None) -> None:
        """Column → least and most, and the model's bounds for all else.

        ``basis``: where the next solve begins; None: where the last one ended.
        """
        lower, upper = self.least.copy(), self.most.copy()
        for column, (low, high) in fixings.items():
            lower[column], upper[column] = low, high
        changed = np.flatnonzero((lower != self.lower) | (upper != self.upper))
        self.put(changed, lower[changed], upper[changed])
        if basis is not None:
            self.go_to(basis)

    def within(self, columns: Ints, high: Floats, low: Floats | None = None) -> Found:
        """The best point under these bounds (equal ones without ``low``), which `undo` takes back."""
        self._before = self.basis()
        self._last = columns, self.lower[columns].copy(), self.upper[columns].copy()
        self.put(columns, high if low is None else low, high)
        return self.best()

    def undo(self) -> None:
        """Take the last bounds back, and the basis that was there before them."""
        self.put(*self._last)
        self.go_to(self._before)

    def basis(self) -> Basis:
        """Basis from which the next solve begins: where the last one ended, or where `go_to` led since then."""
        if self._here is None:
            self._here = Basis(self._highs.getBasis(), self._whole.getNumCol(), self._whole.getNumRow(), self._left)
        return self._here

    def go_to(self, basis: Basis) -> None:
        """Let the next solve begin there."""
        if basis is self._here:
            return
        status = basis.on(self._left)
        if self._highs.setBasis(status) != highspy.HighsStatus.kOk:
            raise ArithmeticError("the solver refuses the basis")
        self._here = basis

    def maximise(self, costs: Mapping[int, float], *, steps: int | None = None) -> Solution:
        """Find the optimum of another objective, in so many steps of simplex at most."""
        self._grow()
        every, cost = np.arange(len(self.least), dtype=np.int32), np.zeros(len(self.least))
        cost[[*costs]] = [*costs.values()]
        self._highs.changeColsCost(len(every), every, cost)
        if self._is_solved:
            self._highs.setOptionValue("simplex_strategy", _PRIMAL)
        if steps is not None:
            self._highs.setOptionValue("simplex_iteration_limit", steps)
        return self.solve()

    def hold(self, costs: Mapping[int, float], least: float) -> None:
        """Reach so much of an objective from now on."""
        self._grow()
        columns = np.asarray([*costs], dtype=np.int32)
        self._highs.addRow(least, INF, len(columns), columns, np.asarray([*costs.values()], dtype=np.float64))
        self._here = None

    def raise_row(self, row: int, least: float) -> None:
        """Let a row without an upper limit come to so much from now on."""
        self._grow()
        self._highs.changeRowBounds(row, least, INF)

    def reduced(self) -> Floats:
        """Reduced costs, (columns,), at the last optimum; of columns that are left out 0."""
        duals = np.asarray(self._highs.getSolution().col_dual, dtype=np.float64)
        return self._spread(duals, np.zeros(len(self.least)))

    def solve(self) -> Solution:
        """The optimum; without values where there is none, or none is found."""
        found = relax(self._highs)
        self._here, self._is_solved = None, True
        return found if found.values is None else replace(found, values=self._spread(found.values, self.lower))

    def _spread(self, values: Floats, otherwise: Floats) -> Floats:
        """Values of what is solved, by the model's columns; ``otherwise``: of columns that are left out."""
        if self._left is None:
            return values
        found = otherwise.copy()
        found[self._left.columns] = values
        return found

    def shrink(self) -> None:
        """Leave out what the bounds of now decide, until one is loosened.

        But not all of it: of a model without columns HiGHS says neither what it is worth nor whether its rows hold.
        """
        self._grow()
        left = shrink(self._whole.getLp(), self._whole.getBasis())
        if not len(left.columns):
            return
        highs = new_highs(self._settings)
        pass_model(highs, left.lp)
        self._go_on_with(highs, left)

    def _grow(self) -> None:
        """Leave nothing out."""
        if self._left is not None:
            every = np.arange(len(self.least), dtype=np.int32)
            self._whole.changeColsBounds(len(every), every, self.lower, self.upper)
            self._go_on_with(self._whole, None)

    def _go_on_with(self, highs: highspy.Highs, left: Shrunk | None) -> None:
        """Let this solver, of what is ``left``, begin where the other one stands."""
        here = self.basis()
        self._highs, self._left, self._here = highs, left, None
        self.go_to(here)

    def best(self) -> Found:
        """The best point there is now."""
        found = self.solve()
        return found.values, found.objective


def relax_both(
    model: Model, first: Mapping[int, float], second: Mapping[int, float], settings: Settings
) -> tuple[Solution, Solution]:
    """Solve the relaxation for one objective, then for another with the first held at its optimum."""
    relaxed = Relaxed(model, settings)
    found = relaxed.maximise(first)
    if found.values is None:
        return found, found
    relaxed.hold(first, held_at(found.objective))
    return found, relaxed.maximise(second)
