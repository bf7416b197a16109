"""Starts, ends, statuses and the plan itself: every way to spoil them is caught under its own name (spec §4, §7, §9)."""

import pytest

from jobtree.api import Duration, OwnerPath, Time
from jobtree.api.lease import Interval
from jobtree.api.meta import RunRef
from jobtree.api.run import RunStatus
from jobtree.world.plan import Closure, RunUpdate, Short
from tests.check.scene import Scene, ago
from tests.check.spoils import (
    Spoil,
    backwards,
    conditions,
    each,
    limit,
    own_pod,
    part,
    plan,
    status,
    taint,
    twice,
    without,
)
from tests.support.times import moment

COMPLETED = {"metadata": {"annotations": {"rq.davidlangworthy.io/completed": moment("-1m")}}}
OVER = {"status": {"phase": "Failed", "conditions": [{"type": "Failed", "status": "True", "reason": "TimeLimit"}]}}


def reopened(scene: Scene, lease: str) -> Scene:
    """The plan forgets to close that lease."""
    scene.closures = [closure for closure in scene.closures if closure.name != lease]
    return scene


def reclosed(scene: Scene, lease: str, reason: str, ended: int | None = None) -> Scene:
    """The plan closes that lease in another way."""
    return reopened(scene, lease).closes(lease, reason, ended)


def renamed(scene: Scene, index: int, name: str) -> Scene:
    """Another name for one lease of the plan."""
    (lease,) = [scene.lease("r", "a01#0-3", name=name)]
    scene.new[index] = lease
    return scene


STARTS = [
    Spoil("family", "two new leases of one name", lambda s: s.starts("r", "a03#0", name="r-0").new.pop(1),
          "unique-names"),
    Spoil(
        "simple", "a lease of a name that is there",
        lambda s: renamed(s.run("x", 1, created="-3h").holds("x", "b01#0", name="x-0"), 0, "x-0"), "unique-names",
    ),
    Spoil("simple", "another run's uid", lambda s: s.respec(0, run_uid="uid-w"), "lease-truthful"),
    Spoil(
        "simple", "another run owner", lambda s: s.respec(0, run_owner=OwnerPath("org:a:x")),
        "lease-truthful class-derived classes-partition-width",
    ),
    Spoil("family", "the run's owner for the payer's", lambda s: s.respec(2, owner=OwnerPath("org:a")), "lease-truthful"),
    Spoil("simple", "a flavor that the run does not ask for", lambda s: s.respec(0, flavor="A100"),
          "lease-truthful payer-flavor"),
    Spoil("simple", "a start in the past", lambda s: s.respec(0, interval=Interval(start=Time(s.at - 1))),
          "lease-truthful status-agrees"),
    Spoil("simple", "a start in the future", lambda s: s.respec(0, interval=Interval(start=Time(s.at + 1))),
          "lease-truthful status-agrees"),
    Spoil("simple", "another cycle's name", lambda s: s.respec(0, cycle="c0"), "lease-truthful"),
    Spoil(
        "simple", "a lease that is born closed", lambda s: s.relabel(0, closed=True), "lease-truthful",
    ),
    Spoil("simple", "a start that is called growth", lambda s: s.respec(0, reason="Grow"),
          "lease-truthful stage-value") ,
    Spoil("malleable", "growth that is called a start", lambda s: s.respec(3, reason="Start"),
          "lease-truthful stage-value"),
    Spoil("failure", "a swap onto other slots", lambda s: s.move(0, "a03#0-3"), "lease-truthful closure-justified"),
    Spoil("simple", "a start that is called a swap", lambda s: s.respec(0, reason="Swap"), "lease-truthful stage-value"),
    Spoil(
        "simple", "a run that is not there", lambda s: s.remove("Run", "r"), "run-may-start",
    ),
    Spoil("simple", "a suspended run", lambda s: s.edit("Run", "r", {"spec": {"state": "Suspended"}}), "run-may-start"),
    Spoil("simple", "a cancelled run", lambda s: s.edit("Run", "r", {"spec": {"state": "Cancelled"}}), "run-may-start"),
    Spoil(
        "simple", "a run that is being deleted",
        lambda s: s.edit("Run", "r", {"metadata": {"deletionTimestamp": moment("-1m")}}), "run-may-start",
    ),
    Spoil("simple", "a run that has failed", lambda s: s.edit("Run", "r", OVER),
          "run-may-start terminal-holds-nothing status-agrees"),
    Spoil("simple", "a run that is marked complete", lambda s: s.edit("Run", "r", COMPLETED), "run-may-start"),
    Spoil(
        "simple", "a CPU run",
        lambda s: s.edit("Run", "r", {"spec": {"resources": {
            "gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}}}),
        "run-may-start lease-truthful node-flavor",
    ),
    Spoil("bound", "an upstream that failed", lambda s: s.edit("Run", "first", OVER), "follow"),
    Spoil("bound", "an upstream that is not there", lambda s: s.remove("Run", "first"), "follow"),
    Spoil("bound", "an upstream that waits",
          lambda s: s.run("slow", 2).edit("Run", "one", {"spec": {"follow": {"after": ["slow"]}}}), "follow"),
    Spoil("bound", "half a co-start gang", lambda s: s.new.pop(), "co-start"),
    Spoil("bound", "a gang of which one is missing", lambda s: (s.new.pop(), s.remove("Run", "two")), "co-start"),
]  # fmt: skip

ENDS = [
    Spoil("endings", "a deleted run that holds on", lambda s: reopened(s, "gone-0"),
          "terminal-holds-nothing slot-exclusive"),
    Spoil("endings", "a cancelled run that holds on", lambda s: reopened(s, "cancelled-0"),
          "terminal-holds-nothing slot-exclusive"),
    Spoil("endings", "a suspended run that holds on", lambda s: reopened(s, "suspended-0"), "terminal-holds-nothing"),
    Spoil("endings", "a completed run that holds on", lambda s: reopened(s, "done-0"),
          "terminal-holds-nothing slot-exclusive"),
    Spoil("endings", "a run that holds on past its limit", lambda s: reopened(s, "limited-0"),
          "terminal-holds-nothing slot-exclusive"),
    Spoil("hours", "a run whose pods all succeeded", lambda s: s.add(own_pod("v", "a01", 4, "Succeeded")),
          "terminal-holds-nothing"),
    Spoil("hours", "a lease of an earlier run of that name",
          lambda s: s.edit("Run", "v", {"metadata": {"uid": "uid-other"}}), "terminal-holds-nothing"),
    Spoil("hours", "a failed run that holds on", lambda s: s.edit("Run", "v", OVER), "terminal-holds-nothing"),
    Spoil("hours", "a closure of live work", lambda s: s.closes("v-0", "Failed"), "closure-justified"),
    Spoil("hours", "a closure without reason", lambda s: s.closes("v-0", ""), "closure-justified"),
    Spoil("hours", "a reason that there is not", lambda s: s.closes("v-0", "Mood"), "closure-justified"),
    Spoil("hours", "a lottery without a promise", lambda s: s.closes("v-0", "Lottery"),
          "closure-justified outcome-follows"),
    Spoil("hours", "a time limit before its time", lambda s: s.closes("v-0", "TimeLimit"),
          "closure-justified closed-has-end-and-reason"),
    Spoil("hours", "a node failure of a healthy node", lambda s: s.closes("v-0", "NodeFailure"), "closure-justified"),
    Spoil("hours", "a cut of funded work", lambda s: s.closes("v-0", "ReclaimUnfunded"), "closure-justified"),
    Spoil("endings", "a cancelled run that is called suspended", lambda s: reclosed(s, "cancelled-0", "Suspended"),
          "closure-justified"),
    Spoil("endings", "a live run that is called deleted", lambda s: reclosed(s, "suspended-0", "RunDeleted"),
          "closure-justified"),
    Spoil("endings", "an end in the future", lambda s: reclosed(s, "cancelled-0", "Cancelled", s.at + 1),
          "closed-has-end-and-reason"),
    Spoil("endings", "an end before the start", lambda s: reclosed(s, "cancelled-0", "Cancelled", ago("2h")),
          "closed-has-end-and-reason"),
    Spoil("endings", "a time limit a second late", lambda s: reclosed(s, "limited-0", "TimeLimit", ago("30m") + 1),
          "closed-has-end-and-reason"),
    Spoil("endings", "a completion at another second", lambda s: reclosed(s, "done-0", "Completed", s.at),
          "closed-has-end-and-reason"),
    Spoil("hours", "a closure of a closed lease", lambda s: s.closes("done-0", "Completed"), "closed-monotone"),
    Spoil("hours", "a closure of no lease", lambda s: s.closes("nobody-0", "Completed"), "closed-monotone"),
    Spoil("endings", "a lease that is closed twice", lambda s: s.closes("cancelled-0", "Cancelled"), "closed-monotone"),
    Spoil("endings", "a shrink below what is wanted", lambda s: s.closes("shrunk-0", "Shrink"),
          "closure-justified"),
    Spoil("endings", "a shrink that nobody asked for",
          lambda s: s.edit("Run", "shrunk", {"spec": {"malleable": {"desiredTotalGPUs": 4}}}), "closure-justified"),
    Spoil("opportunistic", "a spare that is dropped for nothing", lambda s: (s.closes("p-1", "DropSpare"), s.new.pop()),
          "closure-justified"),
    Spoil("opportunistic", "a reclaim that nobody needs", lambda s: s.new.pop(0), "closure-justified"),
    Spoil("opportunistic", "a reclaim in mode noCuts", lambda s: s.policy(mode="noCuts"), "no-cuts"),
    Spoil("failure", "a lease that stays on a lost node", lambda s: reopened(s, "q-0"), "node-failure"),
    Spoil("hours", "a lease that stays on a dead node",
          lambda s: s.edit("Node", "a01", taint("NoExecute", "node.kubernetes.io/out-of-service")), "node-failure"),
    Spoil(
        "hours", "a lease that stays on a node long silent",
        lambda s: s.edit("Node", "a01", {"status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": moment("-6m")}]}}),
        "node-failure",
    ),
    Spoil("failure", "a swap that closes somebody's funded work", lambda s: (
        s.closes("o-0", "ReclaimedBySpare"), s.closures.pop(2)) and s.old.append(s.lease(
            "o", "a03#0-3", start=ago("1h"), payer="org-a/gpus", name="o-1")) or s.closes("o-1", "ReclaimedBySpare"),
          "closure-justified"),
    Spoil("failure", "a run that must not be queued again", lambda s: s.then(
        lambda p: without("waits", "nobody")(p)).edit("Run", "f", {"spec": {"runtime": {"requeue": None}}})
        .then(conditions("f")).then(status("f", phase="Pending")), "outcome-follows wait-or-start"),
    Spoil("failure", "a run that fails though it is queued again",
          lambda s: s.then(conditions("q", "Failed")).then(status("q", phase="Failed")).then(without("waits", "q")),
          "outcome-follows"),
    Spoil("endings", "a time limit after which it waits",
          lambda s: s.then(conditions("limited")).then(status("limited", phase="Pending")),
          "outcome-follows wait-or-start"),
    Spoil("endings", "a cancellation that completes",
          lambda s: s.then(conditions("cancelled", "Completed")).then(status("cancelled", phase="Completed")),
          "outcome-follows"),
    Spoil("bound", "an outcome that is undone",
          lambda s: s.then(conditions("first")).then(status("first", phase="Pending")), "outcome-follows wait-or-start"),
    Spoil("simple", "a completion out of nothing",
          lambda s: s.then(conditions("w", "Completed")).then(status("w", phase="Completed")).then(without("waits", "w")),
          "outcome-follows"),
]  # fmt: skip

STATUSES = [
    Spoil("simple", "a phase that the conditions deny", lambda s: s.then(status("w", phase="Waiting")), "phase-derived"),
    Spoil("simple", "a failure that the phase hides", lambda s: s.then(conditions("w", "Failed")), "phase-derived"),
    Spoil("simple", "a condition that is missing", lambda s: s.then(conditions("w", drop="Blocked")), "conditions-present"),
    Spoil("simple", "a condition that is there twice", lambda s: s.then(conditions("w", again="Failed")), "conditions-present"),
    Spoil("simple", "a run without a status", lambda s: s.then(without("runs", "w")), "conditions-present"),
    Spoil("simple", "the status of no run",
          lambda s: s.then(lambda p: plan(runs=[*p.runs, RunUpdate(namespace="default", name="z", status=RunStatus())])(p)),
          "status-agrees"),
    Spoil("simple", "a status that is written twice", lambda s: s.then(twice("runs")), "unique-names"),
    Spoil("simple", "a run that runs on nothing",
          lambda s: s.then(conditions("w", "Admitted", "Running")).then(status("w", phase="Running")), "running-has-width"),
    Spoil("simple", "a run that holds GPUs and waits",
          lambda s: s.then(conditions("r")).then(status("r", phase="Pending")), "status-agrees"),
    Spoil("simple", "a run that is over and holds GPUs",
          lambda s: s.then(conditions("r", "Failed")).then(status("r", phase="Failed")), "terminal-holds-nothing"),
    *(Spoil("simple", f"another width.{name}", lambda s, name=name: s.then(part("width", "r", **{name: 9})), "status-agrees")  # type: ignore[misc]
      for name in ("allocated", "min", "max", "desired", "pending")),
    Spoil("simple", "a width that is missing", lambda s: s.then(status("r", width=None)), "status-agrees"),
    Spoil("simple", "a GPU of no class", lambda s: s.then(part("funding", "r", owned_gpus=3)), "classes-partition-width"),
    Spoil("simple", "a GPU of another class",
          lambda s: s.then(part("funding", "r", owned_gpus=3, shared_gpus=1)), "classes-partition-width"),
    Spoil("simple", "classes that are missing", lambda s: s.then(status("r", funding=None)), "classes-partition-width"),
    Spoil("loan", "a lender that is left out", lambda s: s.then(part("funding", "r", lenders=())), "status-agrees"),
    Spoil("simple", "another start", lambda s: s.then(status("r", started=Time(s.at - 1))), "status-agrees"),
    Spoil("hours", "another time limit", lambda s: s.then(status("r", time_limit=Duration(3600))), "status-agrees"),
    Spoil("simple", "a default limit that is not enforced",
          lambda s: s.envelope("org-a", {"perRun": {"defaultTime": "4h"}}).then(status("r", time_limit=None)),
          "status-agrees"),
]  # fmt: skip

PLANS = [
    Spoil("simple", "another snapshot", lambda s: s.then(plan(snapshot="0" * 64)), "plan-names-snapshot"),
    Spoil("simple", "another policy", lambda s: s.then(plan(policy="0" * 64)), "plan-names-snapshot"),
    Spoil("simple", "another version", lambda s: s.then(plan(version=99)), "plan-names-snapshot"),
    *(Spoil(scene, f"{field} in another order", lambda s, field=field: s.then(backwards(field)), "plan-sorted")  # type: ignore[misc]
      for scene, field in (("gang", "leases"), ("endings", "closures"), ("simple", "runs"))),
    Spoil("simple", "a value that is one too high", lambda s: s.then(lambda p: each("stages", value=p.stages[0].value + 1, bound=p.stages[0].value + 9)(p)), "stage-value"),
    Spoil("simple", "a value that is one too low", lambda s: s.then(lambda p: each("stages", value=p.stages[0].value - 1)(p)), "stage-value"),
    Spoil("simple", "a bound below the best", lambda s: s.then(lambda p: each("stages", bound=p.stages[0].value - 1)(p)), "stage-bound"),
    Spoil("simple", "a bound above the least", lambda s: s.then(lambda p: each("stages", bound=p.stages[0].value + 1, sense="min")(p)), "stage-bound"),
    Spoil("family", "payers that rank otherwise", lambda s: s.then(each("stages", name="payers")), "stage-value"),
    Spoil("simple", "domains that are more", lambda s: s.then(each("stages", name="domains")), "stage-value"),
    Spoil("opportunistic", "unfunded work that counts as funded", lambda s: s.then(each("stages", name="opportunistic")), "stage-value"),
    Spoil("simple", "a run that starts and waits", lambda s: s.then(each("waits", name="r")), "wait-or-start"),
    Spoil("simple", "a run that neither starts nor waits", lambda s: s.then(without("waits", "w")), "wait-or-start"),
    Spoil("simple", "a wait of no run", lambda s: s.then(lambda p: plan(waits=[*p.waits, *each("waits", name="z")(p).waits])(p)), "wait-or-start"),
    Spoil("simple", "a wait that is told twice", lambda s: s.then(twice("waits")), "unique-names"),
    Spoil("simple", "a wait without a reason", lambda s: s.then(each("waits", reason="")), "wait-words"),
    Spoil("simple", "a wait without a sentence", lambda s: s.then(each("waits", message="")), "wait-words"),
    Spoil("simple", "a shortage of nothing", lambda s: s.then(each("waits", shorts=[Short(rule="capacity", subject="A", amount=0, unit="GPU")])), "wait-words"),
    Spoil("simple", "shortages the smallest first", lambda s: s.then(each("waits", shorts=[Short(rule="capacity", subject=d, amount=n, unit="GPU") for d, n in (("A", 1), ("B", 2))])), "wait-words"),
    Spoil("simple", "a deficit below nothing", lambda s: s.then(each("waits", deficit_gpus=-1)), "wait-words"),
]  # fmt: skip


@pytest.mark.parametrize("spoil", [*STARTS, *ENDS, *STATUSES, *PLANS], ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
