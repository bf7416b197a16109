# ruff: noqa: N802 -- test names are case ids
"""Pods speak only for the life that they served, and what becomes of their nodes: with real pods (N1 to N4, N11)."""

import time
from pathlib import Path
from typing import Any

import pytest

from jobtree.api import API_VERSION, LABEL_RUN
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import Live, budget, open_leases, run

CHECKPOINT = {"checkpoint": "10m"}


@pytest.fixture
def live(kube: Kube, tmp_path: Path) -> Live:
    kube.create(budget("org:a", 64))
    return Live(kube, tmp_path / "lake")


def running(live: Live, name: str = "r", pods: int = 1) -> list[Object]:
    """Waits until the run has so many pods, all Running."""
    phases = ["Running"] * pods
    live.kube.until(lambda: [each["status"].get("phase") for each in _present(live, name)] == phases)
    return _present(live, name)


def _present(live: Live, name: str) -> list[Object]:
    return [each for each in live.pods(name) if "deletionTimestamp" not in each["metadata"]]


def closures(live: Live) -> list[str]:
    found = (each["status"].get("closureReason") for each in live.kube.ours("Lease"))
    return sorted(each for each in found if each)


def nodes_of(live: Live) -> set[str]:
    return {each["spec"]["slice"]["nodes"][0].partition("#")[0] for each in open_leases(live.kube)}


def lose(live: Live, node: str) -> None:
    """The node's object is deleted."""
    live.kube.delete("v1", "Node", "", node)
    live.kube.until(lambda: live.kube.find("v1", "Node", "", node) is None)


def end(live: Live, pod: Object, how: str) -> None:
    """The pod ends as ``how`` says: succeed or fail."""
    name = pod["metadata"]["name"]
    mark = {"metadata": {"annotations": {f"bench/{how}-after": "1ms"}}}
    live.kube.patch("v1", "Pod", "default", name, mark)
    wanted = {"succeed": "Succeeded", "fail": "Failed"}[how]
    live.kube.until(lambda: live.kube.get("v1", "Pod", "default", name)["status"]["phase"] == wanted)


def test_N1_a_pod_of_a_life_that_is_over_decides_nothing(live: Live) -> None:
    live.kube.nodes(2)
    live.kube.create(run("r", 8, runtime=CHECKPOINT, annotations={}))
    live.cycle()
    (old,) = running(live)
    lose(live, old["spec"]["nodeName"])
    live.cycle()
    assert (live.phases(), closures(live), len(nodes_of(live))) == ({"r": "Running"}, ["NodeFailure"], 1)
    assert nodes_of(live) != {old["spec"]["nodeName"]}

    if live.kube.find("v1", "Pod", "default", old["metadata"]["name"]):
        gone = {"status": {"phase": "Failed"}}
        live.kube.patch("v1", "Pod", "default", old["metadata"]["name"], gone, subresource="status")
    live.cycle()
    assert (live.phases(), closures(live)) == ({"r": "Running"}, ["NodeFailure"])


def test_N2_a_pod_that_failed_with_its_node_did_not_fail_by_itself(live: Live) -> None:
    live.kube.nodes(2)
    live.kube.create(run("r", 8, runtime=CHECKPOINT, annotations={}))
    live.cycle()
    (old,) = running(live)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    shut = {"status": {"phase": "Failed", "reason": "NodeShutdown", "conditions": [target]}}
    live.kube.patch("v1", "Pod", "default", old["metadata"]["name"], shut, subresource="status")
    lose(live, old["spec"]["nodeName"])
    live.cycle()

    assert (live.phases(), closures(live)) == ({"r": "Running"}, ["NodeFailure"])


def test_N3_all_pods_are_those_that_the_run_has(live: Live) -> None:
    live.kube.nodes(1)
    live.kube.create(run("r", 8, resources={"gpusPerPod": 4}, annotations={}))
    live.cycle()
    first, second = running(live, pods=2)
    end(live, first, "succeed")
    live.cycle()
    assert live.phases() == {"r": "Running"}

    end(live, second, "succeed")
    live.cycle()
    assert (live.phases(), closures(live)) == ({"r": "Completed"}, ["Completed"])


@pytest.mark.parametrize("reference", [None, "00000000-0000-0000-0000-000000000000"])
def test_N4_only_the_runs_own_controller_reference_makes_a_pod_its_own(live: Live, reference: str | None) -> None:
    live.kube.nodes(1)
    live.kube.create(run("r", 4, annotations={}))
    live.cycle()
    running(live)
    owner = {"apiVersion": API_VERSION, "kind": "Run", "name": "r", "uid": reference, "controller": True}
    meta: dict[str, Any] = {"name": "stranger", "labels": {LABEL_RUN: "r"}}
    meta |= {"annotations": {"bench/fail-after": "1ms"}}
    if reference is not None:  # such an owner is not there: the garbage collector would take the pod away
        meta |= {"ownerReferences": [owner], "finalizers": ["bench.example/kept"]}
    spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    live.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    live.kube.until(
        lambda: (
            live.kube.get("v1", "Pod", "default", "stranger")["status"]["phase"] == "Failed" or reference is not None
        )
    )
    live.cycle()

    assert (live.phases(), closures(live)) == ({"r": "Running"}, [])


def test_N11_a_node_made_again_under_its_name_is_another_one(live: Live) -> None:
    (name,) = live.kube.nodes(1)
    live.kube.create(run("r", 8, runtime=CHECKPOINT, annotations={}))
    live.cycle()
    (old,) = running(live)
    lose(live, name)
    live.kube.nodes(1)
    live.cycle()

    assert closures(live) == ["NodeFailure"]
    # The new node's kubelet knows nothing of the pod and lets it go, which kwok does not always.
    live.kube.delete("v1", "Pod", "default", old["metadata"]["name"], grace=0)
    live.until(lambda: live.phases() == {"r": "Running"} and nodes_of(live) == {name})


def test_a_pod_deleted_by_a_hand_is_made_again_with_its_rank(live: Live) -> None:
    live.kube.nodes(2)
    live.kube.create(run("r", 16, resources={"gpusPerPod": 8}, annotations={}))
    live.cycle()
    _, second = running(live, pods=2)
    live.kube.delete("v1", "Pod", "default", second["metadata"]["name"])
    live.kube.until(lambda: len(live.pods("r")) == 1)
    live.cycle()

    again = running(live, pods=2)[1]
    assert (again["metadata"]["name"], again["spec"]["hostname"]) == (second["metadata"]["name"], "r-1")
    assert again["metadata"]["uid"] != second["metadata"]["uid"]
    assert (live.phases(), closures(live)) == ({"r": "Running"}, [])


def test_a_gang_whose_pod_is_unschedulable_for_10_minutes_gives_up_and_says_why(live: Live) -> None:
    live.kube.nodes(1)
    live.kube.create(run("r", 8, runtime={"requeue": False}, annotations={}))
    live.cycle()
    running(live)
    live.kube.delete("v1", "Pod", "default", live.pods("r")[0]["metadata"]["name"], grace=0)
    live.kube.patch("v1", "Node", "", "n1", {"spec": {"unschedulable": True}})
    live.kube.until(lambda: live.pods("r") == [])
    live.cycle()

    def stuck() -> bool:
        return any(
            (each["type"], each["status"]) == ("PodScheduled", "False")
            for pod in live.pods("r")
            for each in pod["status"].get("conditions", [])
        )

    live.kube.until(stuck)
    live.cycle()
    assert live.phases() == {"r": "Running"}
    (pod,) = live.pods("r")
    long_ago = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 601))
    conditions = [{**each, "lastTransitionTime": long_ago} for each in pod["status"]["conditions"]]
    told = {"status": {"conditions": conditions}}
    live.kube.patch("v1", "Pod", "default", pod["metadata"]["name"], told, subresource="status")
    live.cycle()

    assert (live.phases(), closures(live)) == ({"r": "Failed"}, ["Failed"])
    reason, message = live.reason("r", "Failed")
    assert reason == "Failed"
    assert message.startswith("No node for a pod for 10m")
    assert "0/1 nodes are available" in message
    live.kube.until(lambda: live.pods("r") == [])


def test_an_evicted_gang_starts_again_elsewhere(live: Live) -> None:
    live.kube.nodes(2)
    live.kube.create(run("r", 8, runtime=CHECKPOINT, annotations={"bench/exit-after": "2s"}))
    live.cycle()
    (old,) = running(live)
    node, name = old["spec"]["nodeName"], old["metadata"]["name"]
    live.kube.patch("v1", "Node", "", node, {"spec": {"unschedulable": True}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    live.kube.core.create_namespaced_pod_eviction(name, "default", eviction)  # type: ignore[arg-type]
    live.cycle()

    assert (live.phases(), closures(live)) == ({"r": "Running"}, ["Failed"])
    assert nodes_of(live) == {"n1", "n2"} - {node}
    (again,) = running(live)
    assert again["spec"]["nodeName"] != node


def test_pods_that_the_server_refuses_are_their_runs_own_trouble(live: Live) -> None:
    kube = live.kube
    kube.nodes(2)
    bad = run("bad", 8, runtime={"requeue": False})
    bad["spec"]["template"] = {"spec": {"containers": [{"name": "Not A Name", "image": "i"}]}}
    kube.create(bad, run("good", 8, annotations={}))
    live.cycle()

    assert live.phases() == {"bad": "Running", "good": "Running"}
    assert len(running(live, "good")) == 1
    assert live.pods("bad") == []
    before = kube.get(API_VERSION, "Run", "default", "bad")["metadata"]["annotations"]
    live.cycle()
    assert kube.get(API_VERSION, "Run", "default", "bad")["metadata"]["annotations"] == before
    live.cycle(ahead=660)

    assert live.phases() == {"bad": "Failed", "good": "Running"}
    _, message = live.reason("bad", "Failed")
    assert message.startswith("No node for a pod for 11m")
    assert "Not A Name" in message
    assert kube.get(API_VERSION, "Run", "default", "bad")["metadata"].get("annotations") is None
