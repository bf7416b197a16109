"""Cuts that are announced, in the annotations of pods: said once, moved with the promise, and taken back."""

from typing import Any

from exporters.writes.announced import CUT_AT, CUT_CHANCE
from exporters.writes.pods import pod_writes
from jobtree.cluster.live.writing import steps
from jobtree.cluster.protocol import Write
from jobtree.cluster.statefile import StateFile
from tests.support.times import T0, moment, unix
from tests.support.worlds import Cycle, World


def crowded() -> World:
    """v of org:v runs on the only node, old and without known end, in two pods that are there."""
    world = World().node("n").budget("org:v", 8).budget("org:w", 8).policy().run("v", 8, pods=4, owner="org:v")
    for write in written(world, world.old(), "-24h"):
        if write.ref.kind == "Pod":
            meta = {**write.body["metadata"], "namespace": "default", "uid": write.ref.name, "creationTimestamp": T0}
            pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **write.body, "metadata": meta}
            world.add({**pod, "status": {"phase": "Running"}})
    return world


def written(world: World, cycle: Cycle, at: str = T0) -> list[Write]:
    intake = StateFile(world.save(), unix(at)).read()
    assert intake.policy is not None
    found = pod_writes(intake, cycle.plan, intake.policy.spec)
    return [*found.before, *found.made, *found.after]


def is_told(write: Write) -> bool:
    return (write.verb, write.ref.kind) == ("patch", "Pod")


def told(writes: list[Write]) -> dict[str, dict[str, str | None]]:
    """By pod, what its annotations become."""
    return {each.ref.name: each.body["metadata"]["annotations"] for each in writes if is_told(each)}


def obeyed(world: World, writes: list[Write]) -> None:
    for name, annotations in told(writes).items():
        world.edit("Pod", name, metadata={"annotations": annotations})


PODS = ("v-20251231t000000z-0", "v-20251231t000000z-1")


def test_a_cut_is_announced_once_moved_and_taken_back() -> None:
    world = crowded()
    world.run("w", 8, owner="org:w")
    first = written(world, world.cycle())
    assert told(first) == {pod: {CUT_AT: moment("+15m"), CUT_CHANCE: "1"} for pod in PODS}
    assert len(list(steps(each for each in first if is_told(each)))) == 1

    obeyed(world, first)
    assert told(written(world, world.cycle("+1m"), "+1m")) == {}

    world.delete("Run", "w")
    last = written(world, world.cycle("+2m"), "+2m")
    assert told(last) == {pod: {CUT_AT: None, CUT_CHANCE: None} for pod in PODS}
    obeyed(world, last)
    assert told(written(world, world.cycle("+3m"), "+3m")) == {}


def test_who_loses_a_part_is_told_with_a_chance_of_nothing() -> None:
    world = World().domain("A", nodes=2).budget("org:v", 16).budget("org:w", 8).policy()
    shrinks = {"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8}
    world.run("v", 16, by=8, owner="org:v", malleable=shrinks)
    for write in written(world, world.old(), "-24h"):
        if write.ref.kind == "Pod":
            meta = {**write.body["metadata"], "namespace": "default", "uid": write.ref.name, "creationTimestamp": T0}
            world.add({"apiVersion": "v1", "kind": "Pod", **write.body, "metadata": meta})
    cycle = world.run("w", 8, owner="org:w").cycle()
    assert told(written(world, cycle)) == {pod: {CUT_AT: moment("+15m"), CUT_CHANCE: "0"} for pod in PODS}


def test_pods_that_are_over_are_told_nothing() -> None:
    world = crowded()
    world.edit("Pod", PODS[0], status={"phase": "Succeeded"})
    world.edit("Pod", PODS[1], metadata={"deletionTimestamp": moment("+0s")})
    assert told(written(world, world.run("w", 8, owner="org:w").cycle())) == {}
