"""Lifts as remedies: the objects, fields and commands that they stand for."""

from collections.abc import Callable, Mapping
from typing import Final

from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import HOUR
from planner.advice.edits import Cell, Edit, field
from planner.remedies.bench import Bench
from planner.remedies.lifts import Lift
from planner.remedies.record import Change, Command, Remedy, Who
from policies.caps.cap import HOUR_MILLI, Family
from policies.caps.scopes import OWN
from policies.caps.uses import USE
from policies.funding.usage import plain
from policies.inputs.claims import RunKey
from policies.inputs.money import Envelope, Use


def remedy_of(bench: Bench, lifts: Mapping[Lift, int]) -> Remedy:
    """One remedy of all ``lifts``; not confirmed yet."""
    freed = {lift: number for lift, number in lifts.items() if lift.what == "free"}
    parts = [_PARTS[lift.what](bench, lift, number) for lift, number in lifts.items() if lift not in freed]
    if freed:
        parts.append(_freed(bench, freed))
    return together(parts)


def together(parts: list[Remedy]) -> Remedy:
    """Several remedies as one."""
    if len(parts) == 1:
        return parts[0]
    kinds = {part.kind for part in parts}
    return Remedy(
        kind=parts[0].kind if kinds in ({"end"}, {"node"}) else "combination",
        who=max(part.who for part in parts),
        gpus=sum(part.gpus for part in parts),
        words=" and ".join(part.words for part in parts),
        changes=tuple(change for part in parts for change in part.changes),
        commands=tuple(each for part in parts for each in part.commands) if all(x.commands for x in parts) else (),
        nodes=tuple(place for part in parts for place in part.nodes),
        edits=tuple(edit for part in parts for edit in part.edits),
    )


def _cap(bench: Bench, lift: Lift, rise: int) -> Remedy:
    cap = bench.state.book.caps[lift.subject]
    family, unit = cap.family, cap.measure.column
    budget, _, name = cap.subject.partition("/")
    column, _ = family.limits[cap.measure.name]
    _, path = cap.path
    value = field(bench.near, family.table, (budget, name), column) + rise * unit
    gpus = rise
    if cap.ahead:  # as many GPUs as the rise provides for one accounting period
        period = int(bench.state.policy.accounting_period)
        rate = bench.state.money.rate_milli(cap.pool.envelopes[0]) if cap.measure.name == "credits" else 1
        per_gpu = period * 1000 * rate
        gpus = -(-rise * cap.measure.scale // max(1, per_gpu))
    return Remedy(
        kind="cap",
        who=Who.BUDGETS,
        gpus=gpus,
        words=f"{counted(rise, cap.measure.unit)} more at {cap.place}",
        changes=(Change(f"Budget {budget}", path, plain(value, unit)),),
        edits=(Cell(family.table, (budget, name), column, value),),
    )


def _per_run(bench: Bench, lift: Lift, rise: int) -> Remedy:
    envelope = bench.state.money.envelopes[lift.subject]
    words = f"{counted(rise, 'GPU')} more of {envelope.label} for one run"
    return _for_one_run(envelope, OWN, rise, words)


def _use_run(bench: Bench, lift: Lift, rise: int) -> Remedy:
    use = bench.state.money.uses[lift.subject]
    words = f"{counted(rise, 'GPU')} more for one run at {USE.named(use.label)}"
    return _for_one_run(use, USE, rise, words)


def _for_one_run(bound: Envelope | Use, family: Family, rise: int, words: str) -> Remedy:
    """A higher perRun.maxGPUs of a pool of the ``family``."""
    limit = (bound.per_run_gpus or 0) + rise
    return Remedy(
        kind="cap",
        who=Who.BUDGETS,
        gpus=rise,
        words=words,
        changes=(Change(f"Budget {bound.budget}", f"spec.{family.part}[{bound.name}].perRun.maxGPUs", limit),),
        edits=(Cell(family.table, (bound.budget, bound.name), "per_run_gpus", limit),),
    )


def _tree(bench: Bench, lift: Lift, rise: int) -> Remedy:
    namespace, name, hours = lift.subject
    root: RunKey = (namespace, name)
    column, path = ("quota_gpu_milliseconds", "maxGPUHours") if hours else ("quota_gpus", "maxGPUs")
    unit = HOUR_MILLI if hours else 1
    value = field(bench.near, "runs", root, column) + rise * unit
    period = int(bench.state.policy.accounting_period)
    return Remedy(
        kind="cap",
        who=Who.OTHERS if bench.state.runs[root].owner != bench.run.owner else Who.AGAIN,
        gpus=-(-rise * HOUR // period) if hours else rise,
        words=f"{counted(rise, 'GPU-hour' if hours else 'GPU')} more in the quota of run {name}",
        changes=(Change(f"Run {namespace}/{name}", f"spec.quota.{path}", plain(value, unit)),),
        edits=(Cell("runs", root, column, value), Cell("runs", root, "created", bench.at)),
    )


def _borrow(bench: Bench, _: Lift, rise: int) -> Remedy:
    run = bench.run
    limit = (run.max_borrow or 0) + rise
    return Remedy(
        kind="borrow",
        who=Who.AGAIN,
        gpus=0,
        words=f"{counted(rise, 'GPU')} more on loan",
        changes=(Change(f"Run {run.namespace}/{run.name}", "spec.funding.maxBorrowGPUs", limit),),
        edits=(Cell("runs", run.key, "max_borrow", limit), Cell("runs", run.key, "created", bench.at)),
    )


def _freed(bench: Bench, lifts: Mapping[Lift, int]) -> Remedy:
    fleet = bench.state.fleet
    gpus = sum(lifts.values())
    nodes = sorted(lift.subject for lift in lifts)
    domains = sorted({int(fleet.domain[node]) for node in nodes})
    where = named([fleet.domain_name(domain) for domain in domains])
    edits: list[Edit] = [
        Cell("nodes", (fleet.names[node],), "gpus", int(fleet.gpus[node]) + lifts[Lift("free", node)]) for node in nodes
    ]
    return Remedy(
        kind="free",
        who=Who.OTHERS,
        gpus=gpus,
        words=f"{counted(gpus, 'GPU')} freed in {where}",
        nodes=tuple((fleet.names[node], lifts[Lift("free", node)]) for node in nodes),
        edits=tuple(edits),
    )


def _back(bench: Bench, lift: Lift, _: int) -> Remedy:
    name = bench.state.fleet.names[lift.subject]
    cordoned = field(bench.near, "nodes", (name,), "unschedulable")
    ready = field(bench.near, "nodes", (name,), "ready")
    said = {"spec.unschedulable": False} if cordoned else {}
    if not ready:
        said["status.conditions[Ready].status"] = True
    edits: list[Edit] = [Cell("nodes", (name,), "unschedulable", False), Cell("nodes", (name,), "ready", True)]
    return Remedy(
        kind="node",
        who=Who.OPERATORS,
        gpus=len(bench.state.room().slots[lift.subject]),
        words=f"node {name} {'uncordoned' if cordoned else ''}{' and ' if cordoned and not ready else ''}"
        f"{'' if ready else 'Ready again'}",
        changes=tuple(Change(f"Node {name}", path, value) for path, value in said.items()),
        commands=(Command(f"uncordon {name}"),) if cordoned and ready else (),
        edits=tuple(edits),
    )


def _end(bench: Bench, lift: Lift, _: int) -> Remedy:
    key: RunKey = lift.subject
    gpus = sum(lease.gpus for lease in bench.state.held[key])
    own = bench.state.runs[key].owner == bench.run.owner
    return Remedy(
        kind="end",
        who=Who.OWNER if own else Who.OTHERS,
        gpus=gpus,
        words=f"run {key[0]}/{key[1]} suspended ({counted(gpus, 'GPU')})",
        changes=(Change(f"Run {key[0]}/{key[1]}", "spec.state", "Suspended"),),
        commands=(Command(f"suspend {key[1]}", key[0]),),
        edits=(Cell("runs", key, "state", "Suspended"),),
    )


_PARTS: Final[dict[str, Callable[[Bench, Lift, int], Remedy]]] = {
    "cap": _cap,
    "per-run": _per_run,
    "use-run": _use_run,
    "tree": _tree,
    "borrow": _borrow,
    "back": _back,
    "own": _end,
    "end": _end,
}
