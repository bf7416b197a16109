"""What large problems do, done on small worlds: the optimum of the reference lies from the value to the bound."""

import os

import pytest
from hypothesis import given, settings

import planner
from jobtree.check import check
from planner import lower, stages
from planner.solver import options
from tests.reference import worlds
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT, World

WORLDS = int(os.environ.get("JOBTREE_WORLDS", "540")) // 3
"""How many worlds in all."""


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_optimum_lies_between_value_and_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=max(1, WORLDS // len(worlds.KINDS)))
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        snapshot = world.snapshot()
        plan = planner.plan(snapshot, AT)
        starts = next(stage for stage in plan.stages if stage.name == "starts")
        optimum = Reference(read(snapshot, AT), recalls=False).optimum()

        assert [str(violation) for violation in check(snapshot, plan)] == []
        assert starts.value <= optimum["starts"] <= starts.bound

    monkeypatch.setattr(lower, "EXACT", 0)
    monkeypatch.setattr(
        stages, "options", lambda seed, _, nodes: options(seed, 0.0, nodes)
    )  # presolve may hang on small ones
    monkeypatch.setattr(stages, "SMALL", 0)
    holds()
