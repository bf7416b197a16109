"""Whatever a hand makes of a status: cycles plan the fleet, nothing is held twice or refunded (spec §2, §3.6)."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from jobtree.api import ANNOTATION_COMPLETED
from tests.cycle import hands, specs
from tests.cycle.played import NOTHING, cycle, held_twice, lacking
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import moment, unix
from tests.support.worlds import World

AT = unix("2026-01-01T00:10:00Z")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster lies."""
    return tmp_path_factory.mktemp("hands") / "cluster.json"


@examples(30)
@given(case=hands.mutilated())
def test_a_hand_stops_no_cycle(path: Path, case: hands.Case) -> None:
    path.write_text(doc.as_json(case.documents), encoding="utf-8")

    first = cycle(path, AT)
    assert first.violations == []
    assert held_twice(case.documents, doc.read(path)) == []
    assert cycle(path, AT, write=False).work == NOTHING

    later = cycle(path, AT + 60)
    assert later.work == NOTHING
    assert lacking(later.charged, first.charged) == {}


@pytest.fixture(scope="module")
def sound(path: Path) -> Mapping[tuple[str, str], int | float]:
    """What the cluster is charged that no hand has touched."""
    path.write_text(doc.as_json(hands.cluster()), encoding="utf-8")
    return cycle(path, AT, write=False).charged


@examples(30)
@given(case=hands.mutilated(kinds=("Lease",), most=1))
def test_what_a_lease_was_charged_stays(
    path: Path, sound: Mapping[tuple[str, str], int | float], case: hands.Case
) -> None:
    """A ledger that a hand made another one of, without a contradiction, is that other ledger."""
    path.write_text(doc.as_json(case.documents), encoding="utf-8")
    found = cycle(path, AT, write=False)

    if any(warning.object.startswith("Lease ") for warning in found.plan.warnings):
        assert lacking(found.charged, sound) == {}


@examples(30)
@given(case=specs.edited())
def test_an_edited_lease_stops_no_cycle(path: Path, case: hands.Case) -> None:
    path.write_text(doc.as_json(case.documents), encoding="utf-8")

    assert cycle(path, AT).violations == []
    assert held_twice(case.documents, doc.read(path)) == []
    assert cycle(path, AT, write=False).work_but_growth == NOTHING
    assert cycle(path, AT + 60).work_but_growth == NOTHING


@pytest.mark.parametrize("place", range(4))
def test_a_malleable_run_takes_nothing_for_a_group_that_a_hand_made_larger(path: Path, place: int) -> None:
    """A lease of either role in either group says the other role."""
    documents = copy.deepcopy(list(hands.cluster()))
    leases = [each for each in documents if each["kind"] == "Lease" and each["spec"]["runRef"]["name"] == "wide"]
    said = leases[place]["spec"]["slice"]
    said["role"] = {"Active": "Spare", "Spare": "Active"}[said["role"]]
    path.write_text(doc.as_json(documents), encoding="utf-8")

    assert len(leases) == 4
    assert [cycle(path, AT + 60 * number).violations for number in range(3)] == [[], [], []]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("owner", ["org", "org:b", "lab", "nobody"])
def test_one_lease_of_a_claim_may_name_another_owner(path: Path, place: int, owner: str) -> None:
    documents = copy.deepcopy(list(hands.cluster()))
    lease = [each for each in documents if each["kind"] == "Lease" and each["spec"]["runRef"]["name"] == "wide"][place]
    lease["spec"]["runOwner"] = owner
    path.write_text(doc.as_json(documents), encoding="utf-8")

    assert [cycle(path, AT + 60 * number).violations for number in range(2)] == [[], []]


def test_what_a_run_borrows_where_it_shares_already_stays_borrowed() -> None:
    world = World().node("n").budget("org", 1).budget("org:a", 8, lending={"allow": True}).budget("org:b", 0)
    widths = {"minTotalGPUs": 2, "maxTotalGPUs": 4, "stepGPUs": 2}
    world.run("r", 2, owner="org:b", by=2, malleable=widths | {"desiredTotalGPUs": 2})
    world.edit("Run", "r", spec={"funding": {"allowBorrow": True, "sponsors": ["org:a"]}}).cycle()
    alone = doc.envelope(8, sharing="none", lending={"allow": True, "maxDuration": "5m"})
    world.edit("Budget", "org-a", spec={"envelopes": [alone]})
    world.edit("Run", "r", spec={"malleable": widths | {"desiredTotalGPUs": 4}}).cycle("+1m")

    assert world.cycle("+2m").funding("r") == {"shared": 2, "borrowed": 2, "lenders": ["org:a"]}


SPECS: dict[str, Any] = {
    "an unknown field": {"colour": "red"},
    "an unknown field within": {"slice": {"speed": 3}},
    "a payer's owner without a payer": {"paidBy": None},
}


@pytest.mark.parametrize("patch", SPECS.values(), ids=SPECS)
def test_a_lease_with_an_odd_spec_holds_on_until_its_run_ends(patch: Document) -> None:
    world = World().node("n").budget("org", 16).run("r", 4)
    world.cycle()
    found = world.edit("Lease", "r-20260101t000000z-g0-0", spec=patch).run("s", 8).cycle("+1h")
    assert (found.running, found.waiting) == (["r"], ["s"])
    assert len(found.warnings["Lease default/r-20260101t000000z-g0-0"]) >= 1

    found = world.edit("Run", "r", spec={"state": "Cancelled"}).cycle("+2h")
    assert (found.phases, found.leases("r")[0].closure) == ({"r": "Failed", "s": "Running"}, "Cancelled")


def test_an_end_reported_for_settled_time_refunds_nothing() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 8)
    world.cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(4)]}).cycle("+1h")
    done = {"annotations": {ANNOTATION_COMPLETED: moment("+30m")}}
    found = world.edit("Run", "r", metadata=done).cycle("+2h")

    assert [(row.closure, row.ended) for row in found.leases("r")] == [("Completed", moment("+1h"))]
    assert world.usage("org-a", at="+2h")["gpuHoursConsumed"] == 8
