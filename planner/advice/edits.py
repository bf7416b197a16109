"""Edits of a snapshot's tables: a world in which a few things are otherwise, to plan and compare.

An edit is data, so it can be kept, combined and shown. Columns and units are those of `jobtree.world.tables.schema`.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from jobtree.api.values.errors import Refusal
from jobtree.world.tables import schema, values
from jobtree.world.tables.columns import canonical, replaced
from jobtree.world.tables.snapshot import Snapshot

Key = tuple[str, ...]
"""A row's key: the values of `schema.KEYS` of its table."""


@dataclass(frozen=True)
class Cell:
    """One field of one object has another value. ``value``: as `jobtree.world.tables.columns.table` takes it."""

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
    cells: dict[str, dict[str, dict[Key, Any]]] = {}
    for edit in edits:
        if isinstance(edit, Cell):
            cells.setdefault(edit.table, {}).setdefault(edit.column, {})[edit.key] = edit.value
        else:
            tables["nodes"] = _nodes(tables["nodes"], edit)
    for table, columns in cells.items():
        places = _places(tables[table], table)
        for column, found in columns.items():
            rows = {_row(places, table, key): value for key, value in found.items()}
            tables[table] = replaced(tables[table], column, rows)
    return replace(snapshot, tables=tables)


def suspended(snapshot: Snapshot, runs: Iterable[Key]) -> Snapshot:
    """The snapshot with some runs suspended: they start nothing, and end what they hold."""
    return edited(snapshot, [Cell("runs", key, "state", "Suspended") for key in sorted(runs)])


def field(snapshot: Snapshot, table: str, key: Key, column: str) -> Any:
    """The value of one field. Raises Refusal where there is no such row."""
    found = snapshot.tables[table]
    return found.column(column)[_row(_places(found, table), table, key)].as_py()


def _places(found: pa.Table, table: str) -> dict[Key, int]:
    keys = zip(*(values.texts(found, name) for name in schema.KEYS[table]), strict=True)
    return {key: place for place, key in enumerate(keys)}


def _row(places: Mapping[Key, int], table: str, key: Key) -> int:
    if key not in places:
        raise Refusal(f"there is no {table.removesuffix('s')} {'/'.join(key)}")
    return places[key]


def _nodes(nodes: pa.Table, edit: Copy | Drop) -> pa.Table:
    place = _row(_places(nodes, "nodes"), "nodes", (edit.node,))
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


def unpromised(world: Snapshot, keys: Collection[tuple[str, str]]) -> Snapshot:
    """The world without promises to these runs: what these hold must not bar what would let one of them start now."""
    table = world.tables["reservations"]
    kept = pa.array([key not in keys for key in values.keys(table, "run")], pa.bool_())
    return replace(world, tables={**world.tables, "reservations": table.filter(kept)})
