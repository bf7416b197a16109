"""The table that people see: few columns, without those that hold nothing, owners as a tree with sums, totals below."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from jobtree.api import Refusal
from reports.read.definition import Layout

MOST_COLUMNS: Final = 9
"""Columns that a reader takes in, and that fit on a page: all others are in CSV and JSON."""
TOTAL: Final = "Total"
ITSELF: Final = "itself"


@dataclass(frozen=True)
class Line:
    """A row: its cells, how deep it stands in a tree, and whether it sums up others. ``name``: its owner, in full."""

    cells: tuple[Any, ...]
    depth: int = 0
    is_sum: bool = False
    name: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table for people. ``left_out``: columns of the report that are not shown and are not without a value."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    total: Line | None = None
    left_out: int = 0


def sheet(rows: pa.Table, layout: Layout | None) -> Sheet:
    """The sheet of what a report shows; without a layout the first columns of its rows, named in words."""
    if layout is None:
        names = [name[:1].upper() + name[1:].replace("_", " ") for name in rows.column_names]
        found = _without_empty(names, [Line(tuple(row.values())) for row in rows.to_pylist()], None)
        kept, left = found.columns[:MOST_COLUMNS], max(0, len(found.columns) - MOST_COLUMNS)
        return Sheet(kept, tuple(Line(line.cells[:MOST_COLUMNS]) for line in found.lines), None, left)
    missing = [name for name in layout.sums if name not in rows.column_names]
    if missing:
        raise Refusal(f"@table sums up {missing[0]!r}, a column that its query does not have")
    if layout.tree and rows.num_columns < 2:
        raise Refusal("@table tree needs two columns at least: the owner, and what of it the row is")
    records = [tuple(row.values()) for row in rows.to_pylist()]
    summed = [place for place, name in enumerate(rows.column_names) if name in layout.sums]
    total = Line(_sums(records, summed, TOTAL), is_sum=True) if layout.sums and len(records) > 1 else None
    names = list(rows.column_names)
    if not layout.tree:
        lines = [Line(record) for record in records]
    else:
        lines, top = list(_branch(_grown(records), "", 0, summed)), TOTAL
        if len(lines) > 1 and lines[0].is_sum and all(each.depth for each in lines[1:]):  # the total says the same
            top, lines = f"{TOTAL} of {lines[0].name}", [replace(each, depth=each.depth - 1) for each in lines[1:]]
        names = [f"{names[0]} / {names[1].lower()}" if any(record[1] for record in records) else names[0], *names[2:]]
        lines = [Line((each.cells[0], *each.cells[2:]), each.depth, each.is_sum, each.name) for each in lines]
        total = total and Line((top, *total.cells[2:]), is_sum=True)
    if len(names) > MOST_COLUMNS:
        raise Refusal(f"@table has {len(names)} columns; allowed are at most {MOST_COLUMNS}")
    return _without_empty(names, lines, total)


def _without_empty(names: Sequence[str], lines: Sequence[Line], total: Line | None) -> Sheet:
    kept = [place for place in range(len(names)) if place == 0 or any(line.cells[place] is not None for line in lines)]

    def cut(line: Line) -> Line:
        return Line(tuple(line.cells[place] for place in kept), line.depth, line.is_sum, line.name)

    return Sheet(tuple(names[place] for place in kept), tuple(map(cut, lines)), total and cut(total))


def _sums(records: Sequence[tuple[Any, ...]], summed: Sequence[int], name: str) -> tuple[Any, ...]:
    """The sums of some columns, null where none of them has a value."""
    cells: list[Any] = [None] * (len(records[0]) if records else 0)
    for place in summed:
        values = [record[place] for record in records if record[place] is not None]
        cells[place] = sum(values) if values else None
    cells[:1] = [name]
    return tuple(cells)


Tree = dict[str, Any]
"""An owner's part of a path → its subtree; under ``""`` its own records."""


def _grown(records: Sequence[tuple[Any, ...]]) -> Tree:
    root: Tree = {}
    for record in records:
        place = root
        for part in str(record[0]).split(":"):
            place = place.setdefault(part, {})
        place.setdefault("", []).append(record)
    return root


def _records(tree: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for part, below in tree.items():
        yield from below if part == "" else _records(below)


def _branch(tree: Tree, path: str, depth: int, summed: Sequence[int]) -> Iterator[Line]:
    """The lines of a subtree, what is most first; owners with one part below them share its line."""

    def weight(part: str) -> tuple[float, str]:
        rows = tree[part] if part == "" else list(_records(tree[part]))
        return (-float(_sums(rows, summed[:1], "")[summed[0]] or 0) if summed else 0.0), part

    for part in sorted(tree, key=weight):
        if part == "":
            yield from (Line((record[1] or ITSELF, *record[1:]), depth, name=record[0]) for record in tree[part])
            continue
        below, name = tree[part], part
        while len(below) == 1 and "" not in below:
            following = next(iter(below))
            below, name = below[following], f"{name}:{following}"
        full = f"{path}:{name}" if path else name
        rows = list(_records(below))
        if len(rows) == 1:
            label = f"{name} / {rows[0][1]}" if rows[0][1] else name
            yield Line((label, *rows[0][1:]), depth, name=full)
        else:
            yield Line(_sums(rows, summed, name), depth, is_sum=True, name=full)
            yield from _branch(below, full, depth + 1, summed)
