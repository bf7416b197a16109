"""The bench itself: nodes come up, pods run and end, and nothing is left for the next test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes.client import ApiException, CoreV1Api

from jobtree.api import API_VERSION, KINDS
from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube, names


def pod(name: str, node: str, **annotations: str) -> dict[str, object]:
    marks = {f"bench/{key.replace('_', '-')}": value for key, value in annotations.items()}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": marks},
        "spec": {"affinity": affinity, "containers": [container], "restartPolicy": "Never"},
    }


def test_pods_are_bound_to_their_nodes_and_end_as_they_are_told(kube: Kube) -> None:
    kube.nodes(3)
    kube.create(pod("a", "n1", succeed_after="10ms"), pod("b", "n2", fail_after="10ms"), pod("c", "n3"))

    def seen() -> list[tuple[str, str]]:
        return [(each["spec"].get("nodeName", ""), each["status"]["phase"]) for each in kube.objects("v1", "Pod")]

    kube.until(lambda: seen() == [("n1", "Succeeded"), ("n2", "Failed"), ("n3", "Running")])


def test_a_node_turns_not_ready_and_back(kube: Kube) -> None:
    kube.nodes(1)

    def ready() -> str:
        conditions = kube.get("v1", "Node", "", "n1")["status"]["conditions"]
        return next(str(each["status"]) for each in conditions if each["type"] == "Ready")

    kube.patch("v1", "Node", "", "n1", {"metadata": {"annotations": {"bench/not-ready": "x"}}})
    kube.until(lambda: ready() == "False")
    kube.patch("v1", "Node", "", "n1", {"metadata": {"annotations": {"bench/not-ready": None}}})
    kube.until(lambda: ready() == "True")


def test_an_account_may_do_what_its_roles_say(kube: Kube) -> None:
    client = kube.client(kube.account("jobtree-system", "planner"))
    before = len(kube.processes.audit())
    with pytest.raises(ApiException) as refused:
        CoreV1Api(client).list_node()

    assert refused.value.status == 403
    assert "jobtree-system:planner" in str(refused.value.body)
    calls = kube.processes.audit()[before:]
    assert [(each["verb"], each["responseStatus"]["code"]) for each in calls] == [("list", 403)]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_finds_an_empty_cluster(kube: Kube, turn: int) -> None:
    found = {kind: names(kube.ours(kind)) for kind in KINDS} | {"Node": names(kube.objects("v1", "Node"))}
    assert found == {kind: [] for kind in [*KINDS, "Node"]}

    kube.nodes(1)
    envelope = {"name": "e", "flavor": "H100-80GB", "selector": {"region": "*"}, "concurrency": 8}
    budget = {"apiVersion": API_VERSION, "kind": "Budget", "metadata": {"name": "b", "finalizers": ["a.example/b"]}}
    kube.create({**budget, "spec": {"owner": "org:a", "envelopes": [envelope]}})


def test_a_killed_api_server_comes_back_with_its_objects(kube: Kube) -> None:
    kube.nodes(1)
    kube.processes.restart_apiserver()
    assert names(kube.objects("v1", "Node")) == ["n1"]


def test_the_bench_ends_with_the_tests_that_started_it(kube: Kube) -> None:
    script = (
        "import sys, json; from tests.kube.bench import build, processes\n"
        "with processes.running(build.find(), thin=True) as bench:\n"
        "    print(json.dumps([each.pid for each in bench.running.values()]), flush=True); sys.stdin.read()\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pids = json.loads(child.stdout.readline())
        child.kill()

    kube.until(lambda: not any(_lives(pid) for pid in pids))


def test_benches_that_see_other_folders_for_their_files_share_no_port(tmp_path: Path) -> None:
    command = "from tests.kube.bench import processes\nwith processes.free_ports(6) as ports: print(*ports)"
    root, elsewhere = Path(__file__).parents[2], {**os.environ, "TMPDIR": str(tmp_path)}
    with processes.free_ports(6) as mine:
        told = subprocess.run(
            [sys.executable, "-c", command], cwd=root, env=elsewhere, stdout=subprocess.PIPE, check=True
        )
    assert set(mine) & set(map(int, told.stdout.split())) == set()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_commands_are_taken_from_the_named_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "etcd"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", os.defpath)

    assert build.find() == {"etcd": own}
