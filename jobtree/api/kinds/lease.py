"""Lease: the immutable fact of who used which GPUs, who paid, from when and why (spec §1, §3.6)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from jobtree.api.kinds.base import Flavor, Strict, Tolerant, Uid, shown
from jobtree.api.kinds.meta import EnvelopeRef, Object, RunRef
from jobtree.api.values.scalars import OwnerPath, Time

Role = Literal["Active", "Spare"]
LeaseReason = Literal["Start", "Grow", "Swap"]
FundingClass = Literal["owned", "shared", "borrowed", "unfunded"]
ClosureReason = Literal[
    "Completed",
    "Failed",
    "Cancelled",
    "Suspended",
    "TimeLimit",
    "NodeFailure",
    "Swap",
    "SwapDeclined",
    "ReclaimedBySpare",
    "Shrink",
    "DropSpare",
    "ReclaimUnfunded",
    "Lottery",
    "RunDeleted",
]

#: Finalizer of an open Lease: it cannot go before it is closed.
FINALIZER: Final = "rq.davidlangworthy.io/open-lease"
SLOT_PATTERN: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?#(0|[1-9][0-9]{0,2})$"
# The pattern is for the CRD; `rules` checks slots in a fraction of the time of a regex per slot.
Slot = Annotated[str, Meta(extra_json_schema={"pattern": SLOT_PATTERN, "maxLength": 257})]


class Slice(Strict, frozen=True, kw_only=True):
    """The GPUs themselves."""

    nodes: Annotated[
        tuple[Slot, ...],
        Meta(
            min_length=1,
            max_length=256,
            description="Slots `node#ordinal`, all of one node, each once.",
        ),
    ]
    node_uid: Annotated[Uid, Meta(description="UID of that node: one made again under its name is another node.")] = ""
    role: Annotated[Role, Meta(description="`Spare` is a standby: held slots without a pod.")] = shown("Active")


class Interval(Strict, frozen=True, kw_only=True):
    """When the lease began; its end is in the status."""

    start: Annotated[Time, Meta(description="Inclusive.")]


class LeaseSpec(Strict, frozen=True, kw_only=True):
    """The fact; immutable."""

    owner: Annotated[OwnerPath, Meta(description="The payer's owner, or the run's where nobody pays.")]
    run_ref: Annotated[RunRef, Meta(description="The Run that holds it.")]
    run_uid: Annotated[Uid, Meta(description="UID of that Run.")]
    run_owner: Annotated[OwnerPath, Meta(description="Owner of that Run.")]
    flavor: Annotated[Flavor, Meta(description="GPU flavor.")]
    group: Annotated[int, Meta(ge=0, le=1_000_000, description="Group of the run, from 0.")]
    slice: Annotated[Slice, Meta(description="The GPUs.")]
    interval: Annotated[Interval, Meta(description="When it began.")]
    reason: Annotated[LeaseReason, Meta(description="Why it was opened.")]
    cycle: Annotated[
        str, Meta(max_length=253, pattern=r"^[!-~]*\Z", description="Name of the Plan that opened it.")
    ] = ""
    paid_by: Annotated[
        EnvelopeRef | None,
        Meta(description="The envelope that pays; absent where it started unfunded: never charged."),
    ] = None

    @property
    def node(self) -> str:
        """The one node that its slots lie on."""
        return self.slice.nodes[0].rpartition("#")[0]

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The ordinals of its slots on that node."""
        return tuple(int(slot.rpartition("#")[2]) for slot in self.slice.nodes)


class Segment(Tolerant, frozen=True, kw_only=True):
    """One span of the ledger in which class and credit rate do not change."""

    class_: Annotated[FundingClass, Meta(description="Who pays: own, family, sponsor or nobody.")]
    from_: Annotated[Time, Meta(description="Inclusive.")]
    to: Annotated[Time | None, Meta(description="Exclusive; absent while it lasts.")] = None
    rate: Annotated[int | float | None, Meta(description="Credits per GPU-hour; absent where there is no rate.")] = None


class Cause(Tolerant, frozen=True, kw_only=True):
    """What a lease was closed for."""

    plan: Annotated[str, Meta(description="Name of the Plan.")]
    reservation: Annotated[str, Meta(description="`namespace/name` of the Reservation that it made room for.")] = ""


class Proof(Tolerant, frozen=True, kw_only=True):
    """Where the draw that closed this lease can be recomputed from (spec §6)."""

    plan: Annotated[str, Meta(description="Name of the Plan that holds the pools and picks.")]
    reservation: Annotated[str, Meta(description="`namespace/name` of the Reservation drawn for.")]
    draw: Annotated[int, Meta(description="Number of the pick in that draw, from 0.")]
    position: Annotated[int, Meta(description="Position in the hash chain.")]
    secret: Annotated[str, Meta(description="The revealed secret w_j, hex.")]


class LeaseStatus(Tolerant, frozen=True, kw_only=True):
    """How it ended, and the ledger. Final once `closed`."""

    closed: Annotated[bool, Meta(description="Whether it has ended; never undone.")] = shown(False)
    ended: Annotated[Time | None, Meta(description="Exclusive end.")] = None
    closure_reason: Annotated[ClosureReason | None, Meta(description="Why it ended.")] = None
    funding: Annotated[
        tuple[Segment, ...],
        Meta(description="The ledger: its class over time; segments are only ever appended."),
    ] = ()
    cause: Annotated[Cause | None, Meta(description="For closures that made room.")] = None
    proof: Annotated[Proof | None, Meta(description="For closures by the lottery.")] = None


class Lease(Object, frozen=True, kw_only=True):
    """The immutable fact of who used which GPUs, who paid, from when and why."""

    NAMESPACED: ClassVar[bool] = True

    spec: LeaseSpec
    kind: Literal["Lease"] = "Lease"
    status: LeaseStatus = LeaseStatus()

    @property
    def run_key(self) -> tuple[str, str]:
        """Namespace and name of the run that holds it."""
        return self.namespace, self.spec.run_ref.run_name
