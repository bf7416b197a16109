"""The reference page of the kinds, made from their structs."""

from __future__ import annotations

import json
from inspect import cleandoc
from typing import Any, Final

import msgspec
from msgspec import inspect

from jobtree.api.crds.crds import RESOURCES
from jobtree.api.kinds.base import API_VERSION
from jobtree.api.rules.decode import KINDS
from jobtree.api.values.allowed import allowed, bare, type_of
from jobtree.api.values.scalars import enc_hook

_HEAD: Final = f"""# Kinds

Every field of the six kinds of `{API_VERSION}`. This page is made from the program's own types, as the CRDs in
`deploy/crds` are.

GPUs are whole numbers. Durations are texts such as `10m`, `12h`, `1h30m` or `2d`; times are RFC 3339 in whole seconds,
such as `2025-11-01T14:05:00Z`, with `Z` or an offset; owners are colon paths from the root down, such as
`org:ai:rai:sys`; windows are [start, end). A field without a default that is not required is absent by default.
Unknown fields of a spec are refused.
"""


def generate() -> str:
    """The page as Markdown; the same text every time."""
    return "\n".join([_HEAD, *(_kind(kind) for kind in KINDS)])


def _kind(kind: str) -> str:
    resource, found = RESOURCES[kind], KINDS[kind]
    scope = "namespaced" if found.NAMESPACED else "cluster-scoped"
    lines = [
        f"## {kind}\n",
        f"{_text(found)}\n",
        f"Resource `{resource.plural}`, short name `{resource.short}`, {scope}.\n",
    ]
    whole = type_of(found)
    assert isinstance(whole, inspect.StructType)
    parts = {field.encode_name: field.type for field in whole.fields}
    for part in ("spec", "status"):
        struct = bare(parts[part])
        assert isinstance(struct, inspect.StructType)
        lines += [f"### {kind} {part}\n", f"{_text(struct.cls)}\n", _table(struct)]
    return "\n".join(lines)


def _table(struct: inspect.StructType) -> str:
    rows = ["| field | allowed | default | meaning |", "|---|---|---|---|", *_rows(struct, "")]
    return "\n".join(rows) + "\n"


def _rows(struct: inspect.StructType, prefix: str) -> list[str]:
    rows = []
    for field in struct.fields:
        path = f"{prefix}{field.encode_name}"
        found = bare(field.type)
        entry, suffix = found, ""
        while isinstance(entry, inspect.VarTupleType):
            entry, suffix = bare(entry.item_type), f"{suffix}[]"
        nested = entry if isinstance(entry, inspect.StructType) else None
        rows.append(f"| `{path}{suffix}` | {_allowed(field.type, nested)} | {_default(field)} | {_meaning(field)} |")
        if nested is not None:
            rows += _rows(nested, f"{path}{suffix}.")
    return rows


def _allowed(kind: inspect.Type, nested: inspect.StructType | None) -> str:
    if nested is None:
        words = allowed(kind)
    else:
        found = bare(kind)
        words = "as below" if found is nested else f"list{_size(found)}, as below"
    return words.replace("|", "\\|")


def _size(kind: Any) -> str:
    low, high = kind.min_length, kind.max_length
    if low and high:
        return f" of {low} to {high}"
    return f" of at most {high}" if high else ""


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    default = field.default
    if default is msgspec.NODEFAULT:
        default = field.default_factory()
    if default is None or isinstance(default, msgspec.Struct) or default in ((), {}, ""):
        return ""
    plain = msgspec.to_builtins(default, enc_hook=enc_hook)
    return f"`{plain if isinstance(plain, str) else json.dumps(plain)}`"


def _meaning(field: inspect.Field) -> str:
    extra = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
    return str((extra or {})["description"]).replace("|", "\\|")


def _text(kind: type) -> str:
    return cleandoc(kind.__doc__ or "").replace("\n", " ")
