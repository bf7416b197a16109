"""Policy: which rules are on, their order and their parameters (spec §1).

`Policy()` is the built-in policy: every default that the documentation names is a default here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from jobtree.api.kinds.base import (
    AS_SET,
    BY_TYPE,
    DEFAULT_RESOURCE_NAMES,
    Amount,
    Count,
    Flavor,
    Fraction,
    LabelName,
    Selector,
    Strict,
    Tolerant,
)
from jobtree.api.kinds.meta import Condition, Object, ObjectMeta
from jobtree.api.values.scalars import DAY, HOUR, MINUTE, Cpu, Duration, Memory, Time, milli

#: The one Policy that is read.
POLICY_NAME: Final = "default"
MovableStage = Literal["starts", "growth", "opportunistic"]


class SparesPolicy(Strict, frozen=True, kw_only=True):
    """Spares."""

    discount: Annotated[
        Fraction,
        Meta(description="What a spare GPU costs of a whole one; ≤ 3 decimals."),
    ] = 0.5

    @property
    def discount_milli(self) -> int:
        """The discount in thousandths."""
        return milli(self.discount)


class ReservationsPolicy(Strict, frozen=True, kw_only=True):
    """Promises."""

    notice: Annotated[Duration, Meta(description="Least time between a promise and cuts for it.")] = Duration(
        15 * MINUTE
    )
    patience: Annotated[Duration, Meta(description="A natural start within it is awaited; nobody is cut.")] = Duration(
        12 * HOUR
    )
    bucket: Annotated[Duration, Meta(description="Grid of estimated times.")] = Duration(5 * MINUTE)
    horizon: Annotated[Duration, Meta(description="No date beyond it is promised or estimated.")] = Duration(14 * DAY)
    max_held: Annotated[int, Meta(ge=0, le=100_000, description="Most Reservation objects; oldest demand first.")] = 200
    on_budget_shortfall: Annotated[
        Literal["wait", "startUnfunded"],
        Meta(description="What a due promise does where there is room but no money."),
    ] = "wait"


class LotteryPolicy(Strict, frozen=True, kw_only=True):
    """The lottery."""

    term: Annotated[Duration, Meta(description="A run is protected this long after each (re)start.")] = Duration(
        12 * HOUR
    )


class CutsPolicy(Strict, frozen=True, kw_only=True):
    """Cuts."""

    max_gpus_per_cycle: Annotated[Count | None, Meta(description="Most GPUs cut in one cycle; no bound if absent.")] = (
        None
    )


class ElasticityPolicy(Strict, frozen=True, kw_only=True):
    """Malleable runs."""

    max_grow_steps_per_cycle: Annotated[Count, Meta(description="Most steps that a run grows in one cycle.")] = 1


class AgePolicy(Strict, frozen=True, kw_only=True):
    """The weight of waiting, since creation."""

    unit: Annotated[Duration, Meta(description="A GPU of a new run weighs this much, in seconds.")] = Duration(
        24 * HOUR
    )
    cap: Annotated[Duration, Meta(description="Age beyond it adds no weight.")] = Duration(72 * HOUR)


class FundingPolicy(Strict, frozen=True, kw_only=True):
    """Payment."""

    cross_location: Annotated[
        Literal["deny", "allow"],
        Meta(description="`allow` makes an envelope's selector a preference."),
    ] = "deny"
    past_window: Annotated[
        Literal["allow", "refuse"],
        Meta(description="`refuse`: only a run whose limit ends inside the window starts."),
    ] = "allow"


class TenancyPolicy(Strict, frozen=True, kw_only=True):
    """Namespaces and owners."""

    require_binding: Annotated[
        bool, Meta(description="Whether owners that no Budget binds to a namespace are refused.")
    ] = False


class FailurePolicy(Strict, frozen=True, kw_only=True):
    """Node failure."""

    not_ready_after: Annotated[Duration, Meta(description="A node that is NotReady longer has failed.")] = Duration(
        5 * MINUTE
    )
    max_fraction: Annotated[
        Fraction,
        Meta(description="Where more nodes than this share would fail at once, none does."),
    ] = 0.2


class OpportunisticPolicy(Strict, frozen=True, kw_only=True):
    """Work that is unfunded by its own choice."""

    notice: Annotated[Duration, Meta(description="How long funded need waits before it takes the slots.")] = Duration(0)


class Maintenance(Strict, frozen=True, kw_only=True):
    """Nodes that have no capacity for a while."""

    selector: Annotated[Selector, Meta(description="Labels of the nodes.")]
    start: Annotated[Time, Meta(description="Inclusive.")]
    end: Annotated[Time, Meta(description="Exclusive.")]


class PodDefaults(Strict, frozen=True, kw_only=True):
    """The pod of a run without `template`."""

    image: Annotated[str, Meta(min_length=1, max_length=512, description="Its image; one that only waits.")] = (
        "registry.k8s.io/pause:3.10"
    )
    command: Annotated[tuple[str, ...], Meta(max_length=64, description="Its command; the image's if empty.")] = ()
    args: Annotated[tuple[str, ...], Meta(max_length=64, description="Its arguments.")] = ()
    cpu: Annotated[Cpu | None, Meta(description="CPU it asks for.")] = None
    memory: Annotated[Memory | None, Meta(description="Memory it asks for.")] = None
    tolerations: Annotated[tuple[dict[str, Any], ...], Meta(max_length=32, description="Its tolerations.")] = ()
    slurm_env: Annotated[
        bool,
        Meta(description="Whether pods, of templates too, also get the names that Slurm gives (`SLURM_PROCID`, …)."),
    ] = False


class TopologyLabels(Strict, frozen=True, kw_only=True):
    """The node labels that say where a node is."""

    region: Annotated[LabelName, Meta(description="Region.")] = "region"
    cluster: Annotated[LabelName, Meta(description="Cluster.")] = "cluster"
    domain: Annotated[LabelName, Meta(description="Fast-fabric domain.")] = "fabric.domain"
    rack: Annotated[LabelName, Meta(description="Rack.")] = "rack"
    flavor: Annotated[LabelName, Meta(description="GPU flavor.")] = "gpu.flavor"


class TopologyPolicy(Strict, frozen=True, kw_only=True):
    """Topology."""

    labels: Annotated[TopologyLabels, Meta(description="Which node labels mean what.")] = TopologyLabels()


class SolverPolicy(Strict, frozen=True, kw_only=True):
    """The solver."""

    gap: Annotated[
        Fraction,
        Meta(description="Relative gap at which a stage counts as solved."),
    ] = 0.0001
    deadline: Annotated[
        Duration, Meta(description="When it strikes the best plan so far is used, marked truncated.")
    ] = Duration(45)
    seed: Annotated[int, Meta(ge=0, le=2_147_483_647, description="The solver's seed.")] = 1


class RetentionPolicy(Strict, frozen=True, kw_only=True):
    """How long records stay in the cluster; the lake keeps them all."""

    leases: Annotated[Duration, Meta(description="Closed Leases stay this long after closing.")] = Duration(7 * DAY)
    plans: Annotated[int, Meta(ge=1, le=100_000, description="Plans that stay.")] = 100


class PolicySpec(Strict, frozen=True, kw_only=True):
    """The declarative engine's input."""

    mode: Annotated[
        Literal["enforce", "noCuts", "observe"],
        Meta(description="`noCuts` never takes from running work; `observe` plans and publishes only."),
    ] = "enforce"
    stages: Annotated[
        tuple[MovableStage, ...],
        AS_SET,
        Meta(
            min_length=1,
            max_length=3,
            description="The objective stages that may change places, in order; `growth` and"
            " `opportunistic` are off where they are left out.",
        ),
    ] = ("starts", "growth", "opportunistic")
    accounting_period: Annotated[
        Duration, Meta(description="P of the look-ahead: remaining hours must cover this much.")
    ] = Duration(24 * HOUR)
    spares: Annotated[SparesPolicy, Meta(description="Spares.")] = SparesPolicy()
    reservations: Annotated[ReservationsPolicy, Meta(description="Promises.")] = ReservationsPolicy()
    lottery: Annotated[LotteryPolicy, Meta(description="The lottery.")] = LotteryPolicy()
    cuts: Annotated[CutsPolicy, Meta(description="Cuts.")] = CutsPolicy()
    elasticity: Annotated[ElasticityPolicy, Meta(description="Growth of malleable runs.")] = ElasticityPolicy()
    age: Annotated[AgePolicy, Meta(description="The weight of waiting.")] = AgePolicy()
    funding: Annotated[FundingPolicy, Meta(description="Payment.")] = FundingPolicy()
    tenancy: Annotated[TenancyPolicy, Meta(description="Namespaces.")] = TenancyPolicy()
    failure: Annotated[FailurePolicy, Meta(description="Node failure.")] = FailurePolicy()
    opportunistic: Annotated[OpportunisticPolicy, Meta(description="Opportunistic work.")] = OpportunisticPolicy()
    maintenance: Annotated[tuple[Maintenance, ...], Meta(max_length=256, description="Planned outages.")] = ()
    pod_defaults: Annotated[PodDefaults, Meta(description="The pod of a run without `template`.")] = PodDefaults()
    credit_rates: Annotated[
        dict[Flavor, Amount],
        Meta(max_length=256, description="Credits per GPU-hour, by flavor."),
    ] = {}
    topology: Annotated[TopologyPolicy, Meta(description="Node labels.")] = TopologyPolicy()
    resource_names: Annotated[
        tuple[LabelName, ...],
        AS_SET,
        Meta(min_length=1, max_length=16, description="Node resources that are GPUs."),
    ] = DEFAULT_RESOURCE_NAMES
    solver: Annotated[SolverPolicy, Meta(description="The solver.")] = SolverPolicy()
    retention: Annotated[RetentionPolicy, Meta(description="Records.")] = RetentionPolicy()


class PolicyStatus(Tolerant, frozen=True, kw_only=True):
    """Whether the Policy is in use."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE, Meta(description="`Accepted`.")] = ()
    observed_generation: Annotated[int, Meta(description="Generation of the spec last seen.")] = 0


class Policy(Object, frozen=True, kw_only=True):
    """The rules' switches and parameters; the one named `default` is read."""

    NAMESPACED: ClassVar[bool] = False

    metadata: ObjectMeta = ObjectMeta(name=POLICY_NAME)
    spec: PolicySpec = PolicySpec()
    kind: Literal["Policy"] = "Policy"
    status: PolicyStatus = PolicyStatus()
