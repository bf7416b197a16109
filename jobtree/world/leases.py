"""Leases as they are read, where a hand has made their status contradict itself (spec §1 Lease, §2, §3.6).

A Lease is a fact: its spec says who holds which slots since when, and at whose expense. So one whose status cannot be
believed is not left out, which would free its slots and refund its charges, but read so that every second counts once:

    end       it has ended where `closed` stands beside an end (`ended`, or else the end of its ledger), or where
              `ended` and `closureReason` do, since `closed` is never undone; in any other case it is open
    ledger    a segment lasts until the next one begins, and the last one as long as the lease: `to` says the same
              again. One that does not begin after the one before it, or begins after the end, is passed over
    class     unfunded where nobody pays; what cannot be read of a paid lease was paid

Each contradiction is a warning, until somebody mends it or the lease is written again. Nothing of this writes anything.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from jobtree.api import Lease, Refusal, Time, dec_hook, decode
from jobtree.api.base import MAX_AMOUNT
from jobtree.api.errors import missing, wrong
from jobtree.api.lease import FundingClass, LeaseStatus, Segment

_FIELDS: Final = {field.encode_name: field for field in msgspec.structs.fields(LeaseStatus)}
_PASSED: Final = "it is passed over"


def read(raw: bytes | msgspec.Raw) -> tuple[Lease, list[str]]:
    """The Lease that a document's JSON says, and sentences about what its status cannot mean.

    Raises Refusal where more than its status cannot be read.
    """
    warnings = []
    try:
        lease = decode("Lease", raw)
    except Refusal as refusal:
        lease = _with_what_can_be_read(raw, refusal)
        warnings.append(f"{refusal.problem}: {_PASSED}")
    assert isinstance(lease, Lease)
    status, found = settled(lease)
    if found:
        lease = msgspec.structs.replace(lease, status=status)
    return lease, [*warnings, *found]


def as_begun(lease: Lease) -> Lease:
    """A Lease as its spec alone says it: what `check_object` is to judge where `read` has judged the rest."""
    return msgspec.structs.replace(lease, status=LeaseStatus())


def settled(lease: Lease) -> tuple[LeaseStatus, list[str]]:
    """A status that does not contradict itself, and a sentence for each thing that it says otherwise."""
    found: list[str] = []
    status = _ended(lease, found)
    ledger = _ledger(lease, status, found)
    return (msgspec.structs.replace(status, funding=ledger), found) if found else (lease.status, found)


def _ended(lease: Lease, found: list[str]) -> LeaseStatus:
    """Closed with its end, or open without any."""
    status, start = lease.status, lease.spec.interval.start
    ended, reason = status.ended, status.closure_reason
    if ended is not None and ended < start:
        found.append(_over(wrong("status.ended", ended, "a time at or after spec.interval.start")))
        ended = None
    if ended is not None and (status.closed or reason is not None):
        if not status.closed:
            allowed = "true beside status.ended and status.closureReason"
            found.append(f"{wrong('status.closed', False, allowed).problem}: it has ended")
        elif reason is None:
            found.append(
                f"{missing('status.closureReason', 'a reason, since the lease is closed').problem}: none is told"
            )
        return msgspec.structs.replace(status, closed=True, ended=ended)
    last = status.funding[-1].to if status.funding else None
    if status.closed and last is not None and last >= start:
        problem = missing("status.ended", "a time, since the lease is closed").problem
        found.append(f"{problem}: it ended with its ledger, at {last}")
        return msgspec.structs.replace(status, ended=last)
    if status.closed:
        problem = missing("status.ended", "a time, since the lease is closed").problem
        found.append(f"{problem}: it is open until it has an end")
    elif ended is not None:
        found.append(_over(wrong("status.ended", ended, "nothing while the lease is open")))
    if reason is not None:
        found.append(_over(wrong("status.closureReason", reason, "nothing while the lease is open")))
    return msgspec.structs.replace(status, closed=False, ended=None, closure_reason=None)


def _ledger(lease: Lease, status: LeaseStatus, found: list[str]) -> tuple[Segment, ...]:
    """Segments that follow each other without gaps, each with a class that its lease may have."""
    kept: list[tuple[int, Segment]] = []
    last = lease.spec.interval.start
    for index, given in enumerate(lease.status.funding):
        field = f"status.funding[{index}]"
        segment = _said(lease, given, field, found)
        if segment.from_ < last or (kept and segment.from_ == last):
            where = "after the segment before it" if kept else "at or after spec.interval.start"
            found.append(f"{wrong(f'{field}.from', segment.from_, f'a time {where}').problem}: {_from(kept)}")
            if kept:
                continue
            segment = msgspec.structs.replace(segment, from_=last)
        if status.ended is not None and segment.from_ > status.ended:
            found.append(_over(wrong(f"{field}.from", segment.from_, "a time up to status.ended")))
            continue
        kept.append((index, segment))
        last = segment.from_
    following = [segment.from_ for _, segment in kept[1:]]
    return tuple(
        _lasting(segment, until, f"status.funding[{index}].to", found)
        for (index, segment), until in zip(kept, [*following, status.ended], strict=False)
    )


def _from(kept: list[tuple[int, Segment]]) -> str:
    return _PASSED if kept else "it begins with its lease"


def _said(lease: Lease, segment: Segment, field: str, found: list[str]) -> Segment:
    """A segment with a class and a rate that can be."""
    if lease.spec.paid_by is None and segment.class_ != "unfunded":
        allowed = "unfunded, since there is no spec.paidBy and nobody pays"
        found.append(_over(wrong(f"{field}.class", segment.class_, allowed)))
        segment = msgspec.structs.replace(segment, class_="unfunded", rate=None)
    if segment.rate is not None and not 0 <= segment.rate <= MAX_AMOUNT:
        found.append(_over(wrong(f"{field}.rate", segment.rate, f"a number from 0 to {MAX_AMOUNT}")))
        segment = msgspec.structs.replace(segment, rate=None)
    return segment


def _lasting(segment: Segment, until: Time | None, field: str, found: list[str]) -> Segment:
    if segment.to == until:
        return segment
    if segment.to is None and until is not None:
        found.append(f"{missing(field, f'{until}, when the next one begins or the lease ended').problem}: it ends then")
    elif until is None:
        found.append(_over(wrong(field, segment.to, "nothing in the last segment of an open lease")))
    else:
        found.append(_over(wrong(field, segment.to, f"{until}, when the next one begins or the lease ended")))
    return msgspec.structs.replace(segment, to=until)


def _over(refusal: Refusal) -> str:
    return f"{refusal.problem}: {_PASSED}"


def _with_what_can_be_read(raw: bytes | msgspec.Raw, refusal: Refusal) -> Any:
    """A Lease of which only the status cannot be read, with each part of it that can. Raises the Refusal for others."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise refusal from None
    told = document.pop("status", None) if isinstance(document, dict) else None
    try:
        lease = decode("Lease", document)
    except Refusal:
        raise refusal from None
    assert isinstance(lease, Lease)
    return msgspec.structs.replace(lease, status=_status(lease, told if isinstance(told, dict) else {}))


def _status(lease: Lease, told: Mapping[str, Any]) -> LeaseStatus:
    parts = {
        field.name: value
        for name, field in _FIELDS.items()
        if name in told and name != "funding" and (value := _converted(told[name], field.type)) is not None
    }
    funding = told.get("funding")
    segments = _segments(lease, funding) if isinstance(funding, list) else ()
    return LeaseStatus(**parts, funding=tuple(segments))


def _segments(lease: Lease, told: list[Any]) -> Iterator[Segment]:
    """Segments whose beginning can be read; the first one begins with its lease, whatever it says."""
    spec = lease.spec
    paid: FundingClass = "owned" if spec.owner == spec.run_owner else "shared"
    guess: FundingClass = "unfunded" if spec.paid_by is None else paid
    for index, each in enumerate(told):
        part = each if isinstance(each, dict) else {}
        since = _converted(part.get("from"), Time) or (None if index else spec.interval.start)
        if since is not None:
            yield Segment(
                class_=_converted(part.get("class"), FundingClass)
                or ("unfunded" if lease.spec.paid_by is None else paid),
                from_=since,
                to=_converted(part.get("to"), Time),
                rate=_converted(part.get("rate"), int | float),
            )


def _converted(value: Any, kind: Any) -> Any:
    """The value as that type; None where it is none."""
    try:
        return msgspec.convert(value, kind, dec_hook=dec_hook)
    except msgspec.ValidationError:
        return None
