"""What may change once an object is there."""

from typing import Any

import pytest

from jobtree.api import KindObject, Refusal, decode
from jobtree.api.rules.kinds import check_update
from tests.api.test_refusals_other import CLOSED, LEASE, RESERVATION
from tests.support import documents as doc

RUN = doc.merge(
    doc.run("train", 128),
    {"spec": {"malleable": {"minTotalGPUs": 96, "maxTotalGPUs": 160, "stepGPUs": 32}, "spares": 1}},
)
MAY = "after creation only state, malleable.desiredTotalGPUs and funding.sponsors may change"


def read(document: doc.Document) -> KindObject:
    item = decode(document["kind"], document)
    assert isinstance(item, KindObject)
    return item


def update(before: doc.Document, patch: dict[str, Any]) -> None:
    check_update(read(before), read(doc.merge(before, patch)))


def refusal(before: doc.Document, patch: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as caught:
        update(before, patch)
    return str(caught.value)


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ({"owner": "org:b"}, 'spec.owner changed from "org:a" to "org:b"'),
        ({"resources": {"totalGPUs": 160}}, "spec.resources.totalGPUs changed from 128 to 160"),
        ({"malleable": {"minTotalGPUs": 64}}, "spec.malleable.minTotalGPUs changed from 96 to 64"),
        ({"malleable": None}, "spec.malleable.minTotalGPUs changed from 96 to nothing"),
        ({"spares": 2}, "spec.spares changed from 1 to 2"),
        ({"runtime": {"timeLimit": "1h"}}, 'spec.runtime.timeLimit changed from nothing to "1h"'),
        ({"funding": {"allowBorrow": True}}, "spec.funding.allowBorrow changed from nothing to true"),
        ({"follow": {"after": ["prep"]}}, "spec.follow.after changed from nothing to a list of 1 entry"),
    ],
)
def test_a_submitted_run_keeps_its_spec(patch: dict[str, Any], sentence: str) -> None:
    assert refusal(RUN, {"spec": patch}) == f"Run default/train: {sentence}; {MAY}"


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"state": "Suspended"},
        {"state": "Cancelled"},
        {"malleable": {"desiredTotalGPUs": 96}},
        {"funding": {"sponsors": ["org:b"]}},
        {"spares": None, "sparesPerGroup": 1},
        {"locality": {"allowCrossGroupSpread": True}},
    ],
)
def test_what_may_change_of_a_run(patch: dict[str, Any]) -> None:
    update(RUN, {"spec": patch})


def test_cancelled_is_final() -> None:
    cancelled = doc.merge(RUN, {"spec": {"state": "Cancelled"}})
    update(cancelled, {"spec": {"funding": {"sponsors": ["org:b"]}}})
    assert refusal(cancelled, {"spec": {"state": "Active"}}) == (
        'Run default/train: spec.state is "Active"; allowed is Cancelled, which is final'
    )
    assert refusal(cancelled, {"spec": {"state": None}}) == (
        'Run default/train: spec.state is "Active"; allowed is Cancelled, which is final'
    )


def test_the_owner_of_a_budget_never_changes() -> None:
    budget = doc.budget("org:a", [doc.envelope(8)], "a")
    update(budget, {"spec": {"envelopes": [doc.envelope(4)], "parents": []}})
    assert refusal(budget, {"spec": {"owner": "org:b"}}) == (
        'Budget a: spec.owner changed from "org:a" to "org:b"; the owner of a Budget never changes'
    )


def test_a_lease_is_an_immutable_fact() -> None:
    assert refusal(LEASE, {"spec": {"paidBy": {"envelope": "other"}}}) == (
        'Lease team/r-g0-0: spec.paidBy.envelope changed from "gpus" to "other"; the spec of a Lease never changes'
    )
    assert refusal(LEASE, {"spec": {"slice": {"nodes": ["n1#0", "n1#2"]}}}) == (
        'Lease team/r-g0-0: spec.slice.nodes[1] changed from "n1#1" to "n1#2"; the spec of a Lease never changes'
    )


def test_a_closed_lease_stays_closed() -> None:
    update(LEASE, {"status": CLOSED})
    closed = doc.merge(LEASE, {"status": CLOSED})
    update(closed, {})
    assert refusal(closed, {"status": None}) == (
        "Lease team/r-g0-0: status.closed changed from true to false; a closed Lease is final"
    )
    assert refusal(closed, {"status": {"closureReason": "Failed"}}) == (
        'Lease team/r-g0-0: status.closureReason changed from "Completed" to "Failed"; a closed Lease is final'
    )


def test_segments_are_only_ever_appended() -> None:
    first = {"class": "owned", "from": "2026-01-01T00:00:00Z"}
    ended = {**first, "to": "2026-01-01T01:00:00Z"}
    second = {"class": "unfunded", "from": "2026-01-01T01:00:00Z"}
    one, two = (
        doc.merge(LEASE, {"status": {"funding": [first]}}),
        doc.merge(LEASE, {"status": {"funding": [ended, second]}}),
    )
    update(LEASE, {"status": {"funding": [first]}})
    update(one, {"status": {"funding": [ended, second]}})
    assert refusal(one, {"status": {"funding": []}}) == (
        "Lease team/r-g0-0: status.funding[0] is missing; allowed is what it was: segments are only ever appended"
    )
    assert refusal(two, {"status": {"funding": [{**ended, "class": "shared"}, second]}}) == (
        'Lease team/r-g0-0: status.funding[0].class changed from "owned" to "shared"; segments are never rewritten'
    )
    assert refusal(two, {"status": {"funding": [{**ended, "to": "2026-01-01T00:30:00Z"}, second]}}) == (
        'Lease team/r-g0-0: status.funding[0].to changed from "2026-01-01T01:00:00Z" to "2026-01-01T00:30:00Z"; '
        "segments are never rewritten"
    )


def test_a_promise_keeps_its_first_words() -> None:
    update(RESERVATION, {"status": {"state": "Activated", "earliestStart": "2026-01-01T00:20:00Z"}})
    assert refusal(RESERVATION, {"spec": {"earliestStart": "2026-01-01T00:20:00Z"}}) == (
        'Reservation team/r: spec.earliestStart changed from "2026-01-01T00:15:00Z" to "2026-01-01T00:20:00Z"; '
        "the spec of a Reservation never changes"
    )


def test_a_policy_may_change() -> None:
    update(doc.policy(), {"spec": {"mode": "observe"}})
