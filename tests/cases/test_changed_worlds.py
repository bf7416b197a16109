"""A nearer start recalls once the world has changed since a claim was admitted, whatever changed (spec §3.8, §4)."""

from collections.abc import Callable

import pytest

from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import ObjectMeta, Plan, Time
from jobtree.api.kinds.plan import PlanPhase, PlanSpec, PlanStatus, Solver
from jobtree.check import check
from jobtree.cluster import edits
from jobtree.world.memory import seen
from jobtree.world.tables.snapshot import take
from planner import plan as plan_of
from tests.history.play import Cluster, Step
from tests.reference.worlds import AT
from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import World

SOME, OTHER = "0" * 64, "f" * 64


def waiting() -> World:
    """org:a's child and org:b fill both nodes and won by their age; own, whose quota child holds, waits for an hour."""
    world = World().domain("A", nodes=2).node("out", spec={"unschedulable": True}).budget("org:a", 8)
    world.budget("org:b", 16).run("child", 8, owner="org:a:x", created="-60h")
    world.run("other", 8, owner="org:b", created="-60h").run("own", 8, created="-3h")
    for at in ("-2h", "-1h", "+0s"):
        cycle = world.cycle(at)
        assert (cycle.running, cycle.waiting, cycle.funding("child")) == (["child", "other"], ["own"], {"shared": 8})
    return world


def completed(world: World) -> None:
    world.runs("complete", "other", at="+5m")


def cancelled(world: World) -> None:
    world.edit("Run", "other", spec={"state": "Cancelled"})


def suspended(world: World) -> None:
    world.edit("Run", "other", spec={"state": "Suspended"})


def deleted(world: World) -> None:
    world.delete("Run", "other")


def uncordoned(world: World) -> None:
    world.edit("Node", "out", spec={"unschedulable": False})


def more(world: World) -> None:
    world.domain("B")


@pytest.mark.parametrize("change", [completed, cancelled, suspended, deleted, uncordoned, more])
def test_room_that_comes_later_is_used_in_the_cycle_that_sees_it(change: Callable[[World], None]) -> None:
    world = waiting()
    change(world)
    cycle, again = world.cycle("+5m"), world.cycle("+6m")

    assert (cycle.funding("own"), cycle.funding("child")) == ({"owned": 8}, {"unfunded": 8})
    assert [again.plan.leases, again.plan.segments, again.plan.runs] == [[], [], []]


def test_so_is_room_that_a_time_limit_leaves() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).budget("org:b", 8)
    world.run("child", 8, owner="org:a:x", created="-60h").run("own", 8, created="-3h")
    world.run("other", 8, owner="org:b", limit="2h", created="-60h")
    assert (world.cycle("-2h").waiting, world.cycle("-1s").waiting) == (["own"], ["own"])

    assert world.cycle().funding("child") == {"unfunded": 8}


def test_a_run_that_is_resumed_recalls() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("child", 8, owner="org:a:x", created="-3h")
    assert world.run("own", 8, created="-3h", state="Suspended").cycle("-2h").running == ["child"]
    world.edit("Run", "own", spec={"state": "Active"})

    assert world.cycle().funding("child") == {"unfunded": 8}


def test_so_does_a_run_that_was_submitted_in_the_very_second_of_the_cycle_before() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("child", 8, owner="org:a:x")
    assert world.cycle("-1h").running == ["child"]
    world.run("own", 8, created="-1h")

    assert world.cycle().funding("child") == {"unfunded": 8}


def test_and_one_whose_budget_comes_later() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 4)
    world.run("child", 4, owner="org:a:x", created="-3h").run("own", 8, created="-4h")
    assert (world.cycle("-2h").waiting, world.cycle("-1h").waiting) == (["own"], ["own"])
    world.budget("org:a", 4, name="org-a-more")

    assert world.cycle().funding("child") == {"unfunded": 4}


def test_and_one_whose_budget_opens_with_the_clock() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 4)
    world.budget("org:a", 4, name="org-a-more", start="2026-01-01T00:00:00Z")
    world.run("child", 4, owner="org:a:x", created="-3h").run("own", 8, created="-4h")
    assert (world.cycle("-2h").waiting, world.cycle("-1s").waiting) == (["own"], ["own"])

    assert world.cycle().funding("child") == {"unfunded": 4}


def test_and_one_whose_node_is_no_longer_in_maintenance() -> None:
    world = World().domain("A").domain("B", labels={"rack": "r"}).budget("org:a", 8)
    window = {"selector": {"rack": "r"}, "start": "2025-12-31T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
    world.policy(maintenance=[window]).run("child", 8, owner="org:a:x", created="-3h").run("own", 8, created="-2h")
    assert (world.cycle("-2h").waiting, world.cycle("-1s").waiting) == (["own"], ["own"])

    assert world.cycle().funding("child") == {"unfunded": 8}


def test_and_one_whose_node_is_left_by_a_foreign_pod() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).foreign_pod("theirs", "a02", 8)
    world.run("child", 8, owner="org:a:x", created="-3h").run("own", 8, created="-2h")
    assert (world.cycle("-2h").waiting, world.cycle("-1s").waiting) == (["own"], ["own"])
    world.delete("Pod", "theirs")

    assert world.cycle().funding("child") == {"unfunded": 8}


def test_and_one_that_follows_a_run_without_gpus_whose_pods_succeeded() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("child", 8, owner="org:a:x", created="-3h")
    cpus = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    world.run("prep", 1, resources=cpus, created="-4h").run("own", 8, created="-2h", follow={"after": ["prep"]})
    assert (world.cycle("-2h").waiting, world.cycle("-1s").waiting) == (["own"], ["own"])
    mine = {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": "prep"}}
    world.add(doc.merge(doc.foreign_pod("p", "a02", 0), {"metadata": mine, "status": {"phase": "Succeeded"}}))
    cycle, again = world.cycle(), world.cycle("+1h")

    assert (cycle.phases["prep"], cycle.funding("own"), cycle.funding("child")) == (
        "Completed",
        {"owned": 8},
        {"unfunded": 8},
    )
    assert [again.plan.changed, again.plan.leases, again.plan.segments, again.plan.runs] == [AT, [], [], []]


def lent(lasts: str) -> World:
    """All of org:b's quota is out on loan from -5h on, while its own run waits."""
    world = World().domain("A", nodes=2).budget("org:b", 8, lending={"allow": True, "maxDuration": lasts})
    borrows = {"allowBorrow": True, "sponsors": ["org:b"]}
    world.run("guest", 8, owner="org:c", created="-60h", funding=borrows).run("own", 8, owner="org:b", created="-10h")
    assert world.cycle("-5h").funding("guest") == {"borrowed": 8, "lenders": ["org:b"]}
    return world


def test_and_one_whose_quota_was_lent_for_long_enough() -> None:
    world = lent("2h")
    young, last, old, again = (world.cycle(at) for at in ("-4h", "-10801s", "-3h", "-2h"))

    assert [cycle.running for cycle in (young, last, old, again)] == [["guest"], ["guest"], *[["guest", "own"]] * 2]
    assert (old.funding("own"), old.funding("guest")) == ({"owned": 8}, {"unfunded": 8})
    began, aged = AT - 5 * 3600, AT - 3 * 3600
    assert [cycle.plan.changed for cycle in (young, last, old, again)] == [began, began, aged, aged]


def test_an_old_loan_that_ends_changes_the_world_once() -> None:
    world = lent("2h")
    world.runs("complete", "guest", at="-90m").ok()
    ended, again = world.cycle("-1h"), world.cycle()

    assert (ended.running, [cycle.plan.changed for cycle in (ended, again)]) == (["own"], [AT - 3600] * 2)


def test_a_loan_of_no_duration_is_old_as_it_begins_and_its_owner_is_promised_what_is_its_own() -> None:
    world = lent("0s")
    due, later = world.cycle("-4h"), world.cycle("-3h")

    assert [cycle.plan.changed for cycle in (due, later)] == [AT - 4 * 3600] * 2  # the promise was due at -4h45m
    assert (due.funding("own"), due.funding("guest")) == ({"owned": 8}, {"unfunded": 8})


def test_what_the_last_cycle_was_given_counts_whether_it_was_carried_out_or_not() -> None:
    def plan(at: int, phase: PlanPhase, given: str | None, changed: int | None) -> Plan:
        solver, since = Solver(name="s"), None if changed is None else Time(changed)
        spec = PlanSpec(at=Time(at), snapshot=SOME, policy=SOME, version="0", solver=solver, given=given, changed=since)
        return Plan(metadata=ObjectMeta(name=f"p{at}"), spec=spec, status=PlanStatus(phase=phase))

    one, two, old = plan(1, "Applied", SOME, 1), plan(2, "Planned", OTHER, 2), plan(3, "Applied", None, None)

    assert seen.last_world([]) is None
    assert seen.last_world([two, one]) == (OTHER, 2)
    assert seen.last_world([two, old, one]) is None


def contested() -> Cluster:
    """first and second, both of a child, win org:a's quota by their age; own could recall any one of them."""
    found = [*(doc.node(name) for name in "abc"), doc.budget("org:a", [doc.envelope(8)]), doc.policy()]
    for name, gpus, owner, created in (
        ("first", 6, "org:a:x", "-60h"),
        ("second", 2, "org:a:x", "-60h"),
        ("own", 8, "org:a", "-3h"),
    ):
        stamp = {"creationTimestamp": moment(created), "uid": f"uid-{name}"}
        found.append(doc.merge(doc.run(name, gpus, owner), {"metadata": stamp}))
    cluster = Cluster()
    cluster.change(Step(AT, put=found))
    return cluster


def test_a_crash_after_any_write_gives_no_run_what_it_had_lost() -> None:
    """The next cycle completes what the crashed one decided, and then finds the world as that had left it."""
    later = 60

    def settled(cluster: Cluster) -> dict[str, tuple[str, str]]:
        runs = [each for each in cluster.documents() if each["kind"] == "Run"]
        return {run["metadata"]["name"]: (run["status"]["phase"], str(run["status"].get("funding"))) for run in runs}

    whole = contested()
    made = plan_of(take(whole.read()), AT)
    writes = writes_for(whole.read(), made, planjson.encode(made))
    edits.apply(whole.text, writes, Time(AT))
    assert [phase for phase, _ in settled(whole).values()] == ["Running", "Running", "Pending"]
    for done in range(len(writes)):
        crashed = contested()
        edits.apply(crashed.text, writes[:done], Time(AT))
        edits.apply(crashed.text, writes_for(crashed.read(), made, planjson.encode(made)), Time(AT))
        then = plan_of(take(crashed.read()), AT + later)
        assert list(check(take(crashed.read()), then)) == []
        edits.apply(crashed.text, writes_for(crashed.read(), then, planjson.encode(then)), Time(AT + later))
        assert settled(crashed) == settled(whole)
