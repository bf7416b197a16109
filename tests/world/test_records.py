"""Rows as records: columns by name, and nulls as the record's annotations want them."""

from typing import NamedTuple

import msgspec
import pyarrow as pa
import pytest

from jobtree.world.kept import kept
from jobtree.world.tables import values
from jobtree.world.tables.records import read

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("number", pa.int64())]))
SCHEMA = pa.schema(
    [
        ("code", pa.dictionary(pa.int32(), pa.string())),
        ("text", pa.string()),
        ("total", pa.int64()),
        ("flag", pa.bool_()),
        ("many", pa.list_(pa.string())),
        ("pairs", PAIRS),
    ]
)
ROWS = [
    {"code": "a", "text": "x", "total": 2**60 + 1, "flag": True, "many": ["p", "q"], "pairs": [("k", 1), (None, None)]},
    {"code": None, "text": None, "total": None, "flag": None, "many": None, "pairs": None},
    {"code": "a", "text": "", "total": 0, "flag": False, "many": [], "pairs": []},
]
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)


class Told(NamedTuple):
    """Every null told apart; fields in an order of their own."""

    pairs: tuple[tuple[str | None, int | None], ...] | None
    many: tuple[str, ...] | None
    flag: bool | None
    total: int | None
    text: str | None
    code: str | None


class Plain(msgspec.Struct, frozen=True):
    """No null told apart."""

    code: str
    text: str
    total: int
    flag: bool
    many: tuple[str, ...]
    pairs: tuple[tuple[str | None, int | None], ...]


def test_a_null_is_none_where_the_record_tells_it_from_an_empty_value() -> None:
    assert read(TABLE, Told) == [
        Told((("k", 1), (None, None)), ("p", "q"), True, 2**60 + 1, "x", "a"),
        Told(None, None, None, None, None, None),
        Told((), (), False, 0, "", "a"),
    ]


def test_else_it_is_the_empty_value_of_its_kind() -> None:
    assert read(TABLE, Plain)[1:] == [Plain("", "", 0, False, (), ()), Plain("a", "", 0, False, (), ())]


@pytest.mark.parametrize("table", [TABLE.slice(1), pa.concat_tables([TABLE.slice(1, 1), TABLE.slice(2)])])
def test_slices_and_chunks_are_rows_like_others(table: pa.Table) -> None:
    assert read(table, Told) == read(TABLE, Told)[1:]


def test_fields_that_are_no_column_are_given() -> None:
    class Numbered(NamedTuple):
        code: str
        place: int

    assert read(TABLE, Numbered, place=range(3)) == [("a", 0), ("", 1), ("a", 2)]
    assert read(TABLE.slice(3), Numbered, place=[]) == []


def test_what_is_made_of_a_table_is_kept_as_long_as_the_table() -> None:
    def made(table: pa.Table) -> object:
        return values.remembered(table, "made", object)

    table = TABLE.slice(1)
    assert made(table) is made(table)
    assert made(table) is not made(TABLE)
    place = id(table)
    assert place in values._MEMORY
    del table
    assert place not in values._MEMORY


def test_what_is_made_of_some_values_is_kept_until_one_is_another_or_there_are_more_or_fewer() -> None:
    @kept
    def made(*given: object) -> list[object]:
        return [*given]

    one, other = object(), object()

    assert made(one, other) is made(one, other)
    assert [made(one), made(one, other), made(other, one), made()] == [[one], [one, other], [other, one], []]


@pytest.mark.parametrize("size", [3, values.SMALL + 1])
def test_whoever_changes_a_column_that_was_read_changes_no_others(size: int) -> None:
    table = pa.table({"text": [str(number) for number in range(size)]})
    values.texts(table, "text").reverse()
    assert values.texts(table, "text") == [str(number) for number in range(size)]
