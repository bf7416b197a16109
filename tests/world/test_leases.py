"""A Lease whose status contradicts itself: what it is read as, and what is said of it (docs/rules/contradictions.md).

Hours are those of the day on which the lease starts.
"""

from typing import Any

import msgspec
import pytest

from jobtree.api import Lease, Refusal, Time
from jobtree.world.reading import leases
from jobtree.world.reading.intake import intake, key_of
from tests.support.documents import API, Document, merge

PASSED = "it is passed over"
CYCLE = "20260101T000000Z"
LEASE: Document = {
    "apiVersion": API,
    "kind": "Lease",
    "metadata": {"name": "r-g0-0", "namespace": "default"},
    "spec": {
        "owner": "org:a",
        "runRef": {"name": "r"},
        "runUid": "u",
        "runOwner": "org:a",
        "flavor": "H100-80GB",
        "group": 0,
        "slice": {"nodes": ["n#0"]},
        "interval": {"start": "2026-01-01T00:00:00Z"},
        "reason": "Start",
        "paidBy": {"budget": "org-a", "envelope": "gpus"},
    },
}


def at(hour: int) -> str:
    """An hour as a time."""
    return f"2026-01-01T{hour:02}:00:00Z"


def paid(*turns: tuple[str, int, int | None]) -> list[Document]:
    """A ledger of (class, from, to)."""
    return [
        {"class": name, "from": at(since), **({} if until is None else {"to": at(until)})}
        for name, since, until in turns
    ]


def told(lease: Lease) -> tuple[str, list[Any]]:
    """The end of a lease, "open" without one, and its ledger."""
    status = lease.status
    ledger: list[Any] = [
        (each.class_, str(each.from_), None if each.to is None else str(each.to)) for each in status.funding
    ]
    assert status.closed == (status.ended is not None)
    return str(status.ended) if status.closed else "open", ledger


def read(status: Any, **spec: Any) -> tuple[Lease, list[str]]:
    """What is read at six of the lease with that status."""
    document = {**merge(LEASE, {"spec": spec}), "status": status}
    return leases.read(msgspec.json.encode(document), int(Time.parse(at(6))))


OWNED = [("owned", at(0), None)]
ENDED = [("owned", at(0), at(2))]
UNKNOWN = "each second counts once, and as paid where nothing else is known"
OPEN = "it is open until it has an end"
CLOSED = "since the lease is closed"
NOT_OPEN = f"allowed is nothing while the lease is open: {PASSED}"
LASTS = f"allowed is nothing in the last segment of an open lease: {UNKNOWN}"
EARLY = "2025-12-31T00:00:00Z"
FIELDS = "closed, ended, closureReason, funding, cause, proof"
LASTING = paid(("owned", 0, None))
SHUT = {"closed": True, "closureReason": "Swap", "funding": paid(("owned", 0, 2))}
TWICE = [("owned", at(0), at(1)), ("unfunded", at(1), at(2)), ("owned", at(2), None)]

ENDS: dict[str, tuple[Document, Any, Any, list[str]]] = {
    "none": ({"closed": False, "funding": LASTING}, "open", OWNED, []),
    "closed": (
        {"closed": True, "funding": LASTING}, "open", OWNED,
        [f"status.ended is missing; allowed is a time, {CLOSED}: {OPEN}"],
    ),
    "ended": ({"ended": at(2), "funding": LASTING}, "open", OWNED, [f"status.ended is {at(2)}; {NOT_OPEN}"]),
    "reason": (
        {"closureReason": "Swap", "funding": LASTING}, "open", OWNED, [f'status.closureReason is "Swap"; {NOT_OPEN}'],
    ),
    "all but closed": (
        {**SHUT, "closed": False, "ended": at(2)}, at(2), ENDED,
        ["status.closed is false; allowed is true beside status.ended and status.closureReason: it has ended"],
    ),
    "all but ended": (
        SHUT, at(2), ENDED, [f"status.ended is missing; allowed is a time, {CLOSED}: it ended at {at(2)}"],
    ),
    "all but the reason": (
        {**SHUT, "ended": at(2), "closureReason": None}, at(2), ENDED,
        [f"status.closureReason is missing; allowed is a reason, {CLOSED}: none is known"],
    ),
    "earlier than its ledger": (
        {**SHUT, "ended": at(1)}, at(2), ENDED,
        [f"status.ended is {at(1)}; allowed is {at(2)}, when its ledger ends: it ended at {at(2)}"],
    ),
    "later than its ledger": (
        {**SHUT, "ended": at(3)}, at(3), [("owned", at(0), at(3))],
        [f"status.funding[0].to is {at(2)}; allowed is {at(3)}, when the lease ended: {UNKNOWN}"],
    ),
    "in future": (
        {**SHUT, "ended": at(9)}, at(2), ENDED,
        [f"status.ended is {at(9)}; allowed is a time from spec.interval.start to now: it ended at {at(2)}"],
    ),
    "before its start": (
        {**SHUT, "ended": EARLY, "funding": LASTING}, "open", OWNED,
        [f"status.ended is {EARLY}; allowed is a time from spec.interval.start to now: {OPEN}"],
    ),
}  # fmt: skip
LEDGERS: dict[str, tuple[list[Document], Any, list[str]]] = {
    "ends": (paid(("owned", 0, 2)), OWNED, [f"status.funding[0].to is {at(2)}; {LASTS}"]),
    "ends unfunded": (
        paid(("owned", 0, 1), ("unfunded", 1, 2)), TWICE, [f"status.funding[1].to is {at(2)}; {LASTS}"],
    ),
    "has a gap": (
        paid(("owned", 0, 1), ("unfunded", 2, None)), [("owned", at(0), at(2)), ("unfunded", at(2), None)],
        [f"status.funding[0].to is {at(1)}; allowed is {at(2)}, when the next segment begins: {UNKNOWN}"],
    ),
    "overlaps": (
        paid(("owned", 0, 1), ("unfunded", 1, 3), ("owned", 2, None)), TWICE,
        [f"status.funding[1].to is {at(3)}; allowed is {at(2)}, when the next segment begins: {UNKNOWN}"],
    ),
    "has no ends": (
        paid(("owned", 0, None), ("unfunded", 1, None), ("owned", 2, None)), TWICE,
        [f"status.funding[0].to is missing; allowed is {at(1)}, when the next segment begins: {UNKNOWN}"],
    ),
    "is upside down": (
        paid(("owned", 2, None), ("unfunded", 1, 2), ("owned", 0, 1)), TWICE,
        [f"status.funding[0].to is missing; allowed is {at(1)}, when the next segment begins: {UNKNOWN}"],
    ),
    "goes back": (
        paid(("unfunded", 0, 1), ("unfunded", 1, 0), ("owned", 0, None)), OWNED,
        [f"status.funding[2].from is {at(0)}; allowed is a time that is not before the segment before it: {UNKNOWN}"],
    ),
    "begins early": (
        [{"class": "owned", "from": EARLY}], OWNED,
        [f"status.funding[0].from is {EARLY}; allowed is spec.interval.start, {at(0)}: {UNKNOWN}"],
    ),
    "goes on in future": (
        paid(("owned", 0, 9), ("unfunded", 9, None)), OWNED,
        [f"status.funding[1].from is {at(9)}; allowed is a time up to now, {at(6)}: {UNKNOWN}"],
    ),
    "begins in future": (
        paid(("owned", 9, None)), [],
        [f"status.funding[0].from is {at(9)}; allowed is a time up to now, {at(6)}: {UNKNOWN}"],
    ),
    "has no such rate": (
        [{"class": "owned", "from": at(0), "rate": -1}], OWNED,
        [f"status.funding[0].rate is -1; allowed is a number from 0 to 1000000000: {UNKNOWN}"],
    ),
}  # fmt: skip
UNREADABLE: list[tuple[Any, Any, str]] = [
    (
        {"funding": [{"class": "bought", "from": at(0)}]}, OWNED,
        f'status.funding[0].class is "bought"; allowed is one of borrowed, owned, shared, unfunded: {PASSED}',
    ),
    ({"closed": "yes", "funding": LASTING}, OWNED, f'status.closed is "yes"; allowed is true or false: {PASSED}'),
    ("gone", OWNED, f'status is "gone"; allowed is a mapping with {FIELDS}: {PASSED}'),
]  # fmt: skip


@pytest.mark.parametrize(("status", "end", "ledger", "warnings"), ENDS.values(), ids=ENDS)
def test_an_end_that_cannot_be(status: Document, end: str, ledger: list[Any], warnings: list[str]) -> None:
    lease, said = read(status)

    assert (*told(lease), said) == (end, ledger, warnings)


@pytest.mark.parametrize(("funding", "ledger", "warnings"), LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_that_cannot_be(funding: list[Document], ledger: list[Any], warnings: list[str]) -> None:
    lease, said = read({"funding": funding})

    assert (*told(lease), said) == ("open", ledger, warnings)


@pytest.mark.parametrize(("status", "ledger", "warning"), UNREADABLE)
def test_a_status_that_cannot_be_read(status: Any, ledger: list[Any], warning: str) -> None:
    lease, said = read(status, cycle=CYCLE)

    assert (*told(lease), said[0]) == ("open", ledger, warning)


def test_what_nobody_pays_keeps_its_ledger_and_is_unfunded_from_now_on() -> None:
    lease, said = read({"funding": LASTING}, paidBy=None, owner="org:b")

    assert (lease.spec.owner, *told(lease)) == ("org:a", "open", OWNED)
    assert said == [
        (
            'status.funding[0].class is "owned"; allowed is unfunded, since there is no spec.paidBy and nobody pays:'
            " it is unfunded from now on, and was never charged"
        ),
        f'spec.owner is "org:b"; allowed is spec.runOwner, org:a, where nobody pays: {PASSED}',
    ]


def test_what_nobody_pays_is_unfunded_throughout_where_its_ledger_is_in_disorder() -> None:
    lease, _ = read({"funding": paid(("unfunded", 1, 2), ("shared", 4, None), ("unfunded", 3, None))}, paidBy=None)

    assert told(lease) == ("open", [("unfunded", at(0), None)])


def test_unknown_fields_of_a_spec_are_passed_over() -> None:
    lease, said = read({"funding": LASTING}, colour="red", slice={"nodes": ["n#0"], "speed": 3})

    assert (*told(lease), lease.spec.node, len(said)) == ("open", OWNED, "n", 1)


@pytest.mark.parametrize("funding", [[], paid(("owned", 2, None)), paid(("owned", 9, None))])
def test_a_ledger_that_a_cycle_began_has_its_beginning(funding: list[Document]) -> None:
    lease, _ = read({"funding": funding}, cycle=CYCLE)

    assert told(lease) == ("open", OWNED)


def test_a_rate_is_that_of_the_paid_time_nearest() -> None:
    funding = [{"class": "shared", "from": at(2), "rate": 3}, {"class": "shared", "from": at(4), "rate": 5}]
    lease, _ = read({"funding": funding}, cycle=CYCLE)

    assert [(str(each.from_), each.rate) for each in lease.status.funding] == [(at(0), 3), (at(4), 5)]


def test_a_lease_whose_spec_cannot_be_read_is_refused() -> None:
    with pytest.raises(Refusal, match=r"spec\.group is \"first\""):
        read({"closed": 7}, group="first")


def test_an_intake_names_it_and_uses_it() -> None:
    document = {**LEASE, "status": {"closed": True}}
    key = key_of(API, "Lease", "default", "r-g0-0")
    found = intake([(key, msgspec.json.encode(document))], "r1")

    assert [(lease.name, lease.status.closed) for lease in found.leases] == [("r-g0-0", False)]
    assert [notice.message for notice in found.warnings if notice.kind == "Lease"] == ENDS["closed"][3]


def test_one_that_cannot_be_read_is_set_aside_and_says_what_that_means() -> None:
    key = key_of(API, "Lease", "default", "r-g0-0")
    (found,) = intake([(key, msgspec.json.encode(merge(LEASE, {"spec": {"group": "first"}})))], "r1").quarantined

    fault = 'spec.group is "first"; allowed is a whole number from 0 to 1000000'
    assert found.message == (
        f"{fault}: its 1 GPU on n count as taken, what it was charged does not count, and Run r is not started again;"
        " mend it, or delete it if nothing runs there"
    )
