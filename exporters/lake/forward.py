"""What of a stored plan can still be carried out: its decisions on the cluster as it is now (spec §8).

Between a plan and its writes a process may die, and until the next cycle completes it people change the cluster.
Decisions, times and draws stay what they were. Left out, and named, is what can no longer be: a start whose run is
gone, ended or another one, whose node is gone, whose slots are taken; the end of a lease that is gone or ended
otherwise. What has been written already is no part of it: `exporters.writes.writes` finds it there.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
import pyarrow.compute as pc

from exporters.lake.manifest import LeftOut
from jobtree.api import Lease, Run
from jobtree.api.kinds.meta import name_of
from jobtree.api.kinds.run import OVER
from jobtree.api.values.counted import counted
from jobtree.world.naming import arrays
from jobtree.world.plan import Closure, Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables import values
from jobtree.world.tables.snapshot import Snapshot

Name = tuple[str, str]
"""(namespace, name)."""
GONE: Final = "it is not there any more"


class Possible(NamedTuple):
    """A plan without what can no longer be, and that."""

    plan: Plan
    left_out: list[LeftOut]


def possible(
    intake: Intake, now: Snapshot, plan: Plan, uids: Mapping[Name, str] | None, refused: Mapping[str, str] | None = None
) -> Possible:
    """What of ``plan`` can be carried out on the cluster of ``intake``, whose snapshot is ``now``.

    ``uids``: of the Runs that it was made for; None where they are not known. ``refused``: objects that the cluster did
    not take, and why.
    """
    refused = refused or {}
    leases = {(lease.namespace, lease.name): lease for lease in intake.leases}
    runs = arrays.Runs(intake.runs)
    out = dict(_runs_out(runs, plan, uids))
    out |= dict(_starts_out(_Cluster.of(intake, now, plan), leases, runs, plan, out))
    out |= {name: why for name in {each.run_key for each in plan.leases} if (why := refused.get(_run(name)))}
    for lease in plan.leases:
        if why := refused.get(name_of("Lease", lease.namespace, lease.name)):
            out.setdefault(lease.run_key, why)
    _gangs_out(runs, plan, out)
    ends = {(each.namespace, each.name): why for each in plan.closures if (why := _end_out(leases, each, refused))}
    goes_on = {
        (each.namespace, each.name): refused.get(name_of("Lease", each.namespace, each.name), GONE)
        for each in plan.segments
        if (each.namespace, each.name) not in leases or name_of("Lease", each.namespace, each.name) in refused
    }
    promises = dict(_promises_out(intake, plan, out, refused))
    budgets = {budget.name for budget in intake.budgets}
    left = [LeftOut(_run(name), why) for name, why in sorted(out.items())]
    left += [LeftOut(name_of("Lease", *name), why) for name, why in sorted((goes_on | ends).items())]
    left += [LeftOut(name_of("Reservation", *name), why) for name, why in sorted(promises.items())]
    ledgers = goes_on.keys() | ends.keys()
    kept = msgspec.structs.replace(
        plan,
        closures=[each for each in plan.closures if (each.namespace, each.name) not in ends],
        segments=[each for each in plan.segments if (each.namespace, each.name) not in ledgers],
        leases=[each for each in plan.leases if each.run_key not in out],
        runs=[each for each in plan.runs if (each.namespace, each.name) not in out],
        budgets=[each for each in plan.budgets if not left and each.name in budgets],  # the next cycle counts anew
        reservations=[each for each in plan.reservations if (each.namespace, each.name) not in promises],
        promises=[each for each in plan.promises if (each.namespace, each.name) not in promises],
    )
    return Possible(kept, left)


def carried_out(plan: Plan, left_out: Collection[LeftOut]) -> Plan:
    """What of a plan's leases and runs was carried out, where so much was left out, as its manifest names it."""
    out = {each.object for each in left_out}
    if not out:
        return plan
    return msgspec.structs.replace(
        plan,
        closures=[each for each in plan.closures if name_of("Lease", each.namespace, each.name) not in out],
        segments=[each for each in plan.segments if name_of("Lease", each.namespace, each.name) not in out],
        leases=[each for each in plan.leases if _run(each.run_key) not in out],
        runs=[each for each in plan.runs if _run((each.namespace, each.name)) not in out],
    )


class _Cluster(NamedTuple):
    """Where there is room: by node its GPUs and uid, GPUs of foreign pods and of leases; who holds a (slot, role)."""

    gpus: Mapping[str, int]
    uids: Mapping[str, str]
    foreign: Mapping[str, int]
    held: Mapping[tuple[str, str], Name]
    active: Mapping[str, int]

    @classmethod
    def of(cls, intake: Intake, now: Snapshot, plan: Plan) -> "_Cluster":
        """What the leases hold that are neither to be closed nor the plan's own."""
        nodes, pods = now.tables["nodes"], now.tables["pods"]
        foreign = Counter[str]()
        alien = pods.filter(pc.and_(pc.is_null(pods["run"]), pc.is_valid(pods["node"])))
        for node, gpus in zip(values.texts(alien, "node"), values.ints(alien, "gpus").tolist(), strict=True):
            foreign[node] += gpus
        passed = {(each.namespace, each.name) for each in plan.closures}
        passed |= {(each.namespace, each.name) for each in plan.leases}
        held: dict[tuple[str, str], Name] = {}
        active = Counter[str]()
        for lease in intake.leases:
            name = lease.namespace, lease.name
            if lease.status.closed or name in passed:
                continue
            for slot in lease.spec.slice.nodes:
                held[slot, lease.spec.slice.role] = name
                active[slot.rpartition("#")[0]] += lease.spec.slice.role == "Active"
        gpus = dict(zip(values.texts(nodes, "name"), values.ints(nodes, "gpus").tolist(), strict=True))
        uids = {node.metadata.name: node.metadata.uid for node in intake.nodes}
        return cls(gpus, uids, foreign, held, active)

    def lacks(self, lease: Lease) -> str:
        """Why a lease has no place any more; empty where it has."""
        node = lease.spec.slice.nodes[0].rpartition("#")[0]
        if node not in self.gpus or lease.spec.slice.node_uid not in {"", self.uids.get(node, "")}:
            return f"the node {node} is not there any more"
        for slot in lease.spec.slice.nodes:
            other = self.held.get((slot, lease.spec.slice.role))
            if other is not None:
                return f"the slot {slot} is held by {name_of('Lease', *other)}"
            if int(slot.rpartition("#")[2]) >= self.gpus[node]:
                return f"the node {node} has {counted(self.gpus[node], 'GPU')} left"
        return ""

    def full(self, leases: Collection[Lease]) -> str:
        """Why these together have no place any more beside foreign pods; empty where they have."""
        needed = Counter[str]()
        for lease in leases:
            if lease.spec.slice.role == "Active":
                needed[lease.spec.slice.nodes[0].rpartition("#")[0]] += len(lease.spec.slice.nodes)
        for node, gpus in sorted(needed.items()):
            room = self.gpus[node] - self.active.get(node, 0) - self.foreign.get(node, 0)
            if gpus > room and self.foreign.get(node, 0):
                return f"the node {node} has {counted(max(0, room), 'GPU')} free, {gpus} are needed"
        return ""


def _runs_out(runs: arrays.Runs, plan: Plan, uids: Mapping[Name, str] | None) -> Iterator[tuple[Name, str]]:
    """Runs that the plan speaks of and that are not there, or are others."""
    for name in sorted({(each.namespace, each.name) for each in plan.runs} | {each.run_key for each in plan.leases}):
        run = runs.get(name)
        if run is None:
            yield name, GONE
        elif _is_another(run, plan.at, uids):
            yield name, "it is another one, made after the plan"


def _is_another(run: Run, at: int, uids: Mapping[Name, str] | None) -> bool:
    if uids is None:
        created = run.metadata.creation_timestamp
        return created is not None and created > at
    return uids.get((run.namespace, run.name)) not in {run.metadata.uid, ""}


def _starts_out(
    cluster: _Cluster, leases: Mapping[Name, Lease], runs: arrays.Runs, plan: Plan, out: Mapping[Name, str]
) -> Iterator[tuple[Name, str]]:
    """Runs that cannot have the plan's leases any more. One lease that cannot be takes its whole gang with it."""
    wanted: dict[Name, list[Lease]] = defaultdict(list)
    for lease in plan.leases:
        if (lease.namespace, lease.name) not in leases:
            wanted[lease.run_key].append(lease)
    for name, mine in wanted.items():
        if name in out:
            continue
        run = runs.get(name)
        why = (
            (GONE if run is None else _over(run, mine))
            or next(filter(None, map(cluster.lacks, mine)), "")
            or cluster.full(mine)
        )
        if why:
            yield name, why


def _promises_out(
    intake: Intake, plan: Plan, out: Mapping[Name, str], refused: Mapping[str, str]
) -> Iterator[tuple[Name, str]]:
    """Promises that can no longer be made or told: what is left of their runs is the next cycle's to say."""
    run_of = {(each.namespace, each.name): each.spec.run_ref.run_name for each in intake.reservations}
    run_of |= {(each.namespace, each.name): each.spec.run_ref.run_name for each in plan.reservations}
    told = {(each.namespace, each.name) for each in plan.promises}
    for name in sorted(told | {(each.namespace, each.name) for each in plan.reservations}):
        why = refused.get(name_of("Reservation", *name)) or (GONE if name not in run_of else "")
        run = name[0], run_of.get(name, "")
        if why or run in out:
            yield name, why or f"{_run(run)}: {out[run]}"


def _over(run: Run, leases: Collection[Lease]) -> str:
    """Why a run takes nothing any more; empty where it does."""
    if any(lease.spec.run_uid not in {"", run.metadata.uid} for lease in leases):
        return "it is another one, made after the plan"
    if run.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if run.spec.state != "Active":
        return f"it is {run.spec.state}"
    if run.status.phase in OVER:
        return f"it is {run.status.phase}"
    return ""


def _gangs_out(runs: arrays.Runs, plan: Plan, out: dict[Name, str]) -> None:
    """Runs that start together or not at all: without one of them the others do not."""
    starting = {lease.run_key for lease in plan.leases if lease.spec.reason == "Start"}
    members: dict[Name, list[Name]] = defaultdict(list)
    for name in sorted(starting):
        run = runs.get(name)
        if run is not None and run.spec.gang is not None:
            members[name[0], run.spec.gang.name].append(name)
    gone = {lost for lost in out if lost in starting and runs.get(lost) is None}
    for (namespace, gang), names in members.items():
        absent = next((name for name in names if name in out), None)
        size = next(run.spec.gang.size for name in names if (run := runs.there[name]).spec.gang)
        if absent is None and gone and len(names) < size:
            absent = min(gone)
        if absent is not None:
            why = f"it starts together with {absent[1]}, which cannot (gang {namespace}/{gang})"
            out.update({name: why for name in names if name not in out})


def _end_out(leases: Mapping[Name, Lease], closure: Closure, refused: Mapping[str, str]) -> str:
    lease = leases.get((closure.namespace, closure.name))
    if lease is None:
        return GONE
    if lease.status.closed and (lease.status.ended, lease.status.closure_reason) != (closure.ended, closure.reason):
        return f"it has been closed as {lease.status.closure_reason} since"
    return refused.get(name_of("Lease", closure.namespace, closure.name), "")


def _run(name: Name) -> str:
    return name_of("Run", *name)
