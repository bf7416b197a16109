"""Gangs, trees and ends: the cases of a run's life (spec §1, §7)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import World

GANG: dict[str, Any] = {"gang": {"name": "g", "size": 2}}


def test_L9_a_gang_of_runs_starts_together_or_not_at_all() -> None:
    world = World().node("n1").budget("org:a", 64).run("one", 8, **GANG).run("two", 8, **GANG)
    cycle = world.cycle()
    assert (cycle.phases, cycle.leases()) == ({"one": "Pending", "two": "Pending"}, [])
    words = "GPUs and money are there, but not for all of its gang at once; gang g of 2 starts whole or not at all"
    said = "Contended", f"Asks for 8 GPUs: {words}."
    assert {name: (wait.reason, wait.message) for name, wait in cycle.waits.items()} == {"one": said, "two": said}

    cycle = world.node("n2").cycle("+1m")
    assert cycle.phases == {"one": "Running", "two": "Running"}
    assert {row.start for row in cycle.leases()} == {"2026-01-01T00:01:00Z"}


def test_L9_an_incomplete_gang_waits_and_lets_others_pass() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("one", 8, **GANG).run("other", 8)
    cycle = world.cycle()
    assert cycle.phases == {"one": "Pending", "other": "Running"}
    assert cycle.waits["one"].message == "Gang g has 1 of its 2 runs: 1 is not there; submit 1 more run with gang g."

    cycle = world.node("n3").run("two", 8, created="+1s", **GANG).cycle("+1m")
    assert cycle.running == ["one", "other", "two"]


def test_L9_money_for_one_only() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).budget("org:b", 7)
    cycle = world.run("one", 8, **GANG).run("two", 8, owner="org:b", **GANG).cycle()

    assert (cycle.phases, cycle.leases()) == ({"one": "Pending", "two": "Pending"}, [])
    assert ("concurrency", "org-b/gpus", 1, "GPU") in cycle.shorts("two")


def test_L9_a_gang_beats_one_lighter_run() -> None:
    # two nodes: the gang of 8 + 8, or the run of 8 alone
    world = World().domain("A", nodes=2).budget("org:a", 64).run("lone", 8).run("one", 8, **GANG).run("two", 8, **GANG)
    cycle = world.cycle()

    assert cycle.running == ["one", "two"]


def tree(quota: dict[str, int], *children: int) -> World:
    """A root of 8 with a quota and children, in that order."""
    world = World().domain("A", nodes=8).budget("org:a", 64).run("root", 8, quota=quota)
    for number, gpus in enumerate(children, start=1):
        world.run(f"child{number}", gpus, parent="root")
    return world


@pytest.mark.parametrize(("quota", "short"), [(24, 8), (31, 1)])
def test_L10_a_tree_keeps_its_quota(quota: int, short: int) -> None:
    cycle = tree({"maxGPUs": quota}, 8, 8, 8).cycle()

    assert cycle.phases == {"root": "Running", "child1": "Running", "child2": "Running", "child3": "Pending"}
    assert cycle.shorts("child3") == [("tree", "default/root", short, "GPU")]
    assert "quota" in cycle.waits["child3"].message
    assert "root" in cycle.waits["child3"].message


def test_L10_over_cycles_and_levels() -> None:
    world = tree({"maxGPUs": 20}, 8)
    assert world.cycle().running == ["child1", "root"]
    cycle = world.run("grandchild", 6, parent="child1", created="+1s").cycle("+1m")
    assert cycle.shorts("grandchild") == [("tree", "default/root", 2, "GPU")]

    cycle = world.edit("Run", "root", spec={"state": "Cancelled"}).cycle("+2m")
    assert cycle.phases == {"root": "Failed", "child1": "Running", "grandchild": "Running"}


def test_L10_hours_of_a_tree() -> None:
    # 8 GPUs for 3 h of 40 GPU-hours; a child of 8 for 2 h 30 is 4 over
    world = World().domain("A", nodes=8).budget("org:a", 64).run("root", 8, limit="3h", quota={"maxGPUHours": 40})
    cycle = world.run("child", 8, limit="2h30m", parent="root").cycle()

    assert cycle.phases == {"root": "Running", "child": "Pending"}
    assert cycle.shorts("child") == [("tree", "default/root", 4, "GPU-hour")]


def test_L10_unfunded_work_counts_too() -> None:
    world = World().domain("A", nodes=8).run("root", 8, quota={"maxGPUs": 12}, funding={"opportunistic": True})
    cycle = world.run("child", 8, parent="root", funding={"opportunistic": True}).cycle()

    assert cycle.phases == {"root": "Running", "child": "Pending"}
    assert cycle.shorts("child") == [("tree", "default/root", 4, "GPU")]


def two_for_one_node() -> World:
    """L12: one node of 8, held by a run of 8; another of 8 waits for it."""
    world = World().node("n").budget("org:a", 64).run("first", 8).run("second", 8)
    assert world.cycle().phases == {"first": "Running", "second": "Pending"}
    return world


@pytest.mark.parametrize(
    ("command", "phase", "closure"), [("complete", "Completed", "Completed"), ("cancel", "Failed", "Cancelled")]
)
def test_L12_an_end_frees_the_slots_in_its_cycle(command: str, phase: str, closure: str) -> None:
    world = two_for_one_node()
    world.runs(command, "first", at="+1m").ok()
    cycle = world.cycle("+2m")

    assert cycle.phases == {"first": phase, "second": "Running"}
    (first,), (second,) = cycle.leases("first"), cycle.leases("second")
    assert first.closure == closure
    assert first.ended == ("2026-01-01T00:01:00Z" if command == "complete" else "2026-01-01T00:02:00Z")
    assert (second.slots, second.start, second.open) == (first.slots, "2026-01-01T00:02:00Z", True)
    reached = cycle.condition("first", phase)
    assert (reached["status"], reached["reason"]) == ("True", closure)


def test_L12_a_deleted_run_leaves_closed_leases() -> None:
    world = two_for_one_node().delete("Run", "first")
    cycle = world.cycle("+2m")

    assert cycle.phases == {"second": "Running"}
    assert [(row.closure, row.ended) for row in cycle.leases("first")] == [("RunDeleted", "2026-01-01T00:02:00Z")]


def test_L12_a_run_that_waits_is_cancelled_too() -> None:
    world = two_for_one_node()
    world.runs("cancel", "second", at="+1m").ok()
    cycle = world.cycle("+2m")

    assert cycle.phases == {"first": "Running", "second": "Failed"}
    assert cycle.leases("second") == []
    assert cycle.condition("second", "Failed")["reason"] == "Cancelled"
    # nothing follows from it any more
    assert world.cycle("+3m").waits == {}


def renewed(world: World, at: str) -> World:
    """The only lease closed at ``at``, and one in its place, as a swap leaves it."""
    (old,) = world.state().all("Lease")
    name, when = old["metadata"]["name"], moment(at)
    past = {"class": "owned", "from": old["spec"]["interval"]["start"], "to": when}
    new = doc.merge(old, {"metadata": {"name": f"{name}-swap", "uid": f"{name}-swap"}})
    new = doc.merge(new, {"spec": {"interval": {"start": when}, "reason": "Swap"}})
    world.add({**new, "status": {"closed": False, "funding": [{"class": "owned", "from": when}]}})
    closed = {"closed": True, "ended": when, "closureReason": "Swap", "funding": [past]}
    return world.edit("Lease", name, status=closed)


def test_a_time_limit_counts_from_the_start_though_all_leases_were_renewed() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 8, limit="2h")
    assert world.cycle().running == ["r"]
    cycle = renewed(world, "+1h").cycle("+90m")
    assert cycle.status("r")["started"] == moment("+0s")

    cycle = world.cycle("+3h")
    assert [(row.ended, row.closure) for row in cycle.leases("r")] == [
        (moment("+1h"), "Swap"),
        (moment("+2h"), "TimeLimit"),
    ]


def test_hours_of_a_tree_are_provided_for_no_further_than_the_limit_though_leases_were_renewed() -> None:
    # 8 x 1 h used, 8 x 1 h left until the limit: 24 of 40 GPU-hours are the child's
    world = World().domain("A", nodes=2).budget("org:a", 16).run("root", 8, limit="2h", quota={"maxGPUHours": 40})
    assert world.cycle().running == ["root"]
    cycle = renewed(world, "+1h").run("child", 8, limit="3h", parent="root", created="+1h").cycle("+1h")

    assert cycle.running == ["child", "root"]


def cpu_run(world: World, name: str, **fields: Any) -> World:
    """A CPU run of one pod."""
    resources = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    return world.run(name, 1, resources=resources, **fields)


def driver(world: World, name: str, size: int) -> World:
    """A CPU run that is a member of gang g."""
    return cpu_run(world, name, gang={"name": "g", "size": size})


def test_a_member_without_gpus_starts_with_its_gang() -> None:
    world = World().node("n1").budget("org:a", 64).run("busy", 8)
    assert world.cycle().running == ["busy"]
    driver(world, "driver", 2).run("worker", 8, created="+1m", gang={"name": "g", "size": 2})
    cycle = world.cycle("+1m")
    assert (cycle.phases["driver"], cycle.phases["worker"]) == ("Pending", "Pending")
    assert cycle.condition("driver", "Admitted")["reason"] == "GangIncomplete"

    cycle = world.node("n2").cycle("+2m")
    assert cycle.running == ["busy", "driver", "worker"]
    assert world.cycle("+3m").running == ["busy", "driver", "worker"]


def test_a_gang_without_gpus_waits_for_all_of_it() -> None:
    world = driver(World().node("n1"), "one", 2)
    assert world.cycle().phases == {"one": "Pending"}
    assert driver(world, "two", 2).cycle("+1m").running == ["one", "two"]


def test_of_a_gang_with_more_runs_than_its_size_as_many_start_as_can() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64)
    for name in ("one", "two", "three"):
        world.run(name, 8, **GANG)
    assert len(world.cycle().running) == 2

    assert world.node("n3").cycle("+1m").running == ["one", "three", "two"]


def test_a_gang_with_more_runs_than_its_size_does_not_start_with_fewer() -> None:
    world = World().node("n1").budget("org:a", 64)
    for name in ("one", "two", "three"):
        world.run(name, 8, **GANG)
    cycle = world.cycle()

    assert cycle.running == []
    assert all("gang g of 2 starts whole or not at all" in cycle.waits[name].message for name in ("one", "two"))


def test_a_member_that_lost_its_node_comes_back_beside_those_that_run_on() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 64)
    for name in ("one", "two"):
        world.run(name, 8, runtime={"checkpoint": "10m"}, **GANG)
    cycle = world.cycle()
    assert cycle.running == ["one", "two"]
    (lost,) = cycle.leases("one")

    assert world.delete("Node", *lost.nodes).cycle("+1m").running == ["one", "two"]


def test_a_member_goes_on_beside_a_mate_that_completes_in_the_same_cycle() -> None:
    world = World().node("n1").budget("org:a", 16).run("one", 2, **GANG).run("two", 2, **GANG)
    assert world.cycle().running == ["one", "two"]
    world.runs("suspend", "two", at="+1m").ok()
    assert world.cycle("+1m").running == ["one"]
    world.runs("complete", "one", at="+2m").ok()
    world.runs("resume", "two", at="+2m").ok()

    assert world.cycle("+2m").phases == {"one": "Completed", "two": "Running"}


def test_words_of_a_member_left_behind_are_its_own_beside_a_gang_of_that_name_elsewhere() -> None:
    world = World().node("n").budget("org:a", 5)
    for name in ("one", "two", "three"):
        world.run(name, 2, **GANG)
    for name in ("four", "five"):
        world.run(name, 2, namespace="other", **GANG)
    cycle = world.cycle()
    short = "Asks for 2 GPUs: 1 GPU short at org-a/gpus (4 of 5 in use)"

    assert {name: wait.message for name, wait in cycle.waits.items()} == {
        "three": f"{short}.",
        "four": f"{short}; gang g of 2 starts whole or not at all.",
        "five": f"{short}; gang g of 2 starts whole or not at all.",
    }


def alone(*commands: tuple[str, ...], mates: int = 1, delete: bool = False) -> str:
    """Words of a member that ran with ``mates`` in its gang, when these have met ``commands`` and its node is lost."""
    gang: dict[str, Any] = {"gang": {"name": "g", "size": 1 + mates}}
    world = World().domain("A", nodes=1 + mates).node("more").budget("org:a", 64)
    world.run("stays", 8, runtime={"checkpoint": "10m"}, **gang)
    for number in range(mates):
        world.run(f"mate-{number}", 8, **gang)
    (lost,) = world.cycle().leases("stays")
    for command in commands:
        world.runs(*command, at="+1m").ok()
    if delete:
        world.delete("Run", "mate-0")
    cycle = world.delete("Node", *lost.nodes).cycle("+1m")
    assert "stays" in cycle.waiting
    assert world.cycle("+2m").waits["stays"] == cycle.waits["stays"]
    return cycle.waits["stays"].message


def test_a_member_that_lost_its_mates_says_who_they_are_and_what_would_complete_its_gang() -> None:
    more = "submit 1 more run with gang g."

    assert alone(("cancel", "mate-0")) == f"Gang g has 1 of its 2 runs: run mate-0 was cancelled; {more}"
    assert alone(("suspend", "mate-0")) == "Gang g has 1 of its 2 runs: run mate-0 is suspended; resume run mate-0."
    assert alone(delete=True) == f"Gang g has 1 of its 2 runs: 1 is not there; {more}"
    assert alone(("cancel", "mate-0"), ("suspend", "mate-1"), mates=3) == (
        f"Gang g has 2 of its 4 runs: run mate-0 was cancelled, run mate-1 is suspended; resume run mate-1, {more}"
    )


def test_a_gang_names_no_more_mates_than_a_sentence_bears() -> None:
    commands = [("suspend", f"mate-{number}") for number in range(5)]
    assert alone(*commands, mates=5) == (
        "Gang g has 1 of its 6 runs: run mate-0 is suspended, run mate-1 is suspended, run mate-2 is suspended, "
        "2 more do not count either; resume run mate-0, resume run mate-1, resume run mate-2, "
        "and so on with the others that are there."
    )
    commands = [("cancel", f"mate-{number}") for number in range(5)]

    assert alone(*commands, mates=5) == (
        "Gang g has 1 of its 6 runs: run mate-0 was cancelled, run mate-1 was cancelled, run mate-2 was cancelled, "
        "2 more do not count either; submit 5 more runs with gang g."
    )


def reports(world: World, run: str, phase: str) -> World:
    """A pod of the run's own is in that phase."""
    meta = {"name": f"{run}-pod", "namespace": "default", "labels": {"rq.davidlangworthy.io/run": run}}
    return world.add(doc.merge(doc.foreign_pod("p", "n1", 0), {"metadata": meta, "status": {"phase": phase}}))


@pytest.mark.parametrize(
    ("phase", "ends", "follower", "later"),
    [
        ("Running", "Running", "Waiting", "Waiting"),
        ("Succeeded", "Completed", "Running", "Running"),
        ("Failed", "Failed", "Waiting", "Failed"),  # once its grace has passed
    ],
)
def test_a_run_ends_by_its_own_pods_with_gpus_or_without(phase: str, ends: str, follower: str, later: str) -> None:
    world = cpu_run(World().node("n1").budget("org:a", 8), "prep").run("gpu", 4)
    cpu_run(world, "last", follow={"after": ["prep"]}).run("next", 4, follow={"after": ["prep"]})
    assert world.cycle().running == ["gpu", "prep"]
    reports(reports(world, "prep", phase), "gpu", phase)
    cycle, again, still = (world.cycle(at) for at in ("+1h", "+2h", "+3h"))

    assert cycle.phases == {"gpu": ends, "prep": ends, "last": follower, "next": follower}
    assert cycle.status("prep").get("ended") == ("2026-01-01T01:00:00Z" if ends != "Running" else None)
    assert again.phases == {"gpu": ends, "prep": ends, "last": later, "next": later}
    assert still.plan.runs == []


def test_pods_of_a_cpu_run_that_is_suspended_end_it_no_more() -> None:
    world = cpu_run(World().node("n1"), "prep")
    assert world.cycle().running == ["prep"]
    world.edit("Run", "prep", spec={"state": "Suspended"}).cycle("+1h")

    assert reports(world, "prep", "Failed").cycle("+2h").phases == {"prep": "Pending"}
