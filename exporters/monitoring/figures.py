"""Figures of one cycle for monitoring: what its record says, and how it leaves the fleet (spec §12).

Every metric is declared in `METRICS`, once: its kind, its labels, what it is. Gauges are of the last cycle. Counters
and histograms are what one cycle adds; `exporters.monitoring.metrics` sums them up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from exporters.lake.manifest import Manifest
from jobtree.api.kinds.budget import EnvelopeUsage
from jobtree.api.kinds.reservation import is_standing
from jobtree.api.kinds.run import OVER
from jobtree.check import INVARIANTS, check
from jobtree.world.naming.domains import domain_names
from jobtree.world.plan import Plan
from jobtree.world.tables import values
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from planner.state.derive import state_of
from planner.state.state import State

Labels = tuple[str, ...]
Samples = dict[Labels, float]
RunKey = tuple[str, str]


class Metric(NamedTuple):
    """A metric's kind, the names of its labels, and its help."""

    kind: Literal["gauge", "counter", "histogram"]
    labels: Labels
    help: str


_PAYER: Final = ("owner", "budget", "envelope", "flavor", "class")
_CAP: Final = ("owner", "budget", "cap", "flavor", "class")
_PROMISE: Final = ("reservation", "flavor")
METRICS: Final[dict[str, Metric]] = {
    "jobtree_cycle_seconds": Metric("gauge", ("phase",), "Wall time of the last cycle, by phase."),
    "jobtree_last_cycle_timestamp_seconds": Metric("gauge", (), "Time of the last cycle that was carried out."),
    "jobtree_cycles": Metric("counter", (), "Cycles that were carried out."),
    "jobtree_plan_gap": Metric("gauge", ("stage",), "Distance of a stage's value from its bound, as a share of it."),
    "jobtree_plan_truncated": Metric("counter", (), "Plans that the deadline ended before their proof."),
    "jobtree_plan_warnings": Metric("gauge", (), "Objects that the last plan left out or warns of."),
    "jobtree_runs_admission_latency_seconds": Metric(
        "histogram",
        ("flavor", "result"),
        "From a run's creation to its start (admitted), or its end without one (ended).",
    ),
    "jobtree_runs_waiting": Metric("gauge", ("owner", "flavor", "reason"), "Runs that wait, by why."),
    "jobtree_runs_deficit_gpus": Metric(
        "gauge", ("owner", "flavor", "reason"), "GPUs that waiting runs lack, each at its cheapest placement."
    ),
    "jobtree_runs_phase": Metric("gauge", ("owner", "flavor", "phase"), "Runs that are not over, by phase."),
    "jobtree_runs_conflicts": Metric("gauge", ("owner", "flavor"), "Runs that a held promise may cut."),
    "jobtree_reservations_backlog_seconds": Metric("gauge", _PROMISE, "How long a held promise's run has waited."),
    "jobtree_reservations_deficit_gpus": Metric("gauge", _PROMISE, "GPUs that a held promise's run lacks."),
    "jobtree_reservations_earliest_start_timestamp_seconds": Metric("gauge", _PROMISE, "When a promise is to be kept."),
    "jobtree_resolver_actions": Metric("counter", ("kind",), "Leases closed to make room, or after a failure."),
    "jobtree_budgets_concurrency_gpus": Metric("gauge", _PAYER, "GPUs that an envelope pays for, spares not counted."),
    "jobtree_budgets_headroom_gpus": Metric("gauge", _PAYER[:4], "GPUs that an envelope could still pay for."),
    "jobtree_budgets_gpu_hours": Metric(
        "gauge", _PAYER, "GPU-hours of an envelope's window: consumed, committed to what runs, headroom."
    ),
    "jobtree_budgets_caps_concurrency_gpus": Metric(
        "gauge", _CAP, "GPUs that an aggregate or use cap counts, spares not counted."
    ),
    "jobtree_budgets_caps_headroom_gpus": Metric("gauge", _CAP[:4], "GPUs that an aggregate or use cap still leaves."),
    "jobtree_budgets_caps_gpu_hours": Metric(
        "gauge", _CAP, "GPU-hours of an aggregate or use cap: consumed, committed to what runs, headroom."
    ),
    "jobtree_spares_concurrency_gpus": Metric("gauge", ("flavor",), "GPUs held as spares."),
    "jobtree_elastic_width_gpus": Metric("gauge", ("owner", "flavor"), "GPUs of malleable runs."),
    "jobtree_fleet_gpus": Metric(
        "gauge", ("flavor", "state"), "GPUs by what has them: leased, spare, foreign, closed (takes nothing new), free."
    ),
    "jobtree_domain_free_gpus": Metric("gauge", ("domain", "flavor"), "GPUs of a domain that are free."),
    "jobtree_invariant_violations": Metric(
        "counter", ("invariant",), "What the checker finds when it checks carried out plans once more."
    ),
}
"""By name, a counter's without ``_total``."""

_ACTIONS: Final = (
    "DropSpare", "Lottery", "NodeFailure", "ReclaimUnfunded", "ReclaimedBySpare", "Shrink", "Swap", "SwapDeclined",
)  # fmt: skip
_STATES: Final = ("leased", "spare", "foreign", "closed", "free")


class Figures(NamedTuple):
    """Samples by metric; of histograms what is observed."""

    samples: dict[str, Samples]
    observed: dict[str, dict[Labels, list[float]]]


class _Run(NamedTuple):
    owner: str
    flavor: str
    created: int
    malleable: bool
    status: Mapping[str, Any]


def figures(manifest: Manifest, snapshot: Snapshot, plan: Plan, *, checked: bool = True) -> Figures:
    """The figures of a cycle from its record. ``checked``: whether the checker goes over its plan once more.

    Where a Policy's mode leaves it at planning, the fleet is as it was.
    """
    left = after(snapshot, plan) if manifest.phase == "applied" else snapshot
    runs = _runs(left)
    found = {name: Samples() for name in METRICS}
    found["jobtree_cycle_seconds"] = {(phase,): seconds for phase, seconds in manifest.timings.items()}
    found["jobtree_last_cycle_timestamp_seconds"] = {(): float(plan.at)}
    found["jobtree_cycles"] = {(): 1.0}
    found["jobtree_plan_gap"] = {(each.name,): each.gap for each in plan.stages if each.proven}
    found["jobtree_plan_truncated"] = {(): float(plan.truncated)}
    found["jobtree_plan_warnings"] = {(): float(len(plan.warnings))}
    reasons = Counter(each.reason for each in plan.closures)
    found["jobtree_resolver_actions"] = {(kind,): float(reasons[kind]) for kind in _ACTIONS}
    violations = Counter(each.invariant for each in check(snapshot, plan)) if checked else Counter[str]()
    found["jobtree_invariant_violations"] = {(name,): float(violations[name]) for name in sorted(INVARIANTS)}
    found |= _waiting(plan, runs) | _budgets(snapshot, plan) | _fleet(left, plan.at) | _promises(left, plan.at, runs)
    return Figures(found, {"jobtree_runs_admission_latency_seconds": _latencies(snapshot, plan, runs)})


def _runs(left: Snapshot) -> dict[RunKey, _Run]:
    table = left.tables["runs"]
    columns = zip(
        values.texts(table, "namespace"), values.texts(table, "name"), values.texts(table, "owner"),
        values.texts(table, "flavor"), values.ints(table, "created").tolist(), values.optional_ints(table, "min_total"),
        values.texts(table, "status"), strict=True,
    )  # fmt: skip
    return {
        (namespace, name): _Run(owner, flavor, created, least is not None, msgspec.json.decode(status or "{}"))
        for namespace, name, owner, flavor, created, least, status in columns
    }


def _waiting(plan: Plan, runs: Mapping[RunKey, _Run]) -> dict[str, Samples]:
    waits, deficits, phases, widths, conflicts = (defaultdict[Labels, float](float) for _ in range(5))
    for wait in plan.waits:
        run = runs[wait.namespace, wait.name]
        waits[run.owner, run.flavor, wait.reason] += 1
        deficits[run.owner, run.flavor, wait.reason] += wait.deficit_gpus
    for run in runs.values():
        phase = run.status.get("phase", "Pending")
        if phase not in OVER:
            phases[run.owner, run.flavor, phase] += 1
        if run.malleable:
            widths[run.owner, run.flavor] += run.status.get("width", {}).get("allocated", 0)
        if run.status.get("conflictSets"):
            conflicts[run.owner, run.flavor] += 1
    return {
        "jobtree_runs_waiting": dict(waits),
        "jobtree_runs_deficit_gpus": dict(deficits),
        "jobtree_runs_phase": dict(phases),
        "jobtree_elastic_width_gpus": dict(widths),
        "jobtree_runs_conflicts": dict(conflicts),
    }


def _promises(left: Snapshot, at: int, runs: Mapping[RunKey, _Run]) -> dict[str, Samples]:
    """Promises whose runs still wait, be it for the pods of victims, by ``namespace/name``."""
    table = left.tables["reservations"]
    columns = zip(
        values.texts(table, "namespace"), values.texts(table, "name"), values.texts(table, "run"),
        values.ints(table, "start").tolist(), values.texts(table, "state"), values.texts(table, "status"), strict=True,
    )  # fmt: skip
    waited, deficits, starts = Samples(), Samples(), Samples()
    for namespace, name, of, start, state, status in columns:
        run = runs.get((namespace, of))
        told = msgspec.json.decode(status or "{}")
        if run is None or not is_standing(state, told.get("reason", "")):
            continue
        labels = (f"{namespace}/{name}", run.flavor)
        waited[labels] = float(at - run.created)
        deficits[labels] = float((told.get("forecast") or {}).get("deficitGPUs", 0))
        starts[labels] = float(start)
    return {
        "jobtree_reservations_backlog_seconds": waited,
        "jobtree_reservations_deficit_gpus": deficits,
        "jobtree_reservations_earliest_start_timestamp_seconds": starts,
    }


def _latencies(snapshot: Snapshot, plan: Plan, runs: Mapping[RunKey, _Run]) -> dict[Labels, list[float]]:
    """Seconds that each run waited that starts now, or that ends now and never started."""
    before = snapshot.tables["runs"]
    over = {name for name, outcome in zip(values.keys(before), values.texts(before, "outcome"), strict=True) if outcome}
    started = {each.run_key for each in plan.leases if each.spec.reason == "Start"}
    ended = {
        (each.namespace, each.name)
        for each in plan.runs
        if each.status.phase == "Failed" and each.status.started is None
    } - over
    found: dict[Labels, list[float]] = defaultdict(list)
    for result, keys in (("admitted", started), ("ended", ended - started)):
        for key in sorted(keys):
            found[runs[key].flavor, result].append(float(max(0, plan.at - runs[key].created)))
    return dict(found)


def _budgets(snapshot: Snapshot, plan: Plan) -> dict[str, Samples]:
    """What envelopes pay, and what caps count, under metrics of their own: sums count nothing twice."""
    budgets = snapshot.tables["budgets"]
    owners = dict(zip(values.texts(budgets, "name"), values.texts(budgets, "owner"), strict=True))
    flavors = {name: _flavors(snapshot, name) for name in ("envelopes", "aggregates", "use_caps")}
    found = {name: Samples() for name in METRICS if name.startswith("jobtree_budgets_")}
    for update in plan.budgets:
        status = update.status
        parts = (
            ("envelopes", "", status.envelopes), ("aggregates", "caps_", status.aggregate_caps),
            ("use_caps", "caps_", status.use_caps),
        )  # fmt: skip
        for table, part, uses in parts:
            for use in uses:
                if (update.name, use.name) in flavors[table]:
                    flavor = flavors[table][update.name, use.name] or "any"
                    _used(found, f"jobtree_budgets_{part}", (owners[update.name], update.name, use.name, flavor), use)
    return found


def _flavors(snapshot: Snapshot, name: str) -> dict[tuple[str, str], str]:
    table = snapshot.tables[name]
    names = zip(values.texts(table, "budget"), values.texts(table, "name"), strict=True)
    return dict(zip(names, values.texts(table, "flavor"), strict=True))


def _used(found: Mapping[str, Samples], prefix: str, head: Labels, use: EnvelopeUsage) -> None:
    of_class = (use.owned_gpus, use.shared_gpus, use.borrowed_gpus, use.unfunded_gpus)
    for name, number in zip(("owned", "shared", "borrowed", "unfunded"), of_class, strict=True):
        found[f"{prefix}concurrency_gpus"][*head, name] = float(number)
    if use.headroom_gpus is not None:  # a use cap on hours alone leaves any number
        found[f"{prefix}headroom_gpus"][head] = float(use.headroom_gpus)
    told = (
        ("consumed", use.gpu_hours_consumed), ("committed", use.gpu_hours_committed),
        ("headroom", use.headroom_gpu_hours),
    )  # fmt: skip
    found[f"{prefix}gpu_hours"].update({(*head, name): float(number) for name, number in told if number is not None})


def _fleet(left: Snapshot, at: int) -> dict[str, Samples]:
    """GPUs of the nodes that have a flavor, each counted once."""
    state = state_of(left, at)
    fleet, held = state.fleet, _held(state)
    names = domain_names(fleet.domains)
    states, spares, free = (defaultdict[Labels, float](float) for _ in range(3))
    for place, node in enumerate(fleet.names):
        flavor, total = fleet.flavor[place], int(fleet.gpus[place])
        if not flavor:
            continue
        active, spare = held.get(node, (0, 0))
        other = min(state.foreign[node].gpus if node in state.foreign else 0, max(0, total - active - spare))
        rest = max(0, total - active - spare - other)
        opened = bool(fleet.takes_work[place])
        counts = (active, spare, other, 0 if opened else rest, rest if opened else 0)
        for name, number in zip(_STATES, counts, strict=True):
            states[flavor, name] += number
        spares[flavor,] += spare
        free[names[fleet.domains[fleet.domain[place]]], flavor] += rest if opened else 0
    return {
        "jobtree_fleet_gpus": dict(states),
        "jobtree_spares_concurrency_gpus": dict(spares),
        "jobtree_domain_free_gpus": dict(free),
    }


def _held(state: State) -> dict[str, tuple[int, int]]:
    """Slots per node that open leases hold: with an Active one, and with a Spare one only."""
    slots: dict[str, dict[str, set[int]]] = defaultdict(lambda: {"Active": set(), "Spare": set()})
    for leases in state.held.values():
        for lease in leases:
            slots[lease.node]["Active" if lease.active else "Spare"].update(lease.ordinals)
    return {node: (len(of["Active"]), len(of["Spare"] - of["Active"])) for node, of in slots.items()}


def added(samples: Iterable[Samples]) -> Samples:
    """Sums of samples, label by label."""
    total = defaultdict[Labels, float](float)
    for each in samples:
        for labels, number in each.items():
            total[labels] += number
    return dict(total)
