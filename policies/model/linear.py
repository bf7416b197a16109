"""A linear model as arrays: what the rule families write their rows into.

Columns and rows have keys (tuples) from which readable names are made on demand. Everything is in one fixed order:
the order of columns steers the solver, so it is part of determinism.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from jobtree.world.tables.values import Ints

INF: Final = float("inf")


def held_at(reached: float) -> float:
    """Least value of an objective that has reached this: less a rounding of the solver's."""
    return reached - max(1e-6, 1e-9 * abs(reached))


class Entries(NamedTuple):
    """Of every term of a model, in the order of its rows."""

    row: Ints
    column: Ints


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
    def entries(self) -> Entries:
        """Places of its terms, as arrays; made anew where terms have come since it was asked last."""
        if self._entries is None or len(self._entries.row) != len(self.indices):
            row = np.repeat(np.arange(len(self.row_lower)), np.diff(self.starts))
            self._entries = Entries(row, np.asarray(self.indices, dtype=np.int64))
        return self._entries

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
