"""Dates of what waits, run by run: by age, those with a promise first, each beside those before it (spec §5).

The oldest demand holds Reservations, up to ``maxHeld``; the others are told an estimate.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from jobtree.api.kinds.run import Eta
from jobtree.api.values.scalars import Time
from jobtree.world.plan import Wait
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.dating import CutDates
from planner.cutting.places import Place
from planner.cutting.told import CutDate, Kept
from planner.dates.causes import Causes
from planner.dates.standing import Standing
from planner.dates.sureness import Sureness
from planner.dates.touched import Touched
from planner.dates.writing import Written
from planner.forecast.calendar import Known, estimates, expected, known_times, overdue
from planner.forecast.estimates import Likely, estimated, is_near, likely
from planner.forecast.later import Later
from planner.forecast.natural import Timeline
from planner.forecast.starts import Dated, Natural
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.promises.rules import Fate, Promise, noticed

NOTHING_KNOWN: Final = "nothing that is known to end within the horizon frees enough room and money for it"
"""Why a run has no estimate."""
NOT_HELD: Final = "without money it starts by a promise alone, and reservations.maxHeld lets no more be held"
"""Why a run that could start unfunded has none."""


@dataclass
class Dating:
    """``state``: of the ``world`` as the plan leaves it; ``since``: the last cycle, Unix seconds; ``waits``: what it
    leaves waiting; ``held``: promises that stand, by run; ``anew``: those of them that wait for pods of what it cuts,
    and ``awaited``: where; ``etas``: what was told of starts until now; ``put_off``: runs for which the plan
    may cut nothing, and why; ``written``: what becomes of all that.

    ``cuts``: dates that cuts make; ``later``: known times; ``standing``: what is known to come, with what is promised.
    """

    world: Snapshot
    state: State
    since: int | None
    waits: Mapping[RunKey, Wait]
    held: Mapping[RunKey, Promise]
    anew: Set[RunKey]
    awaited: Mapping[RunKey, Place]
    etas: Mapping[RunKey, Eta]
    put_off: Mapping[RunKey, str]
    written: Written
    cuts: CutDates = field(init=False)
    later: Later = field(init=False)
    standing: Standing = field(init=False)

    def __post_init__(self) -> None:
        promised = {key: promise.nodes for key, promise in self.held.items()}
        self.cuts = CutDates(self.state, self._later, self._waiting, self._kept, self._paid, promised)
        self.plan = self.written.plan
        self.touched = Touched(self.written, self.held, self.since)

    def _waiting(self) -> Sequence[RunRow]:
        return self.later.waiting

    def _kept(self) -> list[Kept]:
        return self.standing.timeline.kept()

    def _paid(self, keys: Collection[RunKey], first: int, last: int) -> int | None:
        return self.standing.timeline.paid(keys, first, last)

    def _later(self, at: int) -> State:
        """The state at a known time (Unix seconds)."""
        return self.later.at(at)

    def date(self) -> None:
        """Date what waits by age, what is promised first, where it stands: what has a reason to move alone moves."""
        waits, held = self.waits, self.held
        many = not self.state.effort.few(len(self.plan.waits))
        promised, others = self._by_age(held), self._by_age(waits.keys() - held.keys())
        left = self.state.policy.reservations.max_held - len(held)
        if self._is_still:
            others = [key for key in others if left > 0 or not self._stays_told(key)]
        if many and self._is_still and not promised and left <= 0:
            self.cuts.why_not |= {key: NOTHING_KNOWN for key in others if not waits[key].never}
            return
        exact = {*held, *(others[: self.state.effort.dating.dated] if left > 0 else ())} if many else waits.keys()
        self.standing = self._standing(exact)
        stood = self._stand_by_cuts(promised)
        if not self._is_still:
            self._move_up(promised)
        asked: set[RunKey] = set()
        for key in promised:
            self._keep(key, asked, stood=key in stood)
        rest: list[RunKey] = []
        for key in others:
            if key not in exact or (many and left <= 0):
                rest += [] if waits[key].never else [key]
            else:
                left -= self._make(key, asked, is_held=left > 0)
        self._estimate(rest, self.standing.timeline.dated)

    def _keep(self, key: RunKey, asked: set[RunKey], *, stood: bool) -> None:
        """Date a run with a promise: as that was told where it ``stood`` or the world is still, else anew.

        Where this cycle has no work left for cuts, what hangs on them is told as it was.
        """
        written, promise, at = self.written, self.held[key], self.plan.at
        if key in self.anew or promise.awaits_victims(at):
            written.wait(promise, self.awaited.get(key), anew=key in self.anew)
            return
        is_told = self._is_still and not (promise.is_by_cuts and self.touched.reaches(promise))
        if stood or (is_told and promise.start > at):
            written.stay(promise)
            return
        found = self._natural(key, asked)
        if self.cuts.is_spent and (promise.is_by_cuts or (promise.start <= at and found is None)):
            self.standing.by_cuts(key)
            written.stay(promise)
        elif found := self._unfunded(key, promise, found):
            written.keep(promise, self.waits[key], self._sure(key, found), self._causes)
        else:
            why = f": {self.cuts.why_not[key]}" if key in self.cuts.why_not else ""
            written.end(promise, Fate("Failed", "NoKnownTime", f"No known time lets its run start any more{why}."))

    def _make(self, key: RunKey, asked: set[RunKey], *, is_held: bool) -> bool:
        """Date a run without a promise, and promise it that if it ``is_held``, else tell it; was it promised?"""
        found = self._unfunded(key, None, self._natural(key, asked), is_held=is_held)
        if found is None:
            return False
        found = self._sure(key, found)
        if is_held:
            self.written.make(key, self.waits[key], found)
        else:
            self._tell(key, Eta(p50=Time(found.at), p90=Time(found.p90 or found.at)), exact=True)
        return is_held

    def _by_age(self, keys: Iterable[RunKey]) -> list[RunKey]:
        return sorted(keys, key=lambda key: (self.state.runs[key].created, key))

    def _estimate(self, keys: Sequence[RunKey], beside: Sequence[Dated]) -> None:
        """Tell runs about when they start, anew where that moved by a ``bucket`` or is past."""
        found = estimated(self.state, keys, beside, self._lasting) if keys else {}
        for key in keys:
            if key in found:
                self._tell(key, found[key])
            else:
                self.cuts.why_not[key] = NOTHING_KNOWN

    def _tell(self, key: RunKey, eta: Eta, *, exact: bool = False) -> None:
        """Tell a run of its start, where it moved by a ``bucket``, or its ``exact`` median at all; else as before."""
        before, bucket = self.etas.get(key), int(self.state.policy.reservations.bucket)
        near = before is not None and is_near(before, eta, self.plan.at, bucket)
        near = near and (not exact or (before is not None and before.p50 == eta.p50))
        self.written.estimate(key, before if before is not None and near else eta)

    @cached_property
    def _lasting(self) -> tuple[Likely, Likely]:
        return likely(self.world, self.state)

    @cached_property
    def _sureness(self) -> Sureness:
        _, most = self._lasting
        return Sureness(self.world, self.state, most.ends)

    def _sure(self, key: RunKey, found: Natural) -> Natural:
        """The start with how sure it is; one that cuts make hangs on no estimate."""
        if found.cut is not None:
            return found
        pieces = self.standing.timeline.found(key).pieces
        return self._sureness.of(found, [chunk for piece in pieces for chunk in piece.chunks])

    @cached_property
    def _is_still(self) -> bool:
        """Is the world as the last cycle left it, and does this one leave it so? Then nothing has a reason to move."""
        plan, since = self.plan, self.since
        if since is None or plan.changed == plan.at or plan.leases or plan.closures or plan.segments:
            return False
        return not overdue(self.world, self.state, since)

    @cached_property
    def _causes(self) -> Causes:
        """What a promise that moves says of why."""
        return Causes(self.world, self.state, self.since, self.put_off, self.standing.overtaken)

    def _stand_by_cuts(self, promised: Iterable[RunKey]) -> frozenset[RunKey]:
        """Hold promises by cuts for which nothing new is in question as they were told; returns whose they are.

        Those of a gang stand together. One that can start as soon without cuts, or finds no room or money any more
        where it stands, is dated anew.
        """
        timeline = self.standing.timeline
        is_changed = self.plan.changed == self.plan.at
        for key in promised:
            promise, mine = self.held[key], self.standing.mine(key)
            told = [self.held[each] for each in mine if each in self.held and self.held[each].is_by_cuts]
            if len(told) < len(mine) or self._is_over(promise) or timeline.is_cut_for(key):
                continue
            if any(self.touched.reaches(each) for each in told):
                continue
            if is_changed and (found := timeline.date(mine, promise.start + 1)):
                self.standing.starts |= found
            elif (not is_changed or self.cuts.can_pay(key, promise.start)) and self.standing.by_cuts(key):
                stood = timeline.by_cuts[-1]
                named = [each for promise in told if (f := promise.told.forecast) for each in f.conflict_set]
                self.cuts.stand(stood.at, stood.starts, stood.leases, named)
        return frozenset(key for each in timeline.by_cuts for key in each.starts)

    def _is_over(self, promise: Promise) -> bool:
        """Is it due, are its victims cut, or can its run never start?"""
        is_cut = promise.run_key in self.anew or promise.awaits_victims(self.plan.at)
        return is_cut or promise.start <= self.plan.at or self.waits[promise.run_key].never

    def _stays_told(self, key: RunKey) -> bool:
        """Is its start still as it was estimated? Then that is told."""
        eta = self.etas.get(key)
        if eta is None or eta.p50 is None or int(eta.p50) <= self.plan.at:
            return False
        self.written.estimate(key, eta)
        return True

    def _natural(self, key: RunKey, asked: set[RunKey]) -> Natural | None:
        """The start of a run that may ever start, by what ends or by cuts; ``asked``: whose natural start was asked."""
        starts = self.standing.starts
        if self.waits[key].never:
            return starts.get(key)
        if key not in asked:
            mine = self.standing.mine(key)
            asked |= mine.keys()
            starts |= {} if key in starts else self.standing.timeline.date(mine)
        return self._sooner(key, self.held.get(key), starts.get(key))

    def _sooner(self, key: RunKey, promise: Promise | None, found: Natural | None) -> Natural | None:
        """The natural start, or one that cuts make: of opportunistic work alone after its own notice, else where
        patience does not reach the natural start. A promise by cuts is not put off for a start that comes in reach.
        """
        policy, at, mine = self.state.policy, self.plan.at, self.standing.mine(key)
        by_cuts = promise is not None and promise.is_by_cuts
        notice = int(policy.opportunistic.notice)
        soon = self._still(promise) if promise is not None and by_cuts else at + notice
        cut = None
        if notice and (found is None or found.at > soon):
            cut = self._held(key, self.cuts.opportunistic(key, soon, mine, held=promise is not None))
        patience = soon if by_cuts else at + int(policy.reservations.patience)
        if cut is None and (found is None or found.at > patience):
            cut = self._cut(key, promise, found)
        return found if cut is None else Natural(cut.at, "end", cut.nodes, cut.payers, cut)

    def _cut(self, key: RunKey, promise: Promise | None, natural: Natural | None) -> CutDate | None:
        """A start that cuts make before the natural one, and after who may be cut has been told for ``notice``."""
        policy, at = self.state.policy.reservations, self.plan.at
        earliest = noticed(policy, at)
        if promise is not None:
            soon = bool(self.state.policy.opportunistic.notice) and promise.takes_opportunistic_alone(self.state.runs)
            told = promise.is_by_cuts and not soon
            earliest = self._still(promise) if told else max(promise.start, earliest)
        if natural is not None and natural.at <= earliest:
            return None
        horizon, mine = at + int(policy.horizon) if natural is None else natural.at - 1, self.standing.mine(key)
        found = self._weighed_again(key, promise, earliest, horizon)
        if found is None:
            found = self.cuts.date(key, earliest, horizon, mine, held=promise is not None)
        if found is not None and found.at < noticed(policy, at) and promise is not None and found.draws(promise.warned):
            self.cuts.drop(found)  # who is told now has the same notice as any other
            found = self.cuts.date(key, noticed(policy, at), horizon, mine, held=True)
        cut = self._held(key, found)
        if natural is not None:
            self.cuts.why_not.pop(key, None)
        return cut

    def _weighed_again(self, key: RunKey, promise: Promise | None, earliest: int, horizon: int) -> CutDate | None:
        """In a still world, in which others alone were given places, the start at its time that draws whom it named."""
        if promise is None or not self._is_still or self.touched.changes(promise) or earliest != promise.start:
            return None
        mine, until = self.standing.mine(key), min(horizon, promise.start)
        return self.cuts.date(key, earliest, until, mine, held=True, warned=promise.warned)

    def _still(self, promise: Promise) -> int:
        """Time of it as it stands; where it has come and this cycle could not keep it, the next second."""
        return max(promise.start, self.plan.at + 1)

    def _held(self, key: RunKey, cut: CutDate | None) -> CutDate | None:
        """A start that cuts make, with its room held from then on like any other's; None where it has none."""
        timeline = self.standing.timeline
        if cut is None or timeline.is_cut_for(key):
            return cut
        gone = timeline.release(cut.starts.keys())
        if timeline.cut(cut.at, cut.starts, self.standing.mine(key), cut.leases, is_free=not cut.conflicts):
            for each in gone:  # of a gang all have the date that cuts make
                self.standing.starts.pop(each.key, None)
            return cut
        timeline.restore(gone)
        self.cuts.drop(cut)
        return None

    def _unfunded(
        self, key: RunKey, promise: Promise | None, found: Natural | None, *, is_held: bool = True
    ) -> Natural | None:
        """A start without money, where the Policy lets it, room is there, and it is earlier than what was found.

        Only what ``is_held`` starts so.
        """
        at, policy = self.plan.at, self.state.policy.reservations
        earliest = noticed(policy, at) if promise is None else self._still(promise)
        if found is not None and found.at <= earliest:
            return found
        start = self.cuts.unfunded(key, earliest, self.standing.mine(key))
        if is_held and (start := self._held(key, start)):
            self.cuts.why_not.pop(key, None)
            return Natural(start.at, "end", start.nodes, start.payers, start)
        if found is None and start is not None:
            self.cuts.why_not[key] = NOT_HELD
        elif found is None and not self.waits[key].never:
            self.cuts.why_not.setdefault(key, NOTHING_KNOWN)
        return found

    def _standing(self, exact: Collection[RunKey]) -> Standing:
        """Starts that are known to come, with what is promised; ``exact``: what may be dated on it."""
        at = self.plan.at
        horizon = at + int(self.state.policy.reservations.horizon)
        times = [
            Known(noticed(self.state.policy.reservations, at), "notice"),
            *(Known(promise.start, "promise") for promise in self.held.values()),
            *known_times(self.state, estimates(self.world, self.state)),
        ]
        known = [each for each in times if at < each.at <= horizon]
        self.later = Later.of(self.world, self.state, exact)
        effort = self.state.effort
        most = effort.moments(len(self.plan.waits), len(self.state.fleet.names), effort.dating.promising)
        timeline = Timeline.of(self.later, known, most)
        standing = Standing(timeline, self.state, self.held, self.waits.keys(), expected(self.world))
        standing.hold(self._by_age(self.held))
        return standing

    def _move_up(self, promised: Iterable[RunKey]) -> None:
        """Hold at an earlier time what has one beside all that stands, the oldest first: else promises made
        after it have that time. None where an older one is to be dated anew: it could need that, too.

        Where many wait, who asks what found none is not looked at, and so many others alone.
        """
        standing, timeline = self.standing, self.standing.timeline
        many, tried, none = not self.state.effort.few(len(self.plan.waits)), 0, dict[object, int]()
        by_cuts = [key for key in promised if not (key in standing.starts or self._is_over(self.held[key]))]
        told = [key for key in by_cuts if not timeline.is_cut_for(key) and standing.by_cuts(key)]
        for key in promised:
            start = standing.starts.get(key)
            if start is None and key in by_cuts and not timeline.is_cut_for(key):
                break
            if start is None or start.at <= none.get(alike := self._alike(key) if many else key, 0):
                continue
            if not standing.sooner(key, start.at):
                none[alike] = start.at
            tried += 1
            if many and tried >= self.state.effort.dating.sooner:
                break
        for key in told:
            timeline.uncut(key)

    def _alike(self, key: RunKey) -> object:
        """The same of runs that look for the same room and money for as long, where many wait."""
        problem, span = self.standing.timeline.moments[0].problem, self.standing.mine(key)[key]
        types = tuple(problem.candidates[way].type for way in problem.ways.get(key, ()))
        return (types, span) if types and not self.state.runs[key].gang else key
