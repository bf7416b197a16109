"""A snapshot's columns as plain Python and numpy values, without a Python object per Arrow scalar."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def _flat(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    array = column.combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _values(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def _nullable(array: pa.Array) -> list[Any]:
    if pa.types.is_integer(array.type) and array.null_count:
        filled = _values(pc.fill_null(array, 0))
        return [value if valid else None for value, valid in zip(filled, _values(array.is_valid()), strict=True)]
    return _values(array)


def texts(table: pa.Table, name: str) -> list[str]:
    """A text column; null becomes the empty string."""
    return _values(pc.fill_null(_flat(table, name), ""))


def ints(table: pa.Table, name: str, null: int = 0) -> Ints:
    """An integer column as int64; ``null`` stands for a missing value."""
    return np.asarray(pc.fill_null(_flat(table, name), null).to_numpy(zero_copy_only=False), dtype=np.int64)


def optional_ints(table: pa.Table, name: str) -> list[int | None]:
    """An integer column with its nulls."""
    return _nullable(_flat(table, name))


def bools(table: pa.Table, name: str) -> Bools:
    """A boolean column; null is False."""
    return np.asarray(pc.fill_null(_flat(table, name), False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_null(table: pa.Table, name: str) -> list[bool]:
    """Which rows of a column say nothing."""
    return _values(table.column(name).combine_chunks().is_null())


def text_lists(table: pa.Table, name: str) -> list[tuple[str, ...]]:
    """A list-of-text column; null and empty both become ``()``."""
    array = _flat(table, name)
    return _rows(array, _values(array.flatten()))


def int_lists(table: pa.Table, name: str) -> list[tuple[int, ...]]:
    """A list-of-integer column; null becomes ``()``."""
    array = _flat(table, name)
    return _rows(array, _values(array.flatten()))


def record_lists(table: pa.Table, name: str) -> list[tuple[tuple[Any, ...], ...]]:
    """A list-of-struct column: per row a tuple of tuples, fields in schema order; null becomes ``()``."""
    array = _flat(table, name)
    fields = array.flatten().flatten()
    return _rows(array, list(zip(*(_nullable(field) for field in fields), strict=True)))


def _rows(array: pa.Array, items: list[Any]) -> list[tuple[Any, ...]]:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = [0, *np.cumsum(lengths).tolist()]
    return [tuple(items[a:b]) for a, b in pairwise(offsets)]
