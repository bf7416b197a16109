"""A snapshot's columns as plain Python and numpy values, without a Python object per Arrow scalar."""

import weakref
from collections.abc import Callable
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Value = TypeVar("Value")

SMALL: Final = 1000
"""Rows of a table up to which its values are remembered: there Arrow's calls take longer than what they read."""


def column(table: pa.Table, name: str, *, nullable: bool = False) -> list[Any]:
    """A column as Python values; lists are tuples, structs tuples of their fields in schema order, None where null.

    Unless ``nullable``, a null of the column itself is the empty value of its kind: ``""``, 0, False or ``()``.
    """
    rows = table.num_rows
    if not rows:
        return []  # most tables of a small cluster are empty
    if rows > SMALL:
        return _values(_flat(table, name), nullable=nullable)
    return [*remembered(table, (name, nullable), lambda: _values(_flat(table, name), nullable=nullable))]


def remembered(table: pa.Table, what: object, make: Callable[[], Value]) -> Value:
    """Remember what follows from a table, which never changes; made once and kept as long as the table is.

    The worlds of a cycle, which are now, foreseen or promised, differ in few of their tables and share the others.
    """
    mine = _MEMORY.get(id(table))
    if mine is None:
        mine = _MEMORY[id(table)] = {}
        weakref.finalize(table, _MEMORY.pop, id(table), None)
    if what not in mine:
        mine[what] = make()
    found: Value = mine[what]
    return found


def remembering(make: Callable[[pa.Table], Value]) -> Callable[[pa.Table], Value]:
    """``make``, whose answers of a table are `remembered`; nobody changes them."""

    @wraps(make)
    def again(table: pa.Table) -> Value:
        return remembered(table, make, lambda: make(table))

    return again


_MEMORY: Final[dict[int, dict[object, Any]]] = {}
"""By a table's identity, as no table has a hash: what has been made of it."""


def texts(table: pa.Table, name: str) -> list[str]:
    """A text column; null becomes the empty string."""
    return column(table, name)


def keys(table: pa.Table, name: str = "name") -> list[tuple[str, str]]:
    """Namespace and name of each row, or of the run that it names in the column ``name``."""
    return list(zip(texts(table, "namespace"), texts(table, name), strict=True))


def ints(table: pa.Table, name: str, null: int = 0) -> Ints:
    """An integer column as int64; ``null`` stands for a missing value."""
    return np.asarray(_filled(_flat(table, name), null).to_numpy(zero_copy_only=False), dtype=np.int64)


def optional_ints(table: pa.Table, name: str) -> list[int | None]:
    """An integer column with its nulls."""
    return column(table, name, nullable=True)


def bools(table: pa.Table, name: str) -> Bools:
    """A boolean column; null is False."""
    return np.asarray(_filled(_flat(table, name), False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _flat(table: pa.Table, name: str) -> pa.Array:
    found = table.column(name)
    return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def _filled(array: pa.Array, null: Any) -> pa.Array:
    """With ``null`` for what is missing; asking Arrow to fill what is full takes as long as filling it."""
    return pc.fill_null(array, null) if array.null_count else array


def _values(array: pa.Array, *, nullable: bool) -> list[Any]:
    if array.null_count == len(array):  # as most columns of a few rows: no call of Arrow's is as fast
        return [None if nullable else _empty(array.type)] * len(array)
    if pa.types.is_dictionary(array.type):
        return _decoded(array, nullable=nullable)
    if pa.types.is_list(array.type):
        found = _lists(array)
    elif pa.types.is_struct(array.type):
        return list(zip(*(_values(field, nullable=True) for field in array.flatten()), strict=True))
    else:
        found = _filled(array, _empty(array.type)).to_numpy(zero_copy_only=False).tolist()
    if nullable and array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False).tolist()
        return [value if is_there else None for value, is_there in zip(found, valid, strict=True)]
    return found


def _empty(kind: pa.DataType) -> Any:
    """What stands for a null of a column where none is told."""
    if pa.types.is_nested(kind):
        return ()
    return False if pa.types.is_boolean(kind) else 0 if pa.types.is_integer(kind) else ""


def _decoded(array: pa.DictionaryArray, *, nullable: bool) -> list[Any]:
    """The texts of a coded column: each is made once."""
    texts = [*array.dictionary.to_pylist(), None if nullable else ""]
    return [texts[code] for code in _filled(array.indices, len(texts) - 1).to_numpy().tolist()]


def _lists(array: pa.ListArray) -> list[Any]:
    items = _values(array.flatten(), nullable=True)
    if not items:
        return [()] * len(array)
    lengths = _filled(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).tolist()
    return [tuple(items[a:b]) for a, b in pairwise(accumulate(lengths, initial=0))]
