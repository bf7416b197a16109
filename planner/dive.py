"""Whole numbers by rounding: what is nearly whole in the relaxation is rounded, and the relaxation solved again.

The relaxation of a large master has only some dozen counts that are not whole, and after a change of a bound the dual
simplex needs milliseconds. So: size by size, the largest runs first, starts before groups, whatever is nearly whole is
rounded together, else what is nearest to it. Where that loses more than DROP of the bound the other side is tried.
Where neither side has a point, the type may start less. Everything may stay away, so in the end there is always one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np

from jobtree.world.values import Bools, Ints
from planner.master import Master
from planner.settling import settle
from planner.solver import Floats, Settings, new_highs, pass_model, to_highs
from policies.model import INF

BATCH: Final = 0.45
"""Counts nearer than this to a whole number are rounded together."""
DROP: Final = 1e-5
"""Part of the bound that one rounding may lose before the other side is tried."""
UNLIKELY: Final = 2e-5
"""Starts that would cost this part of the bound are left out."""
RESETS: Final = 20
"""Most times that a single type is made to start less; then all may."""
STARTS: Final = ("start", "starts", "starts-by-rights")
"""What columns count starts."""
_WHOLE: Final = 1e-6


@dataclass(frozen=True)
class Columns:
    """Per column: ``owner``, the type that it is of, and ``size``, Active GPUs of its runs (-1: of none); ``counts``:
    it counts starts.
    """

    size: Ints
    owner: Ints
    counts: Bools

    def gangs(self, least: int) -> Bools:
        """What counts starts of runs of so many Active GPUs and more."""
        return self.counts & (self.size >= least)


class Dive:
    """A relaxation and the bounds of its columns, which only ever close in, but for resets."""

    def __init__(self, master: Master, of: "Columns", lower: Floats, upper: Floats, settings: Settings) -> None:
        model = master.model
        self.least = np.asarray(model.lower, dtype=np.float64)
        self.most = np.asarray(model.upper, dtype=np.float64)
        self.lower, self.upper = lower.copy(), upper.copy()
        self.whole = np.asarray(model.integer, dtype=np.bool_)
        if master.held.stays:  # money is an equation then, and halves of spares stand in the way: payment sees to them
            self.whole &= of.owner >= 0
        self.of = of
        self.held = master.held
        self.highs = new_highs(settings | {"solver": "simplex"})
        lp = to_highs(model, relaxed=True)
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        pass_model(self.highs, lp)
        self.resets = 0

    def run(self, sizes: Sequence[int], bound: float, least: float = -INF) -> tuple[Floats | None, float]:
        """A point that is whole, but for money where claims may give way, and its value.

        ``sizes``: least Active GPUs, falling.

        ``least``: a point that is worth less is not looked for.
        """
        point, value = self._solve()
        if point is None:
            return None, -INF
        if self.held.stays:
            point, value = settle(self, self.held, point, bound)
            if point is None:
                return None, -INF
        self._leave_out(point, bound)
        bands = [self.whole & (self.of.size >= size) for size in sizes]
        bands[-1:] = [bands[-2] | (self.whole & (self.of.size < 0)), self.whole]  # money, then what fills its rests
        for band in bands:
            while point is not None and len(open_ := self._open(band, point)):
                point, value = self._round(open_, point, value, DROP * bound)
            if point is None or value < least:
                return None, -INF
            now = np.flatnonzero(band & (self.lower < self.upper))
            self._put(now, np.round(point[now]), np.round(point[now]))
        return point, value

    def fix(self, values: Mapping[int, float]) -> tuple[Floats | None, float]:
        """Fix columns and solve; None: there is no point then."""
        return self._try(np.fromiter(values, np.int64), np.fromiter(values.values(), np.float64))

    def undo(self) -> None:
        """Take the last fixing back."""
        self._put(self._last, *self._before)

    def reset(self, columns: Sequence[int]) -> None:
        """Take every fixing of these columns back."""
        every = np.asarray(columns, np.int64)
        self._put(every, self.least[every], self.most[every])

    def _leave_out(self, point: Floats, bound: float) -> None:
        dual = np.asarray(self.highs.getSolution().col_dual, dtype=np.float64)
        unlikely = (self.of.size >= 0) & (point < _WHOLE) & (dual < -UNLIKELY * bound) & (self.lower <= 0)
        columns = np.flatnonzero(unlikely & (self.upper > 0))
        self._put(columns, self.lower[columns], np.zeros(len(columns)))

    def _open(self, band: Bools, point: Floats) -> Ints:
        """What is not whole yet, starts before groups, the nearest to a whole number first."""
        off = np.abs(point - np.round(point))
        columns = np.flatnonzero(band & (off > _WHOLE))
        starts = columns[self.of.counts[columns]]
        columns = starts if len(starts) else columns
        return np.asarray(columns[np.lexsort((columns, -self.of.size[columns], off[columns]))], dtype=np.int64)

    def _round(self, columns: Ints, point: Floats, value: float, drop: float) -> tuple[Floats | None, float]:
        off = np.abs(point[columns] - np.round(point[columns]))
        many = columns[off < BATCH]
        if len(many) > 1:
            found = self._try(many, np.round(point[many]))
            if found[1] >= value - drop:
                return found
            self._put(many, self._before[0], self._before[1])
        one = columns[:1]
        near = np.round(point[one])
        found = self._try(one, near)
        if found[1] >= value - drop:
            return found
        before = self._before
        other = np.floor(point[one]) if near[0] > point[one[0]] else np.ceil(point[one])
        if before[0][0] <= other[0] <= before[1][0]:
            second = self._try(one, other)
            if second[0] is not None and second[1] > found[1]:
                return second
            if found[0] is not None:
                return self._try(one, near)
        if found[0] is not None:
            return found
        return self._less(one, point)

    def _less(self, one: Ints, point: Floats) -> tuple[Floats | None, float]:
        """Let the type of a count start less; where that is not enough, every type."""
        self.resets += 1
        if self.resets <= RESETS:
            mine = np.flatnonzero(self.whole & (self.of.owner == self.of.owner[one[0]]))
            self._put(mine, self.least[mine], self.upper[mine])
            found = self._try(one, np.floor(point[one]), self.least[one])
            if found[0] is not None:
                return found
        recall = self.held.columns
        self.reset(recall)  # a claim that gives way asks for starts: none has to
        everything = np.flatnonzero(self.whole)
        highest = np.minimum(self.upper[everything], np.floor(point[everything] + _WHOLE))
        return self._try(everything, highest, self.least[everything])

    def _try(self, columns: Ints, high: Floats, low: Floats | None = None) -> tuple[Floats | None, float]:
        """Bounds for some columns (equal ones without ``low``), and the point that is best then; None: there is none.

        What the bounds were is kept.
        """
        self._last, self._before = columns, (self.lower[columns].copy(), self.upper[columns].copy())
        self._put(columns, high if low is None else low, high)
        return self._solve()

    def _put(self, columns: Ints, low: Floats, high: Floats) -> None:
        self.lower[columns], self.upper[columns] = low, high
        self.highs.changeColsBounds(len(columns), columns.astype(np.int32), self.lower[columns], self.upper[columns])

    def _solve(self) -> tuple[Floats | None, float]:
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None, -INF
        point = np.asarray(self.highs.getSolution().col_value, dtype=np.float64)
        return point, float(self.highs.getInfo().objective_function_value)


def columns_of(master: Master) -> Columns:
    """The columns of a master by what they count."""
    problem = master.problem
    number = len(master.model.cost)
    nothing = np.full(number, -1, np.int64)
    found = Columns(nothing, nothing.copy(), np.zeros(number, np.bool_))
    for column, (what, *key) in enumerate(master.model.column_keys):
        if what in (*STARTS, "all-steps", "groups", "lies-together"):
            kind = problem.candidates[key[0]].type if what == "start" else key[0]
            found.owner[column], found.size[column] = kind, problem.types[kind].base_gpus
            found.counts[column] = what in STARTS
    return found
