"""API objects as the plain values that are written and printed: specs as people wrote them, statuses with zeros."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from jobtree.api import KindObject, enc_hook, encode
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import IndexRun, Run
from jobtree.api.values.scalars import SCALARS

Plain = dict[str, Any]

#: Zero means that the object counts no generations (a state file's do not), so it says nothing.
_SILENT_ZEROS: Final = frozenset({"observed_generation"})
_AS_THEY_ARE: Final = frozenset({str, int, float, bool})


def document(item: KindObject) -> Plain:
    """The whole object; its status, where it has one, with zeros."""
    if isinstance(item, IndexRun):
        item = Run(metadata=item.metadata, spec=item.spec, status=item.status)
    body = encode(item)
    if "status" in body:
        body["status"] = status(item.status)
    return body


def status(struct: msgspec.Struct) -> Plain:
    """A status with its zeros: "0 GPUs of headroom" is a fact that a reader must find, not the lack of one.

    Absent stay only None, empty texts and empty lists.
    """
    return {
        name: _value(value)
        for attribute, name in _fields(type(struct))
        if _says(attribute, value := getattr(struct, attribute))
    }


def status_patch(old: msgspec.Struct, new: msgspec.Struct) -> Plain:
    """`merge_patch` from the `status` of one struct to that of another of its type; only what differs is made plain."""
    patch: Plain = {}
    for attribute, name in _fields(type(new)):
        before, after = getattr(old, attribute), getattr(new, attribute)
        if before == after:
            continue
        if not _says(attribute, after):
            if _says(attribute, before):
                patch[name] = None
        elif isinstance(after, msgspec.Struct) and isinstance(before, msgspec.Struct):
            if inner := status_patch(before, after):
                patch[name] = inner
        elif isinstance(after, dict) and isinstance(before, dict):
            patch[name] = merge_patch(_value(before), _value(after))
        else:
            patch[name] = _value(after)
    return patch


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """A struct's attributes with their names in JSON."""
    return tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))


def _says(attribute: str, value: Any) -> bool:
    return bool(value) or (isinstance(value, int | float) and attribute not in _SILENT_ZEROS)


def _value(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    if type(value) is Condition:
        return _condition(value)
    if isinstance(value, msgspec.Struct):
        return status(value)
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    return enc_hook(value) if isinstance(value, SCALARS) else msgspec.to_builtins(value, enc_hook=enc_hook)


@lru_cache(maxsize=65_536)  # every run has six of them, and most are alike
def _condition(condition: Condition) -> Plain:
    return status(condition)


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Plain:
    """The smallest JSON merge patch (RFC 7386) that makes ``new`` of ``old``; empty where they are equal."""
    patch: Plain = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
