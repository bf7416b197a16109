"""Masters taken apart into payer components: bounds that hold, plans that the checker passes, whatever threads do."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

import planner
from benchmarks import fleet
from benchmarks.fleet.recipe import DAYS, Recipe
from exporters.plans import planjson
from jobtree.check import check
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import Snapshot, take
from planner import Effort
from planner.effort import Components
from planner.large import components
from planner.planning import master_of
from planner.solver.highs import options, solve
from tests.reference import worlds
from tests.reference.large import AS_LARGE, hold_between
from tests.reference.worlds import World
from tests.support.effort import examples

TIGHT = Recipe(gpus=1_000, pending=300, owners=24, running=0.0, budgets="private", ages=DAYS)


def snapshot_of(recipe: Recipe, folder: Path) -> Snapshot:
    path = folder / "fleet.json"
    fleet.write_fleet(path, recipe)
    return take(StateFile(path, fleet.AT).read())


def gap(plan: Plan) -> float:
    return next(stage.gap for stage in plan.stages if stage.name == "starts")


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_optimum_lies_between_value_and_bound(kind: str) -> None:
    effort = replace(AS_LARGE, components=Components(largest=1.0))

    @examples(6)
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        hold_between(world, effort)

    holds()


@pytest.mark.slow
def test_a_tight_world_is_certified_where_its_relaxation_is_not(tmp_path: Path) -> None:
    snapshot = snapshot_of(TIGHT, tmp_path)
    relaxed = solve(master_of(snapshot, fleet.AT, last=False).model, options(1, 0.0001, 1), relaxed=True)

    plan = planner.plan(snapshot, fleet.AT)

    (starts,) = (stage for stage in plan.stages if stage.name == "starts")
    assert check(snapshot, plan) == []
    assert starts.bound < 0.99 * relaxed.bound * 24 * 3600
    assert gap(plan) < 0.002


@pytest.mark.slow
def test_threads_change_no_byte(tmp_path: Path) -> None:
    snapshot = snapshot_of(msgspec.structs.replace(TIGHT, gpus=512, pending=150), tmp_path)
    one, seven = (
        planner.plan(snapshot, fleet.AT, Effort(components=Components(workers=workers))) for workers in (1, 7)
    )

    assert planjson.encode(one) == planjson.encode(seven)


def test_families_that_share_are_one_part(tmp_path: Path) -> None:
    shared = snapshot_of(msgspec.structs.replace(TIGHT, budgets="family", owners=20), tmp_path)
    master = master_of(shared, fleet.AT, last=False)

    assert list(components.solve_components(master, options(1, 0.0001, 1))) == []
