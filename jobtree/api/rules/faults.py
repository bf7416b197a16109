"""All that is wrong with one object as somebody wrote it, not only the first of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from msgspec import inspect

from jobtree.api.kinds.core import Node, Pod
from jobtree.api.rules.decode import READABLE, KindObject, decode
from jobtree.api.rules.kinds import problems
from jobtree.api.values import allowed
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import Cpu, Duration, Memory, OwnerPath, Time

MOST: Final = 20
"""Faults after which the rest is not looked for."""
_SCALARS: Final[dict[type, str]] = {Duration: "1h", Time: "2000-01-01T00:00:00Z", OwnerPath: "x", Cpu: "1", Memory: "1"}


def faults(kind: str, written: Mapping[str, Any]) -> list[Refusal]:
    """Every fault of an object, in the order in which they are found; empty for one that is right.

    A field that cannot be read is taken out, or stands in with a value that can, so that what is after it is read too.
    Rules between fields are then asked of what is left, and what they say of such a field is passed over.
    """
    value: Any = copy.deepcopy(dict(written))
    found: list[Refusal] = []
    while len(found) < MOST:
        try:
            item = decode(kind, value)
        except Refusal as refusal:
            found.append(refusal)
            if not _mend(kind, value, refusal.path):
                return found
        else:
            return found + _broken_rules(item, [refusal.path for refusal in found])
    return found


def _broken_rules(item: KindObject | Node | Pod, mended: list[tuple[allowed.PathPart, ...]]) -> list[Refusal]:
    if isinstance(item, Node | Pod):
        return []
    names = {_last(path).lower() for path in mended if path}  # `totalGpus` speaks for `totalGPUs`
    return [each for each in problems(item) if not any(name in each.problem.lower() for name in names)]


def _last(path: tuple[allowed.PathPart, ...]) -> str:
    """The end of a path as sentences have it: a field's name, of an entry with its number."""
    *above, last = path
    return f"{above[-1]}[{last}]" if above and isinstance(last, int) else str(last)


def _mend(kind: str, value: Any, path: tuple[allowed.PathPart, ...]) -> bool:
    """Has the field at ``path`` read without a fault; whether that can be done."""
    if not path:
        return False
    *above, last = path
    parent = value
    for part in above:
        try:
            parent = parent[part]
        except (KeyError, IndexError, TypeError):
            return False
    whole = allowed.type_of(READABLE[kind])
    field = allowed.at(whole, path)
    if isinstance(parent, list) and isinstance(last, int) and field is not None and last < len(parent):
        parent[last] = _any_of(field)
    elif isinstance(parent, dict) and (field is None or not _is_required(whole, path)):
        if last not in parent:
            return False
        del parent[last]
    elif isinstance(parent, dict) and field is not None:
        parent[last] = _any_of(field)
    else:
        return False
    return True


def _is_required(whole: inspect.Type, path: tuple[allowed.PathPart, ...]) -> bool:
    above = allowed.at(whole, path[:-1])
    struct = allowed.bare(above) if above else None
    fields = struct.fields if isinstance(struct, inspect.StructType) else ()
    return any(field.required for field in fields if field.encode_name == path[-1])


def _any_of(kind: inspect.Type) -> Any:
    """Some value that a type allows."""
    found: Any = None
    match allowed.bare(kind):
        case inspect.UnionType(types=parts):
            found = _any_of(parts[0])
        case inspect.IntType(ge=low) | inspect.FloatType(ge=low):
            found = low or 0
        case inspect.BoolType():
            found = False
        case inspect.LiteralType(values=values):
            found = values[0]
        case inspect.CustomType(cls=cls):
            found = _SCALARS[cls]
        case inspect.StrType():
            found = "x"
        case inspect.VarTupleType(item_type=item, min_length=low):
            found = [_any_of(item)] * (low or 0)
        case inspect.DictType(value_type=item, min_length=low):
            found = {f"x{number}": _any_of(item) for number in range(low or 0)}
        case inspect.StructType(fields=fields):
            found = {field.encode_name: _any_of(field.type) for field in fields if field.required}
    return found
