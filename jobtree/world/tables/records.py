"""Rows of a table as records: the one place where columns become values by name.

A record is a class whose annotations name the columns that it wants, and say by ``| None`` whether it tells a missing
value from an empty one. Of a dataclass, fields that it works out by itself are no columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import starmap
from typing import Any, Final, TypeVar, get_args, get_type_hints

import pyarrow as pa

from jobtree.world.tables import values

Record = TypeVar("Record")


def read(table: pa.Table, record: type[Record], **given: Sequence[Any]) -> list[Record]:
    """Every row of ``table`` as a ``record``, which is called with its fields in their order.

    ``given``: fields that are no column of the table, one value per row. Lists become tuples. A null is None where the
    field's annotation allows that, else the empty value of its kind: ``""``, 0, False or ``()``.
    """
    if given:
        return _read(table, record, given)
    return [*values.remembered(table, record, lambda: _read(table, record, given))]


def _read(table: pa.Table, record: type[Record], given: Mapping[str, Sequence[Any]]) -> list[Record]:
    columns = [
        given[field] if field in given else values.column(table, field, nullable=nullable)
        for field, nullable in _fields(record)
    ]
    return list(starmap(record, zip(*columns, strict=True)))


def _fields(record: type[Any]) -> list[tuple[str, bool]]:
    """Its fields in order, and which of them may be None."""
    if record not in _KNOWN:
        own = {field.name for field in fields(record) if not field.init} if is_dataclass(record) else set()
        hints = get_type_hints(record)
        _KNOWN[record] = [(name, type(None) in get_args(hint)) for name, hint in hints.items() if name not in own]
    return _KNOWN[record]


_KNOWN: Final[dict[type[Any], list[tuple[str, bool]]]] = {}
"""Fields of the records read so far: annotations are slow to resolve."""
