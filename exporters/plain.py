"""API objects as the plain values that are written and printed: specs as people wrote them, statuses with zeros."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from jobtree.api import KindObject, enc_hook, encode
from jobtree.api.scalars import SCALARS

Plain = dict[str, Any]

#: Zero means that the object counts no generations (a state file's do not), so it says nothing.
_SILENT_ZEROS: Final = frozenset({"observed_generation"})
_AS_THEY_ARE: Final = frozenset({str, int, float, bool})


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
    for attribute, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        value = getattr(struct, attribute)
        if value or (isinstance(value, int | float) and attribute not in _SILENT_ZEROS):
            found[name] = _value(value)
    return found


def _value(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return status(value)
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    if type(value) in _AS_THEY_ARE:
        return value
    return _text(value) if isinstance(value, SCALARS) else msgspec.to_builtins(value, enc_hook=enc_hook)


@lru_cache(maxsize=4096, typed=True)  # statuses repeat the same few times
def _text(value: Any) -> str:
    return enc_hook(value)


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
