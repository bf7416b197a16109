"""One planning cycle from end to end: read, snapshot, plan under the deadline, check, write, record (spec §8, §11)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from cronjobs import lottery
from cronjobs.completing import complete
from cronjobs.deadline import Planner
from cronjobs.unbroken import unbroken
from exporters.lake import rest
from exporters.lake.lake import Lake, Unmarked, read_manifest
from exporters.lake.manifest import Phase as ManifestPhase
from exporters.lake.manifest import PlanName
from exporters.plans import planjson, planobject, worldprint
from exporters.plans.planobject import name_of
from exporters.plans.worldprint import Prints
from exporters.writes.writes import writes_for
from jobtree.api import Refusal, Time
from jobtree.api.values.counted import counted
from jobtree.check import Before, check
from jobtree.cluster.protocol import Cluster
from jobtree.world.collector import collector_paused
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot, take

OnPhase = Callable[[str], None]


class Plans(Protocol):
    """Who makes a cycle's plan: a process under the deadline (`cronjobs.deadline.Planner`), or another."""

    def ask(self, snapshot: Snapshot, at: int, *, deadline: float, on_news: OnPhase | None = None) -> None:
        """Begins the plan of a snapshot at a Unix second; the caller may do other work."""

    def listen(self) -> None:
        """Takes what was said meanwhile, without waiting."""

    def answer(self) -> Plan:
        """The plan asked for. Raises Refusal where there is none."""

    def earlier(self, trouble: str) -> Iterator[Plan]:
        """Plans of earlier incumbents, the best first, for whoever cannot use the answer."""


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
    """What a cycle did: its plan, how many writes carried it out, seconds per phase, and what to say of the lake.

    ``plan``: None where nothing has changed since the plan of this very second, so that there was nothing to do.
    """

    plan: Plan | None
    writes: int
    seconds: dict[str, float]
    notices: list[str]


def run_cycle(
    cluster: Cluster, at: int, lake: Lake, planner: Plans, *, on_phase: OnPhase | None = None,
    origin: str | None = None,
) -> CycleResult:  # fmt: skip
    """One cycle at Unix second ``at``; one before it that was begun and not ended is completed first.

    ``origin``: of the lottery's chain, hex, where this cycle has to publish one; random where it is not given.

    Raises Refusal where it cannot be done, with nothing of it written to the cluster.
    """
    phase = Phases(on_phase)
    with collector_paused():
        with phase("read"):
            intake = cluster.read()
            notices = [*_greet(lake, intake, at), *_empty(intake)]
        with phase("complete"), unbroken():
            completed = complete(cluster, intake, lake, at)
            notices += completed.notices
            if completed.wrote:
                intake = cluster.read()
        with phase("snapshot"):
            snapshot = take(intake, at)
            if snapshot.number > 1 and is_unchanged(intake, snapshot, at, lake):
                return CycleResult(None, 0, phase.seconds, notices)
            lot = lottery.lot(cluster, intake, at)
            snapshot = replace(snapshot, number=lake.number_for(at, snapshot), lot=lot)
        with phase("plan"):
            planner.ask(snapshot, at, deadline=_deadline(snapshot), on_news=phase.news)
            for name in snapshot.tables:  # so it is in the lake before anything is written to the cluster
                lake.write_table(snapshot, name)
                planner.listen()
            before = Before.of(snapshot, at, planner.listen)
            plan = planner.answer()
        with phase("check"):
            plan = passed(planner, snapshot, plan, before)
            del before  # as large as the state that is written next
        writes = _carry_out(cluster, intake, snapshot, plan, lake, phase, notices, origin)
    return CycleResult(plan, writes, phase.seconds, notices)


def apply_plan(
    cluster: Cluster, plan: Plan, lake: Lake, made_from: Prints | None = None, *, on_phase: OnPhase | None = None
) -> CycleResult:
    """Carries out a plan that was made before, and records it as a cycle would.

    ``made_from``: what its file says of the cluster then.

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
            notices = _greet(lake, intake, plan.at)
        with phase("complete"), unbroken():
            completed = complete(cluster, intake, lake, plan.at)
            notices += completed.notices
            if completed.wrote:
                intake = cluster.read()
        with phase("snapshot"):
            snapshot = take(intake, plan.at)
            refuse_stale(snapshot, plan, made_from)
        with phase("check"):
            refuse_violations(snapshot, plan)
        with phase("tables"):
            lake.write_tables(snapshot)
        writes = _carry_out(cluster, intake, snapshot, plan, lake, phase, notices)
    return CycleResult(plan, writes, phase.seconds, notices)


def _empty(intake: Intake) -> list[str]:
    """What to say of a cluster on which nothing can start: it has no nodes."""
    return (
        [] if intake.nodes else ["there are no nodes: nothing starts (`kubectl runs submit` adds some to a state file)"]
    )


def _greet(lake: Lake, intake: Intake, at: int) -> list[str]:
    """Refuses what is past, and another cluster's lake; says where it cannot be read whose lake it is."""
    intake.refuse_past(at)
    try:
        lake.refuse_stranger()
    except Unmarked as unmarked:
        return [str(unmarked)]
    return []


def _carry_out(
    cluster: Cluster,
    intake: Intake,
    snapshot: Snapshot,
    plan: Plan,
    lake: Lake,
    phase: Phases,
    notices: list[str],
    origin: str | None = None,
) -> int:
    """Carries out a plan that was checked, whose snapshot is in the lake; returns how many writes that took.

    The record comes first, marked planned: whatever happens after it, the next cycle completes the plan from there. A
    signal that ends the program waits for the end.
    """
    observed = snapshot.policy.spec.mode == "observe"
    word = "published" if observed else "carried out"
    with unbroken(f"plan {name_of(plan)} was {word} before the interrupt"):
        with phase("record"):
            encoded = planjson.encode(plan)
            lake.refuse_other(snapshot, plan, encoded)
            money = planobject.record(intake, plan.at)
            path = lake.write_cycle(
                snapshot, plan, encoded, phase.seconds,
                phase="planned", on=PlanName.newest(intake.plans), money=lake.write_seen(money),
            )  # fmt: skip
        with phase("write"):
            writes = writes_for(intake, plan, encoded, money=money, pods=cluster.runs_pods)
            done: ManifestPhase = "observed" if observed else "applied"
            if done == "applied":
                writes = [*lottery.published(cluster, intake, plan, origin), *writes]
            if cluster.runs_pods and (last := rest.resting(intake, writes)) is not None:
                writes, done = list(rest.marked(last, plan.at)), "unchanged"
            cluster.write(writes, intake.revision)
        try:
            lake.finish(path, done, (), phase.seconds)
        except Refusal as refusal:
            notices.append(f"{refusal}; the plan is carried out, and the next cycle says so in its record")
    return len(writes)


def is_unchanged(intake: Intake, snapshot: Snapshot, at: int, lake: Lake) -> bool:
    """Whether the cluster is what the last cycle left, which was in this very second.

    What pods say of their runs is no cycle's own doing either: the lake has what that cycle saw of them.
    """
    last = intake.last_world
    if last is None or last.given != given_of(snapshot, at):
        return False
    newest = lake.newest()
    if newest is None or PlanName.newest(intake.plans) is None:
        return True
    try:
        before = read_manifest(newest)
    except Refusal:
        return True
    mine = PlanName(newest.stem.lower(), before.plan) == PlanName.newest(intake.plans)
    return not mine or before.tables.get("pods") == snapshot.table_digest("pods")


def dry_run(intake: Intake, at: int, planner: Planner, *, on_phase: OnPhase | None = None) -> Plan:
    """The plan that a cycle at ``at`` would make, checked; nothing is written anywhere.

    Raises Refusal where ``at`` is before the last cycle.
    """
    intake.refuse_past(at)
    with Phases(on_phase)("snapshot"):
        snapshot = take(intake, at)
    return checked_plan(snapshot, at, planner, on_phase=on_phase)


def checked_plan(snapshot: Snapshot, at: int, planner: Planner, *, on_phase: OnPhase | None = None) -> Plan:
    """The plan of a snapshot, checked. Raises Refusal where the checker does not pass it."""
    phase = Phases(on_phase)
    with phase("plan"):
        plan = planner.plan(snapshot, at, deadline=_deadline(snapshot), on_news=phase.news)
    with phase("check"):
        return passed(planner, snapshot, plan)


def passed(planner: Plans, snapshot: Snapshot, plan: Plan, before: Before | None = None) -> Plan:
    """The planner's answer if the checker passes it, else the best of its earlier incumbents whose plan it passes.

    That one is marked truncated, and warns of what is wrong with the better one. Raises Refusal where there is none.
    """
    wrong = violation(snapshot, plan, before)
    if not wrong:
        return plan
    trouble = f"THE PLANNER'S BEST PLAN IS WRONG, which the checker found: {wrong}; please report it"
    for earlier in planner.earlier(trouble):
        if not violation(snapshot, earlier, before):
            return earlier
    raise _not_passed(wrong)


def _deadline(snapshot: Snapshot) -> int:
    """Seconds that the Policy gives the planner."""
    return int(snapshot.policy.spec.solver.deadline)


def refuse_stale(snapshot: Snapshot, plan: Plan, made_from: Prints | None) -> None:
    """Raises Refusal where the cluster is not the one that the plan was made for, naming what has changed."""
    if (snapshot.digest, snapshot.policy_digest, snapshot.since) == (plan.snapshot, plan.policy, plan.since):
        return
    what = "" if made_from is None else worldprint.changes(made_from, worldprint.prints(snapshot))
    if snapshot.since != plan.since:
        last = (
            "the last cycle is gone" if snapshot.since is None else f"a cycle was carried out at {Time(snapshot.since)}"
        )
        what = f"{last}, {what}" if what else last
    raise Refusal(
        f"the cluster has changed since this plan was made at {Time(plan.at)}: make a new one with "
        f"`jobtree plan --out FILE`{'; changed: ' if what else ''}{what}"
    )


def refuse_violations(snapshot: Snapshot, plan: Plan) -> None:
    """Raises Refusal naming the first violation that the checker finds, and how many there are."""
    wrong = violation(snapshot, plan)
    if wrong:
        raise _not_passed(wrong)


def violation(snapshot: Snapshot, plan: Plan, before: Before | None = None) -> str:
    """The first violation that the checker finds, and how many more there are; empty where it passes the plan.

    ``before``: what of the check needs no plan, where it has been done.
    """
    violations = check(snapshot, plan, before)
    if not violations:
        return ""
    first, rest = violations[0], len(violations) - 1
    more = f"; {counted(rest, 'more violation')}" if rest else ""
    return f"{first.object}: {first.message} ({first.invariant}{more})"


def _not_passed(wrong: str) -> Refusal:
    return Refusal(f"the checker does not pass the plan, so nothing is written: {wrong}")
