"""Run: a gang of GPUs that start together (spec §1)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, field

from jobtree.api.kinds.base import (
    AS_SET,
    BY_TYPE,
    MAX_GROUPS,
    MAX_INDICES,
    Amount,
    ArraySize,
    Count,
    Flavor,
    Fraction,
    Index,
    LabelsAsked,
    PartName,
    PositiveCount,
    RunName,
    SpareCount,
    Strict,
    Tolerant,
    shown,
)
from jobtree.api.kinds.meta import Condition, Object, name_of
from jobtree.api.kinds.template import TEMPLATE_SCHEMA
from jobtree.api.values.scalars import MINUTE, Cpu, Duration, Memory, OwnerPath, Time

State = Literal["Active", "Suspended", "Cancelled"]
Phase = Literal["Pending", "Waiting", "Running", "Completed", "Failed"]
Indices = Annotated[tuple[Index, ...], Meta(min_length=1, max_length=MAX_INDICES), AS_SET]

#: The conditions of a Run, each always present.
RUN_CONDITIONS: Final = ("Admitted", "Scheduled", "Running", "Completed", "Failed", "Blocked")
OVER: Final = frozenset({"Completed", "Failed"})
"""Phases that a run does not leave."""
SPEAKS: Final[Mapping[str, str]] = {
    "Failed": "Failed", "Completed": "Completed", "Running": "Admitted", "Waiting": "Blocked", "Pending": "Admitted",
}  # fmt: skip
"""The condition that gives the reason of a phase."""
CPU_RUN: Final = "CpuRun"
"""Reason of a run that runs and has no GPUs."""
UNPAID: Final = ("Unfunded", "PartlyUnfunded")
"""Reasons of a run that runs and whose GPUs nobody pays for: all of them, and some."""


def phase_of(true: Container[str]) -> Phase:
    """The phase that follows from the conditions that are True (spec §1).

    Failed > Completed > Running > Waiting (Blocked and not Admitted) > Pending.
    """
    if "Failed" in true:
        return "Failed"
    if "Completed" in true:
        return "Completed"
    if "Running" in true:
        return "Running"
    return "Waiting" if "Blocked" in true and "Admitted" not in true else "Pending"


def derived_phase(phase: str | None, conditions: Mapping[str, bool]) -> Phase:
    """The phase of a stored status, whose own ``phase`` counts only for a condition that is not there.

    ``conditions``: which of those that are there are True.
    """
    true = {kind for kind, holds in conditions.items() if holds}
    return phase_of(true if phase is None or phase in conditions else {*true, phase})


class Resources(Strict, frozen=True, kw_only=True):
    """What the run needs: GPUs, or pods of CPU and memory only."""

    gpu_type: Annotated[
        Flavor | None,
        Meta(description="Flavor of the GPUs, e.g. `H100-80GB`."),
    ] = None
    total_gpus: Annotated[
        PositiveCount | None,
        Meta(description="GPUs of the run, spares not counted."),
    ] = field(default=None, name="totalGPUs")
    gpus_per_pod: Annotated[
        PositiveCount | None,
        Meta(description="GPUs of each pod; each pod lies on one node."),
    ] = field(default=None, name="gpusPerPod")
    pods: Annotated[PositiveCount | None, Meta(description="Pods of a CPU run.")] = None
    cpu_per_pod: Annotated[Cpu | None, Meta(description="CPU of each pod of a CPU run, a quantity such as `4`.")] = None
    memory_per_pod: Annotated[Memory | None, Meta(description="Memory of each pod of a CPU run, such as `16Gi`.")] = (
        None
    )

    @property
    def is_cpu(self) -> bool:
        """Whether this is a CPU run: no lease and no payer."""
        return self.pods is not None


class Locality(Strict, frozen=True, kw_only=True):
    """Where the GPUs may lie."""

    group_gpus: Annotated[
        PositiveCount | None,
        Meta(description=f"GPUs of a group, which lies in one domain; a run has at most {MAX_GROUPS} groups."),
    ] = None
    allow_cross_group_spread: Annotated[bool, Meta(description="Whether groups may lie in different domains.")] = True
    selector: Annotated[
        LabelsAsked,
        Meta(max_length=16, description="Node labels that every group must match."),
    ] = {}


class Runtime(Strict, frozen=True, kw_only=True):
    """How long the run takes and what happens when it is interrupted."""

    checkpoint: Annotated[Duration | None, Meta(description="How often the run saves its state.")] = None
    expected: Annotated[Duration | None, Meta(description="How long it will probably run; for forecasts only.")] = None
    time_limit: Annotated[Duration | None, Meta(description="It is ended (`TimeLimit`) when it ran this long.")] = None
    requeue: Annotated[
        bool | None,
        Meta(
            description="Whether an interrupted run waits again instead of failing; by default"
            " exactly when `checkpoint` is set or the run is opportunistic."
        ),
    ] = None


class Malleable(Strict, frozen=True, kw_only=True):
    """The widths that the run can live with, all in GPUs."""

    min_total_gpus: Annotated[PositiveCount, Meta(description="It never runs narrower.")]
    max_total_gpus: Annotated[PositiveCount, Meta(description="It never runs wider.")]
    step_gpus: Annotated[PositiveCount, Meta(description="GPUs by which it grows and shrinks.")]
    desired_total_gpus: Annotated[
        PositiveCount | None,
        Meta(description="The width it grows towards; by default the maximum."),
    ] = None


class Funding(Strict, frozen=True, kw_only=True):
    """Who may pay beside the owner's family."""

    allow_borrow: Annotated[bool, Meta(description="Whether sponsors may pay for this run.")] = False
    max_borrow_gpus: Annotated[Count | None, Meta(description="Most active GPUs that sponsors may pay.")] = None
    sponsors: Annotated[
        tuple[OwnerPath, ...],
        Meta(max_length=64, description="Owners to borrow from, in order of preference."),
    ] = ()
    opportunistic: Annotated[
        bool,
        Meta(
            description="Whether it may start unfunded by its own choice; it then gives way to any"
            " funded need, and its owner needs no Budget."
        ),
    ] = False


class Follow(Strict, frozen=True, kw_only=True):
    """The runs that must complete first."""

    after: Annotated[
        tuple[RunName, ...],
        AS_SET,
        Meta(min_length=1, max_length=256, description="Names of Runs in the same namespace."),
    ]
    on_upstream_failure: Annotated[
        Literal["wait", "fail"],
        Meta(description="`fail`: this run fails at once; `wait`: after the grace."),
    ] = "wait"
    upstream_failure_grace: Annotated[
        Duration, Meta(description="How long a failed upstream may take to be replaced.")
    ] = Duration(30 * MINUTE)


class Quota(Strict, frozen=True, kw_only=True):
    """Bounds on this run and everything below it in the tree, funded or not."""

    max_gpus: Annotated[Count | None, Meta(description="Most active GPUs at once.")] = None
    max_gpu_hours: Annotated[Amount | None, Meta(description="Most GPU-hours altogether.")] = None


class Gang(Strict, frozen=True, kw_only=True):
    """Runs of one namespace that start in the same cycle or not at all."""

    name: Annotated[PartName, Meta(description="Name that its members share.")]
    size: Annotated[int, Meta(ge=1, le=1024, description="How many Runs it has.")]


class Array(Strict, frozen=True, kw_only=True):
    """Many runs of one shape in one object; each index is admitted, ends and fails alone."""

    count: Annotated[ArraySize | None, Meta(description="Indices 0 to count − 1.")] = None
    indices: Annotated[
        Indices | None,
        Meta(description="The indices, where they are not 0, 1, 2, …"),
    ] = None
    max_parallel: Annotated[ArraySize | None, Meta(description="Most indices that run at once.")] = None

    @property
    def all(self) -> Sequence[int]:
        """Every index, in order."""
        return range(self.count or 0) if self.indices is None else sorted(self.indices)

    @property
    def size(self) -> int:
        """How many indices it has."""
        return (self.count or 0) if self.indices is None else len(self.indices)

    def has(self, index: int) -> bool:
        """Is that an index of it?"""
        return 0 <= index < (self.count or 0) if self.indices is None else index in self.indices


class RunSpec(Strict, frozen=True, kw_only=True):
    """What the owner asks for. After creation only `state`, `malleable.desiredTotalGPUs` and
    `funding.sponsors` may change.
    """

    owner: Annotated[OwnerPath, Meta(description="Who the run is charged to, e.g. `org:ai:rai:sys`.")]
    resources: Annotated[Resources, Meta(description="What the run needs.")]
    state: Annotated[
        State,
        Meta(description="`Suspended` holds nothing and waits; `Cancelled` is final."),
    ] = "Active"
    locality: Annotated[Locality, Meta(description="Where the GPUs may lie.")] = Locality()
    runtime: Annotated[Runtime, Meta(description="Time limit, checkpoint, requeue.")] = Runtime()
    malleable: Annotated[Malleable | None, Meta(description="Widths of an elastic run; absent for a fixed one.")] = None
    spares_given: Annotated[
        SpareCount | None,
        Meta(description="Standbys per group, each for one pod; 0 by default."),
    ] = field(default=None, name="spares")
    spares_per_group: Annotated[SpareCount | None, Meta(description="Another name of `spares`.")] = None
    funding: Annotated[Funding, Meta(description="Borrowing and opportunism.")] = Funding()
    follow: Annotated[Follow | None, Meta(description="Runs that must complete first.")] = None
    parent: Annotated[RunName | None, Meta(description="The Run above this one in its tree, same namespace.")] = None
    quota: Annotated[Quota | None, Meta(description="Bounds on this run and all below it in its tree.")] = None
    gang: Annotated[Gang | None, Meta(description="Runs that start together with this one.")] = None
    array: Annotated[Array | None, Meta(description="Many runs of one shape, each by itself.")] = None
    template: Annotated[
        dict[str, Any] | None,
        Meta(extra_json_schema=TEMPLATE_SCHEMA),
        Meta(description="The pods: a Kubernetes PodTemplateSpec. A pause image if absent."),
    ] = None

    @property
    def spares(self) -> int:
        """Standbys per group, under either of the field's names."""
        return self.spares_given or self.spares_per_group or 0

    @property
    def spare_gpus(self) -> int:
        """GPUs of one standby: those of a pod, or one."""
        return self.resources.gpus_per_pod or 1

    @property
    def total_gpus(self) -> int:
        """Requested width in GPUs; 0 for a CPU run."""
        return self.resources.total_gpus or 0

    @property
    def min_gpus(self) -> int:
        """Narrowest width in GPUs."""
        return self.malleable.min_total_gpus if self.malleable else self.total_gpus

    @property
    def max_gpus(self) -> int:
        """Widest width in GPUs."""
        return self.malleable.max_total_gpus if self.malleable else self.total_gpus

    @property
    def step_gpus(self) -> int:
        """GPUs of one step above the minimum; 0 for a fixed run."""
        return self.malleable.step_gpus if self.malleable else 0

    @property
    def desired_gpus(self) -> int:
        """The width that the run grows towards."""
        if self.malleable and self.malleable.desired_total_gpus is not None:
            return self.malleable.desired_total_gpus
        return self.max_gpus

    @property
    def requeues(self) -> bool:
        """Whether an interrupted run waits again instead of failing."""
        if self.runtime.requeue is not None:
            return self.runtime.requeue
        return self.runtime.checkpoint is not None or self.funding.opportunistic


class Width(Tolerant, frozen=True, kw_only=True):
    """GPUs of the run, spares not counted."""

    min: Annotated[int, Meta(description="Narrowest width.")] = shown(0)
    max: Annotated[int, Meta(description="Widest width.")] = shown(0)
    desired: Annotated[int, Meta(description="The width it grows towards.")] = shown(0)
    allocated: Annotated[int, Meta(description="Active GPUs that it holds.")] = shown(0)
    pending: Annotated[int, Meta(description="GPUs still wanted: desired − allocated.")] = shown(0)


class RunFunding(Tolerant, frozen=True, kw_only=True):
    """Active GPUs of the run by their present class."""

    owned_gpus: Annotated[int, Meta(description="Paid by the owner's own envelopes.")] = shown(0)
    shared_gpus: Annotated[int, Meta(description="Paid by the owner's family.")] = shown(0)
    borrowed_gpus: Annotated[int, Meta(description="Paid by sponsors.")] = shown(0)
    unfunded_gpus: Annotated[int, Meta(description="Paid by nobody; cut first.")] = shown(0)
    lenders: Annotated[tuple[OwnerPath, ...], Meta(description="Owners of the envelopes that lend.")] = ()


class Eta(Tolerant, frozen=True, kw_only=True):
    """When the run will probably start."""

    p50: Annotated[Time | None, Meta(description="As likely before as after.")] = None
    p90: Annotated[Time | None, Meta(description="Nine times of ten before.")] = None


class IndexStatus(Tolerant, frozen=True, kw_only=True):
    """Indices of an array of which the same is to be said; one of which nothing is said waits."""

    indices: Annotated[str, Meta(description="The indices: numbers and ranges, such as `0-37,40`.")]
    phase: Annotated[Phase, Meta(description="Their phase, as that of a run.")] = shown("Pending")
    reason: Annotated[str, Meta(description="A stable CamelCase word for the phase.")] = ""
    message: Annotated[str, Meta(description="Of those that wait: one sentence with the number that matters.")] = ""
    started: Annotated[Time | None, Meta(description="Their last start, while they run.")] = None
    time_limit: Annotated[Duration | None, Meta(description="The limit that is enforced, while they run.")] = None
    reservation: Annotated[str, Meta(description="Name of the Reservation, if one is held.")] = ""
    earliest_start: Annotated[Time | None, Meta(description="The promised start.")] = None
    eta: Annotated[Eta | None, Meta(description="The estimated start.")] = None


class RunStatus(Tolerant, frozen=True, kw_only=True):
    """What became of the run. Nothing in it grows with the clock."""

    phase: Annotated[
        Phase | None,
        Meta(description="From the conditions: Failed > Completed > Running > Waiting > Pending."),
    ] = None
    conditions: Annotated[
        tuple[Condition, ...],
        BY_TYPE,
        Meta(description="Admitted, Scheduled, Running, Completed, Failed, Blocked: all present."),
    ] = ()
    width: Annotated[Width | None, Meta(description="GPUs wanted and held.")] = None
    funding: Annotated[RunFunding | None, Meta(description="Who pays now.")] = None
    started: Annotated[Time | None, Meta(description="The last start; protection and time limit count from it.")] = None
    ended: Annotated[Time | None, Meta(description="When it completed or failed.")] = None
    time_limit: Annotated[
        Duration | None,
        Meta(description="The limit that is enforced: its own, or its payers' default at its start."),
    ] = None
    projected_gpu_hours: Annotated[int | float | None, Meta(description="GPU-hours charged up to the time limit.")] = (
        None
    )
    projected_credits: Annotated[int | float | None, Meta(description="Credits charged up to the time limit.")] = None
    reservation: Annotated[str, Meta(description="Name of its Reservation, if one is held.")] = ""
    earliest_start: Annotated[Time | None, Meta(description="The promised start.")] = None
    eta: Annotated[Eta | None, Meta(description="The estimated start.")] = None
    deficit_gpus: Annotated[
        int | None,
        Meta(description="GPUs to be freed for its cheapest feasible placement."),
    ] = None
    kill_probability: Annotated[Fraction | None, Meta(description="Its chance to be cut for a held promise.")] = None
    conflict_sets: Annotated[
        tuple[str, ...], Meta(description="Reservations (`namespace/name`) that name this run.")
    ] = ()
    follow_deadline: Annotated[
        Time | None, Meta(description="When it fails unless its failed upstream is replaced.")
    ] = None
    indices: Annotated[tuple[IndexStatus, ...], Meta(description="What became of the indices of an array.")] = ()
    observed_generation: Annotated[int, Meta(description="Generation of the spec last seen.")] = 0


class Run(Object, frozen=True, kw_only=True):
    """A gang of GPUs (or of CPU pods) that start together."""

    NAMESPACED: ClassVar[bool] = True

    spec: RunSpec
    kind: Literal["Run"] = "Run"
    status: RunStatus = RunStatus()


class IndexRun(Run, frozen=True, kw_only=True):
    """One index of an array as a run of its own, `NAME-INDEX`: never an object of the cluster, which has the array.

    ``of``: the array's name.
    """

    of: str
    index: int

    @property
    def subject(self) -> str:
        """As sentences name a run."""
        return name_of("Run", self.namespace, self.name)
