"""Cycles on a real cluster: what is submitted runs in pods on the nodes that were chosen, and ends as they end."""

from pathlib import Path

import pytest

from exporters.lake.lake import read_manifest
from jobtree.api import API_VERSION
from jobtree.api.kinds.lease import FINALIZER
from tests.kube.bench.kube import Kube, names
from tests.kube.live import Live, budget, open_leases, run


@pytest.fixture
def live(kube: Kube, tmp_path: Path) -> Live:
    return Live(kube, tmp_path / "lake")


def environment(pod: dict[str, object]) -> dict[str, str]:
    containers = pod["spec"]["containers"]  # type: ignore[index]
    return {each["name"]: each["value"] for each in containers[0]["env"]}


def test_a_gang_starts_in_pods_on_its_nodes_and_completes(live: Live) -> None:
    kube = live.kube
    kube.nodes(2)
    kube.create(budget("org:a", 16), run("train", 16, resources={"gpusPerPod": 8}, annotations={}))

    live.cycle()

    assert live.phases() == {"train": "Running"}
    kube.until(lambda: [each["status"]["phase"] for each in live.pods("train")] == ["Running", "Running"])
    pods = live.pods("train")
    assert [each["spec"]["nodeName"] for each in pods] == ["n1", "n2"]
    assert [each["spec"]["hostname"] for each in pods] == ["train-0", "train-1"]
    assert [environment(each)["RANK"] for each in pods] == ["0", "1"]
    assert environment(pods[1])["MASTER_ADDR"] == "train-0.run-train.default.svc"
    assert [each["spec"]["containers"][0]["resources"]["limits"] for each in pods] == [{"nvidia.com/gpu": "8"}] * 2
    assert names(kube.objects("v1", "Service", label_selector="rq.davidlangworthy.io/run")) == ["run-train"]
    (lease, _) = open_leases(kube)
    assert lease["metadata"]["finalizers"] == [FINALIZER]
    assert lease["status"]["funding"][0]["class"] == "owned"
    assert [each["status"]["phase"] for each in kube.ours("Plan")] == ["Applied"]

    for pod in pods:
        mark = {"metadata": {"annotations": {"bench/succeed-after": "1ms"}}}
        kube.patch("v1", "Pod", "default", pod["metadata"]["name"], mark)
    kube.until(lambda: [each["status"]["phase"] for each in live.pods("train")] == ["Succeeded", "Succeeded"])
    live.cycle()

    assert live.phases() == {"train": "Completed"}
    assert open_leases(kube) == []
    assert {each["status"]["closureReason"] for each in kube.ours("Lease")} == {"Completed"}
    assert [each["metadata"].get("finalizers") for each in kube.ours("Lease")] == [None, None]
    assert kube.get(API_VERSION, "Run", "default", "train")["metadata"].get("finalizers") is None


def test_an_unchanged_cluster_comes_to_rest(live: Live) -> None:
    live.kube.nodes(1)
    live.kube.create(budget("org:a", 8), run("r", 8), run("waits", 8))
    live.cycle()
    live.cycle()
    kinds = ("Run", "Budget", "Lease", "Plan")
    before = {kind: live.kube.ours(kind) for kind in kinds}

    results = [live.cycle(), live.cycle()]

    assert {kind: live.kube.ours(kind) for kind in kinds} == before
    assert [(each.writes, each.notices) for each in results] == [(0, []), (0, [])]
    phases = [read_manifest(path).phase for path in sorted(live.lake.glob("cycles/*/*.json"))]
    assert phases == ["applied", "applied", "unchanged", "unchanged"]

    live.kube.create(run("new", 8))
    assert live.cycle().writes > 0
    assert len(live.kube.ours("Plan")) == len(before["Plan"]) + 1


def test_the_last_plan_says_every_ten_minutes_that_it_holds(live: Live) -> None:
    live.kube.nodes(1)
    live.kube.create(budget("org:a", 8), run("waits", 16))
    live.cycle()
    live.cycle()
    *_, plan = live.kube.ours("Plan")
    assert "observed" not in plan["status"]

    assert [live.cycle(ahead=ahead).writes for ahead in (601, 900, 1210)] == [1, 0, 1]

    *_, after = live.kube.ours("Plan")
    assert after["status"].pop("observed")
    assert (after["spec"], after["status"]) == (plan["spec"], plan["status"])


def test_a_deleted_run_goes_when_its_leases_are_closed(live: Live) -> None:
    kube = live.kube
    kube.nodes(1)
    kube.create(budget("org:a", 8), run("r", 8, annotations={}))
    live.cycle()
    kube.until(lambda: [each["status"]["phase"] for each in live.pods("r")] == ["Running"])

    kube.delete(API_VERSION, "Run", "default", "r")
    assert names(kube.ours("Run")) == ["r"]
    live.cycle()

    assert names(kube.ours("Run")) == []
    assert [each["status"]["closureReason"] for each in kube.ours("Lease")] == ["RunDeleted"]
    kube.until(lambda: live.pods("r") == [])


def test_a_run_made_anew_takes_over_the_service_that_its_namesake_left(thin_kube: Kube, tmp_path: Path) -> None:
    """Nobody collects what the first one leaves before the second one starts."""
    live = Live(thin_kube, tmp_path / "lake")
    thin_kube.nodes(1)
    thin_kube.create(budget("org:a", 8))
    for _ in range(2):
        thin_kube.create(run("r", 8))
        live.cycle()
        (made,) = thin_kube.ours("Run")
        (service,) = thin_kube.objects("v1", "Service", label_selector="rq.davidlangworthy.io/run")
        assert [each["uid"] for each in service["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
        assert made["metadata"].get("annotations", {}) == {}
        thin_kube.delete(API_VERSION, "Run", "default", "r")
        live.cycle()
        assert thin_kube.ours("Run") == []


def test_a_failed_pod_fails_its_run(live: Live) -> None:
    kube = live.kube
    kube.nodes(1)
    kube.create(budget("org:a", 8), run("r", 8, annotations={"bench/fail-after": "10ms"}))
    live.cycle()
    kube.until(lambda: [each["status"]["phase"] for each in live.pods("r")] == ["Failed"])
    live.cycle()

    assert live.phases() == {"r": "Failed"}
    assert [each["status"]["closureReason"] for each in kube.ours("Lease")] == ["Failed"]


def test_slots_of_pods_that_still_terminate_are_not_given_away(live: Live) -> None:
    kube = live.kube
    kube.nodes(1)
    kube.create(budget("org:a", 8), run("old", 8, annotations={"bench/exit-after": "3s"}))
    live.cycle()
    kube.until(lambda: [each["status"]["phase"] for each in live.pods("old")] == ["Running"])
    kube.patch(API_VERSION, "Run", "default", "old", {"spec": {"state": "Cancelled"}})
    kube.create(run("new", 8))

    live.cycle()
    assert live.phases() == {"old": "Failed", "new": "Pending"}

    live.until(lambda: live.phases()["new"] == "Running")
    assert live.pods("old") == []


def test_each_change_of_fate_is_an_event_on_the_run(live: Live) -> None:
    kube = live.kube
    kube.nodes(1)
    kube.create(budget("org:a", 8), run("r", 8, annotations={"bench/succeed-after": "10ms"}), run("waits", 8))
    live.cycle()
    live.until(lambda: live.phases()["r"] == "Completed")

    found = kube.objects("v1", "Event", field_selector="involvedObject.kind=Run")
    of = {name: [each["reason"] for each in found if each["involvedObject"]["name"] == name] for name in ("r", "waits")}
    assert of["r"] == ["Started", "Completed"]
    assert of["waits"][0] == "BudgetShort"
