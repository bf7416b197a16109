"""The lottery's records: the chain that a ConfigMap publishes, and the secret that a cycle may reveal (spec §6)."""

from collections.abc import Mapping
from typing import Final

import msgspec

from jobtree.api import Time

NAME: Final = "jobtree-lottery"
"""Name of the ConfigMap, and of the Secret with the chain's origin under the key `origin`, in the planner's namespace.
"""
ORIGIN: Final = "origin"
LENGTH: Final = 2**20
"""Secrets of one chain: w_1 … w_N; the anchor w_0 is published before any is used."""


class Lot(msgspec.Struct, frozen=True):
    """The secret w_position, hex, that a cycle may draw with: an input of the planner beside the snapshot's tables."""

    position: int
    secret: str


class Chain(msgspec.Struct, frozen=True):
    """``anchor``: w_0, hex; ``position``: of the secret used last; ``since``: the chain may be used after that time;
    ``retired``: anchors of the chains before it.
    """

    anchor: str
    length: int
    position: int
    since: Time
    retired: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, str] | None) -> "Chain | None":
        """From the ConfigMap's data; None where there is none that can be used."""
        if data is None:
            return None
        try:
            since = Time.parse(data["since"])
            retired = tuple(data.get("retired", "").split())
            return cls(data["anchor"], int(data["length"]), int(data["position"]), since, retired)
        except (KeyError, ValueError):
            return None

    @property
    def opens(self) -> int | None:
        """First Unix second in which it may be used, where it is in place of another one."""
        return int(self.since) + 1 if self.retired else None

    def data(self) -> dict[str, str]:
        """As the ConfigMap has it."""
        return {
            "anchor": self.anchor,
            "length": str(self.length),
            "position": str(self.position),
            "since": str(self.since),
            **({"retired": " ".join(self.retired)} if self.retired else {}),
        }
