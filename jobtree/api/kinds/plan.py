"""Plan: one planning cycle as an object, with its proof (spec §1, §4, §6, §8).

This is the write-ahead record that the cluster keeps; the planner's own plan, with every decision,
is in `jobtree.world.plan`, and its text in the lake under the digest that is recorded here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from jobtree.api.kinds.base import Strict, Tolerant, shown
from jobtree.api.kinds.meta import Object
from jobtree.api.values.scalars import OwnerPath, Time

PlanPhase = Literal["Planned", "Applying", "Applied", "Failed"]
Digest = Annotated[str, Meta(max_length=80, extra_json_schema={"pattern": "^(sha256:)?[0-9a-f]{64}$"})]


class Detail(Strict, frozen=True, kw_only=True):
    """A file of the lake that holds what is too large for an object."""

    name: Annotated[str, Meta(max_length=253, description="What it holds, e.g. `plan`.")]
    sha256: Annotated[Digest, Meta(description="SHA-256 of its bytes.")]
    path: Annotated[str, Meta(max_length=1024, description="Its path in the lake.")] = ""


class Solver(Strict, frozen=True, kw_only=True):
    """The solver that made the plan."""

    name: Annotated[str, Meta(max_length=63, description="E.g. `HiGHS`.")]
    version: Annotated[str, Meta(max_length=63, description="Its version.")] = ""
    options: Annotated[dict[str, str], Meta(max_length=64, description="The options it was given.")] = {}


class PlanSpec(Strict, frozen=True, kw_only=True):
    """What the plan was made from; immutable."""

    at: Annotated[Time, Meta(description="The time that was planned for; an input, not the clock.")]
    snapshot: Annotated[Digest, Meta(description="Digest of the snapshot.")]
    policy: Annotated[Digest, Meta(description="Digest of the Policy.")]
    version: Annotated[str, Meta(max_length=63, description="Version of Jobtree.")]
    solver: Annotated[Solver, Meta(description="The solver and its options.")]
    details: Annotated[tuple[Detail, ...], Meta(max_length=64, description="Files of the lake, by digest.")] = ()
    budgets: Annotated[
        Digest | None,
        Meta(
            description="Digest of the Budgets and rates as this cycle saw them, by which the next one charges what"
            " ran in between; they are in the ConfigMap `jobtree-budgets`."
        ),
    ] = None
    given: Annotated[
        Digest | None,
        Meta(
            description="Digest of all that no cycle writes: nodes, Budgets, the Policy, what people wrote of Runs,"
            " pods of others and own ones that leave, the windows that are open, the loans past their `maxDuration`."
        ),
    ] = None
    changed: Annotated[
        Time | None,
        Meta(
            description="When a cycle last found `given` another than the one before had it, or leases or runs ended."
            " Claims admitted before that give way to nearer starts."
        ),
    ] = None


class Stage(Tolerant, frozen=True, kw_only=True):
    """One objective stage and its proof."""

    name: Annotated[str, Meta(description="Name of the stage.")]
    status: Annotated[str, Meta(description="How it ended, e.g. `optimal`.")] = ""
    value: Annotated[int | float | None, Meta(description="Value reached.")] = None
    bound: Annotated[int | float | None, Meta(description="Best value that is possible.")] = None
    gap: Annotated[
        int | float | None,
        Meta(description="Distance of the two, relative to the bound; absent where only the bound is 0."),
    ] = None


class Price(Tolerant, frozen=True, kw_only=True):
    """What one more GPU, GPU-hour or credit of a bound would be worth, by the LP relaxation."""

    rule: Annotated[str, Meta(description="The rule: `concurrency`, `aggregate-hours`, `use-credits`, `capacity`, …")]
    subject: Annotated[
        str, Meta(description="`budget/envelope`, `budget/aggregate`, `budget/use cap`, or for `capacity` a flavor.")
    ]
    alike: Annotated[int, Meta(description="How many other caps of equal payers have this price, each.")] = 0
    domains: Annotated[int, Meta(description="Of `capacity`: in how many domains it holds.")] = 0
    unit: Annotated[str, Meta(description="What there would be one more of: `GPU`, `GPU-hour`, `credit`.")]
    gpus: Annotated[int | float, Meta(description="GPUs that would start more.")]
    value: Annotated[
        int | float,
        Meta(
            description="Rise of stage `starts`; a GPU of a run just created counts 1, of a run at the cap of its age"
            " the most."
        ),
    ]


class PoolOwner(Tolerant, frozen=True, kw_only=True):
    """The tokens of one owner in a pool."""

    owner: Annotated[OwnerPath, Meta(description="Owner of the runs.")]
    tokens: Annotated[tuple[str, ...], Meta(description="`namespace/run#group`, sorted by namespace, run, group.")]


class Draw(Tolerant, frozen=True, kw_only=True):
    """The lottery of one Reservation."""

    reservation: Annotated[str, Meta(description="`namespace/name` of the Reservation.")]
    uid: Annotated[str, Meta(description="Its UID.")]
    earliest_start: Annotated[Time, Meta(description="Its start as first promised.")]
    seed: Annotated[str, Meta(description="SHA-256 of secret, UID and start, hex.")]
    pools: Annotated[
        tuple[tuple[PoolOwner, ...], ...],
        Meta(description="The pool before each pick; owners sorted by bytes."),
    ] = ()
    picks: Annotated[tuple[str, ...], Meta(description="The tokens drawn, in order.")] = ()
    pools_digest: Annotated[
        str, Meta(description="SHA-256 of the pools in the lake, where they are too large for here.")
    ] = ""


class Lottery(Tolerant, frozen=True, kw_only=True):
    """The secret that was revealed and what was drawn with it."""

    position: Annotated[int, Meta(description="Position in the hash chain.")]
    secret: Annotated[str, Meta(description="w_j, hex; its SHA-256 is w_(j−1).")]
    draws: Annotated[tuple[Draw, ...], Meta(description="One per Reservation drawn for.")] = ()


class PlanWarning(Tolerant, frozen=True, kw_only=True):
    """Something about one object that did not stop the cycle."""

    object: Annotated[str, Meta(description="`Kind namespace/name`.")]
    message: Annotated[str, Meta(description="One sentence.")]


class Counts(Tolerant, frozen=True, kw_only=True):
    """What the plan does, in numbers."""

    started: Annotated[int, Meta(description="Runs started.")] = shown(0)
    waiting: Annotated[int, Meta(description="Runs still waiting.")] = shown(0)
    grown: Annotated[int, Meta(description="Runs grown.")] = shown(0)
    cut: Annotated[int, Meta(description="Runs that lost GPUs to a promise.")] = shown(0)
    leases_opened: Annotated[int, Meta(description="Leases opened.")] = shown(0)
    leases_closed: Annotated[int, Meta(description="Leases closed.")] = shown(0)
    reservations: Annotated[int, Meta(description="Promises held.")] = shown(0)
    gpus_started: Annotated[int, Meta(description="Active GPUs opened.")] = shown(0)
    gpus_closed: Annotated[int, Meta(description="Active GPUs closed.")] = shown(0)


class PlanStatus(Tolerant, frozen=True, kw_only=True):
    """How far the plan has been carried out, and its proof."""

    phase: Annotated[PlanPhase | None, Meta(description="Planned → Applying → Applied or Failed.")] = None
    message: Annotated[str, Meta(description="Why it failed, one sentence.")] = ""
    observed: Annotated[
        Time | None,
        Meta(description="When a later cycle last found nothing to do beside it; moves every 10 minutes at most."),
    ] = None
    stages: Annotated[tuple[Stage, ...], Meta(description="Objective stages in their order.")] = ()
    truncated: Annotated[bool, Meta(description="Whether the deadline ended the search before its proof.")] = shown(
        False
    )
    prices: Annotated[
        tuple[Price, ...],
        Meta(description="What more of a bound would be worth, the largest first; the lake has all of them."),
    ] = ()
    lottery: Annotated[Lottery | None, Meta(description="Where something was drawn.")] = None
    warnings: Annotated[tuple[PlanWarning, ...], Meta(description="Objects that were left out or look wrong.")] = ()
    counts: Annotated[Counts, Meta(description="What the plan does.")] = Counts()


class Plan(Object, frozen=True, kw_only=True):
    """One planning cycle, with its proof."""

    NAMESPACED: ClassVar[bool] = False

    spec: PlanSpec
    kind: Literal["Plan"] = "Plan"
    status: PlanStatus = PlanStatus()
