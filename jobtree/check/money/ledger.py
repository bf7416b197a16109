"""The ledger: what has been charged, recomputed from segments (spec §3.6).

    charge = Σ over funded segments of  weight × seconds, of leases that were pruned too: the balances have them
    weight = 1000 per Active GPU, 1000 × the discount of the time per spare one

A charge counts against a cap where it falls at or after the present ``start`` of the cap's envelope (for an aggregate,
of the envelope that paid); what envelopes paid that are not there counts in the subtrees above. Integers:
milli-GPU-seconds, for credits times millicredits per GPU-hour.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Self

from jobtree.check.case.accounts import Account, Discount
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.moment import Moment
from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Held, LedgerEntry
from jobtree.check.case.violation import Violation
from jobtree.world.plan import Segment


class Ledger:
    """Charges up to the moment, once the plan's segments and closures are entered.

    ``hours``, ``credits``: per pool of ``caps``; ``paid``, ``paid_credits``: per envelope, by itself.
    """

    def __init__(self, case: Moment, caps: Caps, before: Self | None = None) -> None:
        """``before``: the ledger of the same moment without a plan; then only what a plan changes is entered anew."""
        self.case = case
        self.hours: dict[int, int] = defaultdict(int, before.hours if before else {})
        self.credits: dict[int, int] = defaultdict(int, before.credits if before else {})
        self.paid: dict[EnvelopeKey, int] = defaultdict(int, before.paid if before else {})
        self.paid_credits: dict[EnvelopeKey, int] = defaultdict(int, before.paid_credits if before else {})
        if before is None:
            for lease in case.leases.values():
                self._enter(case, caps, lease)
            for account in case.balances:
                self._carry(case, caps, account)
        else:
            for key in dict.fromkeys((*case.closing, *case.appended)):
                if key in case.leases:
                    self._enter(before.case, caps, case.leases[key], -1)
                    self._enter(case, caps, case.leases[key])

    def _carry(self, case: Moment, caps: Caps, account: Account) -> None:
        payer = account.payer
        own = caps.own(payer) if payer in case.envelopes else None
        for pool, opens, closes, _ in caps.lane_of(account).charged:
            charged = sum(milli * _overlap(since, until, opens, closes) for since, until, milli in account.spans)
            self.hours[pool] += charged
            self.credits[pool] += charged * account.rate_milli
            if pool == own:
                self.paid[payer] += charged
                self.paid_credits[payer] += charged * account.rate_milli

    def _enter(self, case: Moment, caps: Caps, lease: Held, sign: int = 1) -> None:
        """Adds what a lease is charged; with a ``sign`` of -1 takes it back."""
        closure = case.closing.get(lease.key)
        end = min(case.at, lease.ended if lease.ended is not None else closure.ended if closure else case.at)
        spans = [entry for entry in _entries(case, lease, end) if entry[0] != "unfunded"]
        payer = lease.payer
        if payer is None or not spans:
            return
        own = caps.own(payer) if payer in case.envelopes else None
        for pool, opens, closes, _ in caps.lane(lease).charged:
            charged = rated = 0
            for _, since, until, rate in spans:
                last = end if until is None else until
                parts = weighed(case, lease, since, last)
                charge = sign * sum(weight * _overlap(low, high, opens, closes) for weight, low, high in parts)
                charged += charge
                rated += charge * (rate or 0)
            self.hours[pool] += charged
            self.credits[pool] += rated
            if pool == own:
                self.paid[payer] += charged
                self.paid_credits[payer] += rated


def _entries(case: Moment, lease: Held, end: int) -> list[LedgerEntry]:
    """The lease's ledger with what the plan appends to it, all of it ending at ``end``."""
    appended = case.appended.get(lease.key)
    if appended is None and len(lease.funding) == 1:  # most leases: never of another class
        name, since, until, rate = lease.funding[0]
        return [(name, since, end if until is None else min(end, until), rate)]
    found = list(lease.funding)
    found += [(new.funding_class, new.since, None, new.rate_milli) for new in appended or ()]
    closed: list[LedgerEntry] = []
    for index, (name, since, until, rate) in enumerate(found):
        following = found[index + 1][1] if index + 1 < len(found) else end
        closed.append((name, since, min(end, following if until is None else until), rate))
    return closed


def weighed(case: Moment, lease: Held, since: int, until: int) -> Iterator[tuple[int, int, int]]:
    """What a lease weighs in [since, until), as (milli-GPUs, from, to).

    An Active GPU weighs 1000, a spare one the discount that was in force.
    """
    if lease.active:
        yield 1000 * lease.gpus, since, until
        return
    known = [*case.discounts]
    if not known or known[-1].milli != case.discount:
        known.append(Discount(case.at if known else None, case.discount))
    for each, following in zip(known, [*known[1:], None], strict=True):
        low = since if each.since is None else max(since, each.since)
        high = until if following is None or following.since is None else min(until, following.since)
        yield lease.gpus * each.milli, low, high


def _overlap(start: int, end: int, since: int | None, until: int | None) -> int:
    low = start if since is None else max(start, since)
    high = end if until is None else min(end, until)
    return max(0, high - low)


def violations(case: Case) -> Iterator[Violation]:
    """The plan appends to ledgers and rewrites nothing (§9 segments-append-only)."""
    for key, segments in case.appended.items():
        subject = f"Lease {key[0]}/{key[1]}"
        lease = case.leases.get(key)
        if lease is None or lease.closed:
            state = "is closed" if lease else "does not exist"
            yield Violation("segments-append-only", subject, f"it {state}, so its ledger takes no segment")
            continue
        closure = case.closing.get(key)
        again = case.snapshot.since == case.at  # another cycle was in this very second
        yield from _appended(lease, segments, case.at if closure is None else closure.ended, subject, again)


def _appended(lease: Held, segments: Iterable[Segment], end: int, subject: str, again: bool) -> Iterator[Violation]:
    last: LedgerEntry | None = lease.funding[-1] if lease.funding else None
    for segment in segments:
        earliest = lease.start if last is None else last[1] + (not (again and last[1] == end))
        if not earliest <= segment.since <= end:
            sentence = f"a segment from {segment.since} does not follow its ledger, which takes {earliest} to {end}"
            yield Violation("segments-append-only", subject, sentence)
        entry = (segment.funding_class, segment.since, None, segment.rate_milli)
        same_rate = last is not None and (last[3] or 0) == (entry[3] or 0)
        if last is not None and last[0] == entry[0] and (same_rate or last[0] == "unfunded"):
            sentence = f"the segment from {segment.since} repeats the class {entry[0]} and its rate"
            yield Violation("segments-append-only", subject, sentence)
        last = entry
