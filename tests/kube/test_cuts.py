"""Promises and what is cut for them on a real cluster: told, cut, awaited, kept; and a planner killed in between."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from exporters.writes.announced import CUT_AT, CUT_CHANCE
from jobtree.api import API_VERSION
from tests.cli.test_terminal import read_until
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import Live, budget, doubled, open_leases, run
from tests.kube.test_faults import killed_cycle
from tests.kube.watcher import watching
from tests.support import documents as doc
from tests.support.commands import kubectl_runs
from tests.support.times import unix

NOTICE = 3
POLICY = doc.policy(reservations={"notice": f"{NOTICE}s", "patience": "1s", "bucket": "1s"}, lottery={"term": "1s"})


def owned(name: str, gpus: int = 8, **spec: Any) -> Object:
    """A run of the owner that is called as it is."""
    return run(name, gpus, owner=f"org:{name}", **spec)


def crowded(kube: Kube, folder: Path, *names: str, **first: Any) -> Live:
    """1 × 8, a Budget of 8 for each of these owners, and the first one's run on it."""
    kube.nodes(1)
    kube.create(POLICY, *(budget(f"org:{name}", 8) for name in names), owned(names[0], **first))
    live = Live(kube, folder / "lake")
    live.cycle()
    return live


def promise(live: Live, run: str) -> Object:
    """The newest Reservation of a run."""
    found = [each for each in live.kube.ours("Reservation") if each["spec"]["runRef"]["name"] == run]
    return max(found, key=lambda each: str(each["metadata"]["creationTimestamp"]))


def date_of(live: Live, run: str) -> int:
    return unix(promise(live, run)["status"]["earliestStart"])


def until_due(live: Live, run: str) -> None:
    """Waits for the time that a run is promised."""
    due = date_of(live, run)
    live.kube.until(lambda: time.time() >= due)


def events(live: Live, name: str) -> list[tuple[str, str]]:
    """Reason and sentence of each Event on a Run."""
    found = live.kube.objects("v1", "Event", field_selector=f"involvedObject.kind=Run,involvedObject.name={name}")
    return [(each["reason"], each["message"]) for each in sorted(found, key=lambda each: str(each["firstTimestamp"]))]


def cut(pod: Object) -> tuple[str | None, str | None]:
    """When a pod says that something may be taken from its run, and with what chance all."""
    said = pod["metadata"].get("annotations", {})
    return said.get(CUT_AT), said.get(CUT_CHANCE)


def closures(live: Live) -> list[tuple[str, str]]:
    closed = [each for each in live.kube.ours("Lease") if each.get("status", {}).get("closed")]
    return sorted((each["spec"]["runRef"]["name"], each["status"]["closureReason"]) for each in closed)


def test_a_promise_is_written_kept_and_paid_with_a_cut_that_anybody_can_check(
    kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig()))
    monkeypatch.delenv("KUBECTL_RUNS_STATE", raising=False)
    live = crowded(kube, tmp_path, "v", "w", "x", annotations={"bench/exit-after": "8s"})
    kube.until(lambda: [each["status"].get("phase") for each in live.pods("v")] == ["Running"])
    kube.create(owned("w", annotations={}))
    live.cycle()

    made = promise(live, "w")
    (there,) = [each for each in live.read().reservations if each.name == made["metadata"]["name"]]
    assert (there.spec.run_ref.name, str(there.spec.earliest_start)) == ("w", made["spec"]["earliestStart"])
    assert made["status"]["state"] == "Pending"
    assert made["status"]["forecast"]["conflictSet"] == [{"run": "default/v", "killProbability": 1}]
    assert "conflictSets" in kube.get(API_VERSION, "Run", "default", "v")["status"]
    assert any(made["metadata"]["name"] in message for _, message in events(live, "v")), events(live, "v")
    assert [cut(pod) for pod in live.pods("v")] == [(made["spec"]["earliestStart"], "1")]
    said = kubectl_runs("watch", "w").ok().out
    assert f"(reservation {made['metadata']['name']})" in said

    kube.create(owned("x", annotations={}))
    live.cycle()
    kept = promise(live, "w")
    assert (kept["spec"], kept["status"]["earliestStart"]) == (made["spec"], made["status"]["earliestStart"])

    until_due(live, "w")
    live.cycle()
    (victim,) = live.pods("v")
    assert victim["metadata"].get("deletionTimestamp")
    assert closures(live) == [("v", "Lottery")]
    assert live.phases() == {"v": "Failed", "w": "Pending", "x": "Pending"}
    waits = promise(live, "w")["status"]
    assert (waits["state"], waits["reason"]) == ("Activated", "WaitingForVictims")
    assert events(live, "v")[-1][0] == "Lottery"

    live.cycle()  # the victim's pod still ends: its slots are nobody's
    assert live.pods("v")
    assert (open_leases(kube), live.pods("w"), live.pods("x")) == ([], [], [])

    kube.until(lambda: live.pods("v") == [])
    live.cycle()
    assert live.phases() == {"v": "Failed", "w": "Running", "x": "Pending"}
    assert [each["spec"]["runRef"]["name"] for each in open_leases(kube)] == ["w"]
    kube.until(lambda: [each["status"].get("phase") for each in live.pods("w")] == ["Running"])
    assert (promise(live, "w")["status"]["state"], live.pods("x")) == ("Activated", [])
    assert "WRONG" not in kubectl_runs("verify", "v").ok().out


def test_watch_counts_down_to_the_start_and_leaves_quietly(kube: Kube, tmp_path: Path) -> None:
    live = crowded(kube, tmp_path, "v", "w", annotations={})
    kube.patch(API_VERSION, "Policy", "", "default", {"spec": {"reservations": {"notice": "1h"}}})
    kube.create(owned("w", annotations={}))
    live.cycle()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "KUBECONFIG": str(kube.kubeconfig())}
    command = [str(Path(sys.executable).with_name("kubectl-runs")), "watch", "w"]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, text=True, env=environment) as watching:
        os.close(theirs)
        seen = read_until(ours, "starts in 59m")
        watching.send_signal(signal.SIGINT)
        read_until(ours, "never")
        assert (watching.wait(30), watching.stderr and watching.stderr.read()) == (130, "")
    os.close(ours)
    block = seen.replace("\r", "").split("\n")
    assert block[:2] == ["run: default/w", "phase: Pending"]
    assert "width: 0 of 8 GPUs" in block
    said = promise(live, "w")
    assert f"earliestStart: {said['spec']['earliestStart']} (reservation {said['metadata']['name']})" in block


def test_opportunistic_work_gives_way_at_once_and_is_awaited(kube: Kube, tmp_path: Path) -> None:
    kube.nodes(1)
    kube.create(POLICY, budget("org:w", 8), budget("org:x", 8))
    kube.create(owned("v", annotations={"bench/exit-after": "6s"}, funding={"opportunistic": True}))
    live = Live(kube, tmp_path / "lake")
    live.cycle()
    kube.until(lambda: [each["status"].get("phase") for each in live.pods("v")] == ["Running"])
    kube.create(owned("w", 6, annotations={}))
    live.cycle()
    assert closures(live) == [("v", "ReclaimUnfunded")]
    assert (open_leases(kube), live.pods("w")) == ([], [])
    assert promise(live, "w")["status"]["reason"] == "WaitingForVictims"
    kube.create(owned("x", 8, annotations={}))  # more GPUs than w: the slots would be its own
    kube.create(run("late", 8, owner="org:v", funding={"opportunistic": True}, annotations={}))
    live.cycle()
    assert [each["metadata"].get("deletionTimestamp", "") != "" for each in live.pods("v")] == [True]
    assert (open_leases(kube), live.pods("w"), live.pods("late")) == ([], [], [])

    kube.until(lambda: live.pods("v") == [])
    live.cycle()
    assert {name: phase for name, phase in live.phases().items() if phase == "Running"} == {"w": "Running"}
    assert promise(live, "w")["status"]["state"] == "Activated"


def test_a_planner_killed_after_any_write_of_a_cut_is_completed_by_the_next(
    thin_kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = thin_kube
    kube.nodes(1)
    kube.create(POLICY, budget("org:even", 8), budget("org:odd", 8))
    live = Live(kube, tmp_path / "lake")
    kube.create(_turn(0))
    live.cycle()
    with watching(kube) as eye:
        number, was_killed = 0, True
        while was_killed:
            number += 1
            kube.create(_turn(number))
            live.cycle()
            until_due(live, f"r{number}")
            was_killed = killed_cycle(live, number - 1, monkeypatch)
            live.cycle()
            live.cycle()
            assert (number, _look(live, number)) == (number, _expected(number))
        assert eye.doubled == set()
    assert number > 10
    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig()))
    assert "WRONG" not in kubectl_runs("verify", "r0").ok().out


def _turn(number: int) -> Object:
    return run(f"r{number}", 8, owner=f"org:{('even', 'odd')[number % 2]}")


def _look(live: Live, number: int) -> dict[str, Any]:
    """What is there after a turn."""
    kube = live.kube
    record = kube.get("v1", "ConfigMap", "jobtree-system", "jobtree-lottery")
    return {
        "phases": {name: phase for name, phase in live.phases().items() if int(name[1:]) >= number - 1},
        "closed": sorted(closures(live)),
        "position": record["data"]["position"],
        "open": [each["spec"]["runRef"]["name"] for each in open_leases(kube)],
        "pods": [each["metadata"]["labels"]["rq.davidlangworthy.io/run"] for each in kube.objects("v1", "Pod")],
        "plans": {each["status"]["phase"] for each in kube.ours("Plan")},
        "promise": promise(live, f"r{number}")["status"]["state"],
        "doubled": doubled(kube),
    }


def _expected(number: int) -> dict[str, Any]:
    return {
        "phases": {f"r{number - 1}": "Failed", f"r{number}": "Running"},
        "closed": sorted((f"r{each}", "Lottery") for each in range(number)),
        "position": str(number),
        "open": [f"r{number}"],
        "pods": [f"r{number}"],
        "plans": {"Applied"},
        "promise": "Activated",
        "doubled": [],
    }
