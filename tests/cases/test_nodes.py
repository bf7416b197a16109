# ruff: noqa: N802 -- test names are case ids
"""Nodes that fail or are in maintenance, as far as it is built: no swap onto spares yet (L2, L3, L6, L15, T10)."""

import pytest

from tests.support.worlds import World


def on_one_node(**run: object) -> World:
    world = World().node("n").budget("org:a", 8).run("r", 8, **run)  # type: ignore[arg-type]  # fields as they come
    assert world.cycle().running == ["r"]
    return world.delete("Node", "n")


def test_L2_a_run_with_a_checkpoint_returns_with_its_node() -> None:
    world = on_one_node(runtime={"checkpoint": "10m"})
    cycle = world.cycle("+1m")
    assert cycle.phases == {"r": "Pending"}
    assert [row.closure for row in cycle.leases("r")] == ["NodeFailure"]

    cycle = world.node("n").cycle("+2m")
    assert cycle.phases == {"r": "Running"}


def test_L3_without_a_checkpoint_it_has_failed() -> None:
    assert on_one_node().cycle("+1m").phases == {"r": "Failed"}


@pytest.mark.parametrize(("nodes", "silent", "fails"), [(10, 3, False), (10, 1, True), (2, 1, True)])
def test_L15_too_many_at_once_are_not_believed(nodes: int, silent: int, fails: bool) -> None:
    world = World().domain("A", nodes=nodes).budget("org:a", 80)
    for number in range(nodes):
        world.run(f"r{number}", 8, runtime={"checkpoint": "10m"})
    assert len(world.cycle().running) == nodes
    for number in range(1, silent + 1):
        condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        world.edit("Node", f"a{number:02}", status={"conditions": [condition]})
    cycle = world.cycle("+6m")

    assert len(cycle.running) == nodes - (silent if fails else 0)
    assert any("NotReady" in warning.message for warning in cycle.plan.warnings) != fails


def test_T10_maintenance_lets_only_the_short_run_start() -> None:
    window = {"selector": {"region": "*"}, "start": "2026-01-01T02:00:00Z", "end": "2026-01-01T04:00:00Z"}
    world = World().policy(maintenance=[window]).node("n").budget("org:a", 16).run("long", 8, limit="3h")
    assert world.run("short", 8, limit="1h").cycle().running == ["short"]
    assert world.cycle("+4h").phases == {"long": "Running", "short": "Failed"}
