"""A linear model as arrays: what the rule families write their rows into.

Columns and rows have keys (tuples) from which readable names are made on demand. Everything is in one fixed order:
the order of columns steers the solver, so it is part of determinism.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints

INF: Final = float("inf")
T = TypeVar("T")


def held_at(reached: float) -> float:
    """Least value of an objective that has reached this: less a rounding of the solver's."""
    return reached - max(1e-6, 1e-9 * abs(reached))


class Entries(NamedTuple):
    """Every term of a model, in the order of its rows, (terms,) each; ``start``: where each row begins, (rows + 1,)."""

    row: Ints
    column: Ints
    value: Floats
    start: Ints


class TooLargeError(Exception):
    """A model has more terms than it may have."""


@dataclass
class Model:
    """Rows ``lower ≤ Σ a·x ≤ upper`` over columns with bounds; objective maximised.

    ``most``: terms that it may have; a row beyond them raises TooLargeError.
    """

    cost: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    column_keys: list[tuple[Any, ...]] = field(default_factory=list)
    row_keys: list[tuple[Any, ...]] = field(default_factory=list)
    most: float = INF
    _entries: Entries | None = field(default=None, init=False, repr=False, compare=False)

    def column(
        self, key: tuple[Any, ...], *, cost: float = 0.0, upper: float = INF, integer: bool = False, lower: float = 0.0
    ) -> int:
        """Add a column; its index."""
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        self.column_keys.append(key)
        return len(self.cost) - 1

    @property
    def content(self) -> tuple[list[Any], ...]:
        """All that its solutions hang on, in the order of its fields."""
        rows = self.row_lower, self.row_upper, self.starts, self.indices, self.values
        return self.cost, self.lower, self.upper, self.integer, *rows

    @property
    def entries(self) -> Entries:
        """Terms as arrays; made anew where terms or rows have come since it was asked last."""
        known = self._entries
        if known is None or (len(known.row), len(known.start)) != (len(self.indices), len(self.starts)):
            start, column = (np.asarray(each, np.int64) for each in (self.starts, self.indices))
            row = np.repeat(np.arange(len(self.row_lower)), np.diff(start))
            known = self._entries = Entries(row, column, np.asarray(self.values, np.float64), start)
        return known

    @property
    def whole(self) -> Bools:
        """Columns that are integer, (columns,)."""
        return np.asarray(self.integer, dtype=np.bool_)

    def columns_named(self, what: str) -> Bools:
        """Columns whose keys begin so, (columns,)."""
        return np.asarray([name == what for name, *_ in self.column_keys], dtype=np.bool_)

    def rows_named(self, what: str) -> Bools:
        """Rows whose keys begin so, (rows,)."""
        return np.asarray([name == what for name, *_ in self.row_keys], dtype=np.bool_)

    def part(self, columns: Ints, rows: Ints, place: Ints) -> "Model":
        """Take some columns and rows, in their order, and of these rows the terms in these columns.

        ``place``: by column, its number among ``columns``; below 0 of others that have terms in ``rows``.
        """
        entries = self.entries
        begins, lengths = entries.start[rows], entries.start[rows + 1] - entries.start[rows]
        ends = np.cumsum(lengths)
        terms = np.arange(lengths.sum()) + np.repeat(begins - ends + lengths, lengths)
        terms = terms[place[entries.column[terms]] >= 0]
        counts = np.bincount(entries.row[terms], minlength=len(self.row_lower))[rows]
        return Model(
            cost=_some(self.cost, columns),
            lower=_some(self.lower, columns),
            upper=_some(self.upper, columns),
            integer=_some(self.integer, columns),
            row_lower=_some(self.row_lower, rows),
            row_upper=_some(self.row_upper, rows),
            starts=[0, *np.cumsum(counts).tolist()],
            indices=place[entries.column[terms]].tolist(),
            values=entries.value[terms].tolist(),
            column_keys=_some(self.column_keys, columns),
            row_keys=_some(self.row_keys, rows),
        )

    def copy(self) -> "Model":
        """Copy it, to be bounded further apart."""
        lists: dict[str, Any] = {name: [*value] for name, value in vars(self).items() if isinstance(value, list)}
        return replace(self, **lists)

    def maximise(self, costs: Mapping[int, float]) -> None:
        """Make Σ cost × column the objective."""
        self.cost = [0.0] * len(self.cost)
        for column, cost in costs.items():
            self.cost[column] = cost

    def keep(self, key: tuple[Any, ...], costs: Mapping[int, float], reached: float) -> int:
        """Hold an objective at what it has reached, less a rounding of the solver's. Returns the row."""
        return self.row(key, list(costs.items()), held_at(reached), INF)

    def lift(self, extra: Mapping[int, Sequence[tuple[int, float]]]) -> None:
        """Add terms to rows that are there (row → terms over columns that the row does not name yet)."""
        starts, indices, values = [0], list[int](), list[float]()
        for row, (begin, end) in enumerate(pairwise(self.starts)):
            more = extra.get(row, ())
            indices += [*self.indices[begin:end], *(column for column, _ in more)]
            values += [*self.values[begin:end], *(value for _, value in more)]
            starts.append(len(indices))
        self.starts, self.indices, self.values = starts, indices, values

    def row(self, key: tuple[Any, ...], terms: Iterable[tuple[int, float]], lower: float, upper: float) -> int:
        """Add a row; its index. ``terms`` name each column at most once."""
        terms = list(terms)
        self.indices += [index for index, _ in terms]
        self.values += [value for _, value in terms]
        if len(self.values) > self.most:
            raise TooLargeError
        self.starts.append(len(self.indices))
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.row_keys.append(key)
        return len(self.row_lower) - 1


def _some(values: list[T], places: Ints) -> list[T]:
    return [values[place] for place in places.tolist()]
