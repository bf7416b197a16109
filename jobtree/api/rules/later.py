"""Fields on which this version does not act yet: `base.LATER` marks them, and this reads the marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, inspect

from jobtree.api.values.allowed import bare, type_of

if TYPE_CHECKING:
    from jobtree.api.rules.decode import KindObject


def note_of(kind: inspect.Type) -> str:
    """What is said of a field of this type because it is marked; empty for one that is not."""
    return str((kind.extra or {}).get("later", "")) if isinstance(kind, inspect.Metadata) else ""


def without_effect(item: KindObject) -> list[str]:
    """A warning that names the marked fields of the object's spec that say anything but their default."""
    fields = list(_marked(type_of(type(item.spec)), item.spec, "spec"))
    return [f"{item.subject}: without effect in this version yet: {', '.join(fields)}"] if fields else []


def _marked(kind: inspect.Type, value: Any, path: str) -> Iterator[str]:
    found = bare(kind)
    if isinstance(found, inspect.VarTupleType):
        for index, each in enumerate(value or ()):
            yield from _marked(found.item_type, each, f"{path}[{index}]")
    elif isinstance(found, inspect.StructType) and value is not None:
        for field in found.fields:
            given = getattr(value, field.name)
            if note_of(field.type):
                if given != _default(field):
                    yield f"{path}.{field.encode_name}"
            else:
                yield from _marked(field.type, given, f"{path}.{field.encode_name}")


def _default(field: inspect.Field) -> Any:
    if field.default is not NODEFAULT:
        return field.default
    return NODEFAULT if field.default_factory is NODEFAULT else field.default_factory()
