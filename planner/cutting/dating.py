"""Dates of starts that cuts make: when, what goes, and each run's chance to be drawn (spec §5, §6).

    date = max(now + notice, end of the protection of enough victims), or the first known time after it with money

Runs are dated one after another: what one counts on is cut for it, so that no victim counts for two.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final

from jobtree.api.kinds.reservation import Conflict
from jobtree.api.values.counted import counted
from planner.cutting.least import Weighing
from planner.cutting.odds import Turn, Turns, odds
from planner.cutting.places import Lost, Place
from planner.cutting.pools import Pools
from planner.cutting.told import CutDate, Freed, Kept, Lasting, completed, conflicts, one_set, remedies
from planner.cutting.trial import Members, Trial
from planner.cutting.victims import Spared, Victim, open_at, protected, protected_until
from planner.filling.filler import Filler, Settled
from planner.filling.purses import Purses, payers_of
from planner.placement.draft import Draft
from planner.placement.place import Start
from planner.state.state import State
from policies.caps.book import is_timeless, windows_ease
from policies.cuts.order import Harm
from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.promises.holds import FOR_GOOD

UNPAID: Final = "its budgets can pay for it at no known time"
UNPAID_THEN: Final = f"{UNPAID} at which cuts could make room for it"
_Found = tuple[int, Weighing, Harm]


@dataclass
class CutDates:
    """``state``: of the world as the plan leaves it, ``later``: at a known time (Unix seconds); ``waiting``: who may be
    dated; ``kept``: what has its slots sooner or later without cuts; ``paid``: the first time between two at which
    money that is known to come pays for some runs beside all that is promised; ``promised``: nodes of promises that
    stand, by run; ``why_not``: by run, why no cuts would start it.

    A gang whose runs start together has one date: that of the first of it that is asked for.
    """

    state: State
    later: Callable[[int], State]
    waiting: Callable[[], Sequence[RunRow]]
    kept: Callable[[], Iterable[Kept]]
    paid: Callable[[Collection[RunKey], int, int], int | None]
    promised: Mapping[RunKey, tuple[str, ...]]
    why_not: dict[RunKey, str] = field(default_factory=dict)
    _known: dict[RunKey, CutDate] = field(default_factory=dict)
    _keeping: dict[tuple[RunKey, int], tuple[Kept, list[Lost]]] = field(default_factory=dict)
    _then: dict[int, Trial] = field(default_factory=dict)
    _freed: list[Freed] = field(default_factory=list)
    _tried: int = 0
    _work: int = 0
    _odds: int = field(init=False)

    def __post_init__(self) -> None:
        limits = self.state.effort.odds
        self._odds = limits.columns if self.state.few else limits.of_many

    @cached_property
    def _trial(self) -> Trial:
        return Trial.of(self.state.asking([*self.waiting()]), self.promised)

    @cached_property
    def _protected(self) -> list[Victim]:
        return protected(self.state)

    @cached_property
    def _turns(self) -> Turns:
        courses = self.state.effort.odds.courses if self.state.few else 1
        return Turns(self._trial, partial(self._victims, Spared(), self.state.at), courses)

    @property
    def is_spent(self) -> bool:
        """Has this cycle no work left for dates that cuts make?"""
        return self._work >= self.state.effort.cutting.work

    def date(
        self,
        key: RunKey,
        earliest: int,
        horizon: int,
        together: Lasting,
        *,
        held: bool = False,
        warned: Collection[RunKey] | None = None,
    ) -> CutDate | None:
        """Date a start that cuts let happen: ``earliest`` or, where victims are protected, up to ``horizon`` (Unix s).

        ``together``: who may start with it, and how long each lasts, in seconds; ``held``: it has a promise, and is
        weighed however many were before it; ``warned``: nobody else is drawn, if given.
        None where money or its own owner's runs are in the way, or it would not fit whatever went.
        """
        members = self._asked(key, held=held)
        if members is None:
            return self._known.get(key)
        is_paid = self._trial.is_funded(members)
        paid = earliest if is_paid else self.paid(self._keys(members), earliest, horizon)
        if paid is None:
            self.why_not[key] = UNPAID
            return None
        self._tried += not held
        spared, earliest = Spared(self._trial.owners(members), warned), paid
        times = [
            time
            for time in protected_until(self._protected, spared.owners, self.state.protection, self.state.at)
            if earliest < time <= horizon
        ]
        self._keep(together, earliest, earliest)
        found = self._first(members, spared, [earliest])
        if found is None and times:
            self._keep(together, times[0], times[-1])
            found = self._first(members, spared, times)
        if found is not None:
            found = self._allowed(key, members, spared, found, together, horizon)
            if found is None or not (is_paid or self.paid(self._keys(members), found[0], found[0])):
                self.why_not[key] = UNPAID_THEN
                return None
        if found is None:
            most = self.state.policy.cuts.max_gpus_per_cycle
            if most is not None and self._is_enough(members, spared.owners):
                self.why_not[key] = f"more than {counted(most, 'GPU')} would have to go at once (cuts.maxGPUsPerCycle)"
            elif self._is_enough(members, ()):
                owner = self.state.runs[key].owner
                self.why_not[key] = f"only runs of its own owner {owner} are in the way, and when they end is not known"
            return None
        victims = partial(self._victims, spared, found[0])
        victims()  # the room of that time
        keys, date = self._keys(members), self._settled(members, *found, victims, is_paid=is_paid)
        if date is None or date.at == found[0]:
            return date
        if self._pays(key, date.at) and (is_paid or self.paid(keys, date.at, date.at)):
            return date
        self.drop(date)  # it waits for what is cut for others, and by then they have its money
        self.why_not[key] = UNPAID_THEN
        return None

    def stand(
        self, at: int, starts: Mapping[RunKey, Settled], leases: Iterable[LeaseRow], told: Iterable[Conflict]
    ) -> None:
        """Count starts as they were ``told``: slots and money are theirs, what goes for them there nobody else's."""
        trial, named = self._trial, {each.run: float(each.kill_probability) for each in told}
        members = tuple(each for key in starts if (each := trial.funded(key)) is not None)
        needs, owners = tuple(trial.needs(members)), trial.owners(members)
        chunks = [chunk for each in starts.values() for piece in each.pieces for chunk in piece.chunks]
        over = {key for key, end in self._limits.items() if end <= at}
        cut, kept = trial.slots.leave(chunks, leases, over)
        leases = tuple(trial.slots.leases_of(cut))
        self._freed.append(Freed.of(at, leases, sum(lease.gpus for lease in leases)))
        stood = tuple(trial.spend(starts))

        def victims() -> list[Victim]:
            return [each for each in self._victims(Spared(owners), at) if "/".join(each.run) in named]

        is_open = any(0 < chance < 1 for chance in named.values())
        self._turns.taken.append(Turn(members, needs, victims, is_open, cut, kept=tuple(kept), stood=stood))

    def can_pay(self, key: RunKey, at: int) -> bool:
        """Is there money for a run, and those that start with it, at a time, beside all that stands?"""
        members = self._trial.members(key, self.state.holds.promised.all)
        if members is None or not (self._trial.is_funded(members) or self.paid(self._keys(members), at, at)):
            return False
        return self._pays(key, at)

    def _keys(self, members: Members) -> list[RunKey]:
        return [self._trial.key([member]) for member in members]

    def drop(self, date: CutDate) -> None:
        """Take a date back: nothing is cut for it."""
        trial = self._trial
        trial.take_back([found for key, found in date.starts.items() if key in self._known])
        trial.undo({lease.key: trial.cut[lease.key] for lease in date.leases})
        for key in date.starts:
            self._known.pop(key, None)
        self._turns.drop(date.starts.values())
        self._freed = [each for each in self._freed if each.leases is not date.leases]

    def _keep(self, together: Lasting, first: int, last: int) -> None:
        """Leave slots to who has them without cuts while runs that start between two times may last."""
        spans = [span for span in together.values() if span is not None]
        end = last + max(spans) if len(spans) == len(together) else None
        wanted = {
            (each.key, each.at): each
            for each in self.kept()
            if each.key not in together and (end is None or each.at < end) and (each.end is None or each.end > first)
        }
        for number in self._keeping.keys() - wanted.keys():
            self._trial.slots.let_go(self._keeping.pop(number)[1])
        for number, each in wanted.items():
            if number not in self._keeping:
                self._keeping[number] = each, self._trial.slots.keep(each.chunks)

    def _victims(self, spared: Spared, at: int, *, opportunistic: bool = False) -> list[Victim]:
        """Victims at a time; what ends by its limit until then is no victim: its slots are free."""
        trial, over = self._trial, {key for key, end in self._limits.items() if end <= at}
        leases = frozenset(lease.key for key in over for lease in self.state.held[key] if lease.key not in trial.cut)
        if leases != trial.slots.over:
            for _, lost in self._keeping.values():
                trial.slots.let_go(lost)
            trial.slots.let_end(leases)
            self._keeping = {
                number: (each, trial.slots.keep(each.chunks)) for number, (each, _) in self._keeping.items()
            }
        there = protected(self.state, opportunistic=True) if opportunistic else self._protected
        victims = open_at(there, spared.owners, self.state.protection, at)
        told = spared.warned
        victims = [victim for victim in victims if victim.run not in over]
        return victims if told is None else [each if each.run in told else each.undrawn for each in victims]

    @cached_property
    def _limits(self) -> dict[RunKey, int]:
        """Ends of runs by time limits, Unix seconds."""
        return {key: end for key, end in self.state.limits.items() if end is not None}

    def opportunistic(self, key: RunKey, at: int, together: Lasting, *, held: bool = False) -> CutDate | None:
        """A start for which opportunistic work gives way at ``at`` (Unix seconds); None where that is not enough."""
        members = self._asked(key, held=held)
        if members is None:
            return self._known.get(key)
        if not self._trial.is_funded(members):
            return None
        self._keep(together, at, at)
        victims = partial(self._victims, Spared(), at, opportunistic=True)
        weighing = self._trial.weighing(self._trial.needs(members), victims())
        harm = self._least(weighing)
        self._work += len(self.state.fleet.names) + weighing.work
        if harm is None or not harm.gpus or not self._pays(key, at):
            return None
        return self._settled(members, at, weighing, harm, victims)

    def _asked(self, key: RunKey, *, held: bool) -> Members | None:
        """Candidates that would start for a run; None where nothing is cut for it, or its gang's date is known."""
        if key in self._known or self.state.policy.mode == "noCuts" or not self.state.held:
            return None
        if self.is_spent or (self._tried >= self.state.effort.cutting.dated and not held):
            return None
        self._work += len(self.state.fleet.names)
        return self._trial.members(key, self.state.holds.promised.all)

    def _settled(
        self,
        members: Members,
        at: int,
        weighing: Weighing,
        harm: Harm,
        victims: Callable[[], list[Victim]],
        *,
        is_paid: bool = True,
    ) -> CutDate | None:
        """Cut the least for a start, and take its room; None where it does not start all the same.

        ``victims``: who may be cut at its time, be it for others; ``is_paid``: there is money already; else it comes by
        then.
        """
        trial = self._trial
        pools = Pools(weighing, harm)
        limits = replace(self.state.effort.odds, columns=max(0, self._odds))
        chances = odds(pools, limits, simulated=self.state.few) if harm.lottery else {}
        self._odds -= 0 if self.state.few else pools.solved * len(weighing.model.cost)
        turn = Turn(members, tuple(weighing.needs), victims, any(0 < each < 1 for each in chances.values()), {})
        chances = self._turns.chances(turn, chances)
        near = frozenset[int]().union(*(trial.promised.get(trial.key([each]), ()) for each in members))
        lost = completed(pools, near) if self._odds > 0 else one_set(pools)
        chosen = weighing.chosen(harm, pools.numbers(lost))
        self._work += weighing.work
        if chosen is None:
            return None
        most = trial.most_cut(weighing, harm)
        cut = trial.take(weighing, chosen, "", {})
        starts = trial.start(members, is_paid=is_paid)
        if not starts:
            trial.undo(cut)
            return None
        nodes = {self.state.fleet.names[node] for settled in starts for node in settled.nodes}
        others = [other for other in self._freed if not other.nodes.isdisjoint(nodes)]
        at = max([at, *(other.at for other in others)])
        named = {each.run: each for each in conflicts(weighing, chosen, chances)}
        counted_on = {run for other in others for run in other.runs} - named.keys()
        named |= {run: Conflict(run=run, kill_probability=0) for run in counted_on}
        over = {"/".join(run) for run, end in self._limits.items() if end <= at}
        leases = tuple(lease for lease in trial.slots.leases_of(cut) if "/".join(lease.run_key) not in over)
        self._freed.append(Freed.of(at, leases, most))
        self._turns.taken.append(turn._replace(cut=cut, starts=tuple(starts)))
        told = (
            tuple(named[run] for run in sorted(named.keys() - over)),
            tuple(each for each in remedies(weighing, chosen, chances, victims()) if each.run not in over),
        )
        together, then = {trial.key([settled.start.candidate]): settled for settled in starts}, self._then.get(at)
        then = then if is_paid else self._trial_at(at)
        for settled in starts:
            run = trial.key([settled.start.candidate])
            payers = [] if then is None else then.payers(run, settled.pieces)
            place = Place.of(self.state, settled.nodes, payers or payers_of(settled.paid))
            self._known[run] = CutDate(at, *place, *told, together, leases)
        return self._known.get(trial.key(members))

    def unfunded(self, key: RunKey, earliest: int, together: Lasting) -> CutDate | None:
        """A start without money at ``earliest``, where the room is there now and the Policy lets it."""
        if self.state.policy.reservations.on_budget_shortfall != "startUnfunded":
            return None
        self._victims(Spared(), self.state.at)  # the room of now
        self._keep(together, earliest, earliest)
        row = self.state.runs[key].waiting()
        problem = self.state.asking([row]).letting([key]).problem()
        filler = Filler(problem, self._trial.filler.room, Purses.after(problem, Draft()))
        for start in (Start(candidate, 0) for candidate in problem.ways.get(key, ())):
            kind = problem.type_of(start.candidate)
            if not kind.unfunded:
                continue
            if self.state.policy.maintenance:  # sites of now do not tell apart what is shut then
                then = self._trial_at(earliest).state
                found = filler.start_on(start, then.fleet.nodes_on(then.sites_for(row)))
            else:
                found = filler.try_start(kind, start)
            if found is not None:
                filler.take_back([found])  # it is kept its slots as others that need no cuts
                nodes = tuple(self.state.fleet.names[node] for node in found.nodes)
                return CutDate(earliest, nodes, (), (), (), {key: found._replace(start=Start(-1, 0))}, ())
        return None

    def _first(self, members: Members, spared: Spared, times: list[int]) -> _Found | None:
        """The first time at which enough may go; who may go at one time may at every later one."""
        low, high, best = 0, len(times) - 1, None
        while low <= high:
            middle = low if best is None and low == 0 and high == len(times) - 1 else (low + high) // 2
            weighing = self._trial.weighing(self._trial.needs(members), self._victims(spared, times[middle]))
            harm = self._least(weighing)
            self._work += len(self.state.fleet.names) + weighing.work
            if harm is None:
                low = middle + 1
            else:
                best, high = (times[middle], weighing, harm), middle - 1
        return best

    def _allowed(
        self, key: RunKey, members: Members, spared: Spared, found: _Found, together: Lasting, horizon: int
    ) -> _Found | None:
        """The same at the first time from then on at which it can be paid, and one cycle may cut as much beside what
        goes for others then; None where that is at no known time.
        """
        at, eases = found[0], sorted(windows_ease(self.state.book))
        while at <= max(horizon, found[0]):
            is_paid, later = self._pays(key, at), next((time for time in eases if time > at), horizon + 1)
            if is_paid and at > found[0]:
                self._keep(together, at, at)
            now = found if at == found[0] else self._first(members, spared, [at]) if is_paid else None
            if is_paid and now is not None and (later := self._apart(now)) <= at:
                return now
            at = later
        return None

    def _apart(self, found: _Found) -> int:
        """The first time from its own on at which no cycle has to cut more for it and others than it may.

        As far apart as `reservations.bucket`: what is closer may be due in the same cycle.
        """
        most, bucket = self.state.policy.cuts.max_gpus_per_cycle, int(self.state.policy.reservations.bucket)
        near = [each for each in self._freed if each.most and abs(each.at - found[0]) < bucket]
        if most is None or not near or sum(each.most for each in near) + self._trial.most_cut(*found[1:]) <= most:
            return found[0]
        return max(each.at for each in near) + bucket

    def _pays(self, key: RunKey, at: int) -> bool:
        """Can money that is known to be there at a time pay for a run, and those that start with it?"""
        if is_timeless(self.state.book, at):
            return True  # till then claims only end
        then = self._trial_at(at)
        members = then.members(key, self.state.holds.promised.all)
        return members is not None and then.is_funded(members)

    def _trial_at(self, at: int) -> Trial:
        """Trial of the state at a known time."""
        if at not in self._then:
            self._work += len(self.state.fleet.names)
            self._then[at] = Trial.of(self.later(at))
        return self._then[at]

    def _is_enough(self, members: Members, owners: Collection[str]) -> bool:
        """Would it fit if all runs went, of these ``owners`` what may go?"""
        victims = open_at(self._protected, owners, self.state.protection, FOR_GOOD)
        return self._trial.weighing(self._trial.needs(members), victims).least() is not None

    def _least(self, weighing: Weighing) -> Harm | None:
        """The least harm, where one cycle may do as much."""
        harm, most = weighing.least(), self.state.policy.cuts.max_gpus_per_cycle
        if harm is None or most is None:
            return harm
        return harm if harm.gpus <= most and self._trial.most_cut(weighing, harm) <= most else None
