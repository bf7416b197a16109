"""Leases as they are read, where a hand has made their status contradict itself (spec §1 Lease, §2, §3.6).

A Lease is a fact: its spec says who holds which slots since when, and at whose expense. So one whose status cannot be
believed is not left out, which would free its slots and refund its charges, but read so that nothing of that happens:

    end       it has ended where `closed` stands beside an end, or `ended` beside `closureReason`, since `closed` is
              never undone; in any other case it is open. Its end is the later one of `ended` and its ledger's
    ledger    every second from its start to its end, or to now, counts once (`jobtree.world.reading.ledgers`)
    spec      unknown fields are passed over, and an owner beside the run's where nobody pays; what cannot be read is as
              others tell (`jobtree.world.reading.restored`)
    start     it began when its ledger does, where the cycle that opened it is named after that second

Each contradiction is a warning, until somebody mends it or the lease is written again. Nothing of this writes anything.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

import msgspec

from jobtree.api import Lease, Refusal, Time, dec_hook, decode
from jobtree.api.kinds.lease import FundingClass, LeaseStatus, Segment
from jobtree.api.values.errors import missing, wrong
from jobtree.world.reading import ledgers
from jobtree.world.reading.restored import restored

_FIELDS: Final = {field.encode_name: field for field in msgspec.structs.fields(LeaseStatus)}
_PASSED: Final = "it is passed over"


def read(raw: bytes | msgspec.Raw, at: int | None = None) -> tuple[Lease, list[str]]:
    """The Lease that a document's JSON says, and sentences about what its status cannot mean.

    ``at``: the Unix second after which nothing can be known, where there is one. Raises Refusal where its spec cannot
    be read but for unknown fields.
    """
    found: list[str] = []
    try:
        lease = decode("Lease", raw)
    except Refusal as refusal:
        lease = _with_what_can_be_read(raw, refusal, found)
    assert isinstance(lease, Lease)
    if lease.spec.paid_by is None:
        lease = _unpaid(lease, found)
    lease = _begun(lease, found)
    status = lease.status
    now = at if at is not None and lease.spec.interval.start <= at else ledgers.FOREVER
    end = _end(lease, now, found)
    reason = None if end is None else status.closure_reason
    if (status.closed, status.ended, status.closure_reason) != (end is not None, end, reason):
        status = msgspec.structs.replace(status, closed=end is not None, ended=end, closure_reason=reason)
    fault = ledgers.fault(lease, end, now)
    ledger = ledgers.closed(status.funding, end) if fault is None else ledgers.whole(lease, end, now)
    if fault is not None:
        found.append(f"{fault.problem}: each second counts once, and as paid where nothing else is known")
    if ledger is not status.funding:
        status = msgspec.structs.replace(status, funding=ledger)
    return (lease if status is lease.status else msgspec.structs.replace(lease, status=status)), found


def as_begun(lease: Lease) -> Lease:
    """A Lease as its spec alone says it: what `check_object` is to judge where `read` has judged the rest."""
    return msgspec.structs.replace(lease, status=LeaseStatus())


def _begun(lease: Lease, found: list[str]) -> Lease:
    """A Lease that began when its ledger says, where that and the cycle's name agree against its spec."""
    start, first = lease.spec.interval.start, next((each.from_ for each in lease.status.funding), None)
    if first is None or first == start or not ledgers.opened_at(lease, first):
        return lease
    allowed = f"{first}, when its ledger and the cycle that opened it say"
    found.append(f"{wrong('spec.interval.start', start, allowed).problem}: it began then")
    interval = msgspec.structs.replace(lease.spec.interval, start=first)
    return msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, interval=interval))


def _unpaid(lease: Lease, found: list[str]) -> Lease:
    """A Lease that nobody pays, of the run's owner: it is never charged, whatever its ledger says."""
    spec, funding = lease.spec, lease.status.funding
    last = len(funding) - 1
    if funding and funding[last].class_ != "unfunded" and not lease.status.closed:
        allowed = "unfunded, since there is no spec.paidBy and nobody pays"
        fault = wrong(f"status.funding[{last}].class", funding[last].class_, allowed)
        found.append(f"{fault.problem}: it is unfunded from now on, and was never charged")
    if spec.owner == spec.run_owner:
        return lease
    fault = wrong("spec.owner", spec.owner, f"spec.runOwner, {spec.run_owner}, where nobody pays")
    found.append(f"{fault.problem}: {_PASSED}")
    return msgspec.structs.replace(lease, spec=msgspec.structs.replace(spec, owner=spec.run_owner))


def _end(lease: Lease, now: int, found: list[str]) -> Time | None:
    """When it ended; None while it is open."""
    status, start = lease.status, lease.spec.interval.start
    ended, reason = status.ended, status.closure_reason
    if status.closed or (ended is not None and reason is not None):
        told = status.funding[-1].to if status.funding else None
        ends = [end for end in (ended, told) if end is not None and start <= end <= now]
        found.extend(f"{fault.problem}: {made_of_it}" for fault, made_of_it in _end_faults(status, ends))
        return max(ends, default=None)
    if ended is not None:
        found.append(f"{wrong('status.ended', ended, 'nothing while the lease is open').problem}: {_PASSED}")
    if reason is not None:
        found.append(f"{wrong('status.closureReason', reason, 'nothing while the lease is open').problem}: {_PASSED}")
    return None


def _end_faults(status: LeaseStatus, ends: list[Time]) -> Iterator[tuple[Refusal, str]]:
    """What is wrong with the end of a lease that is closed, or says so; ``ends``: those that can be."""
    if not status.closed and ends:
        yield wrong("status.closed", False, "true beside status.ended and status.closureReason"), "it has ended"
    made_of_it = f"it ended at {max(ends)}" if ends else "it is open until it has an end"
    if status.ended is None:
        yield missing("status.ended", "a time, since the lease is closed"), made_of_it
    elif status.ended not in ends:
        yield wrong("status.ended", status.ended, "a time from spec.interval.start to now"), made_of_it
    elif status.ended != max(ends):
        yield wrong("status.ended", status.ended, f"{max(ends)}, when its ledger ends"), made_of_it
    if status.closure_reason is None and ends:
        yield missing("status.closureReason", "a reason, since the lease is closed"), "none is known"


def _with_what_can_be_read(raw: bytes | msgspec.Raw, refusal: Refusal, found: list[str]) -> Any:
    """A Lease whose spec can be read but for unknown fields and such as can be told from others, with each part of its
    status that can.

    Raises the Refusal for others.
    """
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise refusal from None
    told = document.pop("status", None) if isinstance(document, dict) else None
    lease, document = None, _known(document, Lease)
    while lease is None:
        try:
            lease = decode("Lease", document)
        except Refusal as fault:
            mended = restored(document, fault.problem)
            if mended is None or mended[0] == document:
                raise fault from None
            document = mended[0]
            found.append(f"{fault.problem}: {mended[1]}")
    if not any(words.startswith(f"{refusal.problem}: ") for words in found):
        found.append(f"{refusal.problem}: {_PASSED}")
    return msgspec.structs.replace(lease, status=_status(told if isinstance(told, dict) else {}))


def _known(value: Any, kind: Any) -> Any:
    """A mapping without what is no field of that struct, nor of those in it."""
    if not isinstance(value, dict) or not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return value
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {name: _known(part, _struct(fields[name])) for name, part in value.items() if name in fields}


def _struct(kind: Any) -> Any:
    """The struct in a field's type, as in ``Annotated[EnvelopeRef | None, …]``."""
    inner = get_args(kind)
    structs = (_struct(each) for each in inner)
    return next((each for each in structs if each is not None), None) if inner else _as_struct(kind)


def _as_struct(kind: Any) -> Any:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _status(told: Mapping[str, Any]) -> LeaseStatus:
    parts = {
        field.name: value
        for name, field in _FIELDS.items()
        if name in told and name != "funding" and (value := _converted(told[name], field.type)) is not None
    }
    funding = told.get("funding")
    return LeaseStatus(**parts, funding=tuple(_segments(funding if isinstance(funding, list) else [])))


def _segments(told: list[Any]) -> Iterator[Segment]:
    """Segments with a class and a beginning; of others nothing is known."""
    for each in told:
        part = each if isinstance(each, dict) else {}
        name, since = _converted(part.get("class"), FundingClass), _converted(part.get("from"), Time)
        if name is not None and since is not None:
            to, rate = _converted(part.get("to"), Time), _converted(part.get("rate"), int | float)
            yield Segment(class_=name, from_=since, to=to, rate=rate)


def _converted(value: Any, kind: Any) -> Any:
    """The value as that type; None where it is none."""
    try:
        return msgspec.convert(value, kind, dec_hook=dec_hook)
    except msgspec.ValidationError:
        return None
