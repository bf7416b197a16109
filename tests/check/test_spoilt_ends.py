"""Ends (spec §6, §7): every wrong end, and everything that must end, is caught under its own name."""

import pytest

from tests.check.scene import Scene, ago
from tests.check.spoils import (
    FAILED,
    Spoil,
    conditions,
    controlled,
    failed,
    failing,
    follows,
    going,
    own_pod,
    past,
    reclosed,
    reopened,
    status,
    taint,
    without,
)
from tests.support.documents import merge
from tests.support.times import moment


def on_cpus(scene: Scene, phase: str = "Running") -> Scene:
    """Beside the rest a CPU run c runs, and has one pod in that phase."""
    cpus = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    told = [{"type": kind, "status": "True"} for kind in ("Admitted", "Running")]
    scene.run("c", 1, resources=cpus).add(own_pod("c", "b02", 0, phase))
    return scene.edit("Run", "c", {"status": {"phase": "Running", "started": moment("-1h"), "conditions": told}})


def paid_tenant(scene: Scene) -> Scene:
    """What lies on the standby is paid for."""
    scene.old = [lease for lease in scene.old if lease.metadata.name != "o-0"]
    return scene.holds("o", "a02#0-3", name="o-0")


def unchanged(scene: Scene) -> Scene:
    """The plan takes the world for what it was an hour ago."""
    scene.changed = ago("1h")
    return scene


SPOILS = [
    Spoil(
        "endings",
        "a deleted run that holds on",
        lambda s: reopened(s, "gone-0"),
        "terminal-holds-nothing slot-exclusive",
    ),
    Spoil(
        "endings",
        "a cancelled run that holds on",
        lambda s: reopened(s, "cancelled-0"),
        "terminal-holds-nothing slot-exclusive",
    ),
    Spoil("endings", "a suspended run that holds on", lambda s: reopened(s, "suspended-0"), "terminal-holds-nothing"),
    Spoil(
        "endings",
        "a completed run that holds on",
        lambda s: reopened(s, "done-0"),
        "terminal-holds-nothing slot-exclusive",
    ),
    Spoil(
        "endings",
        "a run that holds on past its limit",
        lambda s: reopened(s, "limited-0"),
        "terminal-holds-nothing slot-exclusive",
    ),
    Spoil(
        "hours",
        "a run whose pods all succeeded",
        lambda s: s.add(own_pod("v", "a01", 4, "Succeeded")),
        "terminal-holds-nothing",
    ),
    Spoil(
        "hours",
        "a run of which a pod failed",
        lambda s: s.add(own_pod("v", "a01", 4, "Failed", "-30m")),
        "terminal-holds-nothing",
    ),
    Spoil(
        "hours",
        "a completion by a pod of a life before",
        lambda s: s.add(own_pod("v", "a01", 4, "Succeeded", "-2h")).closes("v-0", "Completed"),
        "closure-justified",
    ),
    Spoil(
        "hours",
        "a failure by a pod that somebody else controls",
        lambda s: s.add(merge(own_pod("v", "a01", 4, "Failed", "-30m"), controlled("other"))).closes("v-0", "Failed"),
        "closure-justified",
    ),
    Spoil(
        "hours",
        "a failure by a pod on another node",
        lambda s: s.add(own_pod("v", "a02", 0, "Failed", "-30m")).closes("v-0", "Failed"),
        "closure-justified",
    ),
    Spoil(
        "hours",
        "a completion by one of two pods",
        lambda s: (
            s.edit("Run", "v", {"spec": {"resources": {"gpusPerPod": 2}}})
            .add(own_pod("v", "a01", 2, "Succeeded", "-30m"))
            .closes("v-0", "Completed")
        ),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a failure by a pod that failed with its node",
        lambda s: reclosed(s.add(own_pod("f", "a01", 2, "Failed", "-30m")), "f-0", "Failed"),
        "closure-justified",
    ),
    Spoil(
        "hours",
        "a lease that stays on a node that was made again",
        lambda s: s.edit("Node", "a01", {"metadata": {"uid": "new"}}).on("v-0", "old"),
        "node-failure",
    ),
    Spoil(
        "hours",
        "a lease of the plan on another node of that name",
        lambda s: s.edit("Node", "a02", {"metadata": {"uid": "new"}}),
        "slot-exists",
    ),
    Spoil(
        "hours",
        "a lease of an earlier run of that name",
        lambda s: s.edit("Run", "v", {"metadata": {"uid": "uid-other"}}),
        "terminal-holds-nothing",
    ),
    Spoil("hours", "a failed run that holds on", lambda s: s.edit("Run", "v", FAILED), "terminal-holds-nothing"),
    Spoil(
        "hours",
        "a reason out of a failed run's condition that there is not",
        lambda s: s.edit("Run", "v", failed("Mood")).closes("v-0", "Mood"),
        "closure-justified",
    ),
    Spoil("hours", "a closure of live work", lambda s: s.closes("v-0", "Failed"), "closure-justified"),
    Spoil("hours", "a closure without reason", lambda s: s.closes("v-0", ""), "closure-justified"),
    Spoil("hours", "a reason that there is not", lambda s: s.closes("v-0", "Mood"), "closure-justified"),
    Spoil(
        "hours",
        "a lottery without a promise",
        lambda s: s.closes("v-0", "Lottery"),
        "closure-justified outcome-follows",
    ),
    Spoil(
        "hours",
        "a time limit before its time",
        lambda s: s.closes("v-0", "TimeLimit"),
        "closure-justified closed-has-end-and-reason",
    ),
    Spoil("hours", "a node failure of a healthy node", lambda s: s.closes("v-0", "NodeFailure"), "closure-justified"),
    Spoil("hours", "a cut of funded work", lambda s: s.closes("v-0", "ReclaimUnfunded"), "closure-justified"),
    Spoil(
        "endings",
        "a cancelled run that is called suspended",
        lambda s: reclosed(s, "cancelled-0", "Suspended"),
        "closure-justified",
    ),
    Spoil(
        "endings",
        "a live run that is called deleted",
        lambda s: reclosed(s, "suspended-0", "RunDeleted"),
        "closure-justified",
    ),
    Spoil(
        "endings",
        "an end in the future",
        lambda s: reclosed(s, "cancelled-0", "Cancelled", s.at + 1),
        "closed-has-end-and-reason",
    ),
    Spoil(
        "endings",
        "an end before the start",
        lambda s: reclosed(s, "cancelled-0", "Cancelled", ago("2h")),
        "closed-has-end-and-reason",
    ),
    Spoil(
        "endings",
        "a time limit a second late",
        lambda s: reclosed(s, "limited-0", "TimeLimit", ago("30m") + 1),
        "closed-has-end-and-reason",
    ),
    Spoil(
        "endings",
        "a completion at another second",
        lambda s: reclosed(s, "done-0", "Completed", s.at),
        "closed-has-end-and-reason",
    ),
    Spoil("hours", "a closure of a closed lease", lambda s: s.closes("done-0", "Completed"), "closed-monotone"),
    Spoil("hours", "a closure of no lease", lambda s: s.closes("nobody-0", "Completed"), "closed-monotone"),
    Spoil("endings", "a lease that is closed twice", lambda s: s.closes("cancelled-0", "Cancelled"), "closed-monotone"),
    Spoil("endings", "a shrink below what is wanted", lambda s: s.closes("shrunk-0", "Shrink"), "closure-justified"),
    Spoil(
        "endings",
        "a shrink that nobody asked for",
        lambda s: s.edit("Run", "shrunk", {"spec": {"malleable": {"desiredTotalGPUs": 4}}}),
        "closure-justified",
    ),
    Spoil(
        "opportunistic",
        "a spare that is dropped for nothing",
        lambda s: s.closes("p-1", "DropSpare").drop(1),
        "closure-justified",
    ),
    Spoil("opportunistic", "a reclaim that nobody needs", lambda s: s.drop(0), "closure-justified"),
    Spoil("opportunistic", "a reclaim in mode noCuts", lambda s: s.policy(mode="noCuts"), "no-cuts"),
    Spoil(
        "opportunistic",
        "a reclaim without its notice",
        lambda s: s.policy(opportunistic={"notice": "5m"}),
        "closure-justified",
    ),
    Spoil("failure", "a tenant that is reclaimed, and paid for", paid_tenant, "closure-justified"),
    Spoil("failure", "a lease that stays on a lost node", lambda s: reopened(s, "q-0"), "node-failure"),
    Spoil(
        "hours",
        "a lease that stays on a dead node",
        lambda s: s.edit("Node", "a01", taint("NoExecute", "node.kubernetes.io/out-of-service")),
        "node-failure",
    ),
    Spoil(
        "hours",
        "a lease that stays on a node long silent",
        lambda s: s.edit(
            "Node",
            "a01",
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": moment("-6m")}]}},
        ),
        "node-failure",
    ),
    Spoil(
        "failure",
        "a swap that closes somebody's funded work elsewhere",
        lambda s: s.run("x", 4, created="-3h").holds("x", "a03#0-3", name="x-0").closes("x-0", "ReclaimedBySpare"),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a run that waits though it is not queued again",
        lambda s: s.then(conditions("f")).then(status("f", phase="Pending")),
        "outcome-follows wait-or-start",
    ),
    Spoil(
        "failure",
        "a run that fails though it is queued again",
        lambda s: s.then(conditions("q", "Failed")).then(status("q", phase="Failed")).then(without("waits", "q")),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a time limit after which it waits",
        lambda s: s.then(conditions("limited")).then(status("limited", phase="Pending")),
        "outcome-follows wait-or-start",
    ),
    Spoil(
        "endings",
        "a cancellation that completes",
        lambda s: s.then(conditions("cancelled", "Completed")).then(status("cancelled", phase="Completed")),
        "outcome-follows",
    ),
    Spoil(
        "bound",
        "an outcome that is undone",
        lambda s: s.then(conditions("first")).then(status("first", phase="Pending")),
        "outcome-follows wait-or-start",
    ),
    Spoil(
        "simple",
        "a failure out of nothing",
        lambda s: s.then(conditions("w", "Failed")).then(status("w", phase="Failed")).then(without("waits", "w")),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a run that waits on for an upstream that failed",
        lambda s: follows(s, "limited", onUpstreamFailure="fail"),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a run that waits on for an upstream that is going",
        lambda s: follows(going(s), "suspended", onUpstreamFailure="fail"),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a run that fails within its grace",
        lambda s: failing(follows(s, "limited", upstreamFailureGrace="1s")),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a run that fails with an upstream that completed and is gone",
        lambda s: failing(follows(past(s), "past", onUpstreamFailure="fail")),
        "outcome-follows",
    ),
    Spoil(
        "endings",
        "a run that fails with an upstream that cannot be read",
        lambda s: failing(follows(s.set_aside("Run", "default", "gone"), "gone", onUpstreamFailure="fail")),
        "closure-justified outcome-follows",
    ),
    Spoil(
        "simple",
        "a completion out of nothing",
        lambda s: s.then(conditions("w", "Completed")).then(status("w", phase="Completed")).then(without("waits", "w")),
        "outcome-follows",
    ),
    Spoil(
        "simple",
        "a CPU run whose pods all succeeded and that runs on",
        lambda s: on_cpus(s, "Succeeded"),
        "outcome-follows",
    ),
    Spoil(
        "simple",
        "a CPU run that lost a pod and runs on",
        lambda s: on_cpus(s, "Failed"),
        "outcome-follows",
    ),
    Spoil(
        "simple",
        "a CPU run that fails out of nothing",
        lambda s: on_cpus(s).then(conditions("c", "Failed")).then(status("c", phase="Failed")),
        "outcome-follows",
    ),
    Spoil(
        "simple",
        "a CPU run whose end is no change of the world",
        lambda s: unchanged(
            on_cpus(s, "Succeeded").then(conditions("c", "Completed")).then(status("c", phase="Completed"))
        ),
        "plan-names-snapshot",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
