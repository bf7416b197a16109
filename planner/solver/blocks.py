"""Independent blocks of a model: columns that no row ties to those of another block, solved apart and added up."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobtree.world.tables.values import Ints
from planner.solver.parts import labels
from policies.model.linear import Model


@dataclass(frozen=True)
class Block:
    """``columns``: of the whole model, in its order; ``model``: of these columns alone."""

    columns: Ints
    model: Model


def blocks(model: Model) -> Iterator[Block]:
    """The blocks of a model, in the order of their first columns; a model of one block as it is."""
    row, column, *_ = model.entries
    label = labels(row, column, len(model.cost))
    firsts = np.unique(label)
    if len(firsts) == 1:
        yield Block(np.arange(len(label)), model)
        return
    of_row = np.full(len(model.row_lower), -1)
    of_row[row] = label[column]
    place = np.zeros(len(label), np.int64)
    for first in firsts.tolist():
        columns, rows = np.flatnonzero(label == first), np.flatnonzero(of_row == first)
        place[columns] = np.arange(len(columns))
        yield Block(columns, model.part(columns, rows, place))
