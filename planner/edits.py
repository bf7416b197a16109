"""Edits of a snapshot's tables: a world in which a few things are otherwise, to plan and compare.

An edit is data, so it can be kept, combined and shown. Columns and units are those of `jobtree.world.schema`.
"""

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from jobtree.api.errors import Refusal
from jobtree.world import schema, values
from jobtree.world.columns import canonical, replaced
from jobtree.world.snapshot import Snapshot

Key = tuple[str, ...]
"""A row's key: the values of `schema.KEYS` of its table."""


@dataclass(frozen=True)
class Cell:
    """One field of one object has another value. ``value``: as `jobtree.world.columns.table` takes it."""

    table: str
    key: Key
    column: str
    value: Any


@dataclass(frozen=True)
class Copy:
    """One more node like ``node``, named ``name``, at work whatever ``node`` is."""

    node: str
    name: str


@dataclass(frozen=True)
class Drop:
    """A node is gone."""

    node: str


Edit = Cell | Copy | Drop


def copies(node: str, count: int, names: Collection[str]) -> list[Copy]:
    """``count`` more nodes like ``node``, named as none of ``names``."""
    fresh = (name for number in itertools.count(1) if (name := f"{node}-more-{number}") not in names)
    return [Copy(node, name) for name in itertools.islice(fresh, count)]


def edited(snapshot: Snapshot, edits: Iterable[Edit]) -> Snapshot:
    """The snapshot with all ``edits``. Raises Refusal for a row that is not there, or a node that is."""
    tables = dict(snapshot.tables)
    cells: dict[tuple[str, str], dict[Key, Any]] = {}
    for edit in edits:
        if isinstance(edit, Cell):
            cells.setdefault((edit.table, edit.column), {})[edit.key] = edit.value
        else:
            tables["nodes"] = _nodes(tables["nodes"], edit)
    for (name, column), found in cells.items():
        tables[name] = replaced(tables[name], column, {_row(tables[name], name, key): v for key, v in found.items()})
    return Snapshot(tables, snapshot.policy, snapshot.since)


def suspended(snapshot: Snapshot, runs: Iterable[Key]) -> Snapshot:
    """The snapshot with some runs suspended: they start nothing, and end what they hold."""
    return edited(snapshot, [Cell("runs", key, "state", "Suspended") for key in sorted(runs)])


def field(snapshot: Snapshot, table: str, key: Key, column: str) -> Any:
    """The value of one field. Raises Refusal where there is no such row."""
    found = snapshot.tables[table]
    return found.column(column)[_row(found, table, key)].as_py()


def _row(found: pa.Table, table: str, key: Key) -> int:
    columns = [values.texts(found, name) for name in schema.KEYS[table]]
    if len(columns) == 1:
        matches = [row for row, name in enumerate(columns[0]) if name == key[0]]
    else:
        matches = [row for row, names in enumerate(zip(*columns, strict=True)) if names == key]
    if not matches:
        raise Refusal(f"there is no {table.removesuffix('s')} {'/'.join(key)}")
    return matches[0]


def _nodes(nodes: pa.Table, edit: Copy | Drop) -> pa.Table:
    place = _row(nodes, "nodes", (edit.node,))
    if isinstance(edit, Drop):
        return canonical(nodes.filter(pa.array(np.arange(len(nodes)) != place)), schema.NODES)
    if edit.name in values.texts(nodes, "name"):
        raise Refusal(f"there is a node {edit.name} already")
    made = nodes.slice(place, 1)
    fresh = {
        "name": edit.name,
        "unschedulable": False,
        "ready": True,
        "not_ready_since": None,
        "out_of_service": False,
        "deleting": False,
    }
    for column, value in fresh.items():
        made = replaced(made, column, {0: value})
    both = pa.concat_tables([nodes, made]).unify_dictionaries()
    order = sorted(range(len(both)), key=values.texts(both, "name").__getitem__)
    return canonical(both.take(pa.array(order, pa.int64())), schema.NODES)
