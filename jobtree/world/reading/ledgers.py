"""A lease's ledger that contradicts itself, second by second (spec §3.6): nothing is refunded or counts twice.

several segments claim a second     it was paid where one of them says so
none does                           it was paid, where a cycle opened the lease: it begins the ledger at the start
nobody pays (no `paidBy`)           unfunded throughout: such a lease is never charged
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from jobtree.api import Lease, Refusal, Time
from jobtree.api.kinds.base import MAX_AMOUNT
from jobtree.api.kinds.lease import FundingClass, Segment
from jobtree.api.values.errors import missing, wrong
from jobtree.world.memory.cycles import moment_of

FOREVER: Final = 2**53
"""A Unix second after all times."""

Rate = int | float | None


class _Claim(NamedTuple):
    since: int
    until: int
    name: FundingClass
    rate: Rate


def fault(lease: Lease, end: Time | None, now: int) -> Refusal | None:
    """The first thing in the ledger of a lease with that end that cannot be; None where it is sound.

    ``now``: Unix second after which nothing can be known. The last segment may leave it to the lease when it ends.
    """
    funding = lease.status.funding
    if not funding:
        if not _is_begun(lease):
            return None
        return missing("status.funding", f"a ledger from {lease.spec.interval.start}, since spec.paidBy pays")
    for index, segment in enumerate(funding):
        field = f"status.funding[{index}]"
        following = funding[index + 1].from_ if index + 1 < len(funding) else None
        found = _beginning(lease, index, now)
        if found is None and not _may_be(segment.rate):
            found = wrong(f"{field}.rate", segment.rate, f"a number from 0 to {MAX_AMOUNT}")
        if found is not None:
            return found
        until = end if following is None else following
        if segment.to != until and (following is not None or segment.to is not None):
            return _wrong_to(segment, field, end, following)
    return None


def _beginning(lease: Lease, index: int, now: int) -> Refusal | None:
    field, start = f"status.funding[{index}].from", lease.spec.interval.start
    since = lease.status.funding[index].from_
    if index == 0 and (since < start or (since > start and _is_begun(lease))):
        return wrong(field, since, f"spec.interval.start, {start}")
    if index and since < lease.status.funding[index - 1].from_:  # as late: two cycles in one second, nothing charged
        return wrong(field, since, "a time that is not before the segment before it")
    return wrong(field, since, f"a time up to now, {Time(now)}") if since > now else None


def _wrong_to(segment: Segment, field: str, end: Time | None, following: Time | None) -> Refusal:
    if following is not None:
        allowed = f"{following}, when the next segment begins"
    elif end is not None:
        allowed = f"{end}, when the lease ended"
    else:
        allowed = "nothing in the last segment of an open lease"
    return missing(f"{field}.to", allowed) if segment.to is None else wrong(f"{field}.to", segment.to, allowed)


def closed(funding: tuple[Segment, ...], end: Time | None) -> tuple[Segment, ...]:
    """A sound ledger with the end of its last segment spelled out."""
    if end is None or not funding or funding[-1].to is not None:
        return funding
    return (*funding[:-1], msgspec.structs.replace(funding[-1], to=end))


def whole(lease: Lease, end: Time | None, now: int) -> tuple[Segment, ...]:
    """The ledger in which every second counts once."""
    start, last = int(lease.spec.interval.start), now + 1 if end is None else int(end)
    if lease.spec.paid_by is None:
        return (Segment(class_="unfunded", from_=Time(start), to=end),)
    claims = [*_claims(lease)]
    begin = start if _is_begun(lease) else max(start, min((claim.since for claim in claims), default=last))
    if begin > last:
        return ()
    edges = {when for claim in claims for when in (claim.since, claim.until) if begin < when < last}
    found: list[Segment] = []
    for since in sorted({begin, *edges}):
        name, rate = _said(lease, claims, since)
        if not found or (found[-1].class_, found[-1].rate) != (name, rate):
            found.append(Segment(class_=name, from_=Time(since), rate=rate))
    ends = [*(segment.from_ for segment in found[1:]), end]
    return tuple(
        Segment(class_=each.class_, from_=each.from_, to=until, rate=each.rate)
        for each, until in zip(found, ends, strict=True)
    )


def _claims(lease: Lease) -> Iterator[_Claim]:
    """What each segment claims: without a `to`, until the next one begins."""
    funding = lease.status.funding
    for index, segment in enumerate(funding):
        following = funding[index + 1].from_ if index + 1 < len(funding) else None
        until = segment.to if segment.to is not None else following
        rate = segment.rate if _may_be(segment.rate) else None
        yield _Claim(int(segment.from_), FOREVER if until is None else int(until), segment.class_, rate)


def _said(lease: Lease, claims: list[_Claim], at: int) -> tuple[FundingClass, Rate]:
    """Class and rate of a second, and of those up to the next edge."""
    mine = [claim for claim in claims if claim.since <= at < claim.until]
    paid = [claim for claim in mine if claim.name != "unfunded"]
    if paid or mine:
        claim = (paid or mine)[0]
        return claim.name, claim.rate
    others = [claim for claim in claims if claim.name != "unfunded"]
    near = min(others, key=lambda claim: min(abs(claim.since - at), abs(claim.until - at)), default=None)
    if near is not None:
        return near.name, near.rate
    return ("owned" if lease.spec.owner == lease.spec.run_owner else "shared"), None


def _is_begun(lease: Lease) -> bool:
    """Whether a cycle opened it, which begins the ledger of what is paid at once; one written by hand may have none."""
    return lease.spec.paid_by is not None and opened_at(lease, lease.spec.interval.start)


def opened_at(lease: Lease, at: Time) -> bool:
    """Whether the cycle that opened it, by its name, was at that second."""
    told = moment_of(lease.spec.cycle)
    return told is not None and told.at == at


def _may_be(rate: Rate) -> bool:
    return rate is None or 0 <= rate <= MAX_AMOUNT
