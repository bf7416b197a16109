"""The state at a time to come, told from that of now by what ends in between (spec §5).

A known time's world differs from today's by runs that ended and by the clock alone. So nodes, runs and Budgets are not
read again: claims that ended go, hours are charged on, and the pass is asked anew. Where no cap and no window knows the
clock, what runs on weighs what it weighs now, and runs have the payers that they have now.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from jobtree.api.kinds.lease import ClosureReason
from jobtree.world.plan import Closure
from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import FAR, estimates, foreseen
from planner.placement.room import Room
from planner.state.blocking import block
from planner.state.closing import ends_of
from planner.state.derive import paid_now, state_of
from planner.state.lower import Asked, Waiting
from planner.state.replay import Fates, Past, Turn, replay, turned
from planner.state.state import State
from policies.caps.book import book_of, is_timeless, windows_stay
from policies.caps.cap import CapBook
from policies.funding.classes import Funded, Pass, Sums, still_funded
from policies.funding.frozen import is_frozen
from policies.funding.ledger import Spent
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle import arrays, follow
from policies.lifecycle.endings import Ending
from policies.model.problem import Problem


class _Ends(NamedTuple):
    """When a run ends, Unix seconds, and why."""

    ended: int
    reason: ClosureReason

    @property
    def ending(self) -> Ending:
        """As the cycle that sees it has it."""
        return Ending("Completed" if self.reason == "Completed" else "Failed", self.reason, self.ended, "")


class _Money(NamedTuple):
    """The money at a time to come: caps, ledgers, what is charged, what is taken beside it, and who is funded."""

    book: CapBook
    leases: list[LeaseRow]
    spent: Spent
    taken: Spent
    funded: Funded


@dataclass(frozen=True)
class Later:
    """``world``: the snapshot, ``now``: its state; ``estimated``: ends, Unix seconds.

    ``waiting``: who may start; ``replayed``: how leases turn until a time, once it has been asked; ``counted``: who
    knows how leases turn, if another does; ``lowered``: problems of what waits, by that.
    """

    world: Snapshot
    now: State
    estimated: Mapping[RunKey, int]
    waiting: Sequence[RunRow]
    replayed: list[tuple[int, dict[LeaseKey, list[Turn]]]] = field(default_factory=list, repr=False, compare=False)
    counted: "Later | None" = field(default=None, repr=False, compare=False)
    lowered: list[tuple[Waiting, Problem]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, world: Snapshot, state: State, dated: Collection[RunKey]) -> "Later":
        """Of a world that has this state now; where many wait, with those to be ``dated`` and their gangs alone."""
        waiting = state.pending
        if not state.few:
            gangs = {(key[0], state.runs[key].gang) for key in dated if state.runs[key].gang}
            waiting = [run for run in state.pending if run.key in dated or (run.namespace, run.gang) in gangs]
        return cls(world, state, estimates(world, state), waiting)

    def at(self, at: int) -> State:
        """The state at ``at``; what makes the time known changes the world, so all that is there may be recalled."""
        now = self.now
        if now.policy.maintenance:
            return replace(state_of(self._foreseen, at, told=now.at), changed=at)
        ending = {key: each for key, each in self._endings.items() if each.ended <= at}
        closures = [*now.closures, *self._closures(ending)]
        like_now = is_timeless(now.book, at)
        money = self._like_now(at, ending) if like_now else self._counted_on(at, ending)
        money = money or self._anew(at, ending, closures)
        rows = {} if money.leases is now.leases else {lease.key: lease for lease in money.leases}
        held = {
            key: [rows[each.key] for each in mine] if rows else mine
            for key, mine in now.held.items()
            if key not in ending
        }
        over = now.endings | {key: each.ending for key, each in ending.items()}
        over |= arrays.endings(now.arrays, now.runs, over, at)
        over |= follow.endings(now.runs, over, self._gone, now.held, at)
        done = {key for key, each in over.items() if each.outcome}  # what ended without one waits
        state = replace(
            now, at=at, book=money.book, leases=money.leases, held=held, closures=closures, spent=money.spent,
            taken=money.taken, funded=money.funded, turns={}, changed=at, endings=over, blocked={}, deadlines={},
            pending=[run for run in self.waiting if run.key not in done], rooms=self._rooms(ending),
            asked=now.asked if like_now or windows_stay(now.book, at) else Asked(),
        )  # fmt: skip
        if now.blocked:
            block(state, self._gone)
        return state

    def problem(self, state: State) -> Problem:
        """All that waits at a known time, which has this state: it is lowered once for all times."""
        waiting = state.waiting()
        known = next((each for asked, each in self.lowered if waiting.is_like(asked)), None)
        if known is None:
            known = waiting.lowered_for_later(state.size_by_site())
            self.lowered.append((waiting, known))
        return waiting.beside(known)

    def _rooms(self, ending: Mapping[RunKey, _Ends]) -> list[Room]:
        """What is free then; empty where it has to be counted."""
        now = self.now
        if now.lent or now.holds.part:
            return []
        room = now.room().after((lease for key in ending for lease in now.held[key]), now.runs)
        return [] if room is None else [room]

    def guesses(self, at: int) -> bool:
        """Does anything end until a time by an estimate alone?"""
        return any(each.ended <= at and each.reason == "Completed" for each in self._endings.values())

    @cached_property
    def sure(self) -> "Later":
        """The same where nothing ends by an estimate, but for how claims turn until then: that is asked once."""
        return replace(self, estimated={}, counted=self)

    def _like_now(self, at: int, ending: Mapping[RunKey, _Ends]) -> _Money | None:
        """Where the clock changes nothing but what ends; None where a payer is gone."""
        now, held = self.now, self._still(ending)
        if held is None:
            return None
        book, none = replace(now.book, money=replace(now.money, at=at)), Spent()
        return _Money(book, now.leases, none, none, still_funded(now.funded, book, none, held, ending))

    def _counted_on(self, at: int, ending: Mapping[RunKey, _Ends]) -> _Money | None:
        """Where many wait and windows stay as they are: hours and credits as if none ran out until then.

        Of a cap on these a claim that is funded takes what is left of its run, as far as it is charged or provided for:

            charge per second × min(accountingPeriod + time until then, its run's end, its envelope's end)
        """
        now, held = self.now, self._still(ending)
        if held is None or now.few or not windows_stay(now.book, at):
            return None
        book = book_of(replace(now.money, at=at))
        still = still_funded(now.funded, book, now.taken, held, ending)
        used = [old if cap.ahead else new for cap, old, new in zip(book.caps, self._charged, still.used, strict=True)]
        most = int(now.policy.accounting_period) + at - now.at
        for second, end, key in self._burning:
            lasts = min(most, end, ending[key].ended - now.at if key in ending else end)
            for cap, charge in second.items():
                used[cap] += charge * lasts
        return _Money(book, now.leases, now.spent, now.taken, replace(still, outcome=Pass(still.outcome.funded, used)))

    def _still(self, ending: Mapping[RunKey, _Ends]) -> list[LeaseRow] | None:
        """Leases of what does not end; None where the payer of one is gone."""
        held = [lease for key, mine in self.now.held.items() if key not in ending for lease in mine]
        return None if any(is_frozen(lease) for lease in held) else held

    @cached_property
    def _charged(self) -> list[int]:
        """Per cap, what is taken now before any claim is asked."""
        return self.now.taken.used(len(self.now.book.caps))

    @cached_property
    def _burning(self) -> list[tuple[Sums, int, RunKey]]:
        """What is funded now and charged by the second: that, the seconds left of its run and window, and its run."""
        now, money = self.now, self.now.money
        limits = now.limits
        found = []
        for part, funded in zip(now.funded.parts, now.funded.outcome.funded, strict=True):
            if funded and part.second:
                key = part.leases[0].run_key
                ends = (limits.get(key), money.envelopes[part.place.envelope].end)
                found.append((part.second, min([FAR, *(end for end in ends if end is not None)]) - now.at, key))
        return found

    def _anew(self, at: int, ending: Mapping[RunKey, _Ends], closures: list[Closure]) -> _Money:
        """Where the clock matters: hours are charged until then, and every claim is weighed again."""
        now, over, turns = self.now, ends_of(closures), self._turns(at)
        book = book_of(replace(now.money, at=at))
        leases = [turned(lease, turns[lease.key]) if lease.key in turns else lease for lease in now.leases]
        still = {lease.key: lease for lease in leases if not lease.closed and lease.key not in over}
        held = {key: [still[each.key] for each in mine] for key, mine in now.held.items() if key not in ending}
        charged, taken, funded_of = paid_now(book, now.runs, leases, held, over, now.node_site)
        return _Money(book, leases, charged, taken, funded_of([lease for mine in held.values() for lease in mine]))

    def _turns(self, at: int) -> dict[LeaseKey, list[Turn]]:
        """How leases turn until a time: the same seconds are replayed once for all times, and not where many wait."""
        if self.counted is not None:
            return self.counted._turns(at)
        now = self.now
        if not now.few:
            return {}
        if not self.replayed or self.replayed[-1][0] < at:
            until = max(at, now.at + int(now.policy.reservations.horizon))
            closures = self._closures(self._endings)
            limits = ends_of([each for each in closures if each.reason == "TimeLimit"])
            over = ends_of([*now.closures, *closures])
            fates = Fates(limits, {key: end for key, end in over.items() if key not in limits}, self._malleable)
            turns = replay(Past(now.at, now.money), now.leases, fates, now.node_site, until, charges=True)
            self.replayed.append((until, turns))
        _, turns = self.replayed[-1]
        until_then = {key: [turn for turn in mine if turn.since < at] for key, mine in turns.items()}
        return {key: mine for key, mine in until_then.items() if mine}

    def _closures(self, ending: Mapping[RunKey, _Ends]) -> list[Closure]:
        return [
            Closure(namespace=lease.namespace, name=lease.name, ended=end, reason=reason)
            for key, (end, reason) in ending.items()
            for lease in self.now.held[key]
        ]

    @cached_property
    def _foreseen(self) -> Snapshot:
        return foreseen(self.world, self.estimated)

    @cached_property
    def _gone(self) -> dict[RunKey, str]:
        """Outcomes of upstreams that are there no more."""
        return follow.gone(self.world.tables["leases"], self.now.runs, self.now.unread.runs)

    @cached_property
    def _malleable(self) -> frozenset[RunKey]:
        now = self.now
        return frozenset(key for key in now.held if key in now.runs and now.runs[key].malleable)

    @cached_property
    def _endings(self) -> dict[RunKey, _Ends]:
        """When everything ends that is known to, and why."""
        found: dict[RunKey, _Ends] = {}
        for key, limit in self.now.limits.items():
            told = self.estimated.get(key)
            if limit is not None and (told is None or limit < told):
                found[key] = _Ends(limit, "TimeLimit")
            elif told is not None:
                found[key] = _Ends(told, "Completed")
        return found
