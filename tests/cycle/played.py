"""Cycles on a state file in memory's time, without a lake: what is planned, what the checker says of it."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.check import Violation, check
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import take
from planner import plan
from tests.support.documents import Document

Work = tuple[list[Any], ...]
NOTHING: Work = ([], [], [], [], [])


class Cycle(NamedTuple):
    """A plan, and what the checker says of it."""

    plan: Plan
    violations: list[Violation]

    @property
    def work(self) -> Work:
        """Violations, closures, segments, leases and statuses of runs: nothing of it where nothing happens."""
        plan = self.plan
        return (self.violations, plan.closures, plan.segments, plan.leases, plan.runs)

    @property
    def work_but_growth(self) -> Work:
        """The work without what a run that lost GPUs takes anew as growth, in the cycle after (spec §4, §7)."""
        plan = self.plan
        growth = [each for each in plan.leases if each.spec.reason == "Grow"]
        grown = {(each.metadata.namespace, each.spec.run_ref.name) for each in growth}
        leases = [each for each in plan.leases if each.spec.reason != "Grow"]
        runs = [each for each in plan.runs if (each.namespace, each.name) not in grown]
        return (self.violations, plan.closures, plan.segments, leases, runs)

    @property
    def charged(self) -> Mapping[tuple[str, str], int | float]:
        """GPU-seconds by envelope."""
        usages = [(each.name, usage) for each in self.plan.budgets for usage in each.status.envelopes]
        return {(budget, usage.name): usage.gpu_seconds_consumed for budget, usage in usages}


def cycle(path: Path, at: int, *, write: bool = True) -> Cycle:
    """A cycle on a state file."""
    cluster = StateFile(path, at)
    intake = cluster.read()
    snapshot = take(intake)
    made = plan(snapshot, at)
    if write:
        cluster.write(writes_for(intake, made, planjson.encode(made)), intake.revision)
    return Cycle(made, check(snapshot, made))


def held_twice(before: list[Document], after: list[Document]) -> list[list[str]]:
    """Open leases that share a slot and a role since the cycle between."""
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in after:
        if each["kind"] == "Lease" and not each["status"].get("closed"):
            for slot in each["spec"]["slice"]["nodes"]:
                held[slot, each["spec"]["slice"]["role"]].append(each["metadata"]["name"])
    there = {each["metadata"]["name"] for each in before}
    return [names for names in held.values() if len(names) > 1 and not there.issuperset(names)]


def lacking(charged: Mapping[Any, int | float], at_least: Mapping[Any, int | float]) -> dict[Any, tuple[Any, Any]]:
    """Envelopes that are there and were charged less."""
    return {key: (charged[key], least) for key, least in at_least.items() if key in charged and charged[key] < least}
