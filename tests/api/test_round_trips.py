"""Whatever the types allow is read, and printed and read again it is the same."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from jobtree.api import KINDS, Duration, KindObject, OwnerPath, Time, decode, encode
from jobtree.api.values.allowed import type_of
from jobtree.api.values.scalars import DAY, Cpu, Memory
from tests.support.effort import examples

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
SCALARS: dict[type, st.SearchStrategy[Any]] = {
    Duration: st.integers(0, 400 * DAY).map(lambda seconds: str(Duration(seconds))),
    Time: st.integers(0, 4 * 10**9).map(lambda seconds: str(Time(seconds))),
    OwnerPath: st.from_regex(r"[a-z]{1,4}(:[a-z]{1,4}){0,3}", fullmatch=True),
    Cpu: st.integers(0, 10**6).map(lambda milli: f"{milli}m"),
    Memory: st.integers(0, 2**20).map(lambda mebi: f"{mebi}Mi"),
}


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Plain values that a type allows, as JSON has them."""
    match kind:
        case inspect.Metadata():
            return values(kind.type)
        case inspect.UnionType(types=parts):
            return st.one_of(*map(values, parts))
        case inspect.VarTupleType(item_type=item, min_length=low):
            return st.lists(values(item), min_size=low or 0, max_size=(low or 0) + 2)
        case inspect.DictType(key_type=key, value_type=value, min_length=low):
            return st.dictionaries(values(key), values(value), min_size=low or 0, max_size=(low or 0) + 2)
        case inspect.StructType(fields=fields):
            required = {field.encode_name: values(field.type) for field in fields if field.required}
            optional = {field.encode_name: values(field.type) for field in fields if not field.required}
            return st.fixed_dictionaries(required, optional=optional)
        case inspect.StrType() | inspect.IntType() | inspect.FloatType():
            return bounded(kind)
        case _:
            return plain(kind)


def bounded(kind: inspect.StrType | inspect.IntType | inspect.FloatType) -> st.SearchStrategy[Any]:
    """Texts and numbers within their bounds."""
    if isinstance(kind, inspect.IntType):
        return st.integers(kind.ge if kind.ge is not None else -(2**40), kind.le if kind.le is not None else 2**40)
    if isinstance(kind, inspect.FloatType):
        return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False)
    if kind.pattern:
        texts = st.from_regex(kind.pattern.replace("$", r"\Z"), fullmatch=True)
        return texts.filter(lambda text: 0 < len(text) <= 63)
    return TEXTS.filter(lambda text: len(text) >= (kind.min_length or 0))


def plain(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of the types that have neither parts nor bounds."""
    match kind:
        case inspect.CustomType(cls=cls):
            return SCALARS[cls]
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case _:
            return st.integers(0, 9) | TEXTS


@pytest.mark.parametrize("kind", sorted(KINDS))
@examples(25)  # each document of them is a large one
@given(data=st.data())
def test_encode_and_decode_are_inverse(kind: str, data: st.DataObject) -> None:
    document = data.draw(values(type_of(KINDS[kind])))
    item = decode(kind, document)
    assert isinstance(item, KindObject)
    printed = encode(item)
    assert list(printed)[:2] == ["apiVersion", "kind"]
    assert decode(kind, printed) == item
    assert decode(kind, msgspec.json.encode(document)) == item
    again = decode(kind, printed)
    assert isinstance(again, KindObject)
    assert encode(again) == printed
