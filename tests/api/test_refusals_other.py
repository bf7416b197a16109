"""What a Lease, a Reservation and a Policy are refused for."""

from typing import Any

import pytest

from jobtree.api import KindObject, Refusal, decode
from jobtree.api.rules.kinds import check_object
from tests.support import documents as doc

LEASE: doc.Document = {
    "apiVersion": doc.API,
    "kind": "Lease",
    "metadata": {"name": "r-g0-0", "namespace": "team"},
    "spec": {
        "owner": "org:a",
        "runRef": {"name": "r"},
        "runUid": "u",
        "runOwner": "org:a",
        "flavor": "H100-80GB",
        "group": 0,
        "slice": {"nodes": ["n1#0", "n1#1"], "role": "Active"},
        "interval": {"start": "2026-01-01T00:00:00Z"},
        "paidBy": {"budget": "org-a", "envelope": "gpus"},
        "reason": "Start",
        "cycle": "20260101T000000Z",
    },
}
CLOSED = {"closed": True, "ended": "2026-01-01T02:00:00Z", "closureReason": "Completed"}
RESERVATION: doc.Document = {
    "apiVersion": doc.API,
    "kind": "Reservation",
    "metadata": {"name": "r", "namespace": "team"},
    "spec": {
        "runRef": {"name": "r"},
        "intendedSlice": {"domain": {"fabric.domain": "B"}},
        "payingEnvelopes": [{"budget": "org-a", "envelope": "gpus"}],
        "earliestStart": "2026-01-01T00:15:00Z",
    },
}


def judge(document: doc.Document) -> None:
    item = decode(document["kind"], document)
    assert isinstance(item, KindObject)
    assert check_object(item) == []


def refusal(document: doc.Document) -> str:
    with pytest.raises(Refusal) as caught:
        judge(document)
    return str(caught.value)


def slots(*nodes: str) -> doc.Document:
    return {"spec": {"slice": {"nodes": list(nodes)}}}


def ledger(*segments: tuple[str, str | None]) -> doc.Document:
    return {"status": {"funding": [{"class": "owned", "from": start, "to": end} for start, end in segments]}}


SLOT = "a slot such as n07#3: a node's name, # and a number from 0 to 999"


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        (
            slots("n1#0", "n2#1"),
            'spec.slice.nodes[1] is "n2#1"; allowed is a slot of n1, since a lease never spans two nodes',
        ),
        (slots("n1#0", "n1#0"), 'spec.slice.nodes[1] is "n1#0"; allowed is each slot once, and it is listed twice'),
        (slots("n1#0", "n1"), f'spec.slice.nodes[1] is "n1"; allowed is {SLOT}'),
        (slots("n1#x"), f'spec.slice.nodes[0] is "n1#x"; allowed is {SLOT}'),
        (slots("n1#01"), f'spec.slice.nodes[0] is "n1#01"; allowed is {SLOT}'),
        (slots("#1"), f'spec.slice.nodes[0] is "#1"; allowed is {SLOT}'),
        (slots("n1#-1"), f'spec.slice.nodes[0] is "n1#-1"; allowed is {SLOT}'),
        (
            {"spec": {"paidBy": None, "owner": "org:b"}},
            'spec.owner is "org:b"; allowed is spec.runOwner, org:a, where nobody pays',
        ),
        (
            {"status": {**CLOSED, "ended": None}},
            "status.ended is missing; allowed is a time, since the lease is closed",
        ),
        (
            {"status": {**CLOSED, "ended": "2025-12-31T00:00:00Z"}},
            "status.ended is 2025-12-31T00:00:00Z; allowed is a time at or after spec.interval.start",
        ),
        (
            {"status": {**CLOSED, "closureReason": None}},
            "status.closureReason is missing; allowed is a reason, since the lease is closed",
        ),
        (
            {"status": {**CLOSED, "closed": False}},
            "status.ended is 2026-01-01T02:00:00Z; allowed is nothing while the lease is open",
        ),
        (
            {"status": {"closureReason": "Swap"}},
            'status.closureReason is "Swap"; allowed is nothing while the lease is open',
        ),
        (
            ledger(("2025-12-31T00:00:00Z", None)),
            "status.funding[0].from is 2025-12-31T00:00:00Z; allowed is a time at or after what comes before it",
        ),
        (
            ledger(("2026-01-01T00:00:00Z", None), ("2026-01-01T01:00:00Z", None)),
            "status.funding[0].to is missing; allowed is a time, since another segment follows",
        ),
        (
            ledger(("2026-01-01T02:00:00Z", "2026-01-01T01:00:00Z")),
            "status.funding[0].to is 2026-01-01T01:00:00Z; allowed is a time at or after its from",
        ),
    ],
)
def test_a_broken_lease_is_refused_in_one_sentence(patch: doc.Document, sentence: str) -> None:
    assert refusal(doc.merge(LEASE, patch)) == f"Lease team/r-g0-0: {sentence}"


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"spec": {"paidBy": None}},
        {"status": CLOSED},
        ledger(("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"), ("2026-01-01T01:00:00Z", None)),
        {"status": {"later": "versions may say more"}},
    ],
)
def test_what_a_lease_may_say(patch: doc.Document) -> None:
    judge(doc.merge(LEASE, patch))


def test_a_reservation_needs_a_place() -> None:
    judge(RESERVATION)
    assert refusal(doc.merge(RESERVATION, {"spec": {"intendedSlice": {"domain": None}}})) == (
        "Reservation team/r: spec.intendedSlice.domain is missing; allowed is domain, nodes or both"
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"spares": {"discount": 0.1234}},
            "spec.spares.discount is 0.1234; allowed is a number from 0 to 1 with at most 3 decimals",
        ),
        ({"spares": {"discount": 2}}, "spec.spares.discount is 2; allowed is a number from 0 to 1"),
        ({"mode": "dry"}, 'spec.mode is "dry"; allowed is one of enforce, noCuts, observe'),
        (
            {"stages": ["growth"]},
            (
                "spec.stages is a list of 1 entry; "
                "allowed is a list with starts; only growth and opportunistic may be dropped"
            ),
        ),
        (
            {"stages": ["starts", "starts"]},
            'spec.stages[1] is "starts"; allowed is each stage once, and it is listed twice',
        ),
        ({"age": {"unit": "0s"}}, "spec.age.unit is 0s; allowed is a duration above 0s"),
        (
            {
                "maintenance": [
                    {"selector": {"rack": "r1"}, "start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
                ]
            },
            "spec.maintenance[0].end is 2026-01-01T00:00:00Z; allowed is a time after its start, 2026-01-02T00:00:00Z",
        ),
        (
            {"resourceNames": ["nvidia.com/gpu", "nvidia.com/gpu"]},
            'spec.resourceNames[1] is "nvidia.com/gpu"; allowed is each resource once, and it is listed twice',
        ),
        (
            {"creditRates": {"H100-80GB": 2, "A100": -1}},
            "spec.creditRates.A100 is -1; allowed is a number from 0 to 1000000000",
        ),
        ({"reservation": {}}, "spec.reservation is not a field of Policy; did you mean reservations?"),
    ],
)
def test_a_broken_policy_is_refused_in_one_sentence(spec: dict[str, Any], sentence: str) -> None:
    assert refusal(doc.policy(**spec)) == f"Policy default: {sentence}"


def test_only_one_policy_is_read() -> None:
    assert refusal(doc.merge(doc.policy(), {"metadata": {"name": "other"}})) == (
        'Policy other: metadata.name is "other"; allowed is default, the one Policy that is read'
    )
