"""ConfigMaps as an intake holds them: the planner's own records."""

import msgspec

from jobtree.api import Refusal
from jobtree.world.memory import balances


class ConfigMap(msgspec.Struct, frozen=True, kw_only=True):
    """A v1 ConfigMap: texts by key."""

    namespace: str
    name: str
    data: dict[str, str]


class _Content(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def read(namespace: str, name: str, raw: bytes | msgspec.Raw) -> ConfigMap:
    """Read its JSON. Raises Refusal where that are no texts, or no part of the balances by whose name it goes."""
    try:
        content = msgspec.json.decode(raw, type=_Content)
    except msgspec.ValidationError as error:
        raise Refusal(f"its data cannot be read: {error}") from None
    if balances.number_of(namespace, name) is not None:
        balances.of(content.data)
    return ConfigMap(namespace=namespace, name=name, data=content.data)
