"""A snapshot as plain records: what the reference needs to know, read row by row from the tables (spec §1, §2).

Written for readers, not for speed: no arrays, no aggregation, and no code of planner or policies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot

Key = tuple[str, str]
"""(namespace, name) of a Run, (budget, envelope) of an envelope."""


@dataclass(frozen=True)
class Node:
    """``gpus``, ``cpu`` (milli-CPUs), ``memory`` (bytes), ``pods``: what new work may have; 0 GPUs where it may not."""

    name: str
    domain: tuple[str, str, str]
    flavor: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    gpus: int
    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True)
class Envelope:
    """Limits in GPUs, milli-GPU-seconds and millicredits, times in Unix seconds; None = no such bound."""

    key: Key
    owner: str
    flavor: str
    selector: dict[str, str]
    row: dict[str, Any]

    def matches(self, node: Node | None) -> bool:
        """Spec §3.2: flavor and every label, ``*`` being any value or none. A node that is gone matches."""
        if node is None:
            return True
        return node.flavor == self.flavor and has(node.labels, self.selector)

    def open_at(self, at: int) -> bool:
        """Spec §1: windows are [start, end)."""
        start, end = self.row["start"], self.row["end"]
        return (start is None or start <= at) and (end is None or at < end)

    def pays_at(self, at: int) -> bool:
        """Spec §3.3: window open, or ``preActivation`` says so."""
        start = self.row["start"]
        return self.open_at(at) or (start is not None and at < start and bool(self.row["allow_admission"]))


@dataclass(frozen=True)
class Use:
    """A use cap; ``flavor``: None is every one; the rest as `Envelope` has it."""

    key: Key
    owner: str
    flavor: str | None
    selector: dict[str, str]
    row: dict[str, Any]

    def matches(self, node: Node | None) -> bool:
        """Flavor and every label, as of an envelope."""
        return node is None or (self.flavor in (None, node.flavor) and has(node.labels, self.selector))

    def open_at(self, at: int) -> bool:
        """Spec §1: it binds in [start, end)."""
        start, end = self.row["start"], self.row["end"]
        return (start is None or start <= at) and (end is None or at < end)


@dataclass(frozen=True)
class Run:
    """``widths``: the groups at each width it may start with, least first; ``weight``: of one GPU in stage 3."""

    key: Key
    owner: str
    widths: list[tuple[int, ...]]
    weight: int
    limit: int | None
    row: dict[str, Any]

    @property
    def pod(self) -> int:
        """GPUs of a pod; 1 where pods have no size, since a chunk may then be of any size."""
        return int(self.row["pod"]) or 1

    @property
    def spare_gpus(self) -> int:
        """Spec §1: ``spares`` standbys per group, each for one pod."""
        return int(self.row["spares"]) * self.pod

    def may_use(self, node: Node) -> bool:
        """Spec §2: flavor, selector and taints."""
        selector = {each["key"]: each["value"] for each in self.row["selector"]}
        tolerated = all(
            taint["effect"] not in ("NoSchedule", "NoExecute")
            or any(_tolerates(each, taint) for each in self.row["tolerations"])
            for taint in node.taints
        )
        return node.flavor == self.row["flavor"] and has(node.labels, selector) and tolerated


class Lease(NamedTuple):
    """An open lease, or a closed one that has been charged. ``until``: where it ended or ends now; None = it stays."""

    key: Key
    run: Key
    run_owner: str
    group: int
    node: str
    gpus: int
    active: bool
    start: int
    until: int | None
    payer: Key | None
    segments: list[dict[str, Any]]


@dataclass(frozen=True)
class World:
    """Everything at ``at`` (Unix seconds). ``waiting``: runs that may start; ``runs``: all of them.

    ``changed``: when a cycle last saw something otherwise than the one before, or end. ``holders``: who has envelopes.
    """

    at: int
    changed: int
    policy: PolicySpec
    nodes: dict[str, Node]
    envelopes: dict[Key, Envelope]
    aggregates: list[dict[str, Any]]
    uses: list[Use]
    parents: dict[str, list[str] | None]
    holders: set[str]
    runs: dict[Key, Run]
    leases: list[Lease]
    waiting: list[Run] = field(default_factory=list)


def has(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    """Every label that is asked for; ``*`` is any value or none."""
    return all(value in ("*", labels.get(key)) for key, value in selector.items())


def _tolerates(toleration: dict[str, Any], taint: dict[str, Any]) -> bool:
    """The rule of Kubernetes."""
    if toleration["effect"] and toleration["effect"] != taint["effect"]:
        return False
    if toleration["operator"] == "Exists":
        return not toleration["key"] or toleration["key"] == taint["key"]
    return toleration["key"] == taint["key"] and (toleration["value"] or "") == (taint["value"] or "")


def read(snapshot: Snapshot, at: int) -> World:
    """The world of a snapshot. CPU runs, arrays, follow, pods of runs and bindings of namespaces are left out."""
    table = {name: rows.to_pylist() for name, rows in snapshot.tables.items()}
    policy = snapshot.policy.spec
    runs = {run.key: run for row in table["runs"] if (run := _run(row, policy, at)).row["total"]}
    leases = [_lease(row, runs, at, table["leases"]) for row in table["leases"]]
    owners = {row["name"]: row["owner"] for row in table["budgets"]}
    parents: dict[str, list[str] | None] = {}
    for row in table["budgets"]:
        known = parents.setdefault(row["owner"], None)
        if row["parents"] is not None:
            parents[row["owner"]] = [*(known or []), *row["parents"]]
    world = World(
        at=at,
        changed=_changed(snapshot, leases, at),
        policy=policy,
        nodes={row["name"]: _node(row, leases, table["pods"], runs) for row in table["nodes"]},
        envelopes={env.key: env for row in table["envelopes"] for env in [_envelope(row, owners)]},
        aggregates=table["aggregates"],
        uses=[_use(row, owners) for row in table["use_caps"]],
        parents=parents,
        holders={owners[row["budget"]] for row in table["envelopes"]},
        runs=runs,
        leases=leases,
    )
    holding = {lease.run for lease in leases}
    gone = {key for key, run in runs.items() if run.row["outcome"] or run.row["state"] != "Active" or key in holding}
    ready = [run for key, run in sorted(runs.items()) if key not in gone]
    world.waiting.extend(run for run in ready if _gang_is_whole(run, ready))
    return world


def _changed(snapshot: Snapshot, leases: list[Lease], at: int) -> int:
    """Spec §3.8. An open lease that gets an end here ends in this cycle."""
    rows = zip(snapshot.tables["leases"].to_pylist(), leases, strict=True)
    ends = any(lease.until is not None and not row["closed"] for row, lease in rows)
    told = {row["given"]: row["changed"] for row in snapshot.tables["seen_world"].to_pylist()}
    return at if ends else min(at, told.get(given_of(snapshot, at), at))


def _gang_is_whole(run: Run, ready: list[Run]) -> bool:
    """Spec §1: ``size`` Runs start in the same cycle or not at all."""
    return not run.row["gang"] or len(gang_of(run, ready)) >= run.row["gang_size"]


def gang_of(run: Run, runs: list[Run]) -> list[Run]:
    """Those of ``runs`` that are in the run's gang."""
    return [other for other in runs if (other.key[0], other.row["gang"]) == (run.key[0], run.row["gang"])]


def _run(row: dict[str, Any], policy: PolicySpec, at: int) -> Run:
    """Spec §2 Lowering, and the weight of §4 stage 3: ``age.unit`` + min(age, ``age.cap``)."""
    total, group, least, step = row["total"], row["group"], row["min_total"], row["step"]
    if least is None:
        size = group or total
        widths = [(size,) * (total // size) + ((total % size,) if total and total % size else ())] if total else []
    elif group:
        widths = [(group,) * (width // group) for width in range(least, total + 1, step)]
    else:
        widths = [(least,) + (step,) * count for count in range((total - least) // step + 1)]
    age = min(max(0, at - row["created"]), int(policy.age.cap))
    limit = row["time_limit"] if row["time_limit"] is not None else row["enforced_limit"]
    return Run((row["namespace"], row["name"]), row["owner"], widths, int(policy.age.unit) + age, limit, row)


def _envelope(row: dict[str, Any], owners: Mapping[str, str]) -> Envelope:
    selector = {each["key"]: each["value"] for each in row["selector"]}
    return Envelope((row["budget"], row["name"]), owners[row["budget"]], row["flavor"], selector, row)


def _use(row: dict[str, Any], owners: Mapping[str, str]) -> Use:
    selector = {each["key"]: each["value"] for each in row["selector"]}
    return Use((row["budget"], row["name"]), owners[row["budget"]], row["flavor"], selector, row)


def _lease(row: dict[str, Any], runs: Mapping[Key, Run], at: int, leases: list[dict[str, Any]]) -> Lease:
    """A lease; that of a run whose time limit is over ends where the limit did (spec §7)."""
    run = runs[row["namespace"], row["run"]]
    mine = [each["start"] for each in leases if (each["namespace"], each["run"]) == run.key and not each["closed"]]
    until = row["ended"] if row["closed"] else None
    if until is None and run.limit is not None and min(mine) + run.limit <= at:
        until = min(mine) + run.limit
    return Lease(
        (row["namespace"], row["name"]), run.key, row["run_owner"], row["group"], row["node"], len(row["ordinals"]),
        row["role"] == "Active", row["start"], until, (row["budget"], row["envelope"]) if row["budget"] else None,
        row["funding"],
    )  # fmt: skip


def _node(row: dict[str, Any], leases: list[Lease], pods: list[dict[str, Any]], runs: Mapping[Key, Run]) -> Node:
    """What open leases and foreign pods leave (spec §2); a spare is held slots, without a pod (§7)."""
    held = [lease for lease in leases if lease.node == row["name"] and lease.until is None]
    foreign = [pod for pod in pods if pod["node"] == row["name"] and pod["run"] is None]
    chunks: dict[tuple[Key, int], int] = {}
    for lease in (lease for lease in held if lease.active):
        chunks[lease.run, lease.group] = chunks.get((lease.run, lease.group), 0) + lease.gpus
    count = {chunk: gpus // runs[chunk[0]].pod if runs[chunk[0]].row["pod"] else 1 for chunk, gpus in chunks.items()}
    open_ = row["ready"] and row["flavor"] and not (row["unschedulable"] or row["out_of_service"] or row["deleting"])
    free = row["gpus"] - sum(lease.gpus for lease in held) - sum(pod["gpus"] for pod in foreign)
    return Node(
        name=row["name"],
        domain=(row["region"], row["cluster"], row["domain"] or f"node {row['name']}"),
        flavor=row["flavor"],
        labels={each["key"]: each["value"] for each in row["labels"]},
        taints=row["taints"],
        gpus=max(0, free) if open_ else 0,
        cpu=row["cpu_milli"]
        - sum(n * runs[run].row["pod_cpu_milli"] for (run, _), n in count.items())
        - sum(pod["cpu_milli"] for pod in foreign),
        memory=row["memory"]
        - sum(n * runs[run].row["pod_memory"] for (run, _), n in count.items())
        - sum(pod["memory"] for pod in foreign),
        pods=row["max_pods"] - sum(count.values()) - len(foreign),
    )
