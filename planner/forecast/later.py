"""The state at a time to come, told from that of now by what ends in between (spec §5).

A known time's world differs from today's by runs that ended and by the clock alone. So nodes, runs and Budgets are not
read again: claims that ended go, hours are charged on, and the pass is asked anew.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from jobtree.api.kinds.lease import ClosureReason
from jobtree.world.plan import Closure
from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import estimates, foreseen
from planner.state.closing import ends_of
from planner.state.derive import state_of
from planner.state.replay import Fates, Past, Turn, replay, turned
from planner.state.state import State
from policies.caps.book import book_of
from policies.funding.classes import derive
from policies.funding.frozen import is_frozen, kept
from policies.funding.ledger import spent
from policies.inputs.claims import LeaseKey, RunKey, open_claims
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import limit_ends


class _Ends(NamedTuple):
    """When a run ends, Unix seconds, and why."""

    ended: int
    reason: ClosureReason


@dataclass(frozen=True)
class Later:
    """``world``: as it is foreseen, for what this does not tell; ``now``: its state; ``estimated``: ends, Unix seconds.

    ``waiting``: who may start; None where every time is to be derived from the world anew; ``replayed``: how leases
    turn until a time, once it has been asked.
    """

    world: Snapshot
    now: State
    estimated: Mapping[RunKey, int]
    waiting: Sequence[RunRow] | None = None
    replayed: list[tuple[int, dict[LeaseKey, list[Turn]]]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, world: Snapshot, state: State, dated: Collection[RunKey]) -> "Later":
        """Of a world that has this state now; where many wait, with those to be ``dated`` and their gangs alone."""
        gangs = {(key[0], state.runs[key].gang) for key in dated if state.runs[key].gang}
        waiting = [run for run in state.pending if run.key in dated or (run.namespace, run.gang) in gangs]
        few = state.effort.few(len(state.pending))
        return cls(foreseen(world, state), state, estimates(world, state), None if few else waiting)

    def at(self, at: int) -> State:
        """The state at ``at``; what makes the time known changes the world, so all that is there may be recalled."""
        if self.waiting is None or self.now.policy.maintenance:
            return replace(state_of(self.world, at), changed=at)
        now = self.now
        money = replace(now.money, at=at)
        book = book_of(money)
        ending = {key: each for key, each in self._endings.items() if each.ended <= at}
        closures = self._closures(ending)
        over = ends_of([*now.closures, *closures])
        turns = self._turns(at)
        leases = [turned(lease, turns[lease.key]) if lease.key in turns else lease for lease in now.leases]
        charged = spent(book, leases, money.balances, now.node_site, over)
        still = {lease.key: lease for lease in leases if not lease.closed and lease.key not in over}
        held = {key: [still[each.key] for each in mine] for key, mine in now.held.items() if key not in ending}
        until = limit_ends(now.runs, held)
        frozen = [x for x in still.values() if is_frozen(x) and x.budget in money.quarantined]
        taken = kept(book, charged, frozen, now.node_site, until)
        open_leases = [lease for mine in held.values() for lease in mine]
        funded = derive(
            book, open_claims(open_leases, money, until, self._malleable), open_leases, taken, now.node_site
        )
        return replace(
            now, at=at, book=book, leases=leases, held=held, closures=[*now.closures, *closures], spent=charged,
            taken=taken, funded=funded, turns={}, changed=at, pending=[*self.waiting], blocked={}, rooms=[],
        )  # fmt: skip

    def _turns(self, at: int) -> dict[LeaseKey, list[Turn]]:
        """How leases turn until a time: the same seconds are replayed once for all times."""
        now = self.now
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
    def _malleable(self) -> frozenset[RunKey]:
        now = self.now
        return frozenset(key for key in now.held if key in now.runs and now.runs[key].malleable)

    @cached_property
    def _endings(self) -> dict[RunKey, _Ends]:
        """When everything ends that is known to, and why."""
        found: dict[RunKey, _Ends] = {}
        for key, limit in limit_ends(self.now.runs, self.now.held).items():
            told = self.estimated.get(key)
            if limit is not None and (told is None or limit < told):
                found[key] = _Ends(limit, "TimeLimit")
            elif told is not None:
                found[key] = _Ends(told, "Completed")
        return found
