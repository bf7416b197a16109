"""The seconds since the last cycle, replayed: who was funded when (spec §3.6).

Between two cycles a class changes at known events, each at its own second:

    a cap on hours or credits is reached    the first second that what is charged now would overdraw:
                                            t + ⌊(limit − spent) / charge per second⌋
    a window opens or closes                start, end
    a loan has aged                         admission + lending.maxDuration
    a run's time limit                      start + limit

At such a second the pass over claims (`funding.classes`) is asked again, under the Budgets as the last cycle saw them;
what it says holds until the next event. Envelopes that share no cap have nothing to do with each other: each group of
those that do has a clock of its own, and where nothing happens nothing is computed.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from jobtree.api.kinds.lease import FundingClass
from jobtree.world.naming.named import GONE_PAYER
from planner.solver.parts import together
from policies.caps import uses
from policies.caps.book import book_of
from policies.caps.cap import CapBook
from policies.caps.scopes import below
from policies.funding.classes import classes_of, honour, parts_of
from policies.funding.frozen import is_frozen, kept
from policies.funding.ledger import Spent, lane_of, second_of, spent
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow, RunKey, on_loan, open_claims
from policies.inputs.money import Money


class Said(NamedTuple):
    """Word of a pass on a lease. ``rate``: millicredits per GPU-hour, 0 where it is unfunded."""

    funding_class: FundingClass
    rate: int


class Turn(NamedTuple):
    """A lease's class and rate from the second ``since`` on."""

    since: int
    said: Said


@dataclass(frozen=True)
class Past:
    """The last cycle: its time, and the money as it saw it."""

    since: int
    money: Money


@dataclass(frozen=True)
class Fates:
    """Ends of open leases by now. ``limits``: the second at which a time limit ended a lease.

    ``ends``: likewise, of all others that ended. They are charged no more from then on, and hold their quota until the
    cycle that sees it: nobody else could have known.
    """

    limits: Mapping[LeaseKey, int]
    ends: Mapping[LeaseKey, int]
    malleable: frozenset[RunKey]


def replay(
    past: Past, leases: Iterable[LeaseRow], fates: Fates, sites: dict[str, int], at: int, *, charges: bool = False
) -> dict[LeaseKey, list[Turn]]:
    """Find how open leases turned in the seconds between ``past.since`` and ``at``. ``leases``: all, closed ones too.

    ``charges``: only those that anything on hours or credits may hang on.
    """
    book = book_of(past.money)
    held: dict[int, list[LeaseRow]] = {}
    timed: dict[int, list[LeaseRow]] = {}
    payers_gone: list[LeaseRow] = []
    for each in leases:
        lease = each.under(past.money)
        if lease.envelope < 0:
            payers_gone += [lease] if lease.budget else []
            continue
        if not lease.closed and lease.start <= past.since:
            held.setdefault(lease.envelope, []).append(lease)
        if book.time_caps(lease.envelope):
            timed.setdefault(lease.envelope, []).append(lease)
    found: dict[LeaseKey, list[Turn]] = {}
    for group in groups(past.money, book):
        mine = [lease for envelope in group for lease in held.get(envelope, ())]
        if mine and not (charges and not any(book.time_caps(envelope) for envelope in group)):
            beneath = [lease for lease in payers_gone if _is_looked_at(past.money, group, lease)]
            charged = [*(lease for envelope in group for lease in timed.get(envelope, ())), *beneath]
            balances = [each for payer in (*group, GONE_PAYER) for each in past.money.balances_of.get(payer, ())]
            still = [lease for lease in beneath if is_frozen(lease) and lease.start <= past.since]
            clock = _Clock(past, fates, sites, at, book, group, mine, still)
            found.update(clock.run(spent(book, charged, balances, sites, {}).cap))
    return found


def groups(money: Money, book: CapBook) -> list[list[int]]:
    """Envelopes that share caps, directly or through others, whatever windows are open; in envelope order."""
    tied = [cap.pool.envelopes for cap in book.caps]
    tied += [(i, *below(money, i)) for i, envelope in enumerate(money.envelopes) if envelope.subtree]
    tied += [uses.members(money, use) for use in money.uses]
    return together(tied, len(money.envelopes))


def _is_looked_at(money: Money, group: Sequence[int], lease: LeaseRow) -> bool:
    """Is a payer that is not there below a subtree of the group, or does a use cap of the group look at its run?"""
    user = money.user_of(lease.run_owner)
    if any(user >> i & 1 and money.uses[i].is_of(lease.flavor) for i in _uses_of(money, group)):
        return True
    envelopes = (money.envelopes[index] for index in group)
    return any(
        each.subtree and each.flavor == lease.flavor and money.family.descends(lease.owner, each.owner)
        for each in envelopes
    )


def _uses_of(money: Money, group: Sequence[int]) -> list[int]:
    """Numbers of the use caps that look at payments of the group; they look at those of no other."""
    return [i for i, use in enumerate(money.uses) if any(use.is_of(money.envelopes[e].flavor) for e in group)]


@dataclass
class _Clock:
    """One group of envelopes with its open leases, while its seconds go by. ``now``: what is said of each lease.

    ``still``: leases of payers that are not there, which stay as they are (`policies.funding.frozen`).
    """

    past: Past
    fates: Fates
    sites: dict[str, int]
    until: int
    book: CapBook
    envelopes: list[int]
    leases: list[LeaseRow]
    still: list[LeaseRow]
    now: dict[LeaseKey, Said] = field(default_factory=dict)
    turns: dict[LeaseKey, list[Turn]] = field(default_factory=dict)
    _unfunded: set[LeaseKey] = field(default_factory=set)

    def run(self, used: dict[int, int]) -> dict[LeaseKey, list[Turn]]:
        """The turns. ``used``: per cap on hours or credits, what is charged before the first second; counted on."""
        self.now = {lease.key: said_of(lease) for lease in self.leases}
        self._unfunded = {key for key, said in self.now.items() if said.funding_class == UNFUNDED}
        at = self.past.since
        asked = self._asked()
        limits, ends = set(self._mine(self.fates.limits)), set(self._mine(self.fates.ends))
        known = sorted(when for when in asked | limits | ends if at < when < self.until)
        burn = self._burn(at)
        while True:
            crossed = min((at + lasts for lasts in self._lasting(used, burn)), default=self.until)
            place = bisect_right(known, at)
            then = min(crossed, known[place] if place < len(known) else self.until)
            if then >= self.until:
                return self.turns
            for cap, charge in burn.items():
                used[cap] = used.get(cap, 0) + charge * (then - at)
            at = then
            if at == crossed or at in asked or (at in limits and self._wanting(at)):
                self._ask(at, used)
                burn = self._burn(at)
            elif self.still:
                burn = self._burn(at)
            else:
                self._let_go(burn, at)

    def _asked(self) -> set[int]:
        """Seconds at which the pass is asked whatever was charged: windows, and loans that have aged."""
        money = self.past.money
        admitted: dict[tuple[RunKey, int], int] = {}
        for lease in self.leases:
            if on_loan(money, lease):
                claim = (lease.run_key, lease.envelope)
                admitted[claim] = min(lease.start, admitted.get(claim, lease.start))
        return {
            *(when for window in self._windows(scopes=False) for when in window if when is not None),
            *(start + money.envelopes[envelope].lending_duration for (_, envelope), start in admitted.items()),
        }

    def _windows(self, *, scopes: bool) -> list[tuple[int | None, int | None]]:
        """Windows of envelopes and use caps; of ``scopes`` alone, which look at others' payments while open."""
        money = self.past.money
        mine = [each for index in self.envelopes if (each := money.envelopes[index]).subtree or not scopes]
        looking = [money.uses[index] for index in _uses_of(money, self.envelopes)]
        return [*((each.start, each.end) for each in mine), *((use.start, use.end) for use in looking)]

    def _mine(self, ends: Mapping[LeaseKey, int]) -> Iterator[int]:
        return (ends[lease.key] for lease in self.leases if lease.key in ends)

    def _lasting(self, used: Mapping[int, int], burn: Mapping[int, int]) -> Iterator[int]:
        """Seconds for which caps bear what they are charged per second.

        One that is overdrawn already was edited, and nobody knows when: that takes effect at the cycle that sees it.
        """
        for cap, charge in burn.items():
            left = self.book.caps[cap].limit - used.get(cap, 0)
            if left >= 0:
                yield max(1, left // charge)

    def _there(self, at: int, leases: Iterable[LeaseRow]) -> list[LeaseRow]:
        """Those that hold their quota in the second ``at``."""
        limits = self.fates.limits
        return [lease for lease in leases if limits.get(lease.key, self.until) > at]

    def _wanting(self, at: int) -> bool:
        """Could anybody be funded again where a run ended?"""
        return any(self.fates.limits.get(key, self.until) > at for key in self._unfunded)

    def _burn(self, at: int) -> dict[int, int]:
        """Charges of the second ``at`` to each cap on hours or credits."""
        found: dict[int, int] = {}
        for lease in self._there(at, self.leases):
            said = self.now[lease.key]
            if said.funding_class != UNFUNDED and not self._over(lease, at):
                for cap, charge in self._second(lease, at, said.rate):
                    found[cap] = found.get(cap, 0) + charge
        for cap, charge in self._kept(at, {}).cap.items():
            if self.book.caps[cap].ahead and charge:
                found[cap] = found.get(cap, 0) + charge
        return found

    def _let_go(self, burn: dict[int, int], at: int) -> None:
        """Take out of ``burn`` what is charged no more from ``at`` on, as leases end: then nothing else changes."""
        for lease in self._ending.get(at, ()):
            said = self.now[lease.key]
            for cap, charge in self._second(lease, at, said.rate) if said.funding_class != UNFUNDED else ():
                burn[cap] -= charge
                if not burn[cap]:
                    del burn[cap]

    @cached_property
    def _ending(self) -> dict[int, list[LeaseRow]]:
        """Leases by the second from which on they are charged no more."""
        found: dict[int, list[LeaseRow]] = {}
        for lease in self.leases:
            ends = (each[lease.key] for each in (self.fates.limits, self.fates.ends) if lease.key in each)
            if (end := min(ends, default=None)) is not None:
                found.setdefault(end, []).append(lease)
        return found

    def _kept(self, at: int, used: dict[int, int]) -> Spent:
        """``used`` with what stays as it is in the second ``at``."""
        there = self._there(at, self.still)
        ended = frozenset(lease.key for lease in there if self._over(lease, at))
        return kept(self.book, Spent(cap=used), there, self.sites, {}, ended)

    def _over(self, lease: LeaseRow, at: int) -> bool:
        """Has a lease ended that still holds its quota?"""
        return self.fates.ends.get(lease.key, self.until) <= at

    def _second(self, lease: LeaseRow, at: int, rate: int) -> Iterable[tuple[int, int]]:
        """Charges of a lease for the second ``at``, by cap on hours or credits."""
        if not self.book.time_caps(lease.envelope):
            return ()
        money = self.past.money
        return second_of(self.book, lane_of(money, lease, self.sites), lease.milli(money.policy), rate, at)

    def _ask(self, at: int, used: dict[int, int]) -> None:
        """The pass at the second ``at``, and whom it turns."""
        money = replace(self.past.money, at=at)
        reshaped = any(at in window for window in self._windows(scopes=True))
        self.book = book_of(money) if reshaped else replace(self.book, money=money)
        there = self._there(at, self.leases)
        parts = parts_of(self.book, open_claims(there, money, {}, self.fates.malleable), self.sites)
        for part in parts:
            for lease in part.leases:
                if self._over(lease, at):
                    for cap, charge in self._second(lease, at, money.rate_milli(lease.envelope)):
                        part.second[cap] -= charge
        names = classes_of(money, parts, honour(self.book, self._kept(at, used), parts).funded)
        for lease in there:
            key, name = lease.key, names.get(lease.key, UNFUNDED)
            said = Said(name, 0 if name == UNFUNDED else money.rate_milli(lease.envelope))
            if said != self.now[key]:
                self.now[key] = said
                (self._unfunded.add if said.funding_class == UNFUNDED else self._unfunded.discard)(key)
                if self.fates.ends.get(key, self.until) > at:  # else it is over, and its ledger with it
                    self.turns.setdefault(key, []).append(Turn(at, said))


def said_of(lease: LeaseRow) -> Said:
    """Record of a lease."""
    return Said(lease.funding_class, 0 if lease.funding_class == UNFUNDED else lease.rate_milli)


def turned(lease: LeaseRow, turns: Iterable[Turn]) -> LeaseRow:
    """A lease with its ledger continued."""
    segments = list(lease.segments)
    for turn in turns:
        if segments and segments[-1][2] is None:
            name, since, _, rate = segments[-1]
            segments[-1] = (name, since, turn.since, rate)
        segments.append((turn.said.funding_class, turn.since, None, turn.said.rate or None))
    return msgspec.structs.replace(lease, segments=tuple(segments))
