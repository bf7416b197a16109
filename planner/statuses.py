"""What each Run's status says after the plan (spec §1 Run.status, §7). Only statuses that change are in the plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from jobtree.api.meta import Condition
from jobtree.api.run import RunFunding, RunStatus, Width
from jobtree.api.scalars import Duration, OwnerPath, Time, dec_hook
from jobtree.world.plan import RunUpdate, Wait
from planner.derive import State
from planner.explain import sentence
from policies.claims import UNFUNDED, LeaseRow, RunKey
from policies.endings import Ending
from policies.runs import RunRow
from policies.usage import HOUR_MILLI, Classes, plain

_DECODER = msgspec.json.Decoder(RunStatus, dec_hook=dec_hook)
_FUNDING = {"owned": "owned_gpus", "shared": "shared_gpus", "borrowed": "borrowed_gpus", UNFUNDED: "unfunded_gpus"}

Said = tuple[bool, str, str]
"""(holds, reason, message) of a condition."""


@dataclass(frozen=True)
class After:
    """What holds once the plan is carried out: open leases by run with their classes, and who waits why."""

    leases: Mapping[RunKey, list[LeaseRow]]
    classes: Classes
    waits: Mapping[RunKey, Wait]
    limits: Mapping[RunKey, int | None]


def run_updates(state: State, after: After) -> list[RunUpdate]:
    """Statuses that differ from the stored ones, in (namespace, name) order."""
    found = []
    for key, run in state.runs.items():
        ending = state.endings.get(key)
        if run.outcome and ending is None:
            continue
        before = _DECODER.decode(run.status) if run.status else RunStatus()
        now = _status(state, run, before, ending, after)
        if now != before:
            found.append(RunUpdate(namespace=run.namespace, name=run.name, status=now))
    return found


def _status(state: State, run: RunRow, before: RunStatus, ending: Ending | None, after: After) -> RunStatus:
    leases = after.leases.get(run.key, [])
    limit = after.limits.get(run.key, run.time_limit)
    allocated = sum(lease.gpus for lease in leases if lease.active)
    over = ending is not None and bool(ending.outcome)
    runs_on_cpu = run.is_cpu and not over and run.state == "Active" and run.key not in state.blocked
    if over and ending is not None:
        said = _ended(run, ending)
    elif leases:
        said = _running(leases, after, limit)
    elif runs_on_cpu:
        said = _cpu(run)
    else:
        said = _pending(state, run, after.waits.get(run.key))
    wait = None if over or leases else after.waits.get(run.key)
    started = min((lease.start for lease in leases), default=None)
    if started is None and runs_on_cpu:
        started = state.at if before.started is None else before.started
    desired = run.desired if run.desired is not None else run.total
    conditions = tuple(_condition(kind, *said[kind], before, state.at) for kind in _ORDER)
    return msgspec.structs.replace(
        before,
        phase=phase({c.type: c.status == "True" for c in conditions}),
        conditions=conditions,
        width=Width(
            min=run.width_min,
            max=run.max_total if run.max_total is not None else run.total,
            desired=desired,
            allocated=allocated,
            pending=0 if over else max(0, desired - allocated),
        ),
        funding=_funding(leases, after.classes) if leases else None,
        started=Time(started) if started is not None else (before.started if over else None),
        ended=Time(ending.ended) if over and ending is not None else None,
        time_limit=Duration(limit) if limit is not None and (leases or runs_on_cpu) else None,
        projected_gpu_hours=_projected(state, leases, after.classes, limit),
        projected_credits=_projected_credits(state, leases, after.classes, limit),
        deficit_gpus=wait.deficit_gpus if wait is not None else None,
    )


_ORDER = ("Admitted", "Scheduled", "Running", "Completed", "Failed", "Blocked")


def phase(holds: Mapping[str, bool]) -> str:
    """Failed > Completed > Running > Waiting (Blocked and not Admitted) > Pending (spec §1)."""
    for name in ("Failed", "Completed", "Running"):
        if holds[name]:
            return name
    return "Waiting" if holds["Blocked"] and not holds["Admitted"] else "Pending"


def _condition(kind: str, holds: bool, reason: str, message: str, before: RunStatus, at: int) -> Condition:
    status = "True" if holds else "False"
    old = next((c for c in before.conditions if c.type == kind), None)
    since = old.last_transition_time if old is not None and old.status == status else None
    return Condition(
        type=kind,
        status="True" if holds else "False",
        reason=reason,
        message=message,
        last_transition_time=Time(at) if since is None else since,
        observed_generation=old.observed_generation if old is not None else 0,
    )


def _rest(limit: int | None) -> dict[str, Said]:
    stated = "No time limit." if limit is None else f"Time limit {Duration(limit)}."
    return {
        "Completed": (False, "NotFinished", stated),
        "Failed": (False, "NoFailure", "0 pods failed."),
        "Blocked": (False, "NothingToWaitFor", "0 upstream runs outstanding."),
    }


def _running(leases: list[LeaseRow], after: After, limit: int | None) -> dict[str, Said]:
    by_class: dict[str, int] = {}
    for lease in leases:
        if lease.active:
            name = after.classes[lease.namespace, lease.name]
            by_class[name] = by_class.get(name, 0) + lease.gpus
    width = sum(by_class.values())
    classes = ", ".join(f"{by_class[name]} {name}" for name in _FUNDING if name in by_class)
    groups = len({lease.group for lease in leases})
    nodes = len({lease.node for lease in leases})
    funded = by_class.get(UNFUNDED, 0) < width
    placed = f"{counted(width, 'GPU')} in {counted(groups, 'group')} on {counted(nodes, 'node')}."
    return {
        "Admitted": (True, "Funded" if funded else "Unfunded", f"{counted(width, 'GPU')}: {classes}."),
        "Scheduled": (
            True,
            "Placed",
            placed,
        ),
        "Running": (True, "PodsRunning", f"{width} of {width} GPUs running."),
        **_rest(limit),
    }


def counted(number: int, noun: str) -> str:
    """``1 GPU``, ``4 GPUs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cpu(run: RunRow) -> dict[str, Said]:
    pods = counted(run.cpu_pods or 0, "pod")
    return {
        "Admitted": (True, "CpuRun", f"{pods} without GPUs: nobody is charged."),
        "Scheduled": (True, "Placed", f"{pods} left to kube-scheduler."),
        "Running": (True, "PodsRunning", f"{pods} running."),
        **_rest(run.time_limit),
    }


def _pending(state: State, run: RunRow, wait: Wait | None) -> dict[str, Said]:
    reason, message = "Suspended", "Suspended by its owner: it holds nothing and waits for nothing."
    if run.deleting:
        reason, message = "Deleting", "Being deleted: it holds nothing and waits for nothing."
    blocked: Said = (False, "NothingToWaitFor", "0 upstream runs outstanding.")
    if run.key in state.blocked:
        reason, words = state.blocked[run.key]
        message = sentence(words)
        if reason == "Upstream":
            blocked = (True, "Upstream", message)
    elif wait is not None:
        reason, message = wait.reason, wait.message
    total = counted(run.total, "GPU")
    return {
        **_rest(run.time_limit),
        "Admitted": (False, reason, message),
        "Scheduled": (False, "NotAdmitted", f"0 of {total} placed."),
        "Running": (False, "NotStarted", f"0 of {total} running."),
        "Blocked": blocked,
    }


def _ended(run: RunRow, ending: Ending) -> dict[str, Said]:
    said = _rest(run.time_limit)
    said["Completed" if ending.outcome == "Completed" else "Failed"] = (True, ending.reason, ending.message)
    for name in ("Admitted", "Scheduled", "Running"):
        said[name] = (False, ending.reason, ending.message)
    return said


def _funding(leases: list[LeaseRow], classes: Classes) -> RunFunding:
    gpus: dict[str, int] = {}
    lenders = set()
    for lease in leases:
        name = classes[lease.namespace, lease.name]
        if name == "borrowed":
            lenders.add(lease.owner)
        if lease.active:
            gpus[_FUNDING[name]] = gpus.get(_FUNDING[name], 0) + lease.gpus
    return RunFunding(**gpus, lenders=tuple(OwnerPath(owner) for owner in sorted(lenders)))


def _charged(state: State, leases: Iterable[LeaseRow], classes: Classes) -> list[tuple[LeaseRow, int]]:
    return [
        (lease, lease.milli(state.policy))
        for lease in leases
        if lease.envelope >= 0 and classes[lease.namespace, lease.name] != UNFUNDED
    ]


def _projected(state: State, leases: list[LeaseRow], classes: Classes, limit: int | None) -> int | float | None:
    """GPU-hours to the time limit, of what is charged now."""
    if limit is None or not leases:
        return None
    return plain(limit * sum(milli for _, milli in _charged(state, leases, classes)), HOUR_MILLI)


def _projected_credits(state: State, leases: list[LeaseRow], classes: Classes, limit: int | None) -> int | float | None:
    rated = sum(milli * state.money.rate_milli(lease.envelope) for lease, milli in _charged(state, leases, classes))
    if limit is None or not rated:
        return None
    return plain(limit * rated, 1000 * HOUR_MILLI)
