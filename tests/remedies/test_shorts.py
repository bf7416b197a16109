"""Each number in the words of a wait: with what is short added the run starts, with one less of any of it not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables import values
from jobtree.world.tables.snapshot import Snapshot
from planner.planning import plan
from planner.remedies.bench import Bench
from planner.remedies.relief import Relief
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.remedies.raising import MONEY, NODES, raised
from tests.support import documents as doc
from tests.support.effort import examples


def daemons(data: st.DataObject, world: World) -> World:
    """The world with pods of others on its nodes, and with fewer GPUs on some."""
    found: list[dict[str, Any]] = []
    for each in world.documents:
        if each["kind"] == "Node":
            name, gpus = each["metadata"]["name"], int(each["status"]["allocatable"]["nvidia.com/gpu"])
            lost = data.draw(st.sampled_from([0, 0, 1, 2])) if world.earlier else 0
            pods = data.draw(st.sampled_from(["110", "110", "1", "2"]))
            allocatable = {"nvidia.com/gpu": str(max(1, gpus - lost)), "pods": pods}
            each = doc.merge(each, {"status": {"allocatable": allocatable}})  # noqa: PLW2901 the node as it is now
            cpu = data.draw(st.sampled_from(["0", "12", "125"]))
            pod = doc.foreign_pod(f"daemon-{name}", name, 0)
            containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
            found.append(doc.merge(pod, {"spec": {"containers": containers}}))
        found.append(each)
    return World(found, world.earlier, world.since)


@pytest.mark.parametrize("kind", worlds.KINDS)
@examples(10)
@given(data=st.data())
def test_what_is_short_is_the_least_that_is_enough(kind: str, data: st.DataObject) -> None:
    world: World = data.draw(worlds.worlds(kind, tiny=True))
    if kind in ("room", "running", "all"):
        world = daemons(data, world)
    now = world.snapshot()
    current = plan(now, AT)
    for wait in current.waits:
        if not wait.shorts or any(short.rule not in MONEY | NODES for short in wait.shorts):
            continue
        key = (wait.namespace, wait.name)
        bench = Bench.of(now, current, key)
        if len(bench.state.pending) > 1:
            continue  # a gang starts whole: what one of it lacks is not all
        enough = bench.within(raised(bench.focus, key, wait.shorts, {})).starts()
        less = [s for s in wait.shorts if bench.within(raised(bench.focus, key, wait.shorts, {s: 1})).starts()]

        assert (enough, less) == (True, []), wait


@pytest.mark.parametrize("kind", ["running", "room"])
@examples(10)
@given(data=st.data())
def test_the_deficit_is_the_least_that_has_to_be_freed(kind: str, data: st.DataObject) -> None:
    world: World = daemons(data, data.draw(worlds.worlds(kind, tiny=True)))
    now = world.snapshot()
    current = plan(now, AT)
    for wait in current.waits:
        bench = Bench.of(now, current, (wait.namespace, wait.name))
        if (
            [short.rule for short in wait.shorts] == ["capacity"]
            and wait.deficit_gpus
            and len(bench.state.pending) == 1
        ):
            freed = Relief(bench).least("free")
            if freed:  # GPUs alone; with the pods that hold them go their CPU and places, so fewer may be enough
                assert wait.deficit_gpus <= sum(freed.values()), wait
                assert wait.deficit_gpus == sum(freed.values()) or bench.run.pod_cpu_milli or _places(now), wait


def _places(now: Snapshot) -> bool:
    """Is any node so short of places for pods that some have to go for them?"""
    return bool((values.ints(now.tables["nodes"], "max_pods", null=110) < 110).any())
