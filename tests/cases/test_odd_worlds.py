"""Worlds that are legal and odd: a cycle must plan them all the same (spec §2, §4, §7)."""

from typing import Any

from tests.support.worlds import World


def test_no_node_at_all() -> None:
    cycle = World().budget("org:a", 4).run("r", 4).cycle()
    assert cycle.phases == {"r": "Pending"}


def test_two_opportunistic_runs_and_money_for_the_older() -> None:
    world = World().node("a1").node("a2").budget("org:a", 4)
    world.run("s", 4, funding={"opportunistic": True}).run("q", 4, owner="org:b", funding={"opportunistic": True})
    cycle = world.cycle()

    assert (cycle.funding("s"), cycle.funding("q")) == ({"owned": 4}, {"unfunded": 4})


def test_a_run_of_the_same_name_is_another_run() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 4, quota={"maxGPUHours": 100}, limit="2h")
    assert world.cycle().running == ["r"]
    world.delete("Run", "r").run("r", 8, limit="2h", quota={"maxGPUHours": 16})
    cycle = world.cycle("+1h")

    assert [(row.gpus, row.closure) for row in cycle.leases("r")] == [(4, "RunDeleted"), (8, None)]


def test_gpus_that_vanish_under_a_lease_block_others() -> None:
    world = World().node("n").budget("org:a", 16).run("first", 4).run("second", 4)
    world.cycle()
    world.runs("complete", "first", at="+1m").ok()
    world.edit("Node", "n", status={"allocatable": {"nvidia.com/gpu": "6"}})
    cycle = world.run("third", 4).run("fourth", 2).cycle("+2m")

    assert cycle.running == ["fourth", "second"]


def test_a_pod_with_two_payers_is_one_pod() -> None:
    status = {"allocatable": {"pods": "1"}}
    world = World().node("n", status=status).budget("org:a:x", 2).budget("org:a", 16)
    world.run("r", 4, pods=4, owner="org:a:x")
    assert world.cycle().running == ["r"]
    assert world.run("q", 2).cycle("+1m").phases == {"r": "Running", "q": "Pending"}


def test_a_spare_holds_slots_without_a_pod() -> None:
    world = World().node("n", status={"allocatable": {"pods": "2"}}).budget("org:a", 16)
    assert world.run("r", 2, spares=1).run("s", 2).cycle().running == ["r", "s"]


def test_a_bigger_pod_asks_no_more_cpu_than_a_smaller_one() -> None:
    pod = {"resources": {"requests": {"cpu": "64"}}, "name": "main", "image": "train"}
    template = {"spec": {"containers": [pod]}}
    world = World().node("n", status={"allocatable": {"cpu": "64"}}).budget("org:a", 16)
    world.run("small", 4, pods=4, template=template).run("large", 8, pods=8, template=template)
    cycle = world.cycle()

    assert cycle.phases == {"small": "Pending", "large": "Running"}


def test_rates_change_under_running_work() -> None:
    world = World().policy(creditRates={"H100-80GB": 0.0007}).node("n").budget("org:a", 8).run("r", 4)
    world.cycle()
    cycle = world.edit("Policy", "default", spec={"creditRates": {"H100-80GB": 3}}).cycle("+1h")
    (lease,) = cycle.all("Lease")

    assert [part["class"] for part in lease["status"]["funding"]] == ["owned", "owned"]


def test_hours_of_a_subtree_count_from_its_own_window() -> None:
    world = World().node("n").budget("org:a:x", 8).run("r", 4, owner="org:a:x")
    world.cycle("-24h")
    parent: dict[str, Any] = {"scope": "subtree", "maxGPUHours": 96, "start": "2026-01-01T00:00:00Z"}
    cycle = world.budget("org:a", 8, **parent).cycle()

    assert cycle.funding("r") == {"owned": 4}


def test_a_condition_does_not_count_the_clock() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16, maxGPUHours=20).run("r", 4, limit="4h").run("s", 8)
    world.cycle()
    messages = {world.cycle(f"+{minute}m").waits["s"].message for minute in (1, 2, 3)}

    assert len(messages) == 1


def test_a_default_limit_is_said_at_the_start() -> None:
    world = World().node("n").budget("org:a", 8, perRun={"defaultTime": "2h"}).run("r", 8)
    (completed,) = [c for c in world.cycle().status("r")["conditions"] if c["type"] == "Completed"]

    assert completed["message"] == "Time limit 2h."


def test_a_cordon_is_not_for_ever() -> None:
    world = World().node("n", spec={"unschedulable": True}).budget("org:a", 8).run("r", 8)
    wait = world.cycle().waits["r"]

    assert (wait.reason, wait.never) == ("CapacityShort", False)
