"""What follows from a scene's decisions: statuses, waits, the value of the stage, digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from jobtree.api import Duration, Time, decode
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import RUN_CONDITIONS, Run, RunFunding, RunStatus, Width
from jobtree.world.memory.cycles import Moment
from jobtree.world.naming.arrays import Members
from jobtree.world.plan import Plan, RunUpdate, Solver, Stage, Wait
from jobtree.world.tables.given import given_of
from jobtree.world.tables.rows_arrays import indices_of
from jobtree.world.tables.snapshot import Snapshot

if TYPE_CHECKING:  # a Scene asks for its plan
    from tests.check.scene import Scene


def plan_of(scene: Scene, snapshot: Snapshot) -> Plan:
    """The plan that carries out the scene's decisions, with everything that follows from them."""
    runs = {
        each["metadata"]["name"]: decode("Run", msgspec.json.encode(each))
        for each in scene.documents
        if each["kind"] == "Run"
    }
    heads = [run for run in runs.values() if isinstance(run, Run) and run.spec.array]
    shown = indices_of(snapshot.tables["arrays"])
    for run in heads:
        mine = sorted(index for key, (name, index) in shown.items() if name == run.name)
        runs |= {f"{run.name}-{index}": Members(run).of(index) for index in mine}
    updates = [
        RunUpdate(namespace="default", name=name, status=_status(scene, name, run))  # type: ignore[arg-type]
        for name, run in sorted(runs.items())
    ]
    updates = [
        _of_array(update, updates) if update.name in {run.name for run in heads} else update for update in updates
    ]
    plan = Plan(
        jobtree="0",
        at=scene.at,
        cycle=Moment(scene.at).name,
        snapshot=snapshot.digest,
        policy=snapshot.policy_digest,
        given=given_of(
            snapshot,
            scene.at,
            [(each.namespace, each.name) for each in scene.closures],
            [(each.namespace, each.name) for each in scene.new],
        ),
        changed=scene.at if scene.changed is None or scene.closures else scene.changed,
        solver=Solver(name="hand", version="0", options={}),
        stages=[_demand(scene, runs)],  # type: ignore[arg-type]
        closures=sorted(scene.closures, key=lambda each: each.name),
        segments=sorted(scene.segments, key=lambda each: each.name),
        leases=sorted(scene.new, key=lambda each: each.name),
        runs=updates,
        waits=[
            Wait(namespace="default", name=each.name, reason="NoRoom", message="It waits.")
            for each in updates
            if each.status.phase == "Pending"
            and runs[each.name].spec.state == "Active"  # type: ignore[union-attr]
            and not runs[each.name].spec.array  # type: ignore[union-attr]
        ],
    )
    for change in scene.last:
        plan = change(plan)
    return plan


def _of_array(update: RunUpdate, all_of: list[RunUpdate]) -> RunUpdate:
    """An array runs while an index does."""
    mine = [each for each in all_of if each.name.startswith(f"{update.name}-")]
    phase: Any = "Running" if any(each.status.phase == "Running" for each in mine) else "Pending"
    return RunUpdate(namespace="default", name=update.name, status=msgspec.structs.replace(update.status, phase=phase))


def _payer_owner(scene: Scene, lease: Lease) -> str:
    assert lease.spec.paid_by is not None
    return str(scene.get("Budget", lease.spec.paid_by.budget)["spec"]["owner"])


def _class(scene: Scene, lease: Lease) -> str:
    appended = [each.funding_class for each in scene.segments if each.name == lease.name]
    return (appended or [entry.class_ for entry in lease.status.funding] or ["unfunded"])[-1]


def _status(scene: Scene, name: str, run: Run) -> RunStatus:
    after = [lease for lease in scene.after(name) if lease.spec.slice.role == "Active"]
    reasons = {
        closure.reason for closure in scene.closures for lease in scene.old
        if lease.name == closure.name and lease.run_key[1] == name
    }  # fmt: skip
    phase = _phase(run, after, reasons)
    held = sum(len(lease.spec.slice.nodes) for lease in after)
    gpus = Counter[str]()
    for lease in after:
        gpus[_class(scene, lease)] += len(lease.spec.slice.nodes)
    lenders: set[Any] = {_payer_owner(scene, lease) for lease in after if _class(scene, lease) == "borrowed"}
    fresh = bool(scene.new) and any(lease in scene.new for lease in after)
    running = phase == "Running"
    true = {phase, *(["Admitted", "Scheduled"] if running else []), *(["Blocked"] if phase == "Waiting" else [])}
    return RunStatus(
        phase=phase,
        conditions=tuple(
            Condition(type=each, status="True" if each in true else "False", reason="Scene") for each in RUN_CONDITIONS
        ),
        width=Width(
            min=run.spec.min_gpus,
            max=run.spec.max_gpus,
            desired=run.spec.desired_gpus,
            allocated=held,
            pending=max(0, run.spec.desired_gpus - held),
        ),
        funding=RunFunding(
            owned_gpus=gpus["owned"],
            shared_gpus=gpus["shared"],
            borrowed_gpus=gpus["borrowed"],
            unfunded_gpus=gpus["unfunded"],
            lenders=tuple(sorted(lenders)),
        ),
        started=Time(min(lease.spec.interval.start for lease in after)) if running and after else None,
        time_limit=_limit(scene, run, after) if fresh else run.status.time_limit or run.spec.runtime.time_limit,
    )


def _phase(run: Run, after: list[Lease], reasons: set[str]) -> Any:
    if run.status.phase in ("Completed", "Failed"):
        return run.status.phase
    if after or (run.spec.resources.is_cpu and run.status.phase == "Running"):
        return "Running"
    if reasons & {"TimeLimit", "Cancelled", "Failed"}:
        return "Failed"
    if reasons & {"NodeFailure", "ReclaimUnfunded", "ReclaimedBySpare"} and not run.spec.requeues:
        return "Failed"
    return "Completed" if "Completed" in reasons else "Pending"


def _limit(scene: Scene, run: Run, after: list[Lease]) -> Any:
    if run.spec.runtime.time_limit is not None:
        return run.spec.runtime.time_limit
    defaults = []
    for lease in after:
        paid = lease.spec.paid_by
        for budget in scene.documents:
            if paid is not None and (budget["kind"], budget["metadata"]["name"]) == ("Budget", paid.budget):
                texts = [each.get("perRun", {}).get("defaultTime") for each in budget["spec"]["envelopes"]]
                defaults += [Duration.parse(text) for text in texts if text is not None]
    return min(defaults, default=None)


def _demand(scene: Scene, runs: Mapping[str, Run]) -> Stage:
    """Active GPUs × (a day + the age up to three days), of paid starts."""
    value = 0
    for name, run in runs.items():
        mine = [lease for lease in scene.new if lease.run_key[1] == name and lease.spec.reason == "Start"]
        if any(lease.spec.paid_by is not None for lease in mine):
            gpus = sum(len(lease.spec.slice.nodes) for lease in mine if lease.spec.slice.role == "Active")
            assert run.metadata.creation_timestamp is not None
            value += gpus * (86_400 + min(scene.at - run.metadata.creation_timestamp, 3 * 86_400))
    return Stage(name="starts", unit="GPU-seconds", sense="max", value=value, bound=value)
