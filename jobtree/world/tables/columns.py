"""Arrow columns from Python values, in the one form that a snapshot has them (see `schema`).

Dictionaries are sorted, columns are one chunk, missing lists are null only where told so: equal content makes equal
tables, buffer for buffer where Arrow leaves a choice.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class _PandasHidden(MetaPathFinder):
    """Makes an import of pandas fail at once."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("hidden from Arrow's first array", name=fullname)


def _settle_pandas() -> None:
    """Has Arrow make its first array while pandas cannot be found.

    Where pandas is installed, Arrow would import it then, only to see whether it was handed something of its kind: that
    takes longer than all columns of a fleet. What really needs pandas, such as ``to_pandas``, imports it as ever.
    """
    hidden = _PandasHidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)


_settle_pandas()


def table(schema: pa.Schema, values: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A table of a schema. Dictionary columns take texts, lists of structs lists of tuples or, as labels, mappings."""
    if not len(values[schema.names[0]]):
        return _empty(schema)  # as most tables of a small cluster
    return pa.Table.from_arrays([_column(values[field.name], field.type) for field in schema], schema=schema)


@cache
def _empty(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return coded(values)
    if pa.types.is_list(kind):
        return _lists(values, kind)
    return pa.array(values, kind)


def replaced(found: pa.Table, column: str, cells: Mapping[int, Any]) -> pa.Table:
    """The table with other values in some rows (by their place) of one column; values as `table` takes them."""
    if not cells:
        return found
    kind = found.schema.field(column).type
    old = found.column(column).combine_chunks()
    new = _column(list(cells.values()), kind)
    if pa.types.is_dictionary(kind):
        old, new = old.cast(pa.string()), new.cast(pa.string())
    order = np.arange(len(old))
    order[list(cells)] = np.arange(len(old), len(old) + len(new))
    both = pa.concat_arrays([old, new]).take(pa.array(order))
    return found.set_column(
        found.schema.get_field_index(column),
        found.schema.field(column),
        coded(both.to_pylist()) if pa.types.is_dictionary(kind) else both,
    )


def coded(values: Iterable[str | None]) -> pa.DictionaryArray:
    """Texts as int32 codes into their sorted distinct values; None is null."""
    texts = list(values)
    distinct = sorted({text for text in texts if text is not None})
    codes = {text: code for code, text in enumerate(distinct)}
    return pa.DictionaryArray.from_arrays(
        pa.array([None if text is None else codes[text] for text in texts], pa.int32()),
        pa.array(distinct, pa.string()),
    )


def _lists(values: Sequence[Any], kind: pa.ListType) -> pa.Array:
    """Lists of scalars or of structs. A dict is a list of its items by key; None is a null list."""
    rows = [sorted(row.items()) if isinstance(row, dict) else row for row in values]
    lengths = [len(row) if row else 0 for row in rows]
    offsets = pa.array(accumulate(lengths, initial=0), pa.int32())
    flat = list(chain.from_iterable(row for row in rows if row))
    missing = [row is None for row in rows]
    return pa.ListArray.from_arrays(
        offsets, _flat(flat, kind.value_type), type=kind, mask=pa.array(missing) if any(missing) else None
    )


def _flat(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return pa.array(values, kind)
    fields = [kind.field(index) for index in range(kind.num_fields)]
    columns = list(zip(*values, strict=True)) if values else [()] * len(fields)
    return pa.StructArray.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)], fields=fields
    )


def canonical(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of this schema, wherever it is from, in the form that `table` makes: one chunk, sorted dictionaries."""
    columns = [_canonical(found.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _canonical(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return coded(column.cast(pa.string()).to_pylist())
    return column.combine_chunks().cast(kind)  # the cast takes off what a file format noted on nested fields


def full_names(table: pa.Table) -> pa.ChunkedArray:
    """``namespace/name`` of each row."""
    return pc.binary_join_element_wise(table["namespace"].cast(pa.string()), table["name"], "/")
