"""Benchmark fleets are legal, alike for one seed, and shaped as they say."""

from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import fleet
from benchmarks.fleet.dice import Dice
from benchmarks.fleet.manifests import manifests
from benchmarks.fleet.owners import owner_tree
from jobtree.cluster.statefile import StateFile
from jobtree.world.snapshot import take
from tests.support import invariants
from tests.support.documents import Document


def objects(gpus: int, seed: int = 1) -> list[Document]:
    return list(manifests(fleet.build(gpus, seed=seed)))


def test_one_seed_gives_one_fleet() -> None:
    first, again, other = objects(400), objects(400), objects(400, seed=2)

    assert first == again
    assert first != other


@settings(max_examples=5)
@given(gpus=st.sampled_from([64, 260, 1000]), seed=st.integers(1, 1000))
def test_what_runs_is_legal(gpus: int, seed: int) -> None:
    found = objects(gpus, seed)

    invariants.check(found, found, fleet.AT)


def test_caps_hold_with_subtrees_aggregates_and_loans() -> None:
    world = fleet.build(2000, seed=3)

    over = [
        (envelope.owner, envelope.name)
        for budget in world.treasury.budgets.values()
        for envelope in budget.envelopes
        for limit in [*envelope.limits, envelope.loans]
        if limit.gpus is not None and limit.held2 > 2 * limit.gpus
    ]

    assert over == []


def test_as_full_and_as_wanted_as_asked_for() -> None:
    found = objects(2000)
    held = Counter(
        lease["spec"]["slice"]["role"]
        for lease in found
        if lease["kind"] == "Lease"
        for _ in lease["spec"]["slice"]["nodes"]
    )
    pending = [run for run in found if run["kind"] == "Run" and "status" not in run]

    assert (held["Active"], len(pending)) == (1700, 200)


@pytest.mark.parametrize("count", [1, 5, 20, 100, 200])
def test_owners_have_four_levels(count: int) -> None:
    levels = owner_tree(count, Dice("owners"))

    assert [all(owner.count(":") == depth for owner in level) for depth, level in enumerate(levels, start=1)] == [
        True
    ] * 4
    assert {owner.rpartition(":")[0] for level in levels[1:] for owner in level} <= {
        o for level in levels for o in level
    }


def test_every_object_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.write_fleet(path, 400)
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
