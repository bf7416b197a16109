"""Independent blocks of a model: columns that no row ties to those of another block, solved apart and added up."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from jobtree.world.tables.values import Ints
from planner.solver.parts import labels
from policies.model.linear import Model

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """``columns``: of the whole model, in its order; ``model``: of these columns alone."""

    columns: Ints
    model: Model


def blocks(model: Model) -> Iterator[Block]:
    """The blocks of a model, in the order of their first columns; a model of one block as it is."""
    row, column = model.entries
    label = labels(row, column, len(model.cost))
    firsts = np.unique(label)
    if len(firsts) == 1:
        yield Block(np.arange(len(label)), model)
        return
    of_row = np.full(len(model.row_lower), -1)
    of_row[row] = label[column]
    place = np.zeros(len(label), np.int64)
    value = np.asarray(model.values, np.float64)
    lengths = np.diff(model.starts)
    for first in firsts.tolist():
        columns, rows = np.flatnonzero(label == first), np.flatnonzero(of_row == first)
        place[columns] = np.arange(len(columns))
        mine = of_row[row] == first
        yield Block(
            columns,
            Model(
                cost=_some(model.cost, columns),
                lower=_some(model.lower, columns),
                upper=_some(model.upper, columns),
                integer=_some(model.integer, columns),
                row_lower=_some(model.row_lower, rows),
                row_upper=_some(model.row_upper, rows),
                starts=[0, *np.cumsum(lengths[rows]).tolist()],
                indices=place[column[mine]].tolist(),
                values=value[mine].tolist(),
                column_keys=_some(model.column_keys, columns),
                row_keys=_some(model.row_keys, rows),
            ),
        )


def _some(values: list[T], places: Ints) -> list[T]:
    return [values[place] for place in places.tolist()]
