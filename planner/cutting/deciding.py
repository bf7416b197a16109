"""What a cycle cuts, decided before anything is started: the state that is planned on is the one without it (spec §5).

Promises that are due are settled in their order, each at its least width beside those before it; then they grow in what
is left, so none is late for another's width. One that fits starts; one that only money keeps waiting cuts nobody; else
the set of victims with the least harm goes, by the lottery where several are equal. What then fits in what others' cuts
leave over spares its own victims. No failure of one blocks the next.
What is funded and not promised makes opportunistic work alone give way; where its pods are still there, what it was
made for is promised the slots (`Decision.awaited`).
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from jobtree.api.kinds.plan import Draw, Lottery, PoolOwner
from jobtree.api.values.scalars import OwnerPath, Time
from jobtree.world.memory.lottery import Lot
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.opportunistic import give_way, is_called_for
from planner.cutting.places import Place
from planner.cutting.pools import Pools
from planner.cutting.trial import Trial
from planner.cutting.victims import victims_of
from planner.filling.filler import Settled
from planner.state.derive import state_of
from planner.state.state import State
from policies.cuts import lottery
from policies.cuts.lottery import Pick
from policies.cuts.order import Cut, Cuts, Harm
from policies.inputs.claims import LeaseKey, RunKey
from policies.promises.holds import Promised
from policies.promises.rules import Promise, held


class Decision(NamedTuple):
    """The state to be planned on, and what was drawn for it.

    ``awaited``: starts for which opportunistic work gave way whose pods are still there, and where they are to lie.
    """

    state: State
    lottery: Lottery | None
    awaited: Mapping[RunKey, Place] = {}


@dataclass
class _Activation:
    """``promised``: runs whose promises are due; ``cut``: what goes for each, by its run; ``draws``: of those that
    drew. ``loose``: runs that may lie elsewhere than where they were found. ``_settled``: what starts, at its least
    width, by run, in the order of the promises; ``_harm``: of what goes for each.
    """

    trial: Trial
    lot: Lot | None
    promised: frozenset[RunKey]
    cut: dict[RunKey, dict[LeaseKey, Cut]] = field(default_factory=dict)
    draws: dict[RunKey, Draw] = field(default_factory=dict)
    loose: set[RunKey] = field(default_factory=set)
    _settled: dict[RunKey, list[Settled]] = field(default_factory=dict)
    _harm: dict[RunKey, Harm] = field(default_factory=dict)

    def settle(self, promise: Promise) -> None:
        """Start what is promised, where need be in the room of victims."""
        trial, key = self.trial, promise.run_key
        members = trial.members(key, self.promised)
        if members is None or trial.has_begun(key):
            return  # nobody pays, or its gang has started it already
        found = trial.start(members)
        if found:
            self._settled[key] = found
            return
        if promise.awaits_victims(trial.state.at) or not trial.is_funded(members):
            return  # its victims' pods are still ending, or money alone is short: nobody is cut for that
        opportunistic = promise.holds_unnoticed
        opportunistic |= promise.takes_unfunded_alone and bool(trial.state.policy.opportunistic.notice)
        victims = victims_of(trial.state, trial.owners(members), opportunistic=opportunistic)
        weighing = trial.weighing(members, victims)
        harm = weighing.least()
        most = trial.state.policy.cuts.max_gpus_per_cycle
        if harm is None or (most is not None and trial.gpus_cut + harm.gpus > most):
            return
        picks: tuple[Pick, ...] = ()
        pools, seed = Pools(weighing, harm), ""
        if harm.lottery:
            if self.lot is None or not promise.uid:
                return
            seed = lottery.seed_of(self.lot.secret, promise.uid, promise.first_start)
            picks = lottery.draw(seed, pools.after)
        drawn: dict[RunKey, int] = {}
        for number, pick in enumerate(picks):
            drawn.setdefault((pick.token.namespace, pick.token.run), number)
        name = f"{promise.namespace}/{promise.name}"
        chosen = weighing.chosen(harm, pools.numbers(drawn))
        if chosen is None:
            return
        cut = trial.take(weighing, chosen, name, drawn)
        found = trial.start(members)
        if not found:
            trial.undo(cut)
            return
        self._settled[key], self._harm[key], self.cut[key] = found, harm, cut
        if picks:
            self.draws[key] = _draw(name, promise, seed, picks)

    def spare(self) -> None:
        """Cut nothing for a promise that fits in what is left over beside the others: the most harm is spared first."""
        for key in sorted(self.cut, key=self._harm.__getitem__, reverse=True):
            found = self.trial.spare(self._settled[key], self.cut[key])
            if found is not None:
                self._settled[key] = found
                del self.cut[key]
                self.draws.pop(key, None)

    def pin(self) -> None:
        """Let what starts grow once all is settled, and keep it there."""
        self.trial.pin(self.trial.widen(each for found in self._settled.values() for each in found))

    def cuts(self) -> Cuts:
        """What goes, and where what it makes room for has to lie."""
        cuts = self.trial.cuts()
        return cuts._replace(pins={key: nodes for key, nodes in cuts.pins.items() if key not in self.loose})

    def concede(self, key: RunKey) -> None:
        """Let one that did not start, and its gang, lie elsewhere: others may have taken what was its on their common
        nodes. Cut nothing for it where that did not help.
        """
        if key in self.loose:
            self.trial.undo(self.cut.pop(key))
            self.trial.unpin(key)
            self.draws.pop(key, None)
        self.loose |= {*self.trial.together(key)}

    @property
    def drawn(self) -> Lottery | None:
        """What was drawn, and with which secret."""
        if not self.draws or self.lot is None:
            return None
        return Lottery(position=self.lot.position, secret=self.lot.secret, draws=tuple(self.draws.values()))


def with_cuts(snapshot: Snapshot, state: State) -> Decision:
    """The state of ``snapshot``, or that of the same world once what has to give way is cut."""
    waiting = {run.key: run for run in state.pending if run.key not in state.blocked}
    due = [each for each in held(snapshot.tables["reservations"], waiting) if each.start <= state.at]
    decision = _decided(snapshot, state, due)
    return decision._replace(state=_unfunded_too(decision.state, due))


def _decided(snapshot: Snapshot, state: State, due: list[Promise]) -> Decision:
    if state.policy.mode == "noCuts" or not state.held or not (due or is_called_for(state)):
        return Decision(state, None)
    activation = _Activation(Trial.of(state), snapshot.lot, frozenset(promise.run_key for promise in due))
    for promise in due:
        activation.settle(promise)
    activation.spare()
    activation.pin()
    given = give_way(activation.trial)
    activation.cut |= given
    while activation.cut:
        cuts, places = activation.cuts(), activation.trial.places
        before = state.holds.promised
        turns = (*places, *(key for key in before.due if key not in places))
        promised = Promised(before.all | places.keys(), turns)
        after = state_of(snapshot, state.at, state.holds._replace(promised=promised), cuts, state.effort)
        there = _started(after, activation.trial)
        failed = _not_started(state, after, activation, there)
        if failed is None:
            trial = activation.trial
            late = [key for key in given if key in activation.cut and key not in there]
            awaited = {each: trial.places[each] for key in late for each in trial.together(key) if each not in there}
            return Decision(after, activation.drawn, awaited)
        activation.concede(failed)
    return Decision(state, None)


def _unfunded_too(state: State, due: list[Promise]) -> State:
    """The state in which what is due may start unfunded where the Policy lets it: in room that is there."""
    if state.policy.reservations.on_budget_shortfall != "startUnfunded" or not due:
        return state
    keys = {promise.run_key for promise in due}
    pending = [msgspec.structs.replace(run, opportunistic=True) if run.key in keys else run for run in state.pending]
    return state.asking(pending)


def _started(after: State, before: Trial) -> Set[RunKey]:
    """Those of the starts for which room was made, and beside which it was, that there are on the state without it."""
    trial, there = Trial.of(after), set[RunKey]()
    for key in before.places:
        members = None if key in there else trial.members(key, before.places)
        found = [] if members is None else trial.start(members)
        there |= {trial.key([each.start.candidate]) for each in found}
    return there


def _not_started(before: State, after: State, activation: _Activation, there: Set[RunKey]) -> RunKey | None:
    """A run for which something was cut and that does not start all the same, on the state without it.

    Where victims' pods are still there, it starts when they are gone.
    """
    late = (key for key in activation.trial.places if key in activation.cut and key not in there)
    return next((key for key in late if not _pods_stay(before, after, activation.cut[key])), None)


def _pods_stay(before: State, after: State, cut: dict[LeaseKey, Cut]) -> bool:
    """Do pods still hold GPUs of the leases that are cut? A state file's kubelets obey at once, a cluster's do not."""
    nodes = {lease.node for mine in before.held.values() for lease in mine if lease.key in cut}

    def held(state: State) -> int:
        return sum(state.foreign[node].gpus for node in nodes if node in state.foreign)

    return held(after) > held(before)


def _draw(name: str, promise: Promise, seed: str, picks: tuple[Pick, ...]) -> Draw:
    pools = tuple(
        tuple(
            PoolOwner(owner=OwnerPath(owner), tokens=tuple(map(str, tokens)))
            for owner, tokens in lottery.ordered(pick.pool)
        )
        for pick in picks
    )
    return Draw(
        reservation=name,
        uid=promise.uid,
        earliest_start=Time(promise.first_start),
        seed=seed,
        pools=pools,
        picks=tuple(str(pick.token) for pick in picks),
    )
