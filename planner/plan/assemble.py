"""An incumbent as a Plan: closures, leases, ledger segments, statuses, usage, words and proof."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

import msgspec

from jobtree import __version__
from jobtree.api.kinds.lease import FundingClass, Lease, LeaseReason
from jobtree.api.kinds.meta import name_of
from jobtree.api.values.counted import named
from jobtree.world.memory import seen
from jobtree.world.memory.cycles import Moment
from jobtree.world.naming.needs import left_out
from jobtree.world.plan import BudgetUpdate, Plan, PlanWarning, Prices, Pruned, Stage, Wait
from jobtree.world.tables import values as col
from jobtree.world.tables.given import given_of
from jobtree.world.tables.schema import QUARANTINE
from jobtree.world.tables.snapshot import Snapshot
from planner.filling import greedy
from planner.filling.filler import Filler
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.plan import growing, lending
from planner.plan.leases import lease_of, new_leases
from planner.plan.statuses import After, run_updates
from planner.plan.turning import turns
from planner.reasons import otherwise
from planner.reasons.unpaid import unpaid as unpaid_words
from planner.search.beside import beside, drop
from planner.search.incumbent import Incumbent
from planner.search.objective import STAGES
from planner.state.segments import segments
from planner.state.state import State
from policies.funding import retention
from policies.funding.classes import classes_of
from policies.funding.usage import Classes, budget_statuses
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle import unweighed
from policies.lifecycle.endings import limit_end, started
from policies.model.gangs import held_back
from policies.model.problem import Problem


def assemble(
    snapshot: Snapshot, state: State, problem: Problem, incumbent: Incumbent, prices: Future[Prices | None]
) -> Plan:
    """The Plan of an incumbent; ``prices``: on their way."""
    cycle = Moment(state.at, snapshot.number).name
    draft = incumbent.draft(problem)
    state = state.asking(state.pending)
    back = held_back(problem.gangs, draft.started(problem))
    state.blocked.update({key: (unweighed.GANG, why) for key, why in back.items()})
    room = state.room()
    for piece in draft.pieces:
        room.take(piece.chunks, piece.load)
    stages = incumbent.stages
    purses, started = Purses.after(problem, draft), new_leases(problem, room, draft, cycle)
    if growing.is_called_for(state):
        grown = _grown(state, problem, draft, room, stages, cycle)
        stages = grown.stages
        if grown.leases:
            draft, room, purses, started = grown.draft, grown.room, grown.purses, grown.leases
    lent = lending.lend(state, room, purses, draft.started(problem), started, cycle)
    started, stages = [*started, *lent.leases], lent.stages(stages)
    waits = otherwise.waits(state, problem, draft, room, purses)
    waits = [wait for wait in waits if (wait.namespace, wait.name) not in lent.runs]
    after = _after(state, problem, draft, started, waits, lent.runs)
    opened = sorted([*started, *state.swapped], key=lambda lease: lease.key)
    open_leases = [lease for mine in after.leases.values() for lease in mine]
    left = {key: _left(state, after, key) for key in after.leases}
    pruned = retention.due(state.leases, state.runs, state.policy, state.at, snapshot.tables["quarantine"])
    unpaid, added = unpaid_words(state, after.leases, after.classes), segments(state, after.classes)
    budgets = budget_statuses(state.book, open_leases, after.classes, state.spent, state.taken, left, state.node_site)
    return Plan(
        jobtree=__version__,
        at=state.at,
        since=snapshot.since,
        cycle=cycle,
        snapshot=snapshot.digest,
        policy=snapshot.policy_digest,
        given=given_of(snapshot, state.at, state.ends, [lease.key for lease in opened]),
        changed=state.changed,
        solver=incumbent.solver,
        stages=stages,
        closures=state.closures,
        segments=added,
        turns=turns(state, added, unpaid),
        leases=[_opened(state, lease, after.classes[lease.key], cycle) for lease in opened],
        runs=run_updates(state, after, unpaid),
        budgets=[BudgetUpdate(name=name, status=budgets[name]) for name in sorted(budgets)],
        waits=waits,
        prices=prices.result(),
        warnings=_warnings(snapshot, state),
        pruned=[Pruned(namespace=lease.namespace, name=lease.name) for lease in sorted(pruned, key=lambda x: x.key)],
        settled=retention.settled(pruned, state.money, snapshot.tables["nodes"]),
    )


def beside_growth(state: State, problem: Problem, draft: Draft) -> Draft:
    """The draft as the Plan has it: where growth comes before unfunded starts, with those that it leaves room for."""
    if not growing.is_called_for(state):
        return draft
    room = state.room()
    for piece in draft.pieces:
        room.take(piece.chunks, piece.load)
    grown = _grown(state, problem, draft, room, [], Moment(state.at).name)
    return grown.draft if grown.leases else draft


def _left(state: State, after: After, key: RunKey) -> int | None:
    end = limit_end(after.starts.get(key), after.limits.get(key))
    return None if end is None else end - state.at


class _Grown(NamedTuple):
    """A draft beside growth: ``leases`` of both, none where nothing grows; what is left; stages with that of growth."""

    draft: Draft
    room: Room
    purses: Purses
    leases: list[LeaseRow]
    stages: list[Stage]


def _grown(state: State, problem: Problem, draft: Draft, room: Room, stages: list[Stage], cycle: str) -> _Grown:
    """The draft with growth beside it.

    Where growth comes first, work that would start unfunded is put aside, and starts again on what growth leaves.
    """
    order = state.policy.stages
    draft, room = Draft([*draft.starts], [*draft.pieces], dict(draft.paid)), room.copy()
    aside = _aside(problem, draft) if "opportunistic" in order[order.index(growing.STAGE) :] else []
    drop(problem, room, draft, set(aside))
    purses = Purses.after(problem, draft)
    started = new_leases(problem, room, draft, cycle)
    growth = growing.grow(state, _classes(state, problem, draft), room, purses, started, cycle)
    if not growth.leases:
        return _Grown(draft, room, purses, [], growth.stages(stages, order))
    again = Draft()
    greedy.fill(Filler(problem, room, purses), again, aside)
    started += new_leases(problem, room, again, cycle)
    draft.starts += again.starts
    draft.pieces += again.pieces
    draft.paid.update(again.paid)
    leases = sorted([*started, *growth.leases], key=lambda each: each.key)
    restated = [_restated(stage, problem, draft, room) for stage in stages]
    return _Grown(draft, room, purses, leases, growth.stages(restated, order))


def _restated(stage: Stage, problem: Problem, draft: Draft, room: Room) -> Stage:
    """A stage that growth may have changed, with what is reached now."""
    counts = STAGES[stage.name]
    if not (counts.unfunded or counts.constructive):
        return stage
    value = counts.value(problem, draft, room)
    return msgspec.structs.replace(stage, value=value, bound=value if counts.constructive else stage.bound)


def _aside(problem: Problem, draft: Draft) -> list[int]:
    """Unfunded starts of runs that start alone and are promised nothing, heaviest first."""
    kept = {*problem.tied, *problem.due}
    alone = (start.candidate for start in draft.starts if start.candidate not in kept)
    return sorted((c for c in alone if problem.type_of(c).unfunded), key=lambda c: problem.candidates[c].order)


def _classes(state: State, problem: Problem, draft: Draft) -> Classes:
    """Classes of running work beside a draft's starts. Money that promises hold keeps starts away: it has no payer."""
    stays = beside(replace(problem, spent=state.taken), draft).stays
    return state.funded.classes | classes_of(state.money, state.funded.parts, stays)


def _after(
    state: State,
    problem: Problem,
    draft: Draft,
    created: Iterable[LeaseRow],
    waits: list[Wait],
    lent: Mapping[RunKey, RunRow],
) -> After:
    leases: dict[RunKey, list[LeaseRow]] = dict(state.held)
    classes: dict[LeaseKey, FundingClass] = {**_classes(state, problem, draft)}
    known = {key: run for key in state.held if (run := state.runs.get(key)) is not None}
    limits = {key: run.limit for key, run in known.items()}
    starts = {key: at for key, run in known.items() if (at := started(run, state.held[key])) is not None}
    for row in created:
        leases[row.run_key] = [*leases.get(row.run_key, ()), row]
        classes[row.key] = row.funding_class
    for run in (*(problem.candidates[start.candidate].run for start in draft.starts), *lent.values()):
        limits[run.key] = run.limit if run.limit is not None else _default_limit(state, leases[run.key])
        starts[run.key] = state.at
    return After(leases, classes, {(w.namespace, w.name): w for w in waits}, limits, starts)


def _default_limit(state: State, leases: list[LeaseRow]) -> int | None:
    """The smallest ``perRun.defaultTime`` among the payers: the enforced limit of a run that states none (spec §1)."""
    defaults = [
        default
        for lease in leases
        if lease.envelope >= 0 and (default := state.money.envelopes[lease.envelope].per_run_default_time) is not None
    ]
    return min(defaults, default=None)


def _opened(state: State, row: LeaseRow, name: FundingClass, cycle: str) -> Lease:
    """Object of a lease that opens: in place of a spare, for a run that grows, or for one that starts."""
    reason: LeaseReason = "Swap" if row.key in state.swaps else "Grow" if state.held.get(row.run_key) else "Start"
    return lease_of(row, name, state.runs[row.run_key].ref, reason, cycle, state.money)


def _warnings(snapshot: Snapshot, state: State) -> list[PlanWarning]:
    found = [
        PlanWarning(object=name_of(kind, namespace, name), message=message)
        for table in ("quarantine", "warnings")
        for kind, namespace, name, message, told_by in zip(
            *(col.texts(snapshot.tables[table], column) for column in QUARANTINE.names), strict=True
        )
        if not told_by
    ]
    label = snapshot.policy.spec.topology.labels.flavor
    for node, flavor, gpus in zip(state.fleet.names, state.fleet.flavor, state.fleet.gpus, strict=True):
        if gpus and not flavor:
            found.append(PlanWarning(object=f"Node {node}", message=left_out(label)))
    for key, ending in state.endings.items():
        if ending.lack:
            rest = "what it holds closes, and it waits again" if not ending.outcome else "what it holds closes"
            found.append(PlanWarning(object=name_of("Run", *key), message=f"{ending.lack}; {rest}"))
    if state.lost:
        found.append(PlanWarning(object=f"ConfigMap {seen.NAMESPACE}/{seen.RECORD}", message=state.lost))
    if state.doubt:
        found.append(PlanWarning(object="Policy default", message=state.doubt))
    for i, envelope in enumerate(state.money.envelopes):
        if not state.money.sites[i]:
            labels = named([f"{key}={value}" for key, value in envelope.selector])
            message = f"envelope {envelope.name} ({envelope.flavor}, {labels}) matches no node: it pays for nothing new"
            found.append(PlanWarning(object=f"Budget {envelope.budget}", message=message))
    return sorted(found, key=lambda w: (w.object, w.message))
