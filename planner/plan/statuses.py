"""Statuses of Runs after the plan (spec §1 Run.status, §7). Only statuses that change are in the plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from jobtree.api.kinds.run import RunFunding, RunStatus, Width
from jobtree.api.values.scalars import Duration, OwnerPath, Time
from jobtree.world.naming.arrays import is_new
from jobtree.world.plan import RunUpdate, Wait
from jobtree.world.tables.rows_runs import NO_STATUS, status_in
from planner.plan import conditions
from planner.plan.conditions import Saying
from planner.state.state import State
from policies.caps.cap import HOUR_MILLI
from policies.funding.usage import FIELD, Classes, plain
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle import arrays as lifecycle_arrays
from policies.lifecycle.arrays import ArrayRow
from policies.lifecycle.endings import Ending

_UNDECIDED: Final[dict[str, Any]] = dict.fromkeys(
    (
        "funding",
        "started",
        "ended",
        "time_limit",
        "projected_gpu_hours",
        "projected_credits",
        "deficit_gpus",
        "earliest_start",
        "eta",
        "kill_probability",
        "follow_deadline",
    )
) | {"reservation": "", "conflict_sets": ()}
"""What a status does not say unless something is decided about it."""


@dataclass(frozen=True)
class After:
    """State once the plan is carried out: open leases by run with their classes, and who waits why.

    ``limits``: enforced time limits in seconds; ``starts``: when each run that holds leases started (Unix seconds).
    """

    leases: Mapping[RunKey, list[LeaseRow]]
    classes: Classes
    waits: Mapping[RunKey, Wait]
    limits: Mapping[RunKey, int | None]
    starts: Mapping[RunKey, int]


def run_updates(state: State, after: After, unpaid: Mapping[RunKey, str]) -> list[RunUpdate]:
    """Statuses that differ from the stored ones, in (namespace, name) order.

    ``unpaid``: what is said of runs that hold unfunded GPUs.
    """
    statuses = _Statuses(state, after, unpaid)
    found = []
    for key, run in state.runs.items():
        ending = state.endings.get(key)
        if key in state.standing or run.array:
            continue
        if run.outcome and ending is None:
            if _is_settled(run) or run.array_of:
                continue
            ending = Ending(run.outcome, run.outcome_reason or run.outcome, state.at, "")
        before = status_in(run.status)
        now = statuses.of(run, before, ending)
        if is_new(now, before, is_index=bool(run.array_of)):
            found.append(RunUpdate(namespace=run.namespace, name=run.name, status=now))
    if not state.arrays:
        return found
    heads = [statuses.of_array(array) for array in state.arrays if not state.runs[array.key].outcome]
    found += [update for update, before in heads if update.status != before]
    return sorted(found, key=lambda each: (each.namespace, each.name))


@dataclass
class _Statuses:
    """Statuses after a plan; those of runs that are new and wait for the same are made once."""

    state: State
    after: After
    unpaid: Mapping[RunKey, str]
    _waiting: dict[tuple[Saying, Width, int | None], RunStatus] = field(default_factory=dict)

    def of(self, run: RunRow, before: RunStatus, ending: Ending | None) -> RunStatus:
        """The status of a run that ends, runs or waits."""
        leases = self.after.leases.get(run.key)
        if ending is not None and ending.outcome:
            return self._ended(run, before, ending)
        if leases:
            return self._running(run, before, leases)
        if run.is_cpu and run.state == "Active" and run.key not in self.state.blocked:
            return self._on_cpu(run, before)
        return self._pending(run, before)

    def of_array(self, array: ArrayRow) -> tuple[RunUpdate, RunStatus]:
        """Status of an array, which counts what its indices do; and as it was before."""
        run = self.state.runs[array.key]
        before = status_in(run.status)
        count = lifecycle_arrays.counted(array, self.state.runs, self.state.endings, self._is_running)
        most = min(array.max_parallel or array.size, array.size - count.over)
        ending = self.state.endings.get(array.key)
        leases = [lease for key in array.members for lease in self.after.leases.get(key, ())]
        held = _Held.of(self.state, leases, self.after.classes)
        width = msgspec.structs.replace(_width(run, 0), max=run.total * (array.max_parallel or array.size))
        gpus = sum(held.by_class.values())
        desired = 0 if ending is not None else run.total * most
        width = msgspec.structs.replace(width, desired=desired, allocated=gpus, pending=max(0, desired - gpus))
        decided: dict[str, Any] = {"funding": held.funding() if leases else None, "started": before.started}
        if ending is not None and ending.outcome:
            saying = conditions.ended(run, ending)
            decided["ended"] = Time(ending.ended)
        elif count.running:
            saying = conditions.array_running(count)
            decided["started"] = Time(self.state.at) if before.started is None else before.started
        else:
            first = next((self.state.runs[key] for key in array.members if not self._is_over(key)), None)
            if first is None or run.deleting:
                saying = conditions.pending(run, None, self.state.blocked)
            else:
                saying = conditions.array_waiting(
                    count, conditions.pending(first, self.after.waits.get(first.key), self.state.blocked), first
                )
        status = self._status(before, saying, width, **decided)
        return RunUpdate(namespace=run.namespace, name=run.name, status=status), before

    def _is_running(self, run: RunRow) -> bool:
        """Will it run once the plan is carried out?"""
        if run.is_cpu:
            return run.state == "Active" and run.key not in self.state.blocked
        return run.key in self.after.leases or run.key in self.state.standing

    def _is_over(self, key: RunKey) -> bool:
        ending = self.state.endings.get(key)
        return bool(self.state.runs[key].outcome) or (ending is not None and bool(ending.outcome))

    def _ended(self, run: RunRow, before: RunStatus, ending: Ending) -> RunStatus:
        ended = Time(ending.ended)
        if run.outcome:  # it was over before: what was said of that stands
            ending = replace(ending, reason=run.outcome_reason or run.outcome, message=_said(before, run.outcome))
            ended = ended if before.ended is None else before.ended
        return self._status(
            before, conditions.ended(run, ending), _width(run, 0, over=True), started=before.started, ended=ended
        )

    def _running(self, run: RunRow, before: RunStatus, leases: list[LeaseRow]) -> RunStatus:
        held = _Held.of(self.state, leases, self.after.classes)
        limit = self.after.limits.get(run.key, run.time_limit)
        hours = rated = None
        if limit is not None:
            hours = plain(limit * held.milli, HOUR_MILLI)
            rated = plain(limit * held.rated, 1000 * HOUR_MILLI) if held.rated else None
        return self._status(
            before,
            conditions.running(
                tuple(held.by_class.items()), len(held.groups), len(held.nodes), limit, self.unpaid.get(run.key, "")
            ),
            _width(run, sum(held.by_class.values())),
            funding=held.funding(),
            started=Time(self.after.starts[run.key]),
            time_limit=None if limit is None else Duration(limit),
            projected_gpu_hours=hours,
            projected_credits=rated,
        )

    def _on_cpu(self, run: RunRow, before: RunStatus) -> RunStatus:
        limit = self.after.limits.get(run.key, run.time_limit)
        return self._status(
            before,
            conditions.on_cpu(run),
            _width(run, 0),
            started=Time(self.state.at) if before.started is None else before.started,
            time_limit=None if limit is None else Duration(limit),
        )

    def _pending(self, run: RunRow, before: RunStatus) -> RunStatus:
        wait = self.after.waits.get(run.key)
        deficit = None if wait is None else wait.deficit_gpus
        saying, width = conditions.pending(run, wait, self.state.blocked), _width(run, 0)
        until = self.state.deadlines.get(run.key)
        if before is not NO_STATUS or until is not None:
            ends = None if until is None else Time(until)
            return self._status(before, saying, width, deficit_gpus=deficit, follow_deadline=ends)
        key = (saying, width, deficit)
        if key not in self._waiting:
            self._waiting[key] = self._status(before, saying, width, deficit_gpus=deficit)
        return self._waiting[key]

    def _status(self, before: RunStatus, saying: Saying, width: Width, **decided: Any) -> RunStatus:
        """``before`` with everything anew that a plan decides."""
        return msgspec.structs.replace(
            before,
            phase=conditions.phase(saying),
            conditions=conditions.conditions(saying, before.conditions, self.state.at),
            width=width,
            **{**_UNDECIDED, **decided},
        )


def _is_settled(run: RunRow) -> bool:
    """Does the status of a run that is over say so as a whole: all conditions, each once, and their phase?"""
    told = run.told
    return told.phase == run.outcome and tuple(each.type for each in told.conditions) == conditions.ORDER


def _said(before: RunStatus, outcome: str) -> str:
    """The sentence of the condition by which a run is over."""
    return next((each.message for each in before.conditions if each.type == outcome), "") or "Its status says so."


def _width(run: RunRow, allocated: int, *, over: bool = False) -> Width:
    desired = run.total if run.desired is None else run.desired
    return Width(
        min=run.width_min,
        max=run.total if run.max_total is None else run.max_total,
        desired=desired,
        allocated=allocated,
        pending=0 if over else max(0, desired - allocated),
    )


@dataclass
class _Held:
    """Sums of a run. ``by_class``: Active GPUs; ``milli``, ``rated``: charged milli-GPUs, and times credit rates."""

    by_class: dict[str, int] = field(default_factory=dict)
    groups: set[int] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    lenders: set[str] = field(default_factory=set)
    milli: int = 0
    rated: int = 0

    @classmethod
    def of(cls, state: State, leases: Iterable[LeaseRow], classes: Classes) -> "_Held":
        """Sum up a run's open leases."""
        held = cls()
        for lease in leases:
            name = classes[lease.namespace, lease.name]
            held.groups.add(lease.group)
            held.nodes.add(lease.node)
            if lease.active:
                held.by_class[name] = held.by_class.get(name, 0) + len(lease.ordinals)
            if name == "borrowed":
                held.lenders.add(lease.owner)
            if lease.envelope >= 0 and name != UNFUNDED:
                milli = lease.milli(state.policy)
                held.milli += milli
                held.rated += milli * state.money.rate_milli(lease.envelope)
        return held

    def funding(self) -> RunFunding:
        """Funding as a status has it."""
        gpus = {FIELD[name]: count for name, count in self.by_class.items()}
        return RunFunding(**gpus, lenders=tuple(OwnerPath(owner) for owner in sorted(self.lenders)))
