"""A relaxation without what its bounds decide: fixed columns, and rows that no point within the bounds can break."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import highspy
import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints

_NOISE: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Rest of a model: ``columns`` and ``rows``, by their number in it, within ``lower`` and ``upper``.

    ``place``: column of the whole model → its number here, or -1; ``lp``: the model that is left, whose objective
    counts what is left out.
    """

    columns: Ints
    rows: Ints
    lower: Floats
    upper: Floats
    place: Ints
    lp: highspy.HighsLp

    def holds(self, columns: Ints, low: Floats, high: Floats) -> bool:
        """Do these bounds leave decided what is left out?"""
        return bool((low >= self.lower[columns]).all() and (high <= self.upper[columns]).all())


class _Terms(NamedTuple):
    """Terms in the rows of a model, by column: ``column``, ``row`` and ``value`` of each term."""

    column: Ints
    row: Ints
    value: Floats


def shrink(lp: highspy.HighsLp, basis: highspy.HighsBasis) -> Shrunk:
    """A model, by column, without its fixed columns, and without rows that all points within their bounds keep.

    Columns that are basic stay, and rows that are not, so that what is left of ``basis`` is a basis of what is left.
    """
    lower, upper = np.asarray(lp.col_lower_, np.float64), np.asarray(lp.col_upper_, np.float64)
    least, most = np.asarray(lp.row_lower_, np.float64), np.asarray(lp.row_upper_, np.float64)
    costs, starts = np.asarray(lp.col_cost_, np.float64), np.asarray(lp.a_matrix_.start_, np.int64)
    column = np.repeat(np.arange(len(costs)), np.diff(starts))
    terms = _Terms(column, np.asarray(lp.a_matrix_.index_, np.int64), np.asarray(lp.a_matrix_.value_, np.float64))
    free = (lower < upper) | _basic(basis.col_status)
    binding = _binding(terms, lower, upper, least, most) | ~_basic(basis.row_status)
    columns, rows = np.flatnonzero(free), np.flatnonzero(binding)
    fixed = np.where(free, 0.0, lower)
    taken = np.bincount(terms.row, terms.value * fixed[terms.column], minlength=len(least))
    small = highspy.HighsLp()
    small.num_col_, small.num_row_ = len(columns), len(rows)
    small.sense_, small.offset_ = lp.sense_, lp.offset_ + float(costs @ fixed)
    small.col_cost_, small.col_lower_, small.col_upper_ = costs[columns], lower[columns], upper[columns]
    small.row_lower_, small.row_upper_ = (least - taken)[rows], (most - taken)[rows]
    inside = free[terms.column] & binding[terms.row]
    counts = np.bincount(terms.column[inside], minlength=len(costs))[columns]
    small.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    small.a_matrix_.start_ = np.cumsum([0, *counts.tolist()]).astype(np.int32)
    small.a_matrix_.index_ = (np.cumsum(binding) - 1)[terms.row[inside]].astype(np.int32)
    small.a_matrix_.value_ = terms.value[inside]
    return Shrunk(columns, rows, lower, upper, np.where(free, np.cumsum(free) - 1, -1), small)


def _basic(statuses: list[highspy.HighsBasisStatus]) -> Bools:
    return np.asarray([status == highspy.HighsBasisStatus.kBasic for status in statuses], np.bool_)


def _binding(terms: _Terms, lower: Floats, upper: Floats, least: Floats, most: Floats) -> Bools:
    """Rows that some point within the columns' bounds breaks."""
    low, high, up = lower[terms.column], upper[terms.column], terms.value > 0
    smallest = np.bincount(terms.row, terms.value * np.where(up, low, high), minlength=len(least))
    largest = np.bincount(terms.row, terms.value * np.where(up, high, low), minlength=len(least))
    found: Bools = (largest > most + _NOISE) | (smallest < least - _NOISE)
    return found
