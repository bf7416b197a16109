"""Rows of a table as records: the one place where columns become values by name.

A record is a class whose annotations name the columns that it wants, and say by ``| None`` whether it tells a missing
value from an empty one.
"""

from collections.abc import Sequence
from itertools import starmap
from typing import Any, TypeVar, get_args, get_type_hints

import pyarrow as pa

from jobtree.world import values

Record = TypeVar("Record")


def read(table: pa.Table, record: type[Record], **given: Sequence[Any]) -> list[Record]:
    """Every row of ``table`` as a ``record``, which is called with its fields in their order.

    ``given``: fields that are no column of the table, one value per row. Lists become tuples. A null is None where the
    field's annotation allows that, else the empty value of its kind: ``""``, 0, False or ``()``.
    """
    columns = [
        given[field] if field in given else values.column(table, field, nullable=nullable)
        for field, nullable in _fields(record).items()
    ]
    return list(starmap(record, zip(*columns, strict=True)))


def _fields(record: type[Any]) -> dict[str, bool]:
    """Which of its fields may be None, by name and in order."""
    return {name: type(None) in get_args(hint) for name, hint in get_type_hints(record).items()}
