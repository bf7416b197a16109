"""Budget: who may use how many GPUs, of which flavor, where and when (spec §1, §3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from jobtree.api.kinds.base import (
    AS_SET,
    BY_NAME,
    BY_TYPE,
    Amount,
    Count,
    Flavor,
    Namespace,
    PartName,
    PositiveCount,
    Selector,
    Strict,
    Tolerant,
    shown,
)
from jobtree.api.kinds.meta import Condition, Object
from jobtree.api.values.scalars import HOUR, Duration, OwnerPath, Time

Scope = Literal["own", "subtree"]
Sharing = Literal["family", "none"]
Acl = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_.@+:-]*)?\*?\Z",
        extra={"allowed": "an owner, a prefix such as org:ai:* or *"},
    ),
]
Parents = Annotated[tuple[OwnerPath, ...], Meta(max_length=16)]


class PreActivation(Strict, frozen=True, kw_only=True):
    """What an envelope allows before its window opens."""

    allow_reservations: Annotated[bool, Meta(description="Whether promises may count on its opening.")] = True
    allow_admission: Annotated[bool, Meta(description="Whether it may already pay.")] = False


class PerRun(Strict, frozen=True, kw_only=True):
    """What one run may take of an envelope."""

    max_gpus: Annotated[PositiveCount | None, Meta(description="Most GPUs of one run.")] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit; a run without one is not paid.")] = None
    default_time: Annotated[
        Duration | None,
        Meta(description="The enforced limit of a run that states none; the smallest among its payers."),
    ] = None


def listed(owner: str, acl: Sequence[str]) -> bool:
    """Whether a list of borrowers names an owner: empty or ``*`` = anyone, trailing ``*`` = that prefix (spec §3.1)."""
    return not acl or any(owner.startswith(each[:-1]) if each.endswith("*") else owner == each for each in acl)


class Lending(Strict, frozen=True, kw_only=True):
    """Whether and to whom an envelope lends."""

    allow: Annotated[bool, Meta(description="Whether it lends at all.")] = False
    to: Annotated[
        tuple[Acl, ...],
        Meta(
            max_length=64,
            description="Owners that may borrow; empty or `*` = anyone, a trailing `*` = prefix.",
        ),
    ] = ()
    max_concurrency: Annotated[Count | None, Meta(description="Most GPUs on loan at once.")] = None
    max_gpu_hours: Annotated[Amount | None, Meta(description="Most GPU-hours on loan in the window.")] = None
    max_duration: Annotated[Duration, Meta(description="A loan older than this ranks last.")] = Duration(24 * HOUR)

    def admits(self, owner: str) -> bool:
        """Whether the list of borrowers names this owner (spec §3.1)."""
        return listed(owner, self.to)


class Envelope(Strict, frozen=True, kw_only=True):
    """GPUs of one flavor and place, for a window [start, end)."""

    name: Annotated[PartName, Meta(description="Unique in the Budget.")]
    flavor: Annotated[Flavor, Meta(description="GPU flavor, e.g. `H100-80GB`.")]
    selector: Annotated[Selector, Meta(description="Node labels; the value `*` means any value or none.")]
    concurrency: Annotated[PositiveCount, Meta(description="Most GPUs at once.")]
    max_gpu_hours: Annotated[Amount | None, Meta(description="Most GPU-hours in the window.")] = None
    max_credits: Annotated[Amount | None, Meta(description="Most credits in the window.")] = None
    start: Annotated[Time | None, Meta(description="The window opens; always open if absent.")] = None
    end: Annotated[Time | None, Meta(description="The window closes; never if absent.")] = None
    scope: Annotated[
        Scope,
        Meta(
            description="`own` is a pool of its own; `subtree` also bounds what envelopes of"
            " descendants pay on the nodes that its flavor and selector match."
        ),
    ] = "own"
    sharing: Annotated[
        Sharing | None,
        Meta(
            description="Whether the owner's family may use it; by default `family`, or `none`"
            " where `maxGPUHours` or `maxCredits` is set."
        ),
    ] = None
    pre_activation: Annotated[PreActivation, Meta(description="What it allows before its window opens.")] = (
        PreActivation()
    )
    per_run: Annotated[PerRun | None, Meta(description="What one run may take of it.")] = None
    lending: Annotated[Lending, Meta(description="Loans to sponsored runs.")] = Lending()

    @property
    def effective_sharing(self) -> Sharing:
        """`sharing`, or its default: spent hours and credits cannot be recalled."""
        if self.sharing is not None:
            return self.sharing
        spends = self.max_gpu_hours is not None or self.max_credits is not None
        return "none" if spends else "family"


class AggregateCap(Strict, frozen=True, kw_only=True):
    """A bound over several envelopes of one Budget."""

    name: Annotated[PartName, Meta(description="Unique in the Budget.")]
    envelopes: Annotated[
        tuple[PartName, ...],
        AS_SET,
        Meta(min_length=1, max_length=64, description="Names of envelopes of this Budget."),
    ]
    flavor: Annotated[
        Flavor | None,
        Meta(description="Flavor that all of them must have."),
    ] = None
    max_concurrency: Annotated[Count | None, Meta(description="Most GPUs at once.")] = None
    max_gpu_hours: Annotated[Amount | None, Meta(description="Most GPU-hours.")] = None
    max_credits: Annotated[Amount | None, Meta(description="Most credits.")] = None


class UsePerRun(Strict, frozen=True, kw_only=True):
    """What one run may take of a use cap; for admissions only."""

    max_gpus: Annotated[PositiveCount | None, Meta(description="Most GPUs of one run.")] = None
    max_time: Annotated[Duration | None, Meta(description="Longest time limit; a run without one does not start.")] = (
        None
    )


class UseCap(Strict, frozen=True, kw_only=True):
    """A bound over the funded GPUs of an owner's runs, whoever pays."""

    name: Annotated[PartName, Meta(description="Unique among the Budget's use caps.")]
    flavor: Annotated[Flavor | None, Meta(description="GPU flavor that it counts; every one if absent.")] = None
    selector: Annotated[
        Selector | None,
        Meta(description="Labels of the nodes that it counts; the value `*` means any value or none. All if absent."),
    ] = None
    scope: Annotated[
        Scope,
        Meta(description="`subtree` counts runs of the owner and of its descendants, `own` the owner's alone."),
    ] = "subtree"
    max_concurrency: Annotated[Count | None, Meta(description="Most GPUs at once.")] = None
    max_gpu_hours: Annotated[Amount | None, Meta(description="Most GPU-hours in the window.")] = None
    max_credits: Annotated[Amount | None, Meta(description="Most credits in the window.")] = None
    per_run: Annotated[UsePerRun | None, Meta(description="The widest and longest single run.")] = None
    start: Annotated[Time | None, Meta(description="It binds, and counts, from then on; always if absent.")] = None
    end: Annotated[Time | None, Meta(description="It binds until then; for good if absent.")] = None

    @property
    def bounds(self) -> bool:
        """Whether it bounds anything."""
        limits = (self.max_concurrency, self.max_gpu_hours, self.max_credits)
        of_one = () if self.per_run is None else (self.per_run.max_gpus, self.per_run.max_time)
        return any(limit is not None for limit in (*limits, *of_one))


class BudgetSpec(Strict, frozen=True, kw_only=True):
    """The allowance of one owner; it has an envelope or a use cap at least."""

    owner: Annotated[OwnerPath, Meta(description="Colon path of the owner; immutable.")]
    envelopes: Annotated[tuple[Envelope, ...], BY_NAME, Meta(max_length=64, description="The pools of GPUs.")] = ()
    namespaces: Annotated[
        tuple[Namespace, ...],
        Meta(
            max_length=256,
            description="Namespaces whose Runs may charge as this owner; an owner that lists none"
            " inherits its nearest ancestor's list.",
        ),
    ] = ()
    parents: Annotated[
        Parents | None,
        Meta(
            description="Owners this one descends from; by default the longest proper prefix of"
            " `owner` that has a Budget, and none for an empty list.",
        ),
    ] = None
    aggregate_caps: Annotated[
        tuple[AggregateCap, ...],
        BY_NAME,
        Meta(max_length=32, description="Bounds over several envelopes."),
    ] = ()
    use_caps: Annotated[
        tuple[UseCap, ...],
        BY_NAME,
        Meta(max_length=32, description="Bounds over what runs of the owner use, whoever pays."),
    ] = ()


class EnvelopeUsage(Tolerant, frozen=True, kw_only=True):
    """Use of one envelope; active GPUs by class, spares apart."""

    name: Annotated[str, Meta(description="Its name in the Budget.")]
    owned_gpus: Annotated[int, Meta(description="Held by runs of the owner.")] = shown(0)
    shared_gpus: Annotated[int, Meta(description="Held by runs of its family.")] = shown(0)
    borrowed_gpus: Annotated[int, Meta(description="On loan to sponsored runs.")] = shown(0)
    unfunded_gpus: Annotated[int, Meta(description="Held by its runs beyond its caps; charged to nobody.")] = shown(0)
    spare_gpus: Annotated[int, Meta(description="Held as spares, before their discount.")] = shown(0)
    headroom_gpus: Annotated[int | float, Meta(description="GPUs that every cap it touches still leaves.")] = shown(0)
    gpu_seconds_consumed: Annotated[
        int | float,
        Meta(description="GPU-seconds charged in this window; decimals where a discount makes them."),
    ] = shown(0)
    gpu_hours_consumed: Annotated[int | float, Meta(description="The same in GPU-hours.")] = shown(0)
    gpu_hours_committed: Annotated[
        int | float, Meta(description="GPU-hours that running and promised work will still need.")
    ] = shown(0)
    headroom_gpu_hours: Annotated[
        int | float | None, Meta(description="GPU-hours left; absent without `maxGPUHours`.")
    ] = None
    credits_consumed: Annotated[int | float | None, Meta(description="Credits charged in this window.")] = None
    credits_committed: Annotated[
        int | float | None, Meta(description="Credits still needed by running and promised work.")
    ] = None
    headroom_credits: Annotated[int | float | None, Meta(description="Credits left; absent without `maxCredits`.")] = (
        None
    )


class AggregateUsage(EnvelopeUsage, frozen=True, kw_only=True):
    """Use of one aggregate cap."""


class UseUsage(EnvelopeUsage, frozen=True, kw_only=True):
    """Use of one use cap: of the owner's runs, on the nodes that it counts; `headroomGPUs` are those that it leaves."""

    headroom_gpus: Annotated[
        int | float | None, Meta(description="GPUs that it still leaves; absent without `maxConcurrency`.")
    ] = None  # type: ignore[assignment]  # no bound on GPUs, no headroom


class BudgetStatus(Tolerant, frozen=True, kw_only=True):
    """Use of the Budget as of the last cycle that changed it."""

    envelopes: Annotated[tuple[EnvelopeUsage, ...], BY_NAME, Meta(description="Use of each envelope.")] = ()
    aggregate_caps: Annotated[tuple[AggregateUsage, ...], BY_NAME, Meta(description="Use of each aggregate cap.")] = ()
    use_caps: Annotated[tuple[UseUsage, ...], BY_NAME, Meta(description="Use of each use cap.")] = ()
    conditions: Annotated[
        tuple[Condition, ...],
        BY_TYPE,
        Meta(description="`Healthy`: False with `Overcommitted` where a cap lies below its use."),
    ] = ()
    updated: Annotated[Time | None, Meta(description="The cycle that wrote this usage.")] = None
    observed_generation: Annotated[int, Meta(description="Generation of the spec last seen.")] = 0


class Budget(Object, frozen=True, kw_only=True):
    """Who may use how many GPUs, of which flavor, where and when."""

    NAMESPACED: ClassVar[bool] = False

    spec: BudgetSpec
    kind: Literal["Budget"] = "Budget"
    status: BudgetStatus = BudgetStatus()
