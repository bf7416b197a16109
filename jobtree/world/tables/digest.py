"""Digests of tables: SHA-256 over what they say, not over how Arrow happens to hold it (spec §11).

Chunks, the order of dictionaries, slices and the presence of a null bitmap make no difference; the schema, every
value, its place and every null do.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobtree.world.tables import values


def of_table(table: pa.Table, version: int) -> str:
    """Hex digest of one table under a schema version."""
    if not table.num_rows:  # most tables of a small cluster are empty
        return _of_empty(table.schema, version)
    return values.remembered(table, version, lambda: _of_table(table, version))


def known(table: pa.Table, version: int, text: str) -> None:
    """Has ``text`` be the table's digest under a schema version: whoever sent the table has made it."""
    values.remembered(table, version, lambda: text)


@cache
def _of_empty(schema: pa.Schema, version: int) -> str:
    return _of_table(schema.empty_table(), version)


def _of_table(table: pa.Table, version: int) -> str:
    digest = hashlib.sha256(f"jobtree table {version} {table.num_rows}\n".encode())
    for line, column in zip(_lines(table.schema), table.columns, strict=True):
        digest.update(line)
        if len(column):
            _update(digest, column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
    return digest.hexdigest()


@cache
def _lines(schema: pa.Schema) -> list[bytes]:
    """What is said of each column before its values."""
    return [f"{field.name} {_logical(field.type)}\n".encode() for field in schema]


def of_tables(digests: Mapping[str, str], version: int) -> str:
    """Hex digest of a set of tables, given the digest of each."""
    lines = [f"jobtree snapshot {version}", *(f"{name} {digests[name]}" for name in sorted(digests))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _logical(kind: pa.DataType) -> str:
    """A type's name, the same whether texts are dictionary-coded or not."""
    if pa.types.is_dictionary(kind):
        return _logical(kind.value_type)
    if pa.types.is_list(kind):
        return f"list<{_logical(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(index) for index in range(kind.num_fields))
        return f"struct<{', '.join(f'{field.name}: {_logical(field.type)}' for field in fields)}>"
    return str(kind)


def _update(digest: Any, array: pa.Array) -> None:
    if not len(array):
        return  # the values of lists that are all empty
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if array.null_count == len(array) and not pa.types.is_struct(kind):
        digest.update(_all_null(kind, len(array)))  # as most columns of a few rows: no call of Arrow's is as fast
        return
    valid = np.asarray(array.is_valid()) if array.null_count else None
    digest.update(_all_ones(len(array)) if valid is None else np.packbits(valid).tobytes())
    if pa.types.is_struct(kind):
        for child in array.flatten():
            _update(digest, child)
    elif pa.types.is_list(kind):
        digest.update(_eight(_lengths(array), valid))
        _update(digest, array.flatten())
    elif pa.types.is_string(kind):
        _texts(digest, array)
    elif pa.types.is_boolean(kind):
        digest.update(np.packbits(np.asarray(_filled(array, False))).tobytes())
    else:
        digest.update(_integers(array, valid))


def _all_null(kind: pa.DataType, rows: int) -> bytes:
    """What `_update` makes of so many nulls: no bit is set, and each value or length is 0."""
    bits = (rows + 7) // 8
    return bytes(bits + (bits if pa.types.is_boolean(kind) else 8 * rows))


def _all_ones(bits: int) -> bytes:
    """What `np.packbits` makes of so many."""
    return b"\xff" * (bits // 8) + (bytes((0xFF00 >> bits % 8 & 0xFF,)) if bits % 8 else b"")


def _integers(array: pa.Array, valid: npt.NDArray[np.bool_] | None) -> bytes:
    """As they lie in memory, since Arrow's own casts take longer than this."""
    width = array.type.bit_width // 8
    return _eight(np.frombuffer(array.buffers()[1], f"i{width}", len(array), array.offset * width), valid)


def _eight(numbers: npt.NDArray[np.signedinteger], valid: npt.NDArray[np.bool_] | None) -> bytes:
    """Eight bytes each, 0 where not ``valid``."""
    return (numbers if valid is None else np.where(valid, numbers, 0)).astype("<i8", copy=False).tobytes()


def _bounds(array: pa.Array) -> npt.NDArray[np.int32]:
    """Where the values of each text or list begin, and where the last ones end."""
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)


def _lengths(array: pa.Array) -> npt.NDArray[np.int32]:
    bounds = _bounds(array)
    return bounds[1:] - bounds[:-1]


def _texts(digest: Any, array: pa.Array) -> None:
    """The lengths in bytes, then all the bytes: without the lengths `a`, `bc` would equal `ab`, `c`."""
    array = _filled(array, "")
    digest.update(_eight(_lengths(array), None))
    bounds, data = _bounds(array), array.buffers()[2]
    if data is not None:
        digest.update(memoryview(data)[int(bounds[0]) : int(bounds[-1])])


def _filled(array: pa.Array, value: Any) -> pa.Array:
    return array.fill_null(value) if array.null_count else array
