"""One planning cycle from end to end: read, snapshot, plan under the deadline, check, write, record (spec §8, §11)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cronjobs.deadline import Planner
from cronjobs.unbroken import unbroken
from exporters import planjson
from exporters.lake import Lake
from exporters.planobject import name_of
from exporters.writes import writes_for
from jobtree.api import Refusal, Time
from jobtree.api.counted import counted
from jobtree.check import Before, check
from jobtree.cluster.protocol import Cluster
from jobtree.world.collector import collector_paused
from jobtree.world.intake import Intake
from jobtree.world.plan import Plan
from jobtree.world.snapshot import Snapshot, take

OnPhase = Callable[[str], None]


@dataclass
class Phases:
    """Seconds of wall time per phase, in their order; ``on_phase`` hears of each as it begins, and of its news."""

    on_phase: OnPhase | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        if self.on_phase is not None:
            self.on_phase(name)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - began

    def news(self, words: str) -> None:
        """What is new of the plan that is being made."""
        if self.on_phase is not None:
            self.on_phase(f"plan: {words}")


@dataclass(frozen=True)
class CycleResult:
    """What a cycle did: its plan, how many writes carried it out, and seconds per phase."""

    plan: Plan
    writes: int
    seconds: dict[str, float]


def run_cycle(
    cluster: Cluster, at: int, lake: Lake, planner: Planner, *, on_phase: OnPhase | None = None
) -> CycleResult:
    """One cycle at Unix second ``at``. Raises Refusal with nothing written to the cluster where it cannot be done."""
    phase = Phases(on_phase)
    with collector_paused():
        with phase("read"):
            intake = cluster.read()
            refuse_past(intake, at)
        with phase("snapshot"):
            snapshot = take(intake)
            lake.refuse_other(at, snapshot)
        with phase("plan"):
            planner.ask(snapshot, at, deadline=_deadline(snapshot), on_news=phase.news)
            for name in snapshot.tables:  # so it is in the lake before anything is written to the cluster
                lake.write_table(snapshot, name)
                planner.listen()
            before = Before.of(snapshot, at, planner.listen)
            plan = planner.answer()
        with phase("check"):
            refuse_violations(snapshot, plan, before)
            del before  # as large as the state that is written next
        writes = _carry_out(cluster, intake, snapshot, plan, lake, phase)
    return CycleResult(plan, writes, phase.seconds)


def apply_plan(cluster: Cluster, plan: Plan, lake: Lake, *, on_phase: OnPhase | None = None) -> int:
    """Carries out a plan that was made before, and records it as a cycle would; returns the number of writes.

    Raises Refusal where it or a later one was carried out already, where the lake has another decision for its time, or
    where the checker does not pass it against the cluster as it is.
    """
    phase = Phases(on_phase)
    with collector_paused():
        with phase("read"):
            intake = cluster.read()
            record = next((each for each in intake.plans if each.name == name_of(plan)), None)
            if record is not None and record.status.phase == "Applied":
                again = "make a new one with `jobtree plan --out FILE`"
                raise Refusal(f"the plan {record.name} was carried out already; {again}")
            refuse_past(intake, plan.at)
        with phase("snapshot"):
            snapshot = take(intake)
            lake.refuse_stranger()
        with phase("check"):
            refuse_violations(snapshot, plan)
        with phase("tables"):
            lake.write_tables(snapshot)
        return _carry_out(cluster, intake, snapshot, plan, lake, phase)


def _carry_out(cluster: Cluster, intake: Intake, snapshot: Snapshot, plan: Plan, lake: Lake, phase: Phases) -> int:
    """Writes a plan that was checked, whose snapshot is in the lake, and then its record; returns how many writes.

    Neither without the other: a signal that comes in between ends the program after the record.
    """
    with unbroken():
        with phase("write"):
            encoded = planjson.encode(plan)
            lake.refuse_other(plan.at, snapshot, encoded)
            writes = writes_for(intake, plan, encoded)
            cluster.write(writes, intake.revision)
        with phase("record"):
            lake.write_cycle(snapshot, plan, encoded, phase.seconds)
    return len(writes)


def dry_run(intake: Intake, at: int, planner: Planner, *, on_phase: OnPhase | None = None) -> Plan:
    """The plan that a cycle at ``at`` would make, checked; nothing is written anywhere.

    ``at`` may be the very second of the last cycle, to look at what it left. Raises Refusal where it is earlier.
    """
    refuse_past(intake, at, same=True)
    with Phases(on_phase)("snapshot"):
        snapshot = take(intake)
    return checked_plan(snapshot, at, planner, on_phase=on_phase)


def checked_plan(snapshot: Snapshot, at: int, planner: Planner, *, on_phase: OnPhase | None = None) -> Plan:
    """The plan of a snapshot, checked. Raises Refusal where the checker does not pass it."""
    phase = Phases(on_phase)
    with phase("plan"):
        plan = planner.plan(snapshot, at, deadline=_deadline(snapshot), on_news=phase.news)
    with phase("check"):
        refuse_violations(snapshot, plan)
    return plan


def _deadline(snapshot: Snapshot) -> int:
    """Seconds that the Policy gives the planner."""
    return int(snapshot.policy.spec.solver.deadline)


def refuse_past(intake: Intake, at: int, *, same: bool = False) -> None:
    """Raises Refusal where a plan for ``at`` or later was carried out already; with ``same`` only for a later one.

    One decision stands for each second: another would take the place of the record that the first is replayed from.
    """
    last = intake.last_cycle
    if last is not None and (at < last or (at == last and not same)):
        raise Refusal(
            f"a plan for {last} was carried out already, and this one is for {Time(at)}; "
            "time only goes forward: say a later --at"
        )


def refuse_violations(snapshot: Snapshot, plan: Plan, before: Before | None = None) -> None:
    """Raises Refusal naming the first violation that the checker finds, and how many there are.

    ``before``: what of the check needs no plan, where it has been done.
    """
    violations = check(snapshot, plan, before)
    if violations:
        first, rest = violations[0], len(violations) - 1
        more = f"; {counted(rest, 'more violation')}" if rest else ""
        raise Refusal(
            f"the checker does not pass the plan, so nothing is written: {first.object}: {first.message} "
            f"({first.invariant}{more})"
        )
