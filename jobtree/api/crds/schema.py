"""Structural OpenAPI v3 schemas, as CustomResourceDefinitions want them, from the structs' types.

One type gives one schema, written out in full: no references, no alternatives but int-or-string, and `null` is only a
field left out. https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Final

from msgspec import inspect

from jobtree.api.values.scalars import (
    DURATION_PATTERN,
    MAX_OWNER,
    OWNER_PATTERN,
    QUANTITY_PATTERN,
    STRICT_TIME_PATTERN,
    Cpu,
    Duration,
    Memory,
    OwnerPath,
    Time,
)

Schema = dict[str, Any]

_QUANTITY: Final[Schema] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY_PATTERN,
    "maxLength": 40,
}
_SCALARS: Final[dict[type, Schema]] = {
    Duration: {"type": "string", "minLength": 2, "maxLength": 32, "pattern": DURATION_PATTERN},
    # As a date-time it is a timestamp in CEL. The server wants the seconds, which our reader lets people leave out.
    Time: {"type": "string", "format": "date-time", "maxLength": 32, "pattern": STRICT_TIME_PATTERN},
    OwnerPath: {"type": "string", "minLength": 1, "maxLength": MAX_OWNER, "pattern": OWNER_PATTERN},
    Cpu: _QUANTITY,
    Memory: _QUANTITY,
}


def schema(kind: inspect.Type) -> Schema:
    """The structural schema of a type; the `extra_json_schema` of its fields is laid over it."""
    match kind:
        case inspect.Metadata():
            return {**schema(kind.type), **(kind.extra_json_schema or {})}
        case inspect.UnionType(types=parts):
            return _union(parts)
        case inspect.StructType():
            return _struct(kind)
        case inspect.VarTupleType():
            found = {"type": "array", "items": schema(kind.item_type), **_bounds(kind, "Items")}
            return {"x-kubernetes-list-type": "atomic", **found}
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case inspect.DictType():
            return {"type": "object", "additionalProperties": schema(kind.value_type), **_bounds(kind, "Properties")}
        case inspect.CustomType():
            return dict(_SCALARS[kind.cls])
        case _:
            return _plain(kind)


def _plain(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64", **_range(kind)}
        case inspect.FloatType():
            return {"type": "number", **_range(kind)}
        case inspect.LiteralType():
            return {"type": "string", "enum": list(kind.values)}
        case inspect.StrType():
            pattern = {"pattern": kind.pattern.replace(r"\Z", "$")} if kind.pattern else {}
            return {"type": "string", **_bounds(kind, "Length"), **pattern}
    raise TypeError(f"{kind} has no structural schema")


def _union(parts: tuple[inspect.Type, ...]) -> Schema:
    """`X | None` is X, and `int | float` is a number: JSON knows no other."""
    rest = [part for part in parts if not isinstance(part, inspect.NoneType)]
    number = next((part for part in rest if isinstance(part, inspect.FloatType)), None)
    if number is not None and len(rest) == 2:
        return schema(number)
    (only,) = rest
    return schema(only)


def _struct(kind: inspect.StructType) -> Schema:
    """No defaults: the server keeps what people wrote, and what is left out follows the program's version."""
    required = [field.encode_name for field in kind.fields if field.required]
    found: Schema = {
        "type": "object",
        "description": cleandoc(kind.cls.__doc__ or "").replace("\n", " "),
        "properties": {field.encode_name: schema(field.type) for field in kind.fields},
    }
    return {**found, "required": required} if required else found


def _bounds(kind: Any, unit: str) -> Schema:
    bounds = {f"min{unit}": kind.min_length, f"max{unit}": kind.max_length}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _range(kind: Any) -> Schema:
    bounds = {"minimum": kind.ge, "maximum": kind.le}
    return {name: bound for name, bound in bounds.items() if bound is not None}
