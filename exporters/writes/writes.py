"""The writes that carry out a plan, in the order of spec §8.

Plan (Planned), closures, creations, statuses, balances and then the leases that are in them, Plan (Applied). Names are
deterministic and patches hold only what changes, so the same plan on the same state gives the same writes, on one that
has some of them already the others, and on one that has all of them none. In a file all of them land at once, and the
two states of the Plan are one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from exporters.lake.manifest import digest_in
from exporters.plans import plain, planobject
from exporters.writes.cordons import cordons
from exporters.writes.events import events
from exporters.writes.pods import PodWrites, pod_writes
from jobtree.api import Budget, Lease, Policy, Time
from jobtree.api import Plan as PlanObject
from jobtree.api.kinds.budget import BudgetStatus, EnvelopeUsage
from jobtree.api.kinds.lease import Cause, LeaseStatus, Proof
from jobtree.api.kinds.lease import Segment as LedgerSegment
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import Run, RunStatus
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.memory import balances, lottery, seen
from jobtree.world.memory.balances import Part
from jobtree.world.memory.lottery import Chain
from jobtree.world.naming import arrays
from jobtree.world.plan import Closure, Plan, Segment
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import is_counted
from policies.funding.usage import plain as plain_number

USAGE_PERIOD: Final = 600
"""Seconds between two writes of a Budget's usage where only the clock moved it (spec §1)."""

_CLOCKED: Final = (
    "gpu_seconds_consumed", "gpu_hours_consumed", "gpu_hours_committed", "headroom_gpu_hours",
    "credits_consumed", "credits_committed", "headroom_credits",
)  # fmt: skip
"""Figures of a usage record that the clock alone moves."""

_MAKES_ROOM: Final = frozenset({"ReclaimUnfunded", "Lottery"})
"""Reasons of closures that have a cause even where no promise was made: a start of the same plan is it."""

Name = tuple[str, str]


def writes_for(
    intake: Intake,
    plan: Plan,
    encoded: bytes,
    policy: PolicySpec | None = None,
    money: Mapping[str, str] | None = None,
    *,
    pods: bool = False,
) -> list[Write]:
    """What to write on top of the state that ``intake`` was read from. Under `mode: observe` only the Plan.

    ``encoded``: the canonical bytes of the whole plan; ``plan``: what of it is to be carried out (`lake.forward`).
    ``pods``: whether what starts needs Pod objects, and runs get Events. ``policy`` and ``money``: the Policy that it
    was made by, and what its cycle saw of the money; those of the intake where they are not given.
    """
    policy = policy or (intake.policy or Policy()).spec
    money = money or planobject.record(intake, plan.at)
    stored = {each.name: each for each in intake.plans}
    record = planobject.build(intake, plan, encoded, money)
    if policy.mode == "observe":  # the next cycle still goes on from the last one that was carried out
        last = seen.last_plan(intake.plans)
        return [*_record(stored, record), *_expired(intake, plan, policy.retention.plans, last)]
    of_pods = pod_writes(intake, plan, policy) if pods else PodWrites()
    whole = {(lease.namespace, lease.name) for lease in intake.leases if lease.status.funding}
    created = [lease for lease in plan.leases if (lease.namespace, lease.name) not in whole]
    return [
        *_record(stored, record),
        *_drawn(intake, plan),
        *_ledger(intake, plan),
        *of_pods.before,
        *(Write("create", Ref("Lease", lease.namespace, lease.name), plain.document(lease)) for lease in created),
        *of_pods.made,
        *_promises(intake, plan),
        *(events(intake, plan) if pods else ()),
        *_runs(intake, plan),
        *_budgets(intake, plan),
        *_config_map(intake, seen.RECORD, money),
        *_pruned(intake, plan),
        *of_pods.after,
        *cordons(intake, plan, policy),
        *_carried_out(stored, record),
        *_expired(intake, plan, policy.retention.plans),
    ]


def _record(stored: Mapping[str, PlanObject], record: PlanObject) -> Iterator[Write]:
    """The Plan as it is before anything else is written; where it is there it stays, be it half carried out."""
    ref = Ref("Plan", "", record.name)
    before = stored.get(record.name)
    if before is not None and digest_in(before) == digest_in(record):
        return
    if before is not None:
        yield Write("delete", ref)
    yield Write("create", ref, plain.document(record))


def _carried_out(stored: Mapping[str, PlanObject], record: PlanObject) -> Iterator[Write]:
    before = stored.get(record.name)
    if before is None or digest_in(before) != digest_in(record) or before.status.phase != "Applied":
        yield Write("patch", Ref("Plan", "", record.name), {"status": {"phase": "Applied"}}, "status")


def _drawn(intake: Intake, plan: Plan) -> Iterator[Write]:
    """The position of the secret that the Plan reveals: no later cycle draws with it again."""
    chain = Chain.of(intake.config_map(lottery.NAME))
    if plan.lottery is not None and chain is not None and chain.position < plan.lottery.position:
        position = {"position": str(plan.lottery.position)}
        yield Write("patch", Ref("ConfigMap", seen.NAMESPACE, lottery.NAME), {"data": position})


def _ledger(intake: Intake, plan: Plan) -> Iterator[Write]:
    """Closures first, then segments of leases that stay open."""
    segments: dict[Name, list[Segment]] = defaultdict(list)
    for segment in plan.segments:
        segments[segment.namespace, segment.name].append(segment)
    closures = {(closure.namespace, closure.name): closure for closure in plan.closures}
    leases = {(lease.namespace, lease.name): lease for lease in intake.leases}
    odd = {notice[1:3] for notice in intake.warnings if notice.kind == "Lease"}
    for name in [*closures, *sorted(segments.keys() - closures.keys())]:
        closure = closures.get(name)
        made = _Closed.of(plan, closure) if closure is not None else None
        yield from _lease_patch(leases[name], segments.get(name, []), made, odd=name in odd)


class _Closed(NamedTuple):
    """A closure as a status has it: when, why, what for, and how it can be recomputed."""

    ended: int
    reason: str
    cause: Cause | None
    proof: Proof | None

    @classmethod
    def of(cls, plan: Plan, closure: Closure) -> "_Closed":
        """From the plan and one of its closures."""
        cause, proof, name = None, None, planobject.name_of(plan)
        if closure.made_room_for or closure.reason in _MAKES_ROOM:
            cause = Cause(plan=name, reservation=closure.made_room_for)
        if closure.draw is not None and plan.lottery is not None:
            proof = Proof(
                plan=name,
                reservation=closure.made_room_for,
                draw=closure.draw,
                position=plan.lottery.position,
                secret=plan.lottery.secret,
            )
        return cls(closure.ended, closure.reason, cause, proof)


def _lease_patch(lease: Lease, segments: list[Segment], closure: _Closed | None, *, odd: bool) -> Iterator[Write]:
    """What continues or ends a lease's ledger. ``odd``: its status contradicts itself: it is written as it was read."""
    ref = Ref("Lease", lease.namespace, lease.name)
    funding = list(lease.status.funding)
    added = [_segment(each) for each in segments]
    last = [msgspec.structs.replace(each, to=None) for each in funding[len(funding) - len(added) :]]
    if last == added:
        added = []  # written already, by a cycle that did not get any further
    for segment in added if not lease.status.closed else ():
        _end_last(funding, segment.from_)
        funding.append(segment)
    status = msgspec.structs.replace(lease.status, funding=tuple(funding))
    if closure is not None and not lease.status.closed:
        _end_last(funding, closure.ended)
        status = msgspec.structs.replace(
            status,
            closed=True,
            ended=Time(closure.ended),
            closure_reason=closure.reason,
            funding=tuple(funding),
            cause=closure.cause,
            proof=closure.proof,
        )
    patch = plain.status_patch(lease.status, status)
    if patch and odd:
        patch = {**dict.fromkeys(LeaseStatus.__struct_encode_fields__), **plain.status(status)}
    if patch:
        yield Write("patch", ref, {"status": patch}, "status")
    if closure is not None and lease.metadata.finalizers:
        yield Write("patch", ref, {"metadata": {"finalizers": None}})


def _segment(segment: Segment) -> LedgerSegment:
    rate = None if segment.rate_milli is None else plain_number(segment.rate_milli, 1000)
    return LedgerSegment(class_=segment.funding_class, from_=Time(segment.since), rate=rate)


def _end_last(funding: list[LedgerSegment], at: int) -> None:
    if funding and funding[-1].to is None:
        funding[-1] = msgspec.structs.replace(funding[-1], to=Time(at))


def _runs(intake: Intake, plan: Plan) -> Iterator[Write]:
    stored: dict[Name, Run] = {(run.namespace, run.name): run for run in intake.runs}
    patches: dict[tuple[RunStatus, RunStatus], plain.Plain] = {}  # many wait with the very same words
    for name, status in _with_indices(stored, plan).items():
        before = stored[name].status
        if before == status:
            continue
        patch = patches.get((before, status))
        if patch is None:
            patch = patches[before, status] = plain.status_patch(before, status)
        yield Write("patch", Ref("Run", *name), {"status": patch}, "status")


def _with_indices(stored: Mapping[Name, Run], plan: Plan) -> dict[Name, RunStatus]:
    """New statuses of Runs; those of an array's indices are in the array's, since that is the object."""
    found: dict[Name, RunStatus] = {}
    indices: dict[Name, dict[int, RunStatus]] = defaultdict(dict)
    for update in plan.runs:
        name = update.namespace, update.name
        of = None if name in stored else arrays.array_of(stored, name)
        if of is None:
            found[name] = update.status
        else:
            indices[update.namespace, of[0].name][of[1]] = update.status
    for name, mine in indices.items():
        status = found.get(name, stored[name].status)
        found[name] = msgspec.structs.replace(status, indices=arrays.folded(stored[name], mine))
    return found


def _promises(intake: Intake, plan: Plan) -> Iterator[Write]:
    """New promises, those that move or end, and last those that go."""
    stored = {(each.namespace, each.name): each.status for each in intake.reservations}
    for each in plan.reservations:
        if stored.get((each.namespace, each.name)) != each.status:  # one without its status is half made
            yield Write("create", Ref("Reservation", each.namespace, each.name), plain.document(each))
    for update in plan.promises:
        patch = plain.status_patch(stored[update.namespace, update.name], update.status)
        if patch:
            yield Write("patch", Ref("Reservation", update.namespace, update.name), {"status": patch}, "status")
    for gone in plan.lapsed:
        if (gone.namespace, gone.name) in stored:
            yield Write("delete", Ref("Reservation", gone.namespace, gone.name))


def _budgets(intake: Intake, plan: Plan) -> Iterator[Write]:
    stored: dict[str, Budget] = {budget.name: budget for budget in intake.budgets}
    for update in plan.budgets:
        before = stored[update.name].status
        after = _stamped(before, update.status, Time(plan.at))
        if not usage_is_due(before, after, plan.at):
            continue
        patch = plain.status_patch(before, after)
        yield Write("patch", Ref("Budget", "", update.name), {"status": patch}, "status")


def _stamped(before: BudgetStatus, after: BudgetStatus, at: Time) -> BudgetStatus:
    """The new status, written at ``at``; a condition that says the same as before has done so since then."""
    known = {(each.type, each.status): each.last_transition_time for each in before.conditions}
    conditions = tuple(
        msgspec.structs.replace(each, last_transition_time=known.get((each.type, each.status)) or at)
        for each in after.conditions
    )
    return msgspec.structs.replace(after, conditions=conditions, updated=at)


def _pruned(intake: Intake, plan: Plan) -> Iterator[Write]:
    """Charges go into the balances with the names of their leases, and only then the leases themselves.

    A lease that is named there and is still here was counted by a cycle that did not get any further: it only goes.
    """
    parts, leases = intake.balances, {(lease.namespace, lease.name): lease for lease in intake.leases}
    counted = {
        name: number
        for number, part in parts.items()
        for name in part.counted
        if name in leases and is_counted(leases[name], part.counted)
    }
    names = [(each.namespace, each.name) for each in plan.pruned]
    fresh = {name: int(leases[name].status.ended or 0) for name in names if name in leases and name not in counted}
    if fresh:
        starts = [start for each in intake.budgets for bound in each.spec.envelopes if (start := bound.start)]
        starts += [start for each in intake.budgets for use in each.spec.use_caps if (start := use.start)]
        number, accounts = balances.grown(parts, plan.settled, [int(start) for start in starts])
        still = {name: int(leases[name].status.ended or 0) for name, at in counted.items() if at == number}
        record = balances.record(Part(accounts=accounts, counted=still | fresh))
        yield from _config_map(intake, balances.name_of(number), record)
    for namespace, name in sorted({*counted, *fresh}):
        yield Write("delete", Ref("Lease", namespace, name))


def _config_map(intake: Intake, name: str, after: Mapping[str, str]) -> Iterator[Write]:
    ref = Ref("ConfigMap", seen.NAMESPACE, name)
    before = intake.config_map(name)
    if before is None:
        if ("ConfigMap", ref.namespace, ref.name) in {notice[:3] for notice in intake.quarantined}:
            yield Write("delete", ref)
        yield Write("create", ref, {"apiVersion": "v1", "kind": "ConfigMap", "data": after})
    elif patch := plain.merge_patch(before, after):
        yield Write("patch", ref, {"data": patch})


def usage_is_due(before: BudgetStatus, after: BudgetStatus, at: int) -> bool:
    """Whether a Budget's usage is to be rewritten at Unix second ``at``: at once when more than the clock moved it."""
    if _timeless(before) != _timeless(after):
        return True
    was, now = ((each.envelopes, each.aggregate_caps, each.use_caps) for each in (before, after))
    moved = was != now
    return moved and (before.updated is None or at - before.updated >= USAGE_PERIOD)


def _timeless(status: BudgetStatus) -> BudgetStatus:
    return msgspec.structs.replace(
        status,
        updated=None,
        envelopes=tuple(_still(usage) for usage in status.envelopes),
        aggregate_caps=tuple(_still(usage) for usage in status.aggregate_caps),
        use_caps=tuple(_still(usage) for usage in status.use_caps),
    )


def _still(usage: EnvelopeUsage) -> EnvelopeUsage:
    return msgspec.structs.replace(usage, **dict.fromkeys(_CLOCKED, 0))


def _expired(intake: Intake, plan: Plan, keep: int, needed: PlanObject | None = None) -> Iterator[Write]:
    """Plans beyond the newest ``keep``, this one among them, but never a ``needed`` one; the lake keeps them all."""
    others = [each for each in intake.plans if each.name != planobject.name_of(plan) and each is not needed]
    others.sort(key=seen.moment)
    for each in others[: max(0, len(others) - (keep - 1))]:
        yield Write("delete", Ref("Plan", "", each.name))
