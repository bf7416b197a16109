"""What a field allows, in words: from its type, for refusals and for the reference pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from msgspec import inspect

from jobtree.api.values.scalars import (
    DURATION_ALLOWED,
    QUANTITY_ALLOWED,
    TIME_ALLOWED,
    Cpu,
    Duration,
    Memory,
    OwnerPath,
    Time,
)

PathPart = str | int

SCALAR_WORDS: Final[dict[type, str]] = {
    Duration: DURATION_ALLOWED,
    Time: TIME_ALLOWED,
    OwnerPath: "a colon path such as org:ai:rai:sys",
    Cpu: QUANTITY_ALLOWED,
    Memory: QUANTITY_ALLOWED,
}


@lru_cache(maxsize=256)
def type_of(kind: type) -> inspect.Type:
    """The type of a struct, for `at`."""
    return inspect.type_info(kind)


def bare(kind: inspect.Type) -> inspect.Type:
    """The type without its description and without null."""
    while True:
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            rest = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
            if len(rest) != 1:
                return kind
            kind = rest[0]
        else:
            return kind


def at(kind: inspect.Type, path: tuple[PathPart, ...]) -> inspect.Type | None:
    """The type at a path of JSON names and indices below `kind`; None where there is no such field."""
    for part in path:
        found = bare(kind)
        if isinstance(found, inspect.StructType):
            field = next((each for each in found.fields if each.encode_name == part), None)
            if field is None:
                return None
            kind = field.type
        elif isinstance(found, inspect.DictType):
            kind = found.value_type
        elif isinstance(found, inspect.VarTupleType):
            kind = found.item_type
        else:
            return None
    return kind


def fields_of(kind: inspect.Type | None) -> tuple[str, ...]:
    """JSON names of a struct's fields; none for any other type."""
    found = bare(kind) if kind else None
    return tuple(field.encode_name for field in found.fields) if isinstance(found, inspect.StructType) else ()


def paths(kind: inspect.Type, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All field paths below a struct, depth first; list entries are not counted as a part."""
    found = bare(kind)
    if isinstance(found, inspect.VarTupleType):
        yield from paths(found.item_type, prefix)
    elif isinstance(found, inspect.StructType):
        for field in found.fields:
            here = (*prefix, field.encode_name)
            yield here
            yield from paths(field.type, here)


def allowed(kind: inspect.Type) -> str:
    """What the type allows: `a whole number from 1 to 64`, `one of own, subtree`, ..."""
    if isinstance(kind, inspect.Metadata):
        own = (kind.extra or {}).get("allowed")
        return str(own) if own else allowed(kind.type)
    match kind:
        case inspect.IntType(ge=low, le=high):
            return _number("a whole number", low, high)
        case inspect.FloatType(ge=low, le=high):
            return _number("a number", low, high)
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}" if len(values) > 1 else str(values[0])
        case inspect.CustomType(cls=cls):
            return SCALAR_WORDS[cls]
        case inspect.UnionType(types=parts):
            # int | float is one thing to people, and null is leaving it out
            return " or ".join(dict.fromkeys(allowed(part) for part in parts if not _redundant(part, parts)))
        case found:
            return _container(found)


def allowed_key(kind: inspect.Type, path: tuple[PathPart, ...]) -> str:
    """What the keys of the mapping at a path may be."""
    found = at(kind, path)
    mapping = bare(found) if found else None
    return allowed(mapping.key_type) if isinstance(mapping, inspect.DictType) else "a text"


def _redundant(part: inspect.Type, parts: tuple[inspect.Type, ...]) -> bool:
    has_float = any(isinstance(each, inspect.FloatType) for each in parts)
    return isinstance(part, inspect.NoneType) or (isinstance(part, inspect.IntType) and has_float)


def _container(kind: inspect.Type) -> str:
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return _sized("a text", kind, "characters")
        case inspect.VarTupleType(item_type=item):
            return _sized("a list", kind, "entries") + f", each {allowed(item)}"
        case inspect.DictType(value_type=value) if not isinstance(value, inspect.AnyType):
            return _sized("a mapping", kind, "entries") + f", each {allowed(value)}"
        case inspect.DictType():
            return "a mapping"
        case inspect.StructType():
            return f"a mapping with {', '.join(fields_of(kind))}"
        case _:
            return "any value"


def _number(noun: str, low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{noun} from {low:g} to {_plain(high)}"
    return f"{noun} of at least {low:g}" if low is not None else noun


def _plain(number: float) -> str:
    return f"{int(number)}" if number == int(number) else f"{number}"


def _sized(noun: str, kind: Any, unit: str) -> str:
    low, high = kind.min_length, kind.max_length
    if low and high:
        return f"{noun} of {low} to {high} {unit}"
    if high:
        return f"{noun} of at most {high} {unit}"
    return f"{noun} of at least {low} {unit}" if low else noun
