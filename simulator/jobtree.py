"""Jobtree as one of the schedulers: the cycle's own code on a cluster in memory, and the kubelets and users of it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import planner
from cronjobs.cycle import run_cycle
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, LABEL_RUN, Policy, Refusal, Time
from jobtree.api.kinds.policy import POLICY_NAME
from jobtree.api.kinds.run import OVER
from jobtree.cluster import edits
from jobtree.cluster.memory import Memory
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.plan import Plan
from jobtree.world.tables.rows import OUT_OF_SERVICE
from jobtree.world.tables.snapshot import Snapshot
from simulator.due import Due
from simulator.lives import Lives
from simulator.loop import Eta, Stop, Turn
from simulator.stream import Job, Key, Mode

ORIGIN: Final = hashlib.sha256(b"jobtree simulate").hexdigest()
"""What the lottery's chain begins with: simulated draws are the same each time, and nobody's secret."""
RETAINED: Final = {"leases": "1h", "plans": 10}
"""How long closed leases stay, and how many Plans, under a Policy of the simulator's own; the lake has them all."""


class Here:
    """The planner in this very process: no deadline, so that no plan depends on a clock."""

    def __init__(self) -> None:
        self._asked: tuple[Snapshot, int] | None = None

    def ask(
        self, snapshot: Snapshot, at: int, *, deadline: float, on_news: Callable[[str], None] | None = None
    ) -> None:
        """Keeps what is to be planned; ``deadline``: does not hold here."""
        self._asked = snapshot, at

    def listen(self) -> None:
        """Nothing is said before the answer."""

    def answer(self) -> Plan:
        """The final plan."""
        assert self._asked is not None, "a plan was asked for"
        return planner.plan(*self._asked)

    def earlier(self, trouble: str) -> Iterator[Plan]:
        """None: a plan that the checker does not pass ends the simulation."""
        yield from ()


class Jobtree:
    """Scheduler as in `loop`. ``cluster`` begins as the stream's base; ``lake``: where its cycles are recorded."""

    def __init__(self, cluster: Memory, lake: Lake, needed: frozenset[Key] = frozenset()) -> None:
        """``needed``: runs that others name; the rest is deleted when it has come to its end, as by a janitor."""
        self.cluster, self.lake, self._needed = cluster, lake, needed
        self._planner = Here()
        intake = cluster.read()
        self._lives = Lives({
            (budget.name, envelope.name): envelope.concurrency
            for budget in intake.budgets for envelope in budget.spec.envelopes
        })  # fmt: skip
        self._lives.take(intake)
        self._due = Due((intake.policy or Policy()).spec, intake)
        self._gone: dict[str, dict[str, Any]] = {}
        self._pods: list[Ref] = []

    def saved(self) -> dict[str, Any]:
        """State that the cluster does not say: `resume` goes on from it."""
        return {"gone": self._gone, "due": self._due.saved()}

    def resume(self, saved: dict[str, Any]) -> None:
        """Goes on from what `saved` returned, on the cluster as it was then."""
        self._gone = saved["gone"]
        self._due.resume(saved["due"])

    def submit(self, job: Job, at: int) -> None:
        """Creates the Run."""
        assert job.manifest is not None, "it is submitted"
        body = {**job.manifest, "metadata": {**job.manifest["metadata"], "creationTimestamp": str(Time(at))}}
        self._change(at, Write("create", Ref("Run", *job.key), body))
        self._due.limit(job.run)

    def fail(self, node: str, mode: Mode, at: int) -> None:
        """Take its Ready condition, taint it, or end it."""
        ref = Ref("Node", "", node)
        body = self.cluster.object("Node", node)
        self._due.happened()
        if mode == "Deleted":
            self._gone[node] = body
            self._change(at, Write("delete", ref))
        elif mode == "OutOfService":
            taint = {"key": OUT_OF_SERVICE, "effect": "NoExecute", "timeAdded": str(Time(at))}
            taints = [*(body.get("spec", {}).get("taints") or []), taint]
            self._change(at, Write("patch", ref, {"spec": {"taints": taints}}))
        else:
            self._due.silent(node, at)
            self._change(at, Write("replace", ref, _ready(body, "Unknown", at)))

    def recover(self, node: str, at: int) -> None:
        """Ready again, to be uncordoned by the next cycle; a node that was deleted joins anew."""
        self._due.recovered(node)
        ref = Ref("Node", "", node)
        if node in self._gone:
            body, now = self._gone.pop(node), Time(at)
            lives = {"uid": edits.uid_of(edits.key_for(ref), now), "creationTimestamp": str(now)}
            body = {**body, "metadata": body["metadata"] | lives}
            self._change(at, Write("create", ref, _ready(body, "True", at)))
            return
        body = _ready(self.cluster.object("Node", node), "True", at)
        spec = body.get("spec") or {}
        spec["taints"] = [each for each in spec.get("taints") or [] if each["key"] != OUT_OF_SERVICE]
        self._change(at, Write("replace", ref, {**body, "spec": spec}))

    def finish(self, key: Key, at: int) -> None:
        """Let its pods report that they succeeded."""
        size = self._pod_size(key)
        mine = sorted((name, life) for name, life in self._lives.active() if life.run == key)
        writes = []
        for number, ((namespace, name), life) in enumerate(mine):
            for part in range(-(-life.gpus // size) if size else 1):
                ref = Ref("Pod", namespace, f"{name}-{number}-{part}")
                self._pods.append(ref)
                writes.append(Write("create", ref, _pod(ref, key[1], life.node, at)))
        self._due.happened()
        self._change(at, *writes)

    def _pod_size(self, key: Key) -> int:
        return int(self.cluster.object("Run", key[1], key[0])["spec"]["resources"].get("gpusPerPod", 0))

    def turn(self, at: int) -> Turn:
        """One cycle."""
        self.cluster.at = Time(at)
        result = run_cycle(self.cluster, at, self.lake, self._planner, origin=ORIGIN)
        plan = result.plan
        if plan is None:
            raise Refusal(f"two turns fall on {Time(at)}")
        before = {life.run for _, life in self._lives.active()}
        reasons = {}
        for closure in plan.closures:
            life = self._lives.open.get((closure.namespace, closure.name))
            if life is not None and life.active:
                reasons[life.run] = closure.reason
        holds = self._lives.of(self._lives.follow(plan))
        phases = {(each.namespace, each.name): each.status for each in plan.runs}
        stopped, running, again = [], {}, set()
        for key, (nodes, width) in sorted(holds.items()):
            if width:
                running[key] = nodes, width
                if key not in before:
                    self._due.started(key, at)
                elif reasons.get(key) in {"NodeFailure", "Swap", "SwapDeclined"}:
                    again.add(key)
            else:
                phase = phases[key].phase if key in phases else ""
                stopped.append(Stop(key, phase if phase in OVER else "", reasons.get(key, "")))
                self._due.stopped(key)
        etas = tuple(
            Eta(key, int(status.eta.p50), int(status.eta.p90))
            for key, status in sorted(phases.items())
            if status.eta is not None and status.eta.p50 is not None and status.eta.p90 is not None
        )
        self._tidy(plan, at)
        gap = max((stage.gap for stage in plan.stages if stage.proven), default=0.0)
        over = sum(self._lives.overdraft().values())
        return Turn(running, frozenset(again), tuple(stopped), etas, self._due.after(plan, at), gap, over)

    def _tidy(self, plan: Plan, at: int) -> None:
        """Pods go that were heard, and runs that have come to their end and are named by none."""
        over = [(each.namespace, each.name) for each in plan.runs if each.status.phase in OVER]
        gone = [Write("delete", ref) for ref in self._pods]
        gone += [Write("delete", Ref("Run", *key)) for key in over if key not in self._needed]
        self._pods = []
        self._change(at, *gone)

    def _change(self, at: int, *writes: Write) -> None:
        self.cluster.at = Time(at)
        self.cluster.change(writes)


def _ready(node: dict[str, Any], status: str, at: int) -> dict[str, Any]:
    """The node with its Ready condition as it has been since ``at``."""
    conditions = [each for each in node.get("status", {}).get("conditions", []) if each["type"] != "Ready"]
    conditions.append({"type": "Ready", "status": status, "lastTransitionTime": str(Time(at))})
    return {**node, "status": {**node["status"], "conditions": conditions}}


def _pod(ref: Ref, run: str, node: str, at: int) -> dict[str, Any]:
    """A pod of a run that has succeeded."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {LABEL_RUN: run},
            "creationTimestamp": str(Time(at)),
            "uid": f"{ref.namespace}.{ref.name}",
        },
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": "Succeeded"},
    }


def needed(jobs: Iterable[Job]) -> frozenset[Key]:
    """Runs that others follow or stand below."""
    found = set()
    for job in jobs:
        spec, namespace = job.run.spec, job.run.namespace
        found |= {(namespace, name) for name in (spec.follow.after if spec.follow else ())}
        found |= {(namespace, spec.parent)} if spec.parent else set()
    return frozenset(found)


def with_policy(cluster: Memory) -> None:
    """Give a base without a Policy the built-in one, of which less stays: `RETAINED`."""
    if cluster.read().policy is None:
        spec = {"retention": RETAINED}
        body = {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": POLICY_NAME}, "spec": spec}
        cluster.change([Write("create", Ref("Policy", "", POLICY_NAME), body)])
