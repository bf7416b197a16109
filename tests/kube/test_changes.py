"""Running work that changes, with real pods: swaps, growth, an owner's shrink, arrays, trees, and who follows whom."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobtree.api import API_VERSION
from jobtree.api.kinds.base import ANNOTATION_CORDONED
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import Live, budget, open_leases, run
from tests.support import documents as doc
from tests.support.commands import kubectl_runs


@pytest.fixture
def live(kube: Kube, tmp_path: Path) -> Live:
    kube.create(budget("org:a", 64), doc.policy(failure={"notReadyAfter": "1s"}))
    return Live(kube, tmp_path / "lake")


def environment(pod: Object, name: str) -> str:
    (container,) = pod["spec"]["containers"]
    (value,) = (each["value"] for each in container["env"] if each["name"] == name)
    return str(value)


def pods(live: Live, name: str) -> list[tuple[str, str, str]]:
    """Host name, rank and node of each pod of a run that is not on its way out."""
    there = [each for each in live.pods(name) if "deletionTimestamp" not in each["metadata"]]
    return sorted((p["spec"]["hostname"], environment(p, "RANK"), p["spec"].get("nodeName", "")) for p in there)


def settled(live: Live, name: str, count: int) -> list[tuple[str, str, str]]:
    """Waits until so many pods run, and no other is there any more."""
    phases = ["Running"] * count
    live.kube.until(lambda: [each["status"].get("phase") for each in live.pods(name)] == phases)
    return pods(live, name)


def told(live: Live, name: str) -> tuple[str, list[tuple[int, str, str]]]:
    """The width that the run's pods may read, and of each rank host and node."""
    data = live.kube.get("v1", "ConfigMap", "default", f"run-{name}")["data"]
    ranks = msgspec.json.decode(data["ranks.json"])
    return data["width"], [(each["rank"], each["host"].partition(".")[0], each["node"]) for each in ranks]


def end(live: Live, name: str, how: str) -> None:
    """The pods of a run succeed, or fail."""
    phase = {"succeed": "Succeeded", "fail": "Failed"}[how]
    for pod in live.pods(name):
        mark = {"metadata": {"annotations": {f"bench/{how}-after": "1ms"}}}
        live.kube.patch("v1", "Pod", "default", pod["metadata"]["name"], mark)
    live.kube.until(lambda: {each["status"]["phase"] for each in live.pods(name)} == {phase})


def cordoned(live: Live) -> dict[str, bool]:
    """The nodes that take no new work, and whether Jobtree says that it was itself."""
    nodes = live.kube.objects("v1", "Node")
    return {
        each["metadata"]["name"]: ANNOTATION_CORDONED in each["metadata"].get("annotations", {})
        for each in nodes
        if each["spec"].get("unschedulable")
    }


def test_a_spare_takes_over_from_a_node_that_is_silent(live: Live) -> None:
    kube = live.kube
    kube.nodes(3)
    kube.create(run("r", 16, resources={"gpusPerPod": 8}, locality={"groupGPUs": 16}, spares=1, annotations={}))
    live.cycle()
    before = settled(live, "r", 2)
    assert told(live, "r") == ("16", [(int(rank), host, node) for host, rank, node in before])
    (spare,) = (each for each in open_leases(kube) if each["spec"]["slice"].get("role") == "Spare")
    standby, lost = spare["spec"]["slice"]["nodes"][0].partition("#")[0], before[0][2]

    mark: Object = {"metadata": {"annotations": {"bench/not-ready": "x"}}}
    kube.patch("v1", "Node", "", lost, mark)
    live.until(lambda: standby in {node for *_, node in pods(live, "r")})
    after = settled(live, "r", 2)
    assert after == [(host, rank, standby if node == lost else node) for host, rank, node in before]
    assert told(live, "r") == ("16", [(int(rank), host, node) for host, rank, node in after])
    assert (live.phases(), cordoned(live)) == ({"r": "Running"}, {lost: True})
    closed = [each["status"]["closureReason"] for each in kube.ours("Lease") if each["status"].get("closed")]
    assert sorted(closed) == ["NodeFailure", "Swap"]

    kube.patch("v1", "Node", "", lost, {"metadata": {"annotations": {"bench/not-ready": None}}})
    live.until(lambda: cordoned(live) == {})
    assert settled(live, "r", 2) == after


def test_a_run_grows_into_the_room_that_comes_and_shrinks_as_its_owner_says(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(live.kube.kubeconfig()))
    monkeypatch.delenv("KUBECTL_RUNS_STATE", raising=False)
    kube = live.kube
    kube.nodes(3)
    widths = {"minTotalGPUs": 8, "maxTotalGPUs": 24, "stepGPUs": 8}
    wide = run("r", 8, resources={"gpusPerPod": 8}, locality={"groupGPUs": 8}, malleable=widths, annotations={})
    kube.create(run("beside", 16, resources={"gpusPerPod": 8}, annotations={}), wide)
    live.cycle()
    (first,) = settled(live, "r", 1)
    live.cycle()
    assert (pods(live, "r"), told(live, "r")) == ([first], ("8", [(0, "r-0", first[2])]))

    settled(live, "beside", 2)
    end(live, "beside", "succeed")
    live.until(lambda: len(pods(live, "r")) == 3)
    grown = settled(live, "r", 3)
    assert [(host, rank) for host, rank, _ in grown] == [("r-0", "0"), ("r-1", "1"), ("r-2", "2")]
    assert (grown[0], {node for *_, node in grown}) == (first, {"n1", "n2", "n3"})
    assert told(live, "r") == ("24", [(int(rank), host, node) for host, rank, node in grown])

    kubectl_runs("shrink", "r", "--by", "16").ok()
    live.cycle()
    assert settled(live, "r", 1) == [first]
    assert told(live, "r") == ("8", [(0, "r-0", first[2])])
    closed = {each["spec"]["group"]: each["status"].get("closureReason") for each in kube.ours("Lease")
              if each["spec"]["runRef"]["name"] == "r"}  # fmt: skip
    assert (closed, live.phases()["r"]) == ({0: None, 1: "Shrink", 2: "Shrink"}, "Running")


def indices(live: Live) -> dict[int, str]:
    """Phases of an array's indices, of those whose turn has come."""
    listed = live.kube.get(API_VERSION, "Run", "default", "sweep")["status"].get("indices", [])
    spans = [(span.partition("-"), each["phase"]) for each in listed for span in each["indices"].split(",")]
    return {number: phase for (a, _, b), phase in spans for number in range(int(a), int(b or a) + 1)}


def test_indices_of_an_array_are_admitted_and_end_by_themselves(live: Live) -> None:
    live.kube.nodes(1)
    live.kube.create(run("sweep", 2, array={"count": 4, "maxParallel": 2}, runtime={"requeue": False}, annotations={}))
    live.cycle()
    for index in (0, 1):
        (pod,) = settled(live, f"sweep-{index}", 1)
        assert pod == (f"sweep-{index}-0", "0", "n1")
    assert (live.pods("sweep-2"), indices(live)[0], indices(live)[1]) == ([], "Running", "Running")

    end(live, "sweep-0", "fail")
    live.cycle()
    settled(live, "sweep-2", 1)
    assert (live.pods("sweep-3"), [indices(live)[index] for index in range(3)]) == (
        [],
        ["Failed", "Running", "Running"],
    )
    end(live, "sweep-1", "succeed")
    end(live, "sweep-2", "succeed")
    live.cycle()
    settled(live, "sweep-3", 1)
    end(live, "sweep-3", "succeed")
    live.cycle()
    assert (indices(live), live.phases()) == (
        {0: "Failed"} | dict.fromkeys((1, 2, 3), "Completed"),
        {"sweep": "Failed"},
    )
    assert open_leases(live.kube) == []


def cpu(name: str, pods: int, **spec: Any) -> Object:
    """A Run of pods without GPUs."""
    made = run(name, 1, annotations={}, **spec)
    resources = {"pods": pods, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    return {**made, "spec": {**made["spec"], "resources": resources}}


def test_a_run_without_gpus_is_the_root_of_a_tree_and_ends_by_its_pods(live: Live) -> None:
    kube = live.kube
    kube.nodes(2)
    kube.create(cpu("driver", 2, quota={"maxGPUs": 8}))
    kube.create(*(run(name, 8, parent="driver", annotations={}) for name in ("one", "two")))
    live.cycle()
    assert (live.phases(), len(settled(live, "driver", 2))) == (
        {"driver": "Running", "one": "Running", "two": "Pending"}, 2
    )  # fmt: skip
    assert "driver" in live.reason("two")[1]
    assert {each["spec"]["runRef"]["name"] for each in open_leases(kube)} == {"one"}

    settled(live, "one", 1)
    end(live, "one", "succeed")
    live.cycle()
    settled(live, "two", 1)
    end(live, "driver", "succeed")
    live.cycle()
    assert live.phases() == {"driver": "Completed", "one": "Completed", "two": "Running"}


def test_who_follows_a_run_that_failed_fails_or_waits(live: Live) -> None:
    kube = live.kube
    kube.nodes(1)
    kube.create(run("a", 4, annotations={}))
    kube.create(
        run("fails", 4, follow={"after": ["a"], "onUpstreamFailure": "fail"}, annotations={}),
        run("waits", 4, follow={"after": ["a"], "upstreamFailureGrace": "1h"}, annotations={}),
        cpu("prepares", 1, follow={"after": ["a"], "onUpstreamFailure": "fail"}),
    )
    live.cycle()
    settled(live, "a", 1)
    assert live.phases() == {"a": "Running", "fails": "Waiting", "waits": "Waiting", "prepares": "Waiting"}
    end(live, "a", "fail")
    live.cycle()
    assert live.phases() == {"a": "Failed", "fails": "Failed", "waits": "Waiting", "prepares": "Failed"}
    assert "followDeadline" in kube.get(API_VERSION, "Run", "default", "waits")["status"]
    assert [each for name in ("fails", "waits", "prepares") for each in live.pods(name)] == []
