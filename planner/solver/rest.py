"""Sub-MIP: the free columns of a model solved again, all others as they are.

Nothing is presolved (solver.highs), so columns that are fixed are taken out here, and rows that then say nothing.
"""

from collections.abc import Iterator

import numpy as np

from jobtree.world.tables.values import Bools, Floats
from planner.solver.highs import LEAN, NOISE, Settings, Solution, solve
from policies.model.linear import INF, Model


def beside(model: Model, columns: Bools, *, equal: bool) -> Bools:
    """``columns``, and all that stand in a row with one of them; ``equal``: in rows that are equations alone."""
    row, column, *_ = model.entries
    touched = np.zeros(len(model.row_lower), dtype=np.bool_)
    touched[row[columns[column]]] = True
    if equal:
        touched &= np.asarray(model.row_lower) == np.asarray(model.row_upper)
    found = columns.copy()
    found[column[touched[row]]] = True
    return found


def tight(model: Model, columns: Bools) -> Iterator[Bools]:
    """Row by row, all columns of the inequations in which some of ``columns`` stand."""
    row, column, *_ = model.entries
    loose = np.asarray(model.row_lower) < np.asarray(model.row_upper)
    for number in np.unique(row[columns[column] & loose[row]]).tolist():
        found = np.zeros(len(columns), dtype=np.bool_)
        found[model.indices[model.starts[number] : model.starts[number + 1]]] = True
        yield found


def fractional(model: Model, point: Floats) -> Bools:
    """Integer columns that are not whole at ``point``."""
    return model.whole & (np.abs(point - np.round(point)) > NOISE)


def solve_rest(model: Model, point: Floats, free: Bools, settings: Settings) -> Solution:
    """The best point that differs from ``point`` in the ``free`` columns only; its bound holds for such points."""
    columns = np.flatnonzero(free)
    place = np.full(len(model.cost), -1)
    place[columns] = np.arange(len(columns))
    row, column, value, _ = model.entries
    base = np.where(free, 0.0, np.where(model.whole, np.round(point), point))
    fixed = np.bincount(row, weights=value * base[column], minlength=len(model.row_lower))
    rows = np.flatnonzero(np.bincount(row[free[column]], minlength=len(model.row_lower)))
    small = model.part(columns, rows, place)
    small.row_lower = (np.asarray(small.row_lower) - fixed[rows]).tolist()
    small.row_upper = (np.asarray(small.row_upper) - fixed[rows]).tolist()
    found = solve(small, settings | LEAN)
    if found.values is None:
        return Solution(None, -INF, found.bound, found.optimal)
    base[columns] = found.values
    rest = float(np.asarray(model.cost) @ np.where(free, 0.0, base))
    return Solution(base, found.objective + rest, found.bound + rest, found.optimal)


def made_whole(model: Model, point: Floats, settings: Settings, *, most: int) -> Floats | None:
    """The best whole point that differs from this one only beside what is not whole, in ``most`` columns at most.

    None: none is found.
    """
    off = fractional(model, point)
    if not off.any():
        return point
    for free in (beside(model, off, equal=True), beside(model, beside(model, off, equal=False), equal=True)):
        found = solve_rest(model, point, free, settings).values if np.count_nonzero(free) <= most else None
        if found is not None:
            return found
    return None
