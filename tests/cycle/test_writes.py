"""Merge patches, the ledger's patches, when usage is rewritten, and which Plans stay: what the writes are made of."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.plans import planjson
from exporters.plans.plain import merge_patch, status, status_patch
from exporters.writes.writes import usage_is_due, writes_for
from jobtree.api import Plan as PlanObject
from jobtree.api import Time
from jobtree.api.kinds.budget import BudgetStatus, EnvelopeUsage
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.plan import Counts
from jobtree.api.kinds.reservation import IntendedSlice, ReservationStatus
from jobtree.api.kinds.run import RUN_CONDITIONS, Eta, RunStatus, Width
from jobtree.cluster.edits import merge_patch as apply_patch
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Closure, Plan, Segment
from tests.cycle.test_words import lease, plan_of
from tests.support.times import T0, rfc3339, unix
from tests.support.worlds import World

AT = unix(T0)

scalars = st.integers(0, 3) | st.sampled_from(["a", "b"]) | st.booleans()
objects: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(st.sampled_from("xyz"), scalars | st.lists(scalars, max_size=2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner | scalars, max_size=3),
    max_leaves=6,
)


@given(objects, objects)
def test_a_merge_patch_makes_the_new_of_the_old_and_is_empty_for_equals(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    patch = merge_patch(old, new)
    copy = msgspec.json.decode(msgspec.json.encode(old))
    assert apply_patch(copy, patch) == new
    assert merge_patch(new, new) == {}


def test_a_status_says_its_zeros_and_leaves_out_what_is_not_there() -> None:
    assert status(Counts(started=1)) == {
        "started": 1, "waiting": 0, "grown": 0, "cut": 0, "leasesOpened": 0, "leasesClosed": 0, "reservations": 0,
        "gpusStarted": 0, "gpusClosed": 0,
    }  # fmt: skip
    assert status(BudgetStatus(envelopes=(EnvelopeUsage(name="e"),)))["envelopes"][0] == {
        "name": "e", "ownedGPUs": 0, "sharedGPUs": 0, "borrowedGPUs": 0, "unfundedGPUs": 0, "spareGPUs": 0,
        "headroomGPUs": 0, "gpuSecondsConsumed": 0, "gpuHoursConsumed": 0, "gpuHoursCommitted": 0,
    }  # fmt: skip


times = st.none() | st.integers(AT, AT + 1).map(Time)
conditions = st.builds(
    Condition, type=st.sampled_from(RUN_CONDITIONS[:2]), status=st.sampled_from(["True", "False"]),
    message=st.sampled_from(["", "words"]), last_transition_time=times, observed_generation=st.integers(0, 1),
)  # fmt: skip
run_statuses = st.builds(
    RunStatus, phase=st.none() | st.sampled_from(["Pending", "Running"]), conditions=st.tuples(conditions, conditions),
    width=st.none() | st.builds(Width, min=st.integers(0, 1), allocated=st.integers(0, 1)),
    eta=st.none() | st.builds(Eta, p50=times), started=times, deficit_gpus=st.none() | st.integers(0, 1),
    conflict_sets=st.sampled_from([(), ("a/b",)]), observed_generation=st.integers(0, 1),
)  # fmt: skip


@given(run_statuses, run_statuses)
def test_a_patch_of_a_status_is_the_patch_of_its_plain_values(old: RunStatus, new: RunStatus) -> None:
    assert status_patch(old, new) == merge_patch(status(old), status(new))


slices = st.builds(
    ReservationStatus,
    intended_slice=st.none() | st.builds(IntendedSlice, domain=st.dictionaries(st.sampled_from("ab"), st.just("x"))),
)


@given(slices, slices)
def test_labels_of_a_status_are_patched_one_by_one(old: ReservationStatus, new: ReservationStatus) -> None:
    assert status_patch(old, new) == merge_patch(status(old), status(new))


def usage(owned: int = 4, seconds: int = 0, updated: int | None = None) -> BudgetStatus:
    envelope = EnvelopeUsage(name="e", owned_gpus=owned, gpu_seconds_consumed=seconds)
    return BudgetStatus(envelopes=(envelope,), updated=None if updated is None else Time(updated))


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        (BudgetStatus(), usage(), True),
        (usage(updated=AT), usage(owned=5), True),
        (usage(updated=AT), usage(), False),
        (usage(updated=AT), usage(seconds=240), False),
        (usage(updated=AT - 539), usage(seconds=240), False),
        (usage(updated=AT - 540), usage(seconds=240), True),
        (usage(updated=AT - 9999), usage(), False),
        (usage(), usage(seconds=240), True),
    ],
)
def test_usage_is_rewritten_when_more_than_the_clock_moved_it_else_every_ten_minutes(
    before: BudgetStatus, after: BudgetStatus, due: bool
) -> None:
    assert usage_is_due(before, after, AT + 60) is due


def written(world: World, plan: Plan) -> list[Write]:
    return writes_for(StateFile(world.save(), AT).read(), plan, planjson.encode(plan))


def test_the_plan_comes_first_and_last_and_closures_come_before_creations() -> None:
    world = World().run("r", 1).add(stored_lease("old"), stored_lease("kept", owned_from=-60))
    plan = plan_of(
        closures=[Closure(namespace="default", name="old", ended=AT, reason="Completed")],
        segments=[
            Segment(namespace="default", name="kept", funding_class="unfunded", since=AT - 30),
            Segment(namespace="default", name="kept", funding_class="owned", since=AT - 10, rate_milli=1500),
        ],
        leases=[lease("new")],
    )
    writes = written(world, plan)
    assert [(write.verb, str(write.ref)) for write in writes] == [
        ("create", "Plan 20260101t000000z"),
        ("patch", "Lease default/old"),
        ("patch", "Lease default/old"),
        ("patch", "Lease default/kept"),
        ("create", "Lease default/new"),
        ("create", "ConfigMap jobtree-system/jobtree-budgets"),
        ("patch", "Plan 20260101t000000z"),
    ]
    assert [dict(write.body) for write in writes[1:4]] == [
        {
            "status": {
                "closed": True,
                "ended": T0,
                "closureReason": "Completed",
                "funding": [{"class": "owned", "from": rfc3339(AT - 3600), "to": T0}],
            }
        },
        {"metadata": {"finalizers": None}},
        {
            "status": {
                "funding": [
                    {"class": "owned", "from": rfc3339(AT - 60), "to": rfc3339(AT - 30)},
                    {"class": "unfunded", "from": rfc3339(AT - 30), "to": rfc3339(AT - 10)},
                    {"class": "owned", "from": rfc3339(AT - 10), "rate": 1.5},
                ]
            }
        },
    ]
    assert (writes[0].body["status"]["phase"], writes[-1].body) == ("Planned", {"status": {"phase": "Applied"}})


def test_under_observe_only_the_plan_is_written() -> None:
    world = World().run("r", 1).policy(mode="observe")
    assert [(write.verb, write.ref) for write in written(world, plan_of(leases=[lease("new")]))] == [
        ("create", Ref("Plan", "", "20260101t000000z"))
    ]


def test_the_oldest_plans_go_when_there_are_more_than_the_policy_keeps() -> None:
    world = World().policy(retention={"plans": 3})
    for hour in (3, 1, 2):
        world.add(stored_plan(f"p{hour}", AT - hour * 3600))
    gone = [write.ref.name for write in written(world, plan_of()) if write.verb == "delete"]
    assert gone == ["p3"]


def test_a_second_plan_of_the_same_second_replaces_the_first() -> None:
    world = World().add(stored_plan("20260101t000000z", AT))
    verbs = [(write.verb, write.ref.name) for write in written(world, plan_of())]
    assert verbs == [
        ("delete", "20260101t000000z"),
        ("create", "20260101t000000z"),
        ("create", "jobtree-budgets"),
        ("patch", "20260101t000000z"),
    ]


def test_writing_the_same_again_writes_nothing() -> None:
    world = World().run("r", 1).add(stored_lease("old"))
    plan = plan_of(closures=[Closure(namespace="default", name="old", ended=AT, reason="Completed")])
    file = StateFile(world.save(), AT)
    file.write(written(world, plan), file.read().revision)
    assert [(each.status.phase, each.spec.at) for each in file.read().plans] == [("Applied", AT)]
    assert isinstance(file.read().plans[0], PlanObject)
    again = [(write.verb, str(write.ref)) for write in written(world, plan)]
    assert again == []


def stored_lease(name: str, owned_from: int = -3600) -> dict[str, Any]:
    start = rfc3339(AT + owned_from)
    return {
        "apiVersion": "rq.davidlangworthy.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "default", "finalizers": ["rq.davidlangworthy.io/open-lease"]},
        "spec": {
            "owner": "org:a",
            "runRef": {"name": "r"},
            "runUid": "uid",
            "runOwner": "org:a",
            "flavor": "H100-80GB",
            "group": 0,
            "slice": {"nodes": [f"{name}#0"], "role": "Active"},
            "interval": {"start": start},
            "paidBy": {"budget": "b", "envelope": "e"},
            "reason": "Start",
        },
        "status": {"closed": False, "funding": [{"class": "owned", "from": start}]},
    }


def stored_plan(name: str, at: int) -> dict[str, Any]:
    return {
        "apiVersion": "rq.davidlangworthy.io/v1",
        "kind": "Plan",
        "metadata": {"name": name},
        "spec": {
            "at": rfc3339(at),
            "snapshot": "0" * 64,
            "policy": "0" * 64,
            "version": "0.1.0",
            "solver": {"name": "HiGHS"},
        },
        "status": {"phase": "Applied"},
    }
