"""Benchmark fleets are legal, alike for one recipe, and shaped as they say."""

from collections import Counter
from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fleet
from benchmarks.fleet.dice import Dice
from benchmarks.fleet.manifests import manifests
from benchmarks.fleet.owners import owner_tree
from benchmarks.fleet.recipe import CHAIN, HOURS, ODD, Recipe
from jobtree.cluster.statefile import StateFile
from jobtree.world.tables.snapshot import take
from tests.support import invariants
from tests.support.documents import Document
from tests.support.effort import examples

BASE = Recipe(gpus=400, pending=40, owners=20, running=0.85)


def objects(recipe: Recipe = BASE, **changes: object) -> list[Document]:
    return list(manifests(fleet.build(msgspec.structs.replace(recipe, **changes))))


def test_one_recipe_gives_one_fleet() -> None:
    first, again, other = objects(), objects(), objects(seed=2)

    assert first == again
    assert first != other


@examples(8)
@given(
    gpus=st.sampled_from([64, 260, 1000]),
    budgets=st.sampled_from(["family", "private"]),
    grain=st.sampled_from([CHAIN, ODD]),
    seed=st.integers(1, 1000),
)
def test_what_runs_is_legal(gpus: int, budgets: str, grain: object, seed: int) -> None:
    found = objects(gpus=gpus, budgets=budgets, grain=grain, seed=seed)

    invariants.check(found, found, fleet.AT)


def test_caps_hold_with_subtrees_aggregates_and_loans() -> None:
    world = fleet.build(msgspec.structs.replace(BASE, gpus=2000, seed=3))

    over = [
        (envelope.owner, envelope.name)
        for budget in world.treasury.budgets.values()
        for envelope in budget.envelopes
        for limit in [*envelope.limits, envelope.loans]
        if limit.gpus is not None and limit.held2 > 2 * limit.gpus
    ]

    assert over == []


def test_as_full_and_as_wanted_as_asked_for() -> None:
    found = objects(gpus=2000, pending=200)
    held = Counter(
        lease["spec"]["slice"]["role"]
        for lease in found
        if lease["kind"] == "Lease"
        for _ in lease["spec"]["slice"]["nodes"]
    )
    pending = [run for run in found if run["kind"] == "Run" and "status" not in run]

    assert (held["Active"], len(pending)) == (1700, 200)


def test_gangs_of_private_budgets_are_a_third_to_two_thirds_of_a_purse() -> None:
    found = objects(gpus=4000, pending=200, budgets="private", running=0.0)
    purses = {
        (budget["spec"]["owner"], envelope["flavor"]): envelope["concurrency"]
        for budget in found
        if budget["kind"] == "Budget" and len(budget["spec"]["envelopes"]) == 1
        for envelope in budget["spec"]["envelopes"]
    }
    shares = [
        run["spec"]["resources"]["totalGPUs"] / purse
        for run in found
        if run["kind"] == "Run"
        and (purse := purses.get((run["spec"]["owner"], run["spec"]["resources"]["gpuType"])))
        and run["spec"]["resources"]["totalGPUs"] > 16
    ]

    assert shares != []
    assert [share for share in shares if not 0.3 <= share <= 0.7] == []


def test_odd_sizes_divide_no_node_evenly() -> None:
    found = objects(gpus=4000, pending=200, grain=ODD)
    groups = {run["spec"].get("locality", {}).get("groupGPUs", 0) for run in found if run["kind"] == "Run"}

    assert groups - {0} <= set(ODD.groups)
    assert groups & set(ODD.groups)


def test_the_policy_is_written_where_it_is_not_the_default() -> None:
    policies = [each["spec"] for each in objects(ages=HOURS, deadline=1) if each["kind"] == "Policy"]

    assert policies == [{"age": {"unit": "3600s", "cap": "259200s"}, "solver": {"deadline": "1s"}}]
    assert [each for each in objects() if each["kind"] == "Policy"] == []


def test_cohorts_hold_what_kueues_benchmark_gives_them() -> None:
    found = objects(gpus=800, pending=1000, budgets="cohorts", running=0.0)
    quota = [
        envelope["concurrency"]
        for each in found
        if each["kind"] == "Budget"
        for envelope in each["spec"]["envelopes"]
        if envelope["name"] == "quota"
    ]
    sizes = Counter(each["spec"]["resources"]["totalGPUs"] for each in found if each["kind"] == "Run")

    assert quota == [20] * 30
    assert sorted(sizes) == [1, 5, 20]


@pytest.mark.parametrize("count", [1, 5, 20, 100, 200])
def test_owners_have_four_levels(count: int) -> None:
    levels = owner_tree(count, Dice("owners"))

    assert [all(owner.count(":") == depth for owner in level) for depth, level in enumerate(levels, start=1)] == [
        True
    ] * 4
    assert {owner.rpartition(":")[0] for level in levels[1:] for owner in level} <= {
        o for level in levels for o in level
    }


@pytest.mark.parametrize("budgets", ["family", "private", "cohorts"])
def test_every_object_is_read(budgets: str, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.write_fleet(path, msgspec.structs.replace(BASE, budgets=budgets, ages=HOURS))
    kinds = Counter(item["kind"] for item in orjson.loads(path.read_bytes())["items"])

    snapshot = take(StateFile(path, fleet.AT).read())

    rows = {name: table.num_rows for name, table in snapshot.tables.items()}
    assert (rows["nodes"], rows["budgets"], rows["runs"], rows["leases"], rows["quarantine"]) == (
        kinds["Node"],
        kinds["Budget"],
        kinds["Run"],
        kinds["Lease"],
        0,
    )
    assert int(snapshot.policy.spec.age.unit) == HOURS.unit
