"""What large problems do, done on small worlds and held against the reference."""

import pytest

import planner
from jobtree.check import check
from planner.large import rounding as large
from planner.search import pay, stages
from planner.state import lower
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT, World


def plan_as_large(monkeypatch: pytest.MonkeyPatch, *, middle: int = 0) -> None:
    """Every problem counts as a large one. ``middle``: most integer columns of a master that is solved whole first."""
    monkeypatch.setattr(lower, "EXACT", 0)
    monkeypatch.setattr(pay, "WHOLE", 0)
    monkeypatch.setattr(stages, "SMALL", 0)
    monkeypatch.setattr(large, "MIDDLE", middle)


def hold_between(world: World) -> None:
    """The plan passes the checker, and the optimum lies from its value to its bound."""
    snapshot = world.snapshot()
    plan = planner.plan(snapshot, AT)
    starts = next(stage for stage in plan.stages if stage.name == "starts")
    optimum = Reference(read(snapshot, AT)).optimum()

    assert [str(violation) for violation in check(snapshot, plan)] == []
    assert starts.value <= optimum["starts"] <= starts.bound
