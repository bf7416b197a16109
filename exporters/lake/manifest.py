"""A cycle's manifest: what it was made from, and how far its plan has been carried out (spec §8, §11)."""

from pathlib import Path
from typing import Final, Literal

import msgspec

from exporters.plans import jsonfile
from jobtree.api import Refusal, Time, enc_hook
from jobtree.api.kinds.plan import Plan
from jobtree.world.memory import seen
from jobtree.world.tables.schema import SCHEMA_VERSION

Phase = Literal["planned", "applied", "unchanged", "observed", "aside"]

DONE: Final = frozenset({"applied", "unchanged", "observed"})
"""Phases of cycles that reports count."""

UNDONE: Final[dict[Phase, str]] = {
    "planned": "its plan has not been carried out to the end, which the next cycle does",
    "aside": "it was set aside: its plan was made on another history of the cluster, and not carried out",
}
"""The others, in words."""


class PlanName(msgspec.Struct, frozen=True):
    """A Plan object: its name and the SHA-256 of its plan, hex, so that another history's is not taken for it."""

    name: str
    sha256: str = ""

    @classmethod
    def newest(cls, plans: tuple[Plan, ...]) -> "PlanName | None":
        """The newest of a cluster's."""
        plan = seen.newest(plans)
        return None if plan is None else cls(plan.name, digest_in(plan))


def digest_in(plan: Plan) -> str:
    """The SHA-256 of the plan's canonical bytes, as its object names it."""
    return next((each.sha256.removeprefix("sha256:") for each in plan.spec.details if each.name == "plan"), "")


class LeftOut(msgspec.Struct, frozen=True):
    """A part of a plan that could no longer be when it was carried out: the object, and why, in one sentence."""

    object: str
    message: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """What a cycle was made from. ``since``: the time of the cycle before it; digests are SHA-256 in hex, timings
    seconds of wall time per phase.

    ``phase``: planned before anything of the plan is written to the cluster, applied after all of it is; unchanged
    where nothing was to be written, as the Plan ``on`` says it all; observed where a Policy's mode leaves it at that;
    aside where it belongs to another history than the cluster's. ``on``: the newest Plan of the cluster as it was made,
    ``seen``: the record of the money that its cycle leaves (`Lake.write_seen`); ``left_out``: what of the plan was not
    carried out.
    """

    schema_version: int
    jobtree: str
    at: Time
    since: Time | None = None
    snapshot: str
    policy: msgspec.Raw
    policy_digest: str
    tables: dict[str, str]
    plan: str
    timings: dict[str, float] = {}
    phase: Phase = "applied"
    on: PlanName | None = None
    seen: str = ""
    left_out: list[LeftOut] = []


def encode(manifest: Manifest) -> bytes:
    """The manifest as its file has it."""
    return msgspec.json.format(msgspec.json.encode(manifest, enc_hook=enc_hook), indent=1) + b"\n"


def decode(data: bytes, path: Path) -> Manifest:
    """The manifest in these bytes of the file ``path``. Raises Refusal where they are spoilt or of another schema."""
    found = jsonfile.decode(data, Manifest, "it is not the manifest of a cycle", str(path))
    if found.schema_version != SCHEMA_VERSION:
        raise Refusal(
            f"it was written with schema version {found.schema_version}, and this is version {SCHEMA_VERSION};"
            f" read it with jobtree {found.jobtree}",
            subject=str(path),
        )
    return found
