"""Whole numbers by rounding: what is nearly whole in the relaxation is rounded, and the relaxation solved again.

The relaxation of a large master has only some dozen counts that are not whole, and after a change of a bound the dual
simplex needs milliseconds. So: size by size, the largest runs first, starts before groups, whatever is nearly whole is
rounded together, else what is nearest to it. Where that loses too much the other side is tried. Where neither side has
a point, the type may start less. Everything may stay away, so in the end there is always one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints
from planner.effort import USUAL, Effort
from planner.solver.highs import NOISE
from planner.solver.relaxed import Relaxed
from policies.model.demand import type_of
from policies.model.linear import INF, Model
from policies.model.problem import Problem

STARTS: Final = ("start", "starts")
"""What columns count starts."""


@dataclass(frozen=True)
class Columns:
    """Per column: ``owner``, the type that it is of, and ``size``, Active GPUs of its runs (-1: of none); ``counts``:
    it counts starts; ``worth``: of one of a type's starts, in the objective, where it counts them all, else 0;
    ``allows``: of a level of starts at a contested cap, what allowing it takes of the cap, in the cap's unit, else 0.
    """

    size: Ints
    owner: Ints
    counts: Bools
    worth: Floats
    allows: Floats
    integer: Bools

    def gangs(self, least: int) -> Bools:
        """Mark columns, (columns,) bools, that count starts of runs of ``least`` Active GPUs and more."""
        return self.counts & (self.size >= least)


class Dive:
    """One rounding of a relaxation's columns: from where its bounds are, ever closer, but for resets."""

    def __init__(self, relaxed: Relaxed, of: Columns, effort: Effort = USUAL) -> None:
        self.relaxed, self.of, self.limits = relaxed, of, effort.rounding
        self.whole = of.integer.copy()
        self.resets, self.many = 0, len(self.whole)

    def run(self, bound: float, least: float = -INF) -> tuple[Floats | None, float]:
        """A point that is whole, and its value; one that is worth less than ``least`` is not looked for."""
        point, value = self.relaxed.best()
        if point is None:
            return None, -INF
        self._leave_out(point, bound)
        self.relaxed.shrink()
        bands = [self.whole & (self.of.size >= size) for size in self.limits.bands]
        bands[-1:] = [bands[-2] | (self.whole & (self.of.size < 0)), self.whole]  # money, then what fills its rests
        for band in bands:
            while point is not None and len(open_ := self._open(band, point)):
                point, value = self._round(open_, point, value, self.limits.drop * bound)
            if point is None or value < least:
                return None, -INF
            now = np.flatnonzero(band & (self.relaxed.lower < self.relaxed.upper))
            self.relaxed.put(now, np.round(point[now]), np.round(point[now]))
        return point, value

    def _leave_out(self, point: Floats, bound: float) -> None:
        lower, upper = self.relaxed.lower, self.relaxed.upper
        dear = self.relaxed.reduced() < -self.limits.unlikely * bound
        unlikely = (self.of.size >= 0) & (point < NOISE) & dear & (lower <= 0)
        columns = np.flatnonzero(unlikely & (upper > 0))
        self.relaxed.put(columns, lower[columns], np.zeros(len(columns)))

    def _open(self, band: Bools, point: Floats) -> Ints:
        """Columns that are not whole yet, starts before groups, the nearest to a whole number first."""
        off = np.abs(point - np.round(point))
        columns = np.flatnonzero(band & (off > NOISE))
        starts = columns[self.of.counts[columns]]
        columns = starts if len(starts) else columns
        return np.asarray(columns[np.lexsort((columns, -self.of.size[columns], off[columns]))], dtype=np.int64)

    def _round(self, columns: Ints, point: Floats, value: float, drop: float) -> tuple[Floats | None, float]:
        off = np.abs(point[columns] - np.round(point[columns]))
        many = columns[off < self.limits.batch][: self.many]
        if len(many) > 1:
            found = self.relaxed.within(many, np.round(point[many]))
            if found[1] >= value - drop:
                self.many = 2 * len(many)
                return found
            self.relaxed.undo()
            self.many = len(many) // 4
        else:
            self.many = 2
        one = columns[:1]
        near = np.round(point[one])
        least, most = self.relaxed.lower[one[0]], self.relaxed.upper[one[0]]
        found = self.relaxed.within(one, near)
        if found[1] >= value - drop:
            return found
        other = np.floor(point[one]) if near[0] > point[one[0]] else np.ceil(point[one])
        if least <= other[0] <= most:
            second = self.relaxed.within(one, other)
            if second[0] is not None and second[1] > found[1]:
                return second
            if found[0] is not None:
                return self.relaxed.within(one, near)
        if found[0] is not None:
            return found
        return self._less(one, point)

    def _less(self, one: Ints, point: Floats) -> tuple[Floats | None, float]:
        """Let the type of a count start less; where that is not enough, every type."""
        self.resets += 1
        if self.resets <= self.limits.resets:
            mine = np.flatnonzero(self.whole & (self.of.owner == self.of.owner[one[0]]))
            self.relaxed.put(mine, self.relaxed.least[mine], self.relaxed.upper[mine])
            found = self.relaxed.within(one, np.floor(point[one]), self.relaxed.least[one])
            if found[0] is not None:
                return found
        everything = np.flatnonzero(self.whole)
        highest = np.minimum(self.relaxed.upper[everything], np.floor(point[everything] + NOISE))
        return self.relaxed.within(everything, highest, self.relaxed.least[everything])


def columns_of(model: Model, problem: Problem) -> Columns:
    """The columns of a master, or of a block of one, by what they count."""
    number = len(model.cost)
    nothing, integer = np.full(number, -1, np.int64), model.whole
    found = Columns(nothing, nothing.copy(), np.zeros(number, np.bool_), np.zeros(number), _allows(model), integer)
    unit = float(problem.book.money.policy.age.unit)
    if found.allows.any():  # then payment sees to halves of spares
        integer &= ~model.columns_named("wallet")
    for column, key in enumerate(model.column_keys):
        kind = type_of(problem, key)
        if kind >= 0 and key[0] != "steps":
            of = problem.types[kind]
            found.owner[column], found.size[column] = kind, of.base_gpus
            found.counts[column] = key[0] in STARTS
            if found.counts[column] and integer[column] and not of.unfunded:
                found.worth[column] = of.base_gpus * problem.candidates[of.members[0]].weight / unit
    return found


def _allows(model: Model) -> Floats:
    """Per column, the largest coefficient of a level of starts: that in the row of its cap (policies.model.recall)."""
    found = np.zeros(len(model.cost))
    np.maximum.at(found, model.entries.column, model.entries.value)
    return np.where(model.columns_named("allowed"), found, 0.0)
