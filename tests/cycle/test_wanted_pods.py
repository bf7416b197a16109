"""Pods that open leases want, beside those that are there: what is written makes it so, and is all."""

from typing import Any

import pytest

from exporters.writes.pods import pod_writes
from jobtree.api import GROUP
from jobtree.api.kinds.lease import FINALIZER
from jobtree.cluster.live.writing import steps
from jobtree.cluster.protocol import Write
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan
from tests.support.times import T0, unix
from tests.support.worlds import World


def writes(world: World, plan: Plan) -> tuple[list[str], list[str]]:
    """Names of the pods that are deleted, and of those that are made."""
    found = written(world, plan)
    return [each.ref.name for each in found if each.verb == "delete"], [
        each.ref.name for each in found if each.verb == "create" and each.ref.kind == "Pod"
    ]


def written(world: World, plan: Plan) -> list[Write]:
    intake = StateFile(world.save(), unix(T0)).read()
    assert intake.policy is not None
    found = pod_writes(intake, plan, intake.policy.spec)
    return [*found.before, *found.made, *found.after]


def started() -> tuple[World, Plan]:
    """A run of two nodes with a pod for every two GPUs, and the plan that started it; its pods are there."""
    world = World().domain("A", nodes=2).budget("org:a", 16).policy().run("r", 16, by=8, pods=2)
    plan = world.cycle().plan
    for number, write in enumerate(each for each in written(world, plan) if each.ref.kind == "Pod"):
        world.add(pod(dict(write.body), f"u{number}"))
    return world, plan


def pod(body: dict[str, Any], uid: str) -> dict[str, Any]:
    """As a server would hold it."""
    meta = {**body["metadata"], "namespace": "default", "uid": uid, "creationTimestamp": T0}
    return {"apiVersion": "v1", "kind": "Pod", **body, "metadata": meta, "status": {"phase": "Pending"}}


def life(rank: int) -> str:
    return f"r-20260101t000000z-{rank}"


def test_pods_that_are_there_are_wanted_and_no_more() -> None:
    world, plan = started()
    assert writes(world, plan) == ([], [])


@pytest.mark.parametrize("rank", range(8))
def test_a_pod_that_is_gone_is_made_again_with_its_rank(rank: int) -> None:
    world, plan = started()
    world.delete("Pod", life(rank))
    assert writes(world, plan) == ([], [life(rank)])


def test_a_pod_too_many_goes() -> None:
    world, plan = started()
    last = next(each for each in world.state().all("Pod") if each["metadata"]["name"] == life(3))
    world.add({**last, "metadata": {**last["metadata"], "name": f"{life(3)}-x", "uid": "x"}})
    assert writes(world, plan) == ([f"{life(3)}-x"], [])


@pytest.mark.parametrize("label", ["group", "rank"])
@pytest.mark.parametrize("text", ["x", "-1", "", "9" * 30])
def test_labels_that_a_hand_wrote_stop_nothing(label: str, text: str) -> None:
    world, plan = started()
    world.edit("Pod", life(0), metadata={"labels": {f"{GROUP}/{label}": text}})
    gone, made = writes(world, plan)
    assert len(gone) == len(made) <= 1


def test_a_pod_whose_controller_is_another_is_nobodys_to_delete() -> None:
    world, plan = started()
    world.edit("Pod", life(0), metadata={"ownerReferences": []})
    assert writes(world, plan) == ([], [life(0)])


@pytest.mark.parametrize("runs", [1, 5])
def test_many_runs_start_and_end_in_as_few_steps_as_one(runs: int) -> None:
    world = World().domain("A", nodes=runs).budget("org:a", 8 * runs).policy()
    names = [f"r{number}" for number in range(runs)]
    for name in names:
        world.run(name, 8)
    plan = world.cycle().plan
    made = [each for each in written(world, plan) if each.verb == "create"]
    assert len(list(steps(made))) == 2  # Services, pods

    pods = [each for each in made if each.ref.kind == "Pod"]
    for number, write in enumerate(pods):
        world.add(pod(dict(write.body), f"u{number}"))
    for name in names:
        world.edit("Run", name, spec={"state": "Cancelled"}, metadata={"finalizers": [FINALIZER]})
    ended = world.cycle("+1m").plan
    assert len(list(steps(written(world, ended)))) == 2  # pods go, then finalizers
