"""From a plan to its dates: which promises stand, move or end, and when every other run will start (spec §5)."""

from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import replace

import msgspec

from jobtree.api.kinds.run import Eta
from jobtree.world.naming.arrays import is_new, whole
from jobtree.world.plan import Plan, Pruned, RunUpdate, Wait
from jobtree.world.tables import values as col
from jobtree.world.tables.after import after
from jobtree.world.tables.rows_arrays import indices_of
from jobtree.world.tables.rows_runs import status_in
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.deciding import Decision
from planner.cutting.places import Place
from planner.dates.dating import Dating
from planner.dates.fitting import Date, Fitting
from planner.dates.holding import kept_free
from planner.dates.undated import without_date
from planner.dates.writing import Written
from planner.effort import Effort
from planner.forecast.starts import Natural
from planner.state.derive import state_of
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import read_runs
from policies.lifecycle import unweighed
from policies.promises.rules import Fate, Promise, fate, read_promises


def dated(snapshot: Snapshot, plan: Plan, effort: Effort, decision: Decision) -> Plan:
    """The plan with its promises and estimates; it decides nothing anew. ``decision``: what was cut for it."""
    stored = read_promises(snapshot.tables["reservations"])
    waits = {(wait.namespace, wait.name): wait for wait in plan.waits if wait.reason not in unweighed.ELSEWHERE}
    if not stored and not waits:
        return plan
    world = after(snapshot, plan)
    state = state_of(world, plan.at, effort=effort)
    written, awaited = Written(plan, state), decision.awaited
    held = _settled(stored, waits, written)
    anew = _held_anew(awaited, waits, held, written)
    waiting = {key: each.nodes for key, each in held.items() if key in anew or each.awaits_victims(plan.at)}
    waiting |= {key: place.nodes for key, place in awaited.items() if key in anew}
    kept = replace(state, holds=state.holds._replace(part=kept_free(state, waiting)), rooms=[]) if waiting else state
    etas, put_off = _etas(snapshot, waits), decision.put_off
    dating = Dating(world, kept, snapshot.since, waits, held, anew, awaited, etas, put_off, written)
    dating.date()
    _fit(Fitting(world, state), held, written)
    written.warn()
    return msgspec.structs.replace(
        without_date(plan, state, dating.cuts.why_not),
        runs=[*_updates(snapshot, plan, written.told)],
        reservations=sorted(written.new, key=lambda each: (each.namespace, each.name)),
        promises=sorted(written.moved, key=lambda each: (each.namespace, each.name)),
        lapsed=_lapsed(stored, held, written),
    )


def _settled(stored: Iterable[Promise], waits: Container[RunKey], written: Written) -> dict[RunKey, Promise]:
    """End what is over; returns the promises that stand, by run, the oldest where a run has several."""
    starting, state = {lease.run_key for lease in written.plan.leases}, written.state
    standing: dict[RunKey, Promise] = {}
    for promise in stored:
        if not promise.stands:
            continue
        key = promise.run_key
        over = fate(
            there=key in state.runs,
            unread=key in state.unread.runs,
            starts=key in starting,
            runs=key in state.held,
            first=standing[key].name if key in standing else "",
            why_not="" if key in waits else _why_not(key, state),
        )
        if over is None:
            standing[key] = promise
        else:
            written.end(promise, over)
    return standing


def _held_anew(
    awaited: Mapping[RunKey, Place], waits: Mapping[RunKey, Wait], held: dict[RunKey, Promise], written: Written
) -> Set[RunKey]:
    """Runs for which this very plan cuts whose victims' pods are still there: promised from now on, if they were not.

    New promises are among ``held`` then, as they are kept like any other, as far as ``maxHeld`` lets them.
    """
    cut = {closure.made_room_for for closure in written.plan.closures}
    found = {key for key, each in held.items() if f"{key[0]}/{each.name}" in cut}
    for key, place in awaited.items():
        if key in waits and (key in held or len(held) < written.state.policy.reservations.max_held):
            found.add(key)
            if key not in held:
                held[key] = written.hold(key, waits[key], Natural(written.plan.at, "notice", *place))
    return found


def _why_not(key: RunKey, state: State) -> str:
    run = state.runs.get(key)
    if run is None or run.outcome:
        return "it is over"
    return state.blocked[key][1] if key in state.blocked else f"it is {run.state}"


def _fit(fitting: Fitting, held: Mapping[RunKey, Promise], written: Written) -> None:
    """End dates that hold no more beside the others, and say why."""
    moved = {(each.namespace, each.name): each.status for each in written.moved}
    told = {key: (each.name, moved.get((each.namespace, each.name), each.told)) for key, each in held.items()}
    told |= {(each.namespace, each.spec.run_ref.run_name): (each.name, each.status) for each in written.new}
    dates = [
        Date(
            key,
            int(status.earliest_start),
            status.intended_slice.nodes if status.intended_slice else held[key].nodes,
            frozenset(each.run for each in status.forecast.conflict_set) if status.forecast else frozenset(),
        )
        for key, (_, status) in told.items()
        if status.stands and status.earliest_start is not None
    ]
    for key, why in fitting.unfit(dates).items() if dates else ():
        written.drop(key, told[key][0])
        if key in held:
            written.end(held[key], Fate("Failed", "NoRoom", f"Its date holds no more: {why}"))


def _etas(snapshot: Snapshot, keys: Container[RunKey]) -> dict[RunKey, Eta]:
    """The estimates that runs were told of so far."""
    runs = read_runs(snapshot.tables["runs"], snapshot.tables["arrays"])
    return {run.key: run.told.eta for run in runs if run.key in keys and run.told.eta is not None}


def _updates(snapshot: Snapshot, plan: Plan, told: Mapping[RunKey, dict[str, object]]) -> Iterator[RunUpdate]:
    """Statuses of runs with what they are told of their start; those that say nothing new are left out."""
    updates = {(each.namespace, each.name): each.status for each in plan.runs}
    table, indices = snapshot.tables["runs"], indices_of(snapshot.tables["arrays"])
    for key, text in zip(col.keys(table), col.texts(table, "status"), strict=True):
        if key in updates or key in told:
            before = status_in(text)
            now = updates[key] if key in updates else whole(before) if key in indices else before
            status = msgspec.structs.replace(now, **told.get(key, {}))
            if is_new(status, before, is_index=key in indices):
                yield RunUpdate(namespace=key[0], name=key[1], status=status)


def _lapsed(stored: Iterable[Promise], held: Mapping[RunKey, Promise], written: Written) -> list[Pruned]:
    """Promises that were over before this cycle, and whose run is over, gone, or has another one.

    They go with the next cycle that finds the world changed: in one that has not nothing is written (spec §4).
    """
    if written.plan.changed < written.plan.at:
        return []
    again = {*held, *((each.namespace, each.spec.run_ref.run_name) for each in written.new)}
    runs = written.state.runs
    return [
        Pruned(namespace=each.namespace, name=each.name)
        for each in stored
        if not each.stands and (each.run_key in again or each.run_key not in runs or bool(runs[each.run_key].outcome))
    ]
