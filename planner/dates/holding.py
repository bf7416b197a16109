"""The state that is planned on: as derived, with what standing promises hold in it (spec §5)."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from jobtree.api.values.scalars import milli
from jobtree.world.tables.snapshot import Snapshot
from planner.dates.standing import Standing
from planner.effort import USUAL, Effort
from planner.forecast.calendar import Known, ages, estimates, expected, known_times
from planner.forecast.later import Later
from planner.forecast.natural import Timeline
from planner.forecast.starts import together
from planner.state.derive import beside, state_of
from planner.state.state import State
from policies.caps.cap import Lane
from policies.funding.ledger import lane_of
from policies.inputs.claims import UNFUNDED, RunKey, is_loan
from policies.promises import funds
from policies.promises.holds import Hold, Holds, Promised
from policies.promises.rules import Promise, held


def held_state(snapshot: Snapshot, at: int, effort: Effort = USUAL) -> State:
    """Derive the state at ``at`` (Unix seconds): what is promised later is kept from those that would delay it."""
    state = state_of(snapshot, at, effort=effort)
    if not len(snapshot.tables["reservations"]):
        return state
    waiting = {run.key: run for run in state.pending if run.key not in state.blocked}
    promises = held(snapshot.tables["reservations"], waiting)
    if not promises:
        return state
    return beside(snapshot, state, _holds(snapshot, state, promises))


def _holds(snapshot: Snapshot, state: State, promises: Sequence[Promise]) -> Holds:
    """Date the promises beside one another, and see what they leave of each node that is free now.

    What is due, or can start now beside those before it, has its turn before all that is not promised, and needs no
    hold; of the rest each node is held from the first time on at which some promise needs it.
    """
    spans = expected(snapshot)
    new = _new(state, promises)
    timeline = _dated(snapshot, state, promises, spans, new)
    passing = _passing(timeline, state, new, spans)
    now = {dated.key for dated in timeline.dated if dated.at == state.at}
    due = now & {promise.run_key for promise in promises if promise.start <= state.at}
    free = state.room().free
    whole: dict[str, Hold] = {}
    part: dict[str, int] = {}
    for each in sorted(timeline.held(), key=lambda each: each.at):
        if each.at == state.at:
            continue
        moment = timeline.moment(each.at)
        for node in each.found.nodes:
            name, left = state.fleet.names[node], moment.filler.room.free[node]
            if name in whole or left >= free[node]:
                continue
            if left:
                spare = timeline.moments[0].filler.room.free[node]  # beside what starts now
                part[name] = max(part.get(name, 0), min(free[node] - left, spare))
            else:
                whole[name] = Hold(each.at, _by(timeline, node, each.at, due))
    waiting = {each.run_key: each.nodes for each in promises if each.awaits_victims(state.at)}
    part = kept_free(state, {key: nodes for key, nodes in waiting.items() if key not in now}, part)
    turns = tuple(each.run_key for each in promises if each.start <= state.at or each.run_key in now) + passing
    nodes = {promise.run_key: promise.nodes for promise in promises}
    promised = Promised(frozenset((*nodes, *passing)), turns, nodes=nodes)
    needs = [*_needs(timeline, state)]
    lends = {need.lane.envelope for need in needs if need.lane.loan}
    freed = _freed(snapshot, state, lends)
    return Holds(whole, part, promised, funds.held(state.book, needs, freed, state.at, timeline.to_spend(state.at)))


def kept_free(
    state: State, waiting: Mapping[RunKey, Iterable[str]], part: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Free slots by node that nobody may have: what is held in ``part``, and what was counted for starts that are
    ``waiting``, on these nodes, for the pods of their victims.
    """
    free, index, held = state.room().free, state.fleet.index, dict(part or {})
    for key, nodes in waiting.items():
        left = state.runs[key].slots_min
        for name in nodes:
            there = min(free[index[name]] - held.get(name, 0), left) if name in index else 0
            if there > 0:
                held[name] = held.get(name, 0) + there
                left -= there
    return held


def _new(state: State, promises: Iterable[Promise]) -> list[RunKey]:
    """Runs that may start and are promised nothing, the oldest first; none where they are too many."""
    promised = {promise.run_key for promise in promises}
    runs = [run for run in state.pending if not run.is_cpu and run.key not in promised and run.key not in state.blocked]
    if len(runs) > state.effort.dating.passing:
        return []
    return [run.key for run in sorted(runs, key=lambda run: (run.created, run.key))]


def _passing(
    timeline: Timeline, state: State, new: Sequence[RunKey], spans: Mapping[RunKey, int]
) -> tuple[RunKey, ...]:
    """Those of the ``new`` runs that can start now beside all that is promised, if each of them can beside the others.

    They delay no promise and keep nothing from one another, so whatever a promise holds is no reason to let them wait.
    Where they compete for room or money, or for width, it is for the stages to choose.
    """
    groups = {tuple(mine): mine for mine in (together(state, key, new, spans) for key in new)}
    able = []
    for mine in groups.values():
        if timeline.date(mine, state.at + 1):
            able.append(mine)
            timeline.release(mine)
    keys = tuple(key for mine in able for key in mine)
    starts = all(timeline.date(mine, state.at + 1) for mine in able)
    if starts and all(timeline.found(key).start.steps == state.runs[key].lowered().steps for key in keys):
        return keys
    timeline.release(keys)
    return ()


def _dated(
    snapshot: Snapshot, state: State, promises: Sequence[Promise], spans: Mapping[RunKey, int], new: Iterable[RunKey]
) -> Timeline:
    """Every promise as it stands, now where that can be, or anew; ``new``: who else may be dated beside them."""
    known = list(_known(snapshot, state, promises))
    of = {promise.run_key: promise for promise in promises}
    most = state.effort.moments(len(state.pending), len(state.fleet.names), state.effort.dating.holding)
    standing = Standing(Timeline.of(Later.of(snapshot, state, {*of, *new}), known, most, state), state, of, of, spans)
    timeline = standing.timeline
    for promise in promises:
        if promise.awaits_victims(state.at) and not timeline.is_dated(promise.run_key):
            timeline.date(standing.mine(promise.run_key), state.at + 1)  # what was cut is for it
    rest = of.keys() - {dated.key for dated in timeline.dated}
    standing.hold(sorted(rest, key=lambda key: (state.runs[key].created, key)))
    by_cuts = [key for key in of if (of[key].is_by_cuts or timeline.is_cut_for(key)) and not timeline.is_dated(key)]
    for key in by_cuts:  # as told, before others move up: they could put it off
        standing.by_cuts(key)
    for key in of:
        if key in standing.starts:
            standing.sooner(key, state.at + 1)
    for key in sorted(of, key=lambda key: (of[key].start > state.at, state.runs[key].created, key)):
        if not timeline.is_dated(key):
            mine = standing.mine(key)
            timeline.uncut(key)
            if key not in by_cuts or not (timeline.date(mine, state.at + 1) or standing.by_cuts(key)):
                timeline.date(mine)
    return timeline


def _needs(timeline: Timeline, state: State) -> Iterator[funds.Need]:
    """Needs of promises by way of money."""
    discount = milli(state.policy.spares.discount)
    for each in timeline.held():
        owner = state.runs[each.key].owner
        user = state.money.user_of(owner)
        for (active, site), payments in each.found.paid.items():
            for envelope, gpus in payments.items():
                lane = Lane(envelope, is_loan(state.money, envelope, owner), site, None, user)
                yield funds.Need(lane, gpus * (1000 if active else discount), each.at, each.end)


def _freed(snapshot: Snapshot, state: State, lends: Container[int]) -> Iterator[funds.Freed]:
    """Ends at known times, or of age where what is promised can recall a loan: where no envelope ``lends``."""
    limits, estimated = state.limits, estimates(snapshot, state)
    aged = {loan: at for loan, at in ages(state).items() if loan[1] not in lends}
    for key, leases in state.held.items():
        for lease in leases:
            times = limits.get(key), estimated.get(key), aged.get((key, lease.envelope))
            ends = [end for end in times if end is not None]
            if ends and state.funded.classes[lease.key] != UNFUNDED:
                yield funds.Freed(lane_of(state.money, lease, state.node_site), lease.milli(state.policy), min(ends))


def _known(snapshot: Snapshot, state: State, promises: Iterable[Promise]) -> Iterator[Known]:
    """Known times up to the horizon, and those at which promises stand."""
    horizon = state.at + int(state.policy.reservations.horizon)
    yield from (each for each in known_times(state, estimates(snapshot, state)) if state.at < each.at <= horizon)
    yield from (Known(promise.start, "promise") for promise in promises if promise.start > state.at)


def _by(timeline: Timeline, node: int, at: int, due: Container[RunKey]) -> tuple[RunKey, ...]:
    """Runs that are promised something of a node at a time, and those ``due`` that are to have ended by then, be it by
    an estimate: they are kept first, and what is promised after them counts on their ends.
    """
    return tuple(
        sorted(
            each.key
            for each in timeline.held()
            if each.at <= at
            and (each.end is None or at < each.end or each.key in due)
            and any(chunk.node == node for chunk in each.chunks)
        )
    )
