"""Parts into which a master falls without its rows of room: they that share no payer, no cap and no tie between runs.

Families of owners with budgets of their own touch each other on the nodes alone. Then every row of the master but those
of room (and those that only sum groups for them) lies within one part:

    max Σ_parts c·x   x_part ∈ X_part,   Σ_parts R·x ≤ limits
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np

from jobtree.world.tables.values import Bools, Floats, Ints
from policies.model.linear import INF, Model


@dataclass
class Part:
    """``columns``: of the master; ``model``: its own rows, then one for each of ``rooms``, which are rows of room.

    ``weights``: what a unit of each column takes of each of ``rooms``, as (place in rooms, place in columns, weight).
    """

    columns: Ints
    model: Model
    rooms: Ints
    weights: tuple[Ints, Ints, Floats]

    def use(self, point: Floats) -> Floats:
        """Use that a point of the part makes of ``rooms``."""
        row, column, weight = self.weights
        used = np.bincount(row, weights=weight * point[column], minlength=len(self.rooms))
        return used.astype(np.float64)  # of no weights, it counts

    def priced(self, prices: Floats) -> list[float]:
        """The objective less what the part would pay for ``rooms``. ``prices``: of all rows of room."""
        row, column, weight = self.weights
        paid = np.bincount(column, weights=weight * prices[self.rooms][row], minlength=len(self.columns))
        return [cost - price for cost, price in zip(self.model.cost, paid.tolist(), strict=True)]


@dataclass
class Split:
    """``rows``: the master's rows of room; ``limits``: theirs; ``sums``: a counting column and those that it sums.

    ``groups``: parts that share no row of room with any of another group.
    """

    parts: list[Part]
    groups: list[list[int]]
    rows: Ints
    limits: Floats
    sums: list[tuple[int, list[int]]]


def split(model: Model, shared: Bools, counts: Bools, idle: Set[int], largest: float) -> Split | None:
    """The parts of a master, in the order of their first columns; None where one has too many of the integer columns.

    ``shared``: its rows of room, (rows,); ``counts``: rows that make a column the sum of others; ``idle``: columns that
    stay at 0, and so tie nothing; ``largest``: what part of the integer columns one may have.
    """
    between = shared | counts
    row_of, column_of, *_ = model.entries
    awake = np.ones(len(model.cost), dtype=np.bool_)
    awake[sorted(idle)] = False
    inside = ~between[row_of] & awake[column_of]
    label = labels(row_of[inside], column_of[inside], len(model.cost))
    sums = [_summed(model, row) for row in np.flatnonzero(counts).tolist()]
    counting = {column for column, _ in sums}
    integers = np.bincount(label, weights=awake & model.whole, minlength=len(label))
    if integers.max(initial=0) > largest * integers.sum():
        return None
    members: dict[int, list[int]] = {}
    for column, first in enumerate(label.tolist()):
        if column not in counting and column not in idle:
            members.setdefault(first, []).append(column)
    rows = np.flatnonzero(shared)
    rooms = _rooms(model, rows.tolist(), dict(sums), label, idle)
    own: dict[int, list[int]] = {}
    first = np.full(len(between), -1)
    first[row_of[inside][::-1]] = label[column_of[inside][::-1]]
    for row in np.flatnonzero(first >= 0).tolist():
        own.setdefault(int(first[row]), []).append(row)
    place = np.full(len(model.cost), -1)
    for columns in members.values():
        place[columns] = np.arange(len(columns))
    parts = [_part(model, mine, own.get(first, []), rooms.get(first, {}), place) for first, mine in members.items()]
    return Split(parts, _groups(parts, len(rows)), rows, np.asarray(model.row_upper)[rows], sums)


def _groups(parts: list[Part], rooms: int) -> list[list[int]]:
    """Parts by what ties them: rows of room, and for each part a tie of its own."""
    part = np.repeat(np.arange(len(parts)), [1 + len(each.rooms) for each in parts])
    tie = np.concatenate([np.r_[each.rooms, rooms + number] for number, each in enumerate(parts)])
    label = labels(part, tie, rooms + len(parts))
    groups: dict[int, list[int]] = {}
    for number in range(len(parts)):
        groups.setdefault(int(label[rooms + number]), []).append(number)
    return list(groups.values())


def labels(row: Ints, column: Ints, count: int) -> Ints:
    """Per column, the first of the columns that rows tie it to. ``row``, ``column``: the entries, by row."""
    label = np.arange(count)
    if not len(row):
        return label
    first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
    length = np.diff(np.r_[first, len(row)])
    while True:
        found = label.copy()
        np.minimum.at(found, column, np.repeat(np.minimum.reduceat(label[column], first), length))
        found = found[found]
        if np.array_equal(found, label):
            return label
        label = found


def together(rows: Iterable[Iterable[int]], count: int) -> list[list[int]]:
    """Columns below ``count`` that ``rows`` tie to one another, directly or through others, in their order."""
    pairs = [(number, column) for number, mine in enumerate(rows) for column in mine]
    row, column = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    found: dict[int, list[int]] = {}
    for place, first in enumerate(labels(row, column, count).tolist()):
        found.setdefault(first, []).append(place)
    return list(found.values())


def _summed(model: Model, row: int) -> tuple[int, list[int]]:
    """Σ columns − counting column = 0."""
    entries = slice(model.starts[row], model.starts[row + 1])
    terms = list(zip(model.indices[entries], model.values[entries], strict=True))
    (counting,) = (column for column, weight in terms if weight < 0)
    return counting, [column for column, weight in terms if weight > 0]


def _rooms(
    model: Model, rows: list[int], sums: dict[int, list[int]], label: Ints, idle: Set[int]
) -> dict[int, dict[int, list[tuple[int, float]]]]:
    """Part → row of room (its place among them) → terms, counting columns replaced by what they sum."""
    found: dict[int, dict[int, list[tuple[int, float]]]] = {}
    for place, row in enumerate(rows):
        for entry in range(model.starts[row], model.starts[row + 1]):
            column, weight = model.indices[entry], model.values[entry]
            for each in sums.get(column, (column,)):
                if each not in idle:
                    found.setdefault(int(label[each]), {}).setdefault(place, []).append((each, weight))
    return found


def _part(
    model: Model, columns: list[int], rows: list[int], rooms: dict[int, list[tuple[int, float]]], place: Ints
) -> Part:
    """A part of these columns and rows. ``rooms``: terms by row of room; ``place``: of each column in its part."""
    mine = np.asarray(columns)
    own = model.part(mine, np.asarray(rows, np.int64), place)
    row_of: list[int] = []
    column_of: list[int] = []
    weight_of: list[float] = []
    for number, (room, terms) in enumerate(rooms.items()):
        taken = [(int(place[column]), weight) for column, weight in terms]
        own.row(("room", room), taken, -INF, INF)
        row_of += [number] * len(taken)
        column_of += [column for column, _ in taken]
        weight_of += [weight for _, weight in taken]
    weights = (
        np.asarray(row_of, dtype=np.int64),
        np.asarray(column_of, dtype=np.int64),
        np.asarray(weight_of, dtype=np.float64),
    )
    return Part(mine, own, np.asarray(list(rooms), dtype=np.int64), weights)
