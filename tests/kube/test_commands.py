"""Every command on a live cluster, as an ordinary user with the rights that reading and submitting need."""

import json
import os
import signal
import subprocess
import sys
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml

from jobtree.api import API_VERSION
from tests.kube.bench.kube import Kube
from tests.kube.bench.proxy import Call, proxy
from tests.kube.live import Live, budget, run
from tests.support.commands import Output, jobtree, kubectl_runs

RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [rq.davidlangworthy.io], resources: ["budgets", "runs", "gpuleases", "plans", "policies", "reservations"],
   verbs: [get, list]}
- {apiGroups: [""], resources: [nodes, pods, pods/log, configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: submitter, namespace: default}
rules:
- {apiGroups: [rq.davidlangworthy.io], resources: [runs], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: submitter, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: submitter}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
"""


WIDTH = {"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8}


@pytest.fixture
def live(kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    kube.load(RIGHTS)
    kube.nodes(2)
    kube.create(budget("org:a", 16))
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig("alice")))
    monkeypatch.delenv("KUBECTL_RUNS_STATE", raising=False)
    return Live(kube, tmp_path / "lake")


def submitted(tmp_path: Path, *runs: dict[str, object]) -> Output:
    file = tmp_path / "runs.yaml"
    file.write_text(yaml.safe_dump_all(runs))
    return kubectl_runs("submit", "-f", file)


def test_a_user_submits_looks_and_cancels(live: Live, tmp_path: Path) -> None:
    said = submitted(tmp_path, run("train", 16, resources={"gpusPerPod": 8}, annotations={}), run("later", 8)).ok()
    assert said.out.splitlines()[:2] == ["Run default/train created", "Run default/later created"]
    assert "Run it:" not in said.out
    assert "Next cycle, Run default/train:" in said.out
    live.cycle()
    live.kube.until(lambda: [each["status"]["phase"] for each in live.pods("train")] == ["Running", "Running"])

    state = kubectl_runs("state").ok().out.splitlines()
    assert [line.split()[:4] for line in state[1:]] == [
        ["later", "org:a", "H100-80GB", "Pending"],
        ["train", "org:a", "H100-80GB", "Running"],
    ]
    pods = kubectl_runs("pods", "train").ok().out.splitlines()
    assert [line.split()[:2] + line.split()[3:5] for line in pods[1:]] == [
        ["0", "0", "n1", "Running"],
        ["1", "0", "n2", "Running"],
    ]
    assert kubectl_runs("logs", "train", "--rank", "1").ok().out == "hello from the bench\n"
    assert kubectl_runs("logs", "train").ok().out == "[0] hello from the bench\n[1] hello from the bench\n"
    for words in ("plan later", "explain train", "watch train", "leases train", "fleet", "budgets usage"):
        assert kubectl_runs(*words.split()).ok().out
    assert kubectl_runs("whatif", "--cancel", "train").ok().out
    assert json.loads(kubectl_runs("state", "-o", "json").ok().out)["kind"] == "List"

    assert kubectl_runs("cancel", "train").ok().out.startswith("Run default/train cancelled")
    live.cycle()
    assert live.phases() == {"train": "Failed", "later": "Pending"}
    live.until(lambda: live.phases()["later"] == "Running")


def test_every_command_works_for_an_ordinary_user(live: Live) -> None:
    live.kube.create(budget("org:b", 8, lending={"allow": True}))
    live.kube.create(run("r", 16, malleable=WIDTH, locality={"groupGPUs": 8}, funding={"allowBorrow": True}))
    live.cycle()
    listed = {
        "leases --owner org:a": ["NAMESPACE", *["default"] * 2],
        "leases --envelope org-a/pool": ["NAMESPACE", *["default"] * 2],
        "state --owner org:a -o wide": ["NAMESPACE", "default"], "fleet --nodes": ["FLAVOR", *["H100-80GB"] * 2],
        "budgets usage --owner org:a": ["OWNER", "org:a"], "sponsors list r": ["OWNER", "org:b"],
    }  # fmt: skip
    told = {words: kubectl_runs(*words.split()).ok().out.splitlines() for words in listed}
    assert {words: [line.split()[0] for line in lines if line] for words, lines in told.items()} == listed
    assert "Started" in kubectl_runs("events", "r").ok().out
    assert kubectl_runs("completion", "bash").ok().out
    assert "no lottery has taken a lease of it" in kubectl_runs("verify", "r").refused()
    assert "complete is for state files only" in kubectl_runs("complete", "r").refused()

    for words, changed in {
        "shrink r --by 8": ("malleable", "desiredTotalGPUs", 8),
        "sponsors add r org:b": ("funding", "sponsors", ["org:b"]),
        "suspend r": ("state", "Suspended"), "resume r": ("state", "Active"),
    }.items():  # fmt: skip
        kubectl_runs(*words.split()).ok()
        *path, value = changed
        spec = live.kube.get(API_VERSION, "Run", "default", "r")["spec"]
        assert (words, reduce(getitem, path, spec)) == (words, value)
        live.cycle()
    live.until(lambda: live.phases() == {"r": "Running"})
    assert "org:b" in kubectl_runs("sponsors", "list", "r").ok().out


def test_the_contexts_namespace_is_the_one_that_is_meant(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.kube.namespace("team-a")
    live.kube.create({**run("r", 8), "metadata": {"name": "r", "namespace": "team-a"}}, run("r", 8))
    monkeypatch.setenv("KUBECONFIG", str(live.kube.kubeconfig("alice", namespace="team-a")))

    assert kubectl_runs("state", "-o", "json").ok().out.count('"namespace": "team-a"') == 1
    assert kubectl_runs("watch", "r").ok().out.startswith("run: team-a/r\n")
    assert kubectl_runs("watch", "r", "-n", "default").ok().out.startswith("run: default/r\n")
    said = kubectl_runs("state", "--context", "none").refused()
    assert said.startswith("error: the kubeconfig ")
    assert " cannot be used: " in said


def test_what_a_user_may_not_do_is_said(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "budget.yaml"
    file.write_text(yaml.safe_dump(budget("org:b", 8)))
    said = kubectl_runs("submit", "-f", file).refused()
    assert 'User "alice" cannot create resource "budgets"' in said
    monkeypatch.setenv("KUBECONFIG", str(live.kube.kubeconfig("bob")))
    assert 'User "bob" cannot list resource "runs"' in kubectl_runs("state").refused()


def test_what_the_server_refuses_is_said_in_one_sentence(live: Live, tmp_path: Path) -> None:
    submitted(tmp_path, run("r", 8)).ok()
    changed = run("r", 16)
    said = submitted(tmp_path, changed)
    assert said.code == 1
    assert said.err.count("error: ") == 1


def test_a_dry_run_and_a_plan_file_work_live(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live.kube.namespace("jobtree-system")
    live.kube.create(run("r", 8))
    file = tmp_path / "p.yaml"
    assert "carry it out: `jobtree apply" in jobtree("plan", "--out", file).ok().out
    monkeypatch.setenv("KUBECONFIG", str(live.kube.kubeconfig()))
    jobtree("apply", file, "--lake", tmp_path / "lake").ok()
    assert live.phases() == {"r": "Running"}


def test_cycles_follow_one_another_within_one_command(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.kube.namespace("jobtree-system")
    live.kube.create(run("r", 8, annotations={"bench/succeed-after": "10ms"}))
    monkeypatch.setenv("KUBECONFIG", str(live.kube.kubeconfig()))
    said = jobtree("cycle", "--every", "2s", "--for", "4s", "--lake", tmp_path / "lake").ok().out

    assert len(said.splitlines()) == 3
    assert live.phases() == {"r": "Completed"}
    lock = live.kube.get("coordination.k8s.io/v1", "Lease", "jobtree-system", "jobtree-planner")
    assert lock["spec"]["holderIdentity"] == ""


def test_a_killed_process_is_followed_by_one_that_completes_its_cycle(live: Live, tmp_path: Path) -> None:
    live.kube.namespace("jobtree-system")
    live.kube.create(run("r", 16, resources={"gpusPerPod": 8}))
    command = [sys.executable, "-m", "tests.kube.planner", "cycle", "--lake", str(tmp_path / "lake")]
    with proxy(live.kube.url, live.kube.processes.ca) as before:
        config = live.kube.kubeconfig("admin", server=before.url)
        environment = {**os.environ, "KUBECONFIG": str(config)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:

            def kill(call: Call) -> None:
                if call.number == 4:
                    child.send_signal(signal.SIGKILL)
                    before.crashed = True

            before.fault = kill
            assert child.wait(60) == -signal.SIGKILL
        assert {each.get("status", {}).get("phase") for each in live.kube.ours("Plan")} == {"Planned"}
        before.reset()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stderr
    assert "was begun and not ended; it is completed now, as it was planned" in done.stderr
    assert live.phases() == {"r": "Running"}
    assert {each["status"]["phase"] for each in live.kube.ours("Plan")} == {"Applied"}
    assert len(live.kube.ours("Lease")) == 2
    assert live.kube.get(API_VERSION, "Run", "default", "r")["status"]["width"]["allocated"] == 16


def test_the_planners_namespace_may_have_another_name(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBTREE_NAMESPACE", "gpu-planner")
    live.kube.namespace("gpu-planner")
    live.kube.create(run("r", 8, annotations={}))
    live.cycle()
    live.kube.create(budget("org:b", 8))
    result = live.cycle()

    assert result.plan is not None
    assert [each for each in result.plan.warnings if "ConfigMap" in each.object] == []
    maps = live.kube.objects("v1", "ConfigMap", field_selector="metadata.name=jobtree-budgets")
    assert [each["metadata"]["namespace"] for each in maps] == ["gpu-planner"]
    assert live.read().config_map("jobtree-budgets") is not None
    assert "gpu-planner" in {
        each["metadata"]["namespace"]
        for each in live.kube.objects("coordination.k8s.io/v1", "Lease", field_selector="metadata.name=jobtree-planner")
    }
