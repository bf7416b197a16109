"""Jobtree as one of the schedulers: the cycle's own code on a cluster in memory, and the kubelets and users of it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import planner
from cronjobs.cycle import run_cycle
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, LABEL_RUN, Lease, Policy, Refusal, Time
from jobtree.api.kinds.policy import POLICY_NAME
from jobtree.api.kinds.reservation import STANDING
from jobtree.cluster import edits
from jobtree.cluster.memory import Memory
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import Snapshot
from simulator.loop import Eta, Stop, Turn
from simulator.stream import Job, Key, Mode

ORIGIN: Final = hashlib.sha256(b"jobtree simulate").hexdigest()
"""What the lottery's chain begins with: simulated draws are the same each time, and nobody's secret."""
RETAINED: Final = "1h"
"""How long closed leases stay under a Policy of the simulator's own; the lake has them all."""
_OUT: Final = "node.kubernetes.io/out-of-service"
_TERMINAL: Final = frozenset({"Completed", "Failed"})


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


class Lives:
    """What runs hold, by the plans that were carried out: lease → (run, node, GPUs, payer, funded)."""

    def __init__(self) -> None:
        self.leases: dict[Key, tuple[Key, str, int, tuple[str, str] | None, bool]] = {}

    def take(self, intake: Intake) -> None:
        """As the cluster has it."""
        for lease in intake.leases:
            if not lease.status.closed:
                self._open(lease)

    def _open(self, lease: Lease) -> None:
        if lease.spec.slice.role != "Active":
            return
        node = lease.spec.slice.nodes[0].rpartition("#")[0]
        payer = None if lease.spec.paid_by is None else (lease.spec.paid_by.budget, lease.spec.paid_by.envelope)
        funded = bool(lease.status.funding) and lease.status.funding[-1].class_ != "unfunded"
        run = (lease.namespace, lease.spec.run_ref.name)
        self.leases[lease.namespace, lease.name] = (run, node, len(lease.spec.slice.nodes), payer, funded)

    def follow(self, plan: Plan) -> set[Key]:
        """Brings it up to date; returns the runs that hold something else than before."""
        changed = set()
        for closure in plan.closures:
            held = self.leases.pop((closure.namespace, closure.name), None)
            changed |= {held[0]} if held else set()
        for segment in plan.segments:
            name = segment.namespace, segment.name
            if name in self.leases:
                self.leases[name] = (*self.leases[name][:4], segment.funding_class != "unfunded")
        for lease in plan.leases:
            self._open(lease)
            changed.add((lease.namespace, lease.spec.run_ref.name))
        return changed

    def of(self, runs: Iterable[Key]) -> dict[Key, tuple[frozenset[str], int]]:
        """Nodes and width of each of these runs; both empty of one that holds nothing."""
        nodes: dict[Key, set[str]] = {run: set() for run in runs}
        widths = dict.fromkeys(nodes, 0)
        for run, node, gpus, _, _ in self.leases.values():
            if run in nodes:
                nodes[run].add(node)
                widths[run] += gpus
        return {run: (frozenset(nodes[run]), widths[run]) for run in nodes}

    def paid(self) -> dict[tuple[str, str], int]:
        """Funded GPUs by (budget, envelope)."""
        found: dict[tuple[str, str], int] = {}
        for _, _, gpus, payer, funded in self.leases.values():
            if payer is not None and funded:
                found[payer] = found.get(payer, 0) + gpus
        return found


class Jobtree:
    """See `loop.Scheduler`. ``cluster`` begins as the stream's base; ``lake``: where its cycles are recorded."""

    def __init__(self, cluster: Memory, lake: Lake, needed: frozenset[Key] = frozenset()) -> None:
        """``needed``: runs that others name; the rest is deleted when it has come to its end, as by a janitor."""
        self.cluster, self.lake, self._needed = cluster, lake, needed
        self._planner, self._lives = Here(), Lives()
        intake = cluster.read()
        self._lives.take(intake)
        self.policy = (intake.policy or Policy()).spec
        self._bounds = {
            (budget.name, envelope.name): envelope.concurrency
            for budget in intake.budgets for envelope in budget.spec.envelopes
        }  # fmt: skip
        self._silent: dict[str, int] = {}
        self._recovered = False
        self._limits: dict[Key, int | None] = {
            (run.namespace, run.name): run.spec.runtime.time_limit for run in intake.runs
        }
        self._gone: dict[str, dict[str, Any]] = {}
        self._pods: list[Ref] = []
        self._promised: dict[Key, int] = {
            (made.namespace, made.name): int(made.status.earliest_start or made.spec.earliest_start)
            for made in intake.reservations if made.status.state in STANDING
        }  # fmt: skip
        self._started: dict[Key, int] = {}
        for lease in intake.leases:
            if not lease.status.closed:
                begun = int(lease.spec.interval.start)
                self._started[lease.run_key] = min(begun, self._started.get(lease.run_key, begun))

    def saved(self) -> dict[str, Any]:
        """What the cluster does not say: `resume` goes on from it."""
        return {
            "silent": self._silent,
            "recovered": self._recovered,
            "gone": self._gone,
            "promised": {"/".join(key): at for key, at in self._promised.items()},
            "started": {"/".join(key): at for key, at in self._started.items()},
        }

    def resume(self, saved: dict[str, Any]) -> None:
        """Goes on from what `saved` returned, on the cluster as it was then."""
        self._silent, self._gone, self._recovered = saved["silent"], saved["gone"], saved["recovered"]
        self._promised, self._started = (_keyed(saved[name]) for name in ("promised", "started"))

    def submit(self, job: Job, at: int) -> None:
        """Creates the Run."""
        assert job.manifest is not None, "it is submitted"
        body = {**job.manifest, "metadata": {**job.manifest["metadata"], "creationTimestamp": str(Time(at))}}
        self._change(at, Write("create", Ref("Run", *job.key), body))
        self._limits[job.key] = job.limit

    def fail(self, node: str, mode: Mode, at: int) -> None:
        """Its Ready condition, a taint, or its end."""
        ref = Ref("Node", "", node)
        body = self.cluster.object("Node", node)
        if mode == "Deleted":
            self._gone[node] = body
            self._change(at, Write("delete", ref))
        elif mode == "OutOfService":
            taint = {"key": _OUT, "effect": "NoExecute", "timeAdded": str(Time(at))}
            taints = [*(body.get("spec", {}).get("taints") or []), taint]
            self._change(at, Write("patch", ref, {"spec": {"taints": taints}}))
        else:
            self._silent[node] = at
            self._change(at, Write("replace", ref, _ready(body, "Unknown", at)))

    def recover(self, node: str, at: int) -> None:
        """Ready again, to be uncordoned by the next cycle; a node that was deleted joins anew."""
        self._recovered = True
        self._silent.pop(node, None)
        ref = Ref("Node", "", node)
        if node in self._gone:
            body, now = self._gone.pop(node), Time(at)
            lives = {"uid": edits.uid_of(edits.key_for(ref), now), "creationTimestamp": str(now)}
            body = {**body, "metadata": body["metadata"] | lives}
            self._change(at, Write("create", ref, _ready(body, "True", at)))
            return
        body = _ready(self.cluster.object("Node", node), "True", at)
        spec = body.get("spec") or {}
        spec["taints"] = [each for each in spec.get("taints") or [] if each["key"] != _OUT]
        self._change(at, Write("replace", ref, {**body, "spec": spec}))

    def finish(self, key: Key, at: int) -> None:
        """Its pods report that they succeeded."""
        intake_leases = [(name, held) for name, held in self._lives.leases.items() if held[0] == key]
        size = self._pod_size(key)
        writes = []
        for number, ((namespace, name), held) in enumerate(sorted(intake_leases)):
            for part in range(-(-held[2] // size) if size else 1):
                ref = Ref("Pod", namespace, f"{name}-{number}-{part}")
                self._pods.append(ref)
                writes.append(Write("create", ref, _pod(ref, key[1], held[1], at)))
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
        before = self._lives.of({held[0] for held in self._lives.leases.values()})
        reasons = {}
        for closure in plan.closures:
            held = self._lives.leases.get((closure.namespace, closure.name))
            if held is not None:
                reasons[held[0]] = closure.reason
        holds = self._lives.of(self._lives.follow(plan))
        phases = {(each.namespace, each.name): each.status for each in plan.runs}
        stopped, running, again = [], {}, set()
        for key, (nodes, width) in sorted(holds.items()):
            if width:
                running[key] = nodes, width
                if key not in before:
                    self._started[key] = at
                elif reasons.get(key) in {"NodeFailure", "Swap", "SwapDeclined"}:
                    again.add(key)
            else:
                phase = phases[key].phase if key in phases else ""
                stopped.append(Stop(key, phase if phase in _TERMINAL else "", reasons.get(key, "")))
                self._started.pop(key, None)
        etas = tuple(
            Eta(key, int(status.eta.p50), int(status.eta.p90))
            for key, status in sorted(phases.items())
            if status.eta is not None and status.eta.p50 is not None and status.eta.p90 is not None
        )
        self._tidy(plan, at)
        gap = max((stage.gap for stage in plan.stages if stage.proven), default=0.0)
        over = sum(max(0, gpus - self._bounds.get(payer, gpus)) for payer, gpus in self._lives.paid().items())
        return Turn(running, frozenset(again), tuple(stopped), etas, self._due(plan, at), gap, over)

    def _tidy(self, plan: Plan, at: int) -> None:
        """Pods go that were heard, and runs that have come to their end and are named by none."""
        over = [(each.namespace, each.name) for each in plan.runs if each.status.phase in _TERMINAL]
        gone = [Write("delete", ref) for ref in self._pods]
        gone += [Write("delete", Ref("Run", *key)) for key in over if key not in self._needed]
        self._pods = []
        for key in over:
            self._limits.pop(key, None)
        self._change(at, *gone)

    def _due(self, plan: Plan, at: int) -> int | None:
        """The next promise, time limit or end of a node's patience."""
        for made in plan.reservations:
            self._promised[made.namespace, made.name] = int(made.status.earliest_start or made.spec.earliest_start)
        for each in plan.promises:
            name = each.namespace, each.name
            if each.status.state == "Pending" and each.status.earliest_start is not None:
                self._promised[name] = int(each.status.earliest_start)
            else:
                self._promised.pop(name, None)
        for lapsed in plan.lapsed:
            self._promised.pop((lapsed.namespace, lapsed.name), None)
        decided = (plan.closures, plan.segments, plan.leases, plan.reservations, plan.promises, plan.lapsed)
        if any(decided) or self._recovered:  # a world comes to rest in a cycle that decides nothing
            self._recovered = False
            return at + 1
        patience = int(self.policy.failure.not_ready_after) + 1
        times = [*self._promised.values(), *(since + patience for since in self._silent.values())]
        times += [start + limit for key, start in self._started.items() if (limit := self._limits.get(key)) is not None]
        return min((each for each in times if each > at), default=None)

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


def _keyed(times: dict[str, int]) -> dict[Key, int]:
    return {(name.partition("/")[0], name.partition("/")[2]): at for name, at in times.items()}


def needed(jobs: Iterable[Job]) -> frozenset[Key]:
    """Runs that others follow or stand below."""
    found = set()
    for job in jobs:
        spec, namespace = job.run.spec, job.run.namespace
        found |= {(namespace, name) for name in (spec.follow.after if spec.follow else ())}
        found |= {(namespace, spec.parent)} if spec.parent else set()
    return frozenset(found)


def with_policy(cluster: Memory) -> None:
    """Where the base has no Policy: the built-in one, but closed leases stay for `RETAINED` alone."""
    if cluster.read().policy is None:
        spec = {"retention": {"leases": RETAINED}}
        body = {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": POLICY_NAME}, "spec": spec}
        cluster.change([Write("create", Ref("Policy", "", POLICY_NAME), body)])
