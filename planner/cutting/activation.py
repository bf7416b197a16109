"""Activation of promises that are due: what starts, beside what, and what is cut for it (spec §5, §6).

First each starts where it is promised, if that is free; then the others, in the order of the promises: where there is
room beside those, else where these and it can be laid anew together, at the least harm. What it would still hold when
somebody is promised it is left to them, unless there is no other way. One that finds no room so has it before those
that are promised later. What could be kept at less harm beside the cuts for others is weighed again,
the most harm first. So nothing goes that all of them together could do without.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from jobtree.api.kinds.plan import Draw, Lottery, PoolOwner
from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import OwnerPath, Time
from jobtree.world.memory.lottery import Lot
from planner.cutting.least import Option, Weighing
from planner.cutting.pools import Pools
from planner.cutting.trial import Members, Trial
from planner.cutting.victims import Victim, victims_of
from planner.filling.filler import Settled
from planner.placement.place import Piece, Start
from policies.cuts import lottery
from policies.cuts.lottery import Pick
from policies.cuts.order import Cut, Cuts, Harm
from policies.inputs.claims import LeaseKey, RunKey
from policies.promises.holds import FOR_GOOD
from policies.promises.rules import Promise


@dataclass
class Activation:
    """``promised``: runs whose promises are due; ``later``: promises that are not; ``cut``: what goes for each, by its
    run; ``draws``: of those that drew. ``loose``: runs that may lie elsewhere than where they were found; ``put_off``:
    those for which nothing may be cut now, and why. ``_settled``: what starts, at its least width, by run; ``_harm``:
    of what goes for each; ``_leaves``: those of them that leave to ``later`` ones what is theirs.
    """

    trial: Trial
    lot: Lot | None
    promised: frozenset[RunKey]
    later: Sequence[Promise] = ()
    cut: dict[RunKey, dict[LeaseKey, Cut]] = field(default_factory=dict)
    draws: dict[RunKey, Draw] = field(default_factory=dict)
    loose: set[RunKey] = field(default_factory=set)
    put_off: dict[RunKey, str] = field(default_factory=dict)
    _settled: dict[RunKey, list[Settled]] = field(default_factory=dict)
    _harm: dict[RunKey, Harm] = field(default_factory=dict)
    _leaves: set[RunKey] = field(default_factory=set)

    def settle(self, due: Sequence[Promise]) -> None:
        """Start what is promised, where need be in the room of victims. ``due``: in their order."""
        for promise in due:
            if found := self._as_promised(promise):
                self._settled[promise.run_key] = found
        for place, promise in enumerate(due):
            if not self._keep(promise):
                self._keep_before(promise, due[place + 1 :])
        while any(self._weighed_less(each) for each in sorted(due, key=self._most_harm) if each.run_key in self.cut):
            pass
        keys = (promise.run_key for promise in due)
        self._settled = {key: self._settled[key] for key in keys if key in self._settled}

    @property
    def _together(self) -> int:
        """Most starts beside which one more is laid anew."""
        return self.trial.state.effort.cutting.together

    def _most_harm(self, promise: Promise) -> tuple[int, ...]:
        return tuple(-gpus for gpus in self._harm.get(promise.run_key, Harm()))

    def _waiting(self, promise: Promise) -> Members | None:
        """Candidates that start for it; None where it, or its gang, has been started, or nobody pays."""
        has_begun = self.trial.has_begun(promise.run_key)
        return None if has_begun else self.trial.members(promise.run_key, self.promised)

    def _as_promised(self, promise: Promise) -> list[Settled]:
        """Start it where it is promised, if that is free; unfunded where nobody pays and it may."""
        trial, key, members = self.trial, promise.run_key, self._waiting(promise)
        found = trial.as_promised(members) if members else []
        trial.begin(found)
        return found or trial.start_unfunded(key, members, elsewhere=False)

    def _keep(self, promise: Promise) -> bool:
        """Start it beside all others; False where others are in its way."""
        key, members = promise.run_key, self._waiting(promise)
        self._leaves.add(key)
        with self._leaving(key, members or ()) as leaves:
            is_kept = self._keep_there(promise, members)
        if leaves and not is_kept:
            self._leaves.discard(key)
            is_kept = self._keep_there(promise, members)
        return is_kept

    @contextmanager
    def _leaving(self, key: RunKey, members: Members) -> Iterator[bool]:
        """Leave their slots meanwhile, if a run is to leave any, to promises of later that it, or another of its
        ``members``, may outlast; yields whether there are some.
        """
        slots, at = self.trial.slots, self.trial.state.at
        runs = [self.trial.problem.candidates[each].run for each in members]
        ends = [FOR_GOOD if run.time_limit is None else at + run.time_limit for run in runs]
        mine = {run.key for run in runs}
        others = [each for each in self.later if each.start < max(ends, default=at) and each.run_key not in mine]
        kept = slots.keep(slots.promised(others)) if key in self._leaves else []
        try:
            yield bool(kept)
        finally:
            slots.let_go(kept)

    def _keep_there(self, promise: Promise, members: Members | None) -> bool:
        """Start it beside all others in what is free and what may be cut."""
        trial, key = self.trial, promise.run_key
        found = (trial.start(members) if members else []) or trial.start_unfunded(key, members)
        if found:
            self._settled[key] = found
            return True
        if members is None:
            return trial.has_begun(key) or not trial.may_be_unfunded(key)
        # while its victims' pods are still ending, or where money alone is short, nobody is cut
        is_short = not promise.awaits_victims(trial.state.at) and trial.is_funded(members)
        return is_short and self._make_room(promise, members)

    def _keep_before(self, promise: Promise, later: Iterable[Promise]) -> None:
        """Start it in the stead of what is promised later and needs no cuts, which has its turn after it."""
        gone = {each.run_key: self._settled.pop(each.run_key) for each in later if each.run_key in self._settled}
        starts = [start for found in gone.values() for start in found]
        self.trial.take_back(starts)
        if not starts or not self._keep(promise):
            self.trial.put_back(starts)
            self._settled |= gone

    def _weighed_less(self, promise: Promise) -> bool:
        """Is less cut for it now, beside all that is kept and what is cut for others?"""
        return self._spare(promise.run_key) or self._lessen(promise)

    def _spare(self, key: RunKey) -> bool:
        """Spare victims without whom all that starts has its room where it lies by now; is there one?"""
        trial, spared = self.trial, set[LeaseKey]()
        lain = {node for mine in self._settled.values() for one in mine for node in one.nodes}
        by_run: dict[RunKey, dict[LeaseKey, Cut]] = {}
        for lease in trial.slots.leases_of(self.cut[key]):
            by_run.setdefault(lease.run_key, {})[lease.key] = self.cut[key][lease.key]
        for found in by_run.values():
            gone = trial.gone
            trial.undo(found)
            if trial.slots.has_room(lain.intersection(trial.slots.nodes_of(found))):
                spared |= found.keys()
            else:
                trial.redo(found, gone)
        self.cut[key] = {lease: cut for lease, cut in self.cut[key].items() if lease not in spared}
        if not self.cut[key]:
            del self.cut[key], self._harm[key]
            self.draws.pop(key, None)
        return bool(spared)

    def _lessen(self, promise: Promise) -> bool:
        """Weigh again what goes for it, beside all that is kept and what is cut for others; is it less now?"""
        key, trial = promise.run_key, self.trial
        cut, harm, found, gone = self.cut.pop(key), self._harm.pop(key), self._settled.pop(key), trial.gone
        draw = self.draws.pop(key, None)
        on = trial.slots.nodes_of(cut)
        lying = {
            each: on.isdisjoint(node for one in mine for node in one.nodes) for each, mine in self._settled.items()
        }
        beside = {each: self._settled[each] for each in sorted(lying, key=lying.__getitem__)[: self._together]}
        trial.take_back(found)
        trial.undo(cut)
        are_clear = all(is_off or each in beside for each, is_off in lying.items())  # where nothing goes nobody lies
        members = tuple(each.start.candidate for each in found)
        with self._leaving(key, members):
            if beside and are_clear and self._cut(promise, members, beside, harm):
                return True
        trial.redo(cut, gone)
        trial.put_back(found)
        self.cut[key], self._harm[key], self._settled[key] = cut, harm, found
        self.draws |= {} if draw is None else {key: draw}
        return False

    def _make_room(self, promise: Promise, members: Members) -> bool:
        """Start it at the least harm, with others laid anew, else beside them as they lie."""
        beside = dict(islice(self._settled.items(), self._together))
        return (bool(beside) and self._cut(promise, members, beside)) or self._cut(promise, members, {})

    def _cut(
        self,
        promise: Promise,
        members: Members,
        beside: Mapping[RunKey, list[Settled]],
        than: Harm | None = None,
    ) -> bool:
        """Start it at the least harm, if that is less ``than`` some, and those ``beside`` it anew; else all is as it
        was.
        """
        trial = self.trial
        others = [start for found in beside.values() for start in found]
        trial.take_back(others)
        candidates = (*members, *(each.start.candidate for each in others))
        weighing = trial.weighing(trial.needs(candidates), self._victims(promise, members))
        harm = weighing.least()
        if harm is not None and (than is None or harm < than) and (picked := self._picked(promise, weighing, harm)):
            chosen, draw, drawn = picked
            cut = trial.take(weighing, chosen, f"{promise.namespace}/{promise.name}", drawn)
            found = _laid(trial, weighing, chosen, candidates) if others else trial.start(members)
            if found:
                self._note(promise.run_key, members, beside, found)
                if cut:
                    self.cut[promise.run_key], self._harm[promise.run_key] = cut, harm
                self.draws |= {} if draw is None else {promise.run_key: draw}
                return True
            trial.undo(cut)
        trial.put_back(others)
        return False

    def _note(
        self, key: RunKey, members: Members, beside: Mapping[RunKey, list[Settled]], found: Iterable[Settled]
    ) -> None:
        """Note where a run, with its gang, and others beside it have come to lie."""
        of = {each.start.candidate: each for each in found}
        self._settled |= {other: [of[each.start.candidate] for each in mine] for other, mine in beside.items()}
        self._settled[key] = (
            [each for candidate, each in of.items() if candidate in members] if beside else [*of.values()]
        )

    def _picked(
        self, promise: Promise, weighing: Weighing, harm: Harm
    ) -> tuple[frozenset[Option], Draw | None, dict[RunKey, int]] | None:
        """Cuts, by the lottery where several are equal, and which pick took each run that is drawn; None where
        that may not be, which is noted.
        """
        self.put_off.pop(promise.run_key, None)
        trial, most = self.trial, self.trial.state.policy.cuts.max_gpus_per_cycle
        if most is not None and trial.gpus_cut + trial.most_cut(weighing, harm) > most:
            allowed = f"a cycle cuts at most {counted(most, 'GPU')} (cuts.maxGPUsPerCycle)"
            self.put_off[promise.run_key] = f"More would have had to go for it: {allowed}."
            return None
        pools, seed, picks = Pools(weighing, harm), "", tuple[Pick, ...]()
        if harm.lottery:
            if self.lot is None or not promise.uid:
                self.put_off[promise.run_key] = "Nothing could be drawn: this plan had no secret of the lottery."
                return None
            seed = lottery.seed_of(self.lot.secret, promise.uid, promise.first_start)
            picks = lottery.draw(seed, pools.after)
        drawn: dict[RunKey, int] = {}
        for number, pick in enumerate(picks):
            drawn.setdefault((pick.token.namespace, pick.token.run), number)
        chosen = weighing.chosen(harm, pools.numbers(drawn))
        return None if chosen is None else (chosen, _draw(promise, seed, picks) if picks else None, drawn)

    def _victims(self, promise: Promise, members: Members) -> list[Victim]:
        """Victims of a promise; who was not told of it is not drawn."""
        state = self.trial.state
        opportunistic = promise.holds_unnoticed
        opportunistic |= bool(state.policy.opportunistic.notice) and promise.takes_opportunistic_alone(state.runs)
        victims = victims_of(state, self.trial.owners(members), opportunistic=opportunistic)
        return [each if each.run in promise.warned else each.undrawn for each in victims]

    def pin(self) -> None:
        """Let what is paid grow once all is settled, and keep what starts there."""
        settled = [each for found in self._settled.values() for each in found]
        unpaid = [each for each in settled if not each.paid]
        self.trial.pin([*self.trial.widen(each for each in settled if each.paid), *unpaid])

    def cuts(self) -> Cuts:
        """Cuts, and where what they make room for has to lie."""
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
        """Draws, and the secret of them; None where nothing was drawn."""
        if not self.draws or self.lot is None:
            return None
        return Lottery(position=self.lot.position, secret=self.lot.secret, draws=tuple(self.draws.values()))


def _draw(promise: Promise, seed: str, picks: tuple[Pick, ...]) -> Draw:
    pools = tuple(
        tuple(
            PoolOwner(owner=OwnerPath(owner), tokens=tuple(map(str, tokens)))
            for owner, tokens in lottery.ordered(pick.pool)
        )
        for pick in picks
    )
    return Draw(
        reservation=f"{promise.namespace}/{promise.name}",
        uid=promise.uid,
        earliest_start=Time(promise.first_start),
        seed=seed,
        pools=pools,
        picks=tuple(str(pick.token) for pick in picks),
    )


def _laid(trial: Trial, weighing: Weighing, chosen: Collection[Option], candidates: Sequence[int]) -> list[Settled]:
    """Start candidates anew at their least width, in the domains in which a weighing has room for all of them where
    just ``chosen`` is cut, each where it is promised if it can, and keep room and money taken.

    An empty list, with nothing taken, where one finds no slots or nobody pays.
    """
    laying = _Laying(trial, weighing, {each: trial.pieces(each) for each in candidates})
    laying.choose(chosen)
    found: list[Settled] = []
    for candidate in sorted(candidates, key=laying.largest, reverse=True):
        start = Start(candidate, 0)
        one = trial.filler.pay(start, laying.place(candidate)) if trial.filler.purses.trees_allow(start) else None
        if one is None:
            trial.take_back(found)
            return []
        found.append(one)
    trial.begin(found)
    return found


class _Laying:
    """Runs take their shares of what a weighing has, one after another.

    ``left``: groups of each need of the weighing that are still to lie in a domain.
    """

    def __init__(self, trial: Trial, weighing: Weighing, pieces: dict[int, list[Piece]]) -> None:
        self.trial, self.weighing, self.pieces = trial, weighing, pieces
        self.numbers = {(each.shape, each.sites, each.load): number for number, each in enumerate(weighing.needs)}
        self.domain = trial.filler.room.fleet.domain
        self.left: Counter[tuple[int, int]] = Counter()

    def choose(self, chosen: Collection[Option]) -> None:
        """Ask the weighing in which domains they lie: where they are promised, as many of them as can be."""
        places = ((self._number(piece), self._told(each)) for each, mine in self.pieces.items() for piece in mine)
        wanted = Counter((number, there) for number, told in places for there in sorted(told))
        self.left = self.weighing.layout(chosen, wanted)

    def largest(self, candidate: int) -> int:
        """GPUs of the largest piece."""
        return max(piece.shape.size for piece in self.pieces[candidate])

    def place(self, candidate: int) -> list[Piece]:
        """Slots for all of its pieces, on promised nodes first; empty, with nothing taken, where one has none."""
        filler, placed, told = self.trial.filler, list[Piece](), self._told(candidate)
        for piece in self.pieces[candidate]:
            number = self._number(piece)
            there = sorted(domain for (need, domain), count in self.left.items() if need == number and count)
            ways = [(domain, told[domain]) for domain in there if domain in told] + [(domain, None) for domain in there]
            domain = next((domain for domain, nodes in ways if filler.place(piece, domain, nodes)), None)
            if domain is None:
                filler.give_back(placed)
                return []
            self.left[number, domain] -= 1
            placed.append(piece)
        return placed

    def _number(self, piece: Piece) -> int:
        return self.numbers[piece.shape, piece.sites, piece.load]

    def _told(self, candidate: int) -> dict[int, set[int]]:
        """Promised nodes by domain."""
        found: dict[int, set[int]] = {}
        for node in self.trial.promised.get(self.trial.key([candidate]), ()):
            found.setdefault(int(self.domain[node]), set()).add(node)
        return found
