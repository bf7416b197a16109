"""The seconds between the last cycle and this one (spec §3.6): every change of class is due, and none is missing.

Nothing is replayed here. Between two *turns*, which are the plan's segments and the seconds at which a window opens or
closes, a loan has aged or a time limit ended a run, nothing but what is spent moves, and that only grows. So it is
enough that

    at each turn               the order of claims gives the classes that the ledgers say from then on
    up to each turn, and now   no cap on hours or credits that was still being charged is exceeded

all of it under the Budgets as the last cycle saw them, in each group of envelopes that share caps by itself.
"""

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple, Self

from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.claims import Claims
from jobtree.check.case.moment import Moment
from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Held, RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger


class Group(NamedTuple):
    """Envelopes that share caps, all leases that they pay, and those of them that the last cycle left open."""

    payers: set[EnvelopeKey]
    leases: list[Held]
    open: list[Held]


class Past(Moment):
    """A second since the last cycle, under the Budgets as it saw them; made as the second of that cycle itself.

    Payments of envelopes that are not there count in subtrees of whichever group.

    ``goes_on``: whether they are still the same, so that what caps and charges were they are.
    """

    def __init__(self, case: Case, last: int) -> None:
        seen = case.rows.seen
        lost = case.snapshot.since is None or not seen.discounts
        rows = case.rows
        super().__init__(
            last, rows, *((rows.budgets, rows.envelopes, rows.aggregates, rows.use_caps) if lost else seen[:4])
        )
        self.discount = case.discount if lost else seen.discounts[-1].milli
        self.rates = case.rates if lost else {rate.flavor: rate.rate_milli for rate in seen.rates}
        self.closing, self.appended = case.closing, case.appended
        then = (*seen[:4], self.discount, self.rates)
        now = (rows.budgets, rows.envelopes, rows.aggregates, rows.use_caps, case.discount, case.rates)
        self.goes_on = lost or then == now
        self._caps: dict[int, Caps] = {}
        self._beneath = [x for x in self.leases.values() if x.payer is not None and x.payer not in self.envelopes]

    def second(self, at: int, group: Group) -> Self:
        """Another second, for one group: what was open then had not been ended by a time limit."""
        other = copy(self)
        other.at = at
        other.leases = {lease.key: lease for lease in (*group.leases, *self._beneath)}
        mine = group.payers
        other.balances = [x for x in self.balances if x.payer in mine or x.payer not in self.envelopes]
        still = (lease for lease in self._beneath if not lease.closed and lease.start <= self.at)
        last = (*group.open, *still)
        other.held = [lease for lease in last if not self.is_over(lease, at)]
        return other

    def stays_paid(self, lease: Held) -> bool:
        """Where its Budget was deleted its ledger says so."""
        return lease.payer not in self.envelopes and self.said(lease, self.at)[0] != "unfunded"

    def timed(self, groups: list[Group]) -> Group:
        """All that is charged to caps on hours or credits, as one group."""
        caps = self.caps(self.at)
        found = Group(set(), [], [])
        for group in groups:
            if any(caps.pools[pool].on_time for payer in group.payers for pool in caps.reach(payer)):
                found.payers.update(group.payers)
                found.leases.extend(group.leases)
                found.open.extend(group.open)
        return found

    def caps(self, at: int) -> Caps:
        """The caps in the second ``at``."""
        if at not in self._caps:
            moment = copy(self)
            moment.at = at
            self._caps[at] = Caps(moment)
        return self._caps[at]

    def ledger(self, at: int, group: Group, *, alone: bool = False) -> Ledger:
        """What was charged before the second ``at``; with ``alone`` to envelopes of the group only."""
        second = self.second(at, group)
        if alone:
            second.leases = {lease.key: lease for lease in group.leases}
        return Ledger(second, self.caps(at))

    def is_over(self, lease: Held, at: int) -> bool:
        """Whether a time limit had ended a lease: the one end that was known before."""
        closure = self.closing.get(lease.key)
        return closure is not None and closure.reason == "TimeLimit" and closure.ended <= at

    def said(self, lease: Held, at: int) -> tuple[str, int]:
        """(class, rate) that the ledger with the plan's segments gives a lease in the second ``at``."""
        name, rate = "unfunded", 0
        entries = [(entry[0], entry[1], entry[3]) for entry in lease.funding]
        entries += [(new.funding_class, new.since, new.rate_milli) for new in self.appended.get(lease.key, ())]
        for entry, since, per_hour in entries:
            if since <= at:
                name, rate = entry, per_hour or 0
        return name, 0 if name == "unfunded" else rate

    def groups(self) -> list[Group]:
        """Groups of envelopes of which the last cycle left anything open, in order."""
        caps = self.caps(self.at)
        first: dict[EnvelopeKey | int, EnvelopeKey | int] = {}

        def root(member: EnvelopeKey | int) -> EnvelopeKey | int:
            while first.setdefault(member, member) != member:
                first[member] = first[first[member]]
                member = first[member]
            return member

        for payer in self.envelopes:
            for pool in caps.reach(payer):
                first[root(pool)] = root(payer)
        found: dict[EnvelopeKey | int, Group] = {}
        for payer in self.envelopes:
            found.setdefault(root(payer), Group(set(), [], [])).payers.add(payer)
        for lease in self.leases.values():
            if lease.payer in self.envelopes and lease.payer is not None:
                group = found[root(lease.payer)]
                group.leases.append(lease)
                if not lease.closed and lease.start <= self.at:
                    group.open.append(lease)
        return [group for group in found.values() if group.open]


def violations(case: Case, entered: Ledger) -> Iterator[Violation]:
    """Segments in what was settled before, then what each group's ledgers say of the time since.

    ``entered``: what is charged by now under the present Budgets.
    """
    last = _last_cycle(case)
    for (namespace, name), segments in case.appended.items():
        for segment in segments:
            if segment.since < case.at and (last is None or segment.since <= last):
                sentence = f"a segment from {segment.since} is in the time that the cycle at {last} has settled"
                yield Violation.of_lease("segments-append-only", (namespace, name), sentence)
    if last is not None and case.at - last > 1:
        past = Past(case, last)
        groups = past.groups()
        for group in groups:
            for at in sorted(_turns(past, group)):
                if last < at < case.at:
                    yield from _overdrawn(past, group, at, past.ledger(at, group))
                    yield from _turned(past, group, at)
        timed = past.timed(groups)
        yield from _overdrawn(past, timed, case.at, entered if past.goes_on else past.ledger(case.at, timed))


def _last_cycle(case: Case) -> int | None:
    """When the last cycle was; where no Plan tells, the last second of which a ledger does."""
    if case.snapshot.since is not None:
        return case.snapshot.since
    told = [
        when
        for lease in case.leases.values()
        for when in (lease.start, lease.ended, *(edge for entry in lease.funding for edge in entry[1:3]))
    ]
    return max((when for when in told if isinstance(when, int) and when <= case.at), default=None)


def _turns(past: Past, group: Group) -> set[int]:
    """Seconds at which a class may change, or does."""
    mine = [past.envelopes[payer] for payer in group.payers]
    flavors = {each.flavor for each in mine}
    looking = (cap for cap in past.use_caps if cap.flavor is None or cap.flavor in flavors)
    edges = [*((each.start, each.end) for each in mine), *((cap.start, cap.end) for cap in looking)]
    windows = {when for edge in edges for when in edge if when is not None}
    caps = past.caps(past.at)
    admitted: dict[tuple[RunKey, EnvelopeKey], int] = {}
    for lease in group.open:
        if lease.payer is not None and caps.is_loan(lease):
            claim = (lease.run_key, lease.payer)
            admitted[claim] = min(lease.start, admitted.get(claim, lease.start))
    aged = {start + past.envelopes[payer].lending_duration for (_, payer), start in admitted.items()}
    told = {new.since for lease in group.open for new in past.appended.get(lease.key, ())}
    ended: dict[int, list[Held]] = defaultdict(list)
    for lease in group.open:
        closure = past.closing.get(lease.key)
        if closure is not None and closure.reason == "TimeLimit":
            ended[closure.ended].append(lease)
    freed = {at for at in ended if any(past.said(lease, at)[0] == "unfunded" for lease in group.open)}
    return windows | aged | told | freed


def _turned(past: Past, group: Group, at: int) -> Iterator[Violation]:
    """The order of claims gives what the ledgers say, but for what had ended and was only not known to have yet."""
    moment = past.second(at, group)
    present = Present(Claims(moment, past.caps(at)), past.ledger(at, group))
    for lease in moment.held:
        if moment.is_charged(lease) and lease.payer in moment.envelopes:
            name = present.classes[lease.key]
            wanted = (name, 0 if name == "unfunded" else moment.rate(lease.flavor))
            given = past.said(lease, at)
            if given != wanted:
                sentence = (
                    f"from {at} on its ledger says {given[0]} at {given[1]} millicredits; in the order of claims it was"
                    f" {wanted[0]} at {wanted[1]}"
                )
                yield Violation.of_lease("class-derived", lease.key, sentence)


def _overdrawn(past: Past, group: Group, at: int, ledger: Ledger) -> Iterator[Violation]:
    """Caps that are exceeded at ``at``, were not right after the last cycle, and were charged in the second before.

    What envelopes that are not there pay stays as it is: it may exceed a cap, and nothing else may then be charged.
    ``ledger``: what is charged by ``at``, at least to the group.
    """
    caps = past.caps(at)
    mine = {pool for payer in group.payers for pool in caps.reach(payer)}
    over = [
        (pool, measure, spent[number], limit, number)
        for number, pool in enumerate(caps.pools)
        if number in mine
        for measure, spent, limit in (("hours", ledger.hours, pool.hours), ("credits", ledger.credits, pool.credits))
        if limit is not None and spent[number] > limit
    ]
    if not over:
        return
    first = past.ledger(past.at + 1, group)
    before, now = (past.ledger(when, group, alone=True) for when in (at - 1, at))
    for pool, measure, spent, limit, number in over:
        began, then, by_now = (getattr(each, measure)[number] for each in (first, before, now))
        if began <= limit and then < by_now:
            sentence = f"{spent} are charged by {at}, and {limit} is all there is"
            yield Violation(f"no-overdraft-{measure}", f"{pool.rule.capitalize()} {pool.subject}", sentence)
