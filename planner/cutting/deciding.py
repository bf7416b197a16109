"""What a cycle cuts, decided before anything is started: the state that is planned on is the one without it (spec §5).

Promises that are due are settled each at its least width (`activation`); then they grow in what is left, so none is
late for another's width. One that fits starts; one that only money keeps waiting cuts nobody; else the set of victims
with the least harm goes, by the lottery where several are equal. No failure of one blocks the next.
What is funded and not promised makes opportunistic work alone give way. Where pods of what was cut are still there,
whatever is to start in their room is promised it (`Decision.awaited`).
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from jobtree.api.kinds.plan import Lottery
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.activation import Activation
from planner.cutting.opportunistic import give_way, is_called_for
from planner.cutting.places import Place
from planner.cutting.trial import Trial
from planner.state.derive import state_of
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.promises.rules import Promise, held


class Decision(NamedTuple):
    """The state to be planned on, and what was drawn for it.

    ``awaited``: starts in room that pods of what was cut still hold, and where they are to lie; ``put_off``: runs
    that are not started as promised because nothing may be cut for them now, and why, as a sentence.
    """

    state: State
    lottery: Lottery | None
    awaited: Mapping[RunKey, Place] = {}
    put_off: Mapping[RunKey, str] = {}


def with_cuts(snapshot: Snapshot, state: State) -> Decision:
    """The state of ``snapshot``, or that of the same world once what has to give way is cut."""
    waiting = {run.key: run for run in state.pending if run.key not in state.blocked}
    promises = held(snapshot.tables["reservations"], waiting)
    due = [each for each in promises if each.start <= state.at]
    later = [each for each in promises if each.start > state.at]
    return _decided(snapshot, _unfunded_too(state, due), due, later)


def _decided(snapshot: Snapshot, state: State, due: list[Promise], later: list[Promise]) -> Decision:
    if state.policy.mode == "noCuts" or not state.held or not (due or is_called_for(state)):
        return Decision(state, None)
    trial = Trial.of(state, {promise.run_key: promise.nodes for promise in due})
    activation = Activation(trial, snapshot.lot, frozenset(promise.run_key for promise in due), later)
    activation.settle(due)
    activation.pin()
    given = give_way(activation.trial)
    activation.cut |= given
    while activation.cut:
        cuts, places = activation.cuts(), activation.trial.places
        before = state.holds.promised
        turns = (*places, *(key for key in before.due if key not in places))
        promised = before._replace(all=before.all | places.keys(), due=turns)
        after = state_of(snapshot, state.at, state.holds._replace(promised=promised), cuts, state.effort)
        there = _started(after, activation.trial)
        failed = _not_started(state, after, activation, there)
        if failed is None:
            late = {key: place for key, place in activation.trial.places.items() if key not in there}
            awaited = {key: place for key, place in late.items() if _pods_stay(state, after, place.nodes)}
            return Decision(after, activation.drawn, awaited, activation.put_off)
        activation.concede(failed)
    return Decision(state, None, put_off=activation.put_off)


def _unfunded_too(state: State, due: list[Promise]) -> State:
    """The state in which what is due may start unfunded where the Policy lets it: in room that is there."""
    if state.policy.reservations.on_budget_shortfall != "startUnfunded" or not due:
        return state
    return state.letting(promise.run_key for promise in due)


def _started(after: State, before: Trial) -> Set[RunKey]:
    """Those of the starts for which room was made, and beside which it was, that there are on the state without it."""
    trial, there = Trial.of(after), set[RunKey]()
    for key in before.places:
        members = None if key in there else trial.members(key, before.places)
        found = [] if members is None else trial.start(members)
        found = found or ([] if key in there else trial.start_unfunded(key, members))
        there |= {trial.key([each.start.candidate]) for each in found}
    return there


def _not_started(before: State, after: State, activation: Activation, there: Set[RunKey]) -> RunKey | None:
    """A run for which something was cut and that does not start all the same, on the state without it.

    Where victims' pods are still there, it starts when they are gone.
    """
    for key in activation.trial.places:
        if key in activation.cut and key not in there:
            cut = activation.cut[key]
            nodes = {lease.node for lease in before.open_leases if lease.key in cut}
            if not _pods_stay(before, after, nodes):
                return key
    return None


def _pods_stay(before: State, after: State, nodes: Iterable[str]) -> bool:
    """Do pods of what is cut still hold GPUs of nodes? A state file's kubelets obey at once, a cluster's do not."""
    places = {*nodes}

    def held(state: State) -> int:
        return sum(state.foreign[node].gpus for node in places if node in state.foreign)

    return held(after) > held(before)
