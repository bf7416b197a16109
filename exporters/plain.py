"""API objects as the plain values that are written and printed: specs as people wrote them, statuses with zeros."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jobtree.api import KindObject, enc_hook, encode

Plain = dict[str, Any]

#: Zero means that the object counts no generations (a state file's do not), so it says nothing.
_SILENT_ZEROS: Final = frozenset({"observed_generation"})


def document(item: KindObject) -> Plain:
    """The whole object; its status, where it has one, with zeros."""
    body = encode(item)
    if "status" in body:
        body["status"] = status(item.status)
    return body


def status(struct: msgspec.Struct) -> Plain:
    """A status with its zeros: "0 GPUs of headroom" is a fact that a reader must find, not the lack of one.

    Absent stay only None, empty texts and empty lists.
    """
    found: Plain = {}
    for field in msgspec.structs.fields(type(struct)):
        value = getattr(struct, field.name)
        if value is None or value in ("", (), {}) or (value == 0 and field.name in _SILENT_ZEROS):
            continue
        found[field.encode_name] = _value(value)
    return found


def _value(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return status(value)
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    return msgspec.to_builtins(value, enc_hook=enc_hook)


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
