"""Work that is unfunded by its own choice gives way to funded starts (spec §6)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import World

FREE: dict[str, Any] = {"funding": {"opportunistic": True}}


def test_T8_opportunistic_work_gives_way_in_the_same_cycle() -> None:
    world = World().node("n").budget("org:f", 4).budget("org:w", 4)
    world.run("v", 4, owner="org:v", **FREE).run("f", 4, owner="org:f").cycle()
    cycle = world.run("w", 4, owner="org:w", created="+1m").cycle("+1m")
    assert cycle.phases == {"v": "Pending", "f": "Running", "w": "Running"}
    (lost,) = cycle.leases("v")
    assert (lost.closure, lost.ended) == ("ReclaimUnfunded", moment("+1m"))
    assert (cycle.funding("w"), cycle.funding("f")) == ({"owned": 4}, {"owned": 4})


def test_what_gave_way_does_not_come_back_before_what_it_gave_way_to_whatever_the_order_of_stages() -> None:
    world = World().node("n").budget("org:f", 4).budget("org:w", 4)
    world.policy(stages=["opportunistic", "growth", "starts"])
    world.run("v", 4, owner="org:v", **FREE).run("f", 4, owner="org:f").cycle()
    cycle = world.run("w", 4, owner="org:w", created="+1m").cycle("+1m")

    assert cycle.phases == {"v": "Pending", "f": "Running", "w": "Running"}


def test_its_spares_go_with_it() -> None:
    world = World().domain("A", gpus=[4, 4]).budget("org:w", 8)
    world.run("v", 4, owner="org:v", spares=1, **FREE).cycle()
    cycle = world.run("w", 6, owner="org:w", created="+1m").cycle("+1m")
    assert cycle.phases == {"v": "Pending", "w": "Running"}
    assert [(lost.closure, lost.ended) for lost in cycle.leases("v")] == [("ReclaimUnfunded", moment("+1m"))] * 2


def test_what_gives_one_group_way_gives_the_next_funded_start_one_too_in_the_same_cycle() -> None:
    wide = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}
    world = World().node("n", 12).budget("org:w", 4).budget("org:x", 4)
    world.run("v", 12, owner="org:v", malleable=wide, by=4, **FREE).cycle()
    world.run("w", 4, owner="org:w", created="+1m").run("x", 4, owner="org:x", created="+1m")
    cycle = world.cycle("+1m")

    assert cycle.running == ["v", "w", "x"]
    assert [lease.gpus for lease in cycle.leases("v", open=True)] == [4]


def with_pods(world: World, run: str, *nodes: str, deleting: bool = False) -> World:
    """The run's pods of 4 GPUs on these nodes, as a live cluster has them."""
    gone = {"deletionTimestamp": moment("+1m"), "deletionGracePeriodSeconds": 600} if deleting else {}
    for node in nodes:
        pod = doc.foreign_pod(f"{run}-{node}", node, 4)
        own = {"metadata": {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": run}, **gone}}
        world.add(doc.merge(pod, {**own, "status": {"phase": "Running", "startTime": moment("+0s")}}))
    return world


def test_a_funded_start_waits_for_the_pods_that_give_way_and_nothing_more_goes_for_it() -> None:
    world = World().node("n1", 4).node("n2", 4).budget("org:w", 4)
    world.run("u", 4, owner="org:u", **FREE).run("v", 4, owner="org:v", **FREE).cycle()
    nodes = {each.run: each.slots[0].partition("#")[0] for each in world.state().leases()}
    with_pods(world, "u", nodes["u"])
    with_pods(world, "v", nodes["v"])
    cycle = world.run("w", 4, owner="org:w", created="+1m").cycle("+1m")
    (lost,) = [name for name in ("u", "v") if cycle.leases(name)[0].closure == "ReclaimUnfunded"]
    assert (cycle.running, cycle.phases["w"]) == ([name for name in ("u", "v") if name != lost], "Pending")

    world.delete("Pod", f"{lost}-{nodes[lost]}")
    with_pods(world, lost, nodes[lost], deleting=True)
    after = world.cycle("+2m")
    assert (after.running, after.phases["w"]) == (cycle.running, "Pending")

    world.delete("Pod", f"{lost}-{nodes[lost]}")
    assert world.cycle("+3m").running == sorted([*cycle.running, "w"])


def test_a_run_that_may_start_unfunded_and_is_funded_waits_for_the_pods_that_give_way_too() -> None:
    world = World().node("n1", 4).budget("org:w", 4)
    world.run("u", 4, owner="org:u", **FREE).cycle()
    cycle = with_pods(world, "u", "n1").run("w", 4, owner="org:w", created="+1m", **FREE).cycle("+1m")
    assert ([row.closure for row in cycle.leases("u")], cycle.phases["w"]) == (["ReclaimUnfunded"], "Pending")

    cycle = world.delete("Pod", "u-n1").cycle("+2m")
    assert (cycle.running, cycle.funding("w")) == (["w"], {"owned": 4})


def made_way(world: World) -> World:
    """v, opportunistic, runs on the only node that is free, as a pod; w, which is funded, makes it give way at +1m."""
    world.budget("org:w", 8).budget("org:x", 8).run("v", 8, owner="org:v", **FREE).old()
    (node,) = world.state().leases("v")[0].nodes
    pod = doc.foreign_pod("pod-of-v", node, 8)
    own = {"metadata": {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": "v"}}}
    world.add(doc.merge(pod, {**own, "status": {"phase": "Running", "startTime": moment("-23h")}}))
    world.run("w", 8, owner="org:w", created="+30s").cycle("+1m")
    return world


def test_what_work_gave_way_to_is_promised_its_slots_until_the_pods_are_gone() -> None:
    world = made_way(World().node("n1"))
    promise = world.state().get("Reservation", "w-20260101t000100z")
    slots = promise["spec"]["intendedSlice"]["nodes"]
    assert (slots, promise["spec"]["payingEnvelopes"]) == (["n1"], [{"budget": "org-w", "envelope": "gpus"}])
    assert (promise["status"]["state"], promise["status"]["reason"]) == ("Activated", "WaitingForVictims")
    assert [row.closure for row in world.state().leases("v")] == ["ReclaimUnfunded"]

    world.run("x", 8, owner="org:x", created="-70h")
    cycle = world.cycle("+2m")
    assert (cycle.running, cycle.started) == ([], [])
    assert cycle.get("Reservation", "w-20260101t000100z")["status"] == promise["status"]
    assert cycle.status("w")["earliestStart"] == moment("+1m")

    cycle = world.delete("Pod", "pod-of-v").cycle("+3m")
    assert (cycle.running, cycle.funding("w")) == (["w"], {"owned": 8})
    assert cycle.get("Reservation", "w-20260101t000100z")["status"]["state"] == "Activated"


def test_a_gang_is_promised_them_whole() -> None:
    world = World().node("n1").budget("org:w", 8).run("v", 8, owner="org:v", **FREE)
    world.cycle()
    pod = doc.foreign_pod("pod-of-v", "n1", 8)
    own = {"metadata": {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": "v"}}}
    world.add(doc.merge(pod, {**own, "status": {"phase": "Running", "startTime": moment("+0s")}}))
    for name in ("one", "two"):
        world.run(name, 4, owner="org:w", created="+30s", gang={"name": "g", "size": 2})
    cycle = world.cycle("+1m")
    reasons = {each["spec"]["runRef"]["name"]: each["status"]["reason"] for each in cycle.all("Reservation")}
    assert (cycle.running, reasons) == ([], dict.fromkeys(("one", "two"), "WaitingForVictims"))
    assert world.delete("Pod", "pod-of-v").cycle("+2m").running == ["one", "two"]


def test_without_a_promise_to_spare_it_waits_as_any_other() -> None:
    world = made_way(World().node("n1").policy(reservations={"maxHeld": 0}))
    assert world.state().all("Reservation") == []
    assert world.delete("Pod", "pod-of-v").cycle("+2m").running == ["w"]


def test_pods_that_never_go_cost_nobody_else_anything() -> None:
    """After ten minutes room is looked for anew, and then it takes a promise of ``notice`` to cut what is funded."""
    world = made_way(World().domain("A", nodes=2).run("y", 8, owner="org:x"))
    cycles = [world.cycle(f"+{minute}m") for minute in (2, 11, 12, 20)]
    assert [(each.phases["y"], each.phases["w"]) for each in cycles] == [("Running", "Pending")] * 4
    cycle = cycles[-1]
    (promise,) = (each for each in cycle.all("Reservation") if each["status"]["state"] == "Pending")
    assert promise["status"]["earliestStart"] == moment("+26m")
    assert [each["run"] for each in promise["status"]["forecast"]["conflictSet"]] == ["default/y"]


def test_what_its_owner_makes_narrower_gives_way_in_the_same_cycle() -> None:
    elastic = {"minTotalGPUs": 2, "maxTotalGPUs": 6, "stepGPUs": 1}
    world = World().node("n").budget("org:w", 8)
    world.run("v", 6, owner="org:v", malleable=elastic, **FREE).cycle()
    world.edit("Run", "v", spec={"malleable": {"desiredTotalGPUs": 5}})
    cycle = world.run("w", 5, owner="org:w", created="+1m").cycle("+1m")

    assert (cycle.running, [lease.gpus for lease in cycle.leases("v", open=True)]) == (["v", "w"], [2, 1])
    assert {(lease.group, lease.closure) for lease in cycle.leases("v", open=False)} == {
        (4, "Shrink"), (3, "ReclaimUnfunded"), (2, "ReclaimUnfunded"),
    }  # fmt: skip


def test_work_that_lost_its_payer_gives_way_after_the_notice_of_any_cut() -> None:
    """The short notice is of work that is unfunded by its own choice."""
    world = World().policy(opportunistic={"notice": "5m"}).node("n").budget("org:v", 8).budget("org:w", 8)
    world.run("v", 8, owner="org:v").old()
    world.edit("Budget", "org-v", spec={"envelopes": [doc.envelope(4)]}).run("w", 8, owner="org:w")
    told, early, due = (world.cycle(at) for at in ("+0s", "+5m", "+15m"))

    assert (told.status("w")["earliestStart"], early.running, due.running) == (moment("+15m"), ["v"], ["w"])
    assert [lease.closure for lease in due.leases("v")] == ["ReclaimUnfunded"]
