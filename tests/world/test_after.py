"""A plan carried out on the snapshot alone gives the snapshot that the carried-out state file gives."""

import pytest

from jobtree.world.tables.after import after
from jobtree.world.tables.columns import replaced
from tests.support.worlds import World


def busy() -> World:
    """Starts, loans, spares, endings of every kind, a run that waits, one on CPUs and one that turns unfunded."""
    return (
        World()
        .domain("A", nodes=3)
        .domain("B", nodes=3)
        .policy(creditRates={"H100-80GB": 2.25})
        .budget("org:a", 16, perRun={"defaultTime": "30h"})
        .budget("org:b", 16, maxCredits=400, lending={"allow": True, "maxConcurrency": 8})
        .run("long", 8, spares=1)
        .run("limited", 4, limit="1h", owner="org:b", by=2)
        .run("borrows", 12, owner="org:c", funding={"allowBorrow": True, "sponsors": ["org:b"]}, by=2)
        .run("waits", 64)
        .run("ended", 4, owner="org:b")
        .run("gone", 2)
        .add({
            "apiVersion": "rq.davidlangworthy.io/v1", "kind": "Run", "metadata": {"name": "cpu"},
            "spec": {"owner": "org:a", "resources": {"pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}},
        })
    )  # fmt: skip


def changed(world: World, step: int) -> None:
    """What people do between cycles."""
    if step == 1:
        world.runs("complete", "ended", at="+10m").ok()
        world.runs("cancel", "gone").ok()
        world.edit("Budget", "org-a", spec={"envelopes": [{**ENVELOPE, "concurrency": 4}]})
    if step == 2:
        world.edit("Budget", "org-a", spec={"envelopes": [{**ENVELOPE, "concurrency": 40}]})
        world.run("late", 4, created="+15m")


ENVELOPE = {"name": "gpus", "flavor": "H100-80GB", "selector": {"region": "*"}, "concurrency": 16}


def test_it_is_the_snapshot_of_the_file_after_the_cycle() -> None:
    world = busy()
    for step, at in enumerate(("+0s", "+10m", "+20m", "+2h")):
        world.save(at)
        changed(world, step)
        before = world.snapshot(at)
        cycle = world.cycle(at)
        foreseen, found = after(before, cycle.plan), world.snapshot(at)

        for name, table in found.tables.items():
            assert foreseen.tables[name].to_pylist() == table.to_pylist(), (at, name)
        assert foreseen.digest == found.digest
        assert foreseen.tables["leases"].schema == found.tables["leases"].schema


@pytest.mark.parametrize(
    ("column", "value"),
    [("state", "Suspended"), ("total", 5), ("sponsors", ["org:x"]), ("selector", {"a": "b"}), ("time_limit", None)],
)
def test_a_cell_is_replaced_and_nothing_else(column: str, value: object) -> None:
    world = World().run("one", 1, limit="1h").run("two", 2, limit="2h", funding={"sponsors": ["org:s"]})
    table = world.snapshot("+0s").tables["runs"]
    found = replaced(table, column, {1: value})

    rows, before = found.to_pylist(), table.to_pylist()
    kept = [(each["key"], each["value"]) for each in rows[1][column]] if column == "selector" else rows[1][column]
    assert kept == ([("a", "b")] if column == "selector" else value)
    assert (rows[0], {**rows[1], column: None}) == (before[0], {**before[1], column: None})
    assert found.schema == table.schema
