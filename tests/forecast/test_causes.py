"""A promise that moves says why, as far as the facts tell it (spec §5)."""

from typing import Any

import pytest

from tests.support.times import moment
from tests.support.worlds import World

LIMITED: dict[str, Any] = {"limit": "10h"}
EXPECTED: dict[str, Any] = {"limit": "10h", "runtime": {"expected": "10m"}}


def moves(world: World, at: str) -> dict[str, list[tuple[str, str]]]:
    """(new time, cause) of each move, by run, after a cycle."""
    world.cycle(at)
    return {
        each["spec"]["runRef"]["name"]: [
            (move["earliestStart"], move["cause"]) for move in each["status"].get("history", [])
        ]
        for each in world.state().all("Reservation")
    }


def promised() -> World:
    """Run w is promised d01 in half an hour; d02 is busy for ten."""
    world = World().domain("d", 2).budget("org:a", 64)
    world.run("short", 8, limit="30m").run("long", 8, limit="10h").cycle("+0s")
    world.run("w", 8, created="+1m", **LIMITED).cycle("+2m")
    return world


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"spec": {"unschedulable": True}}, "is cordoned"),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "is not Ready"),
        (None, "is gone"),
    ],
)
def test_a_node_that_is_lost(change: dict[str, Any] | None, lost: str) -> None:
    world = promised()
    node = world.state().all("Reservation")[0]["status"]["intendedSlice"]["nodes"][0]
    if change is None:
        world.delete("Node", node)
    else:
        world.edit("Node", node, **change)
    assert moves(world, "+3m") == {"w": [("2026-01-01T10:00:00Z", f"Node {node} {lost}.")]}


def test_an_older_run_that_was_given_the_room() -> None:
    """Of three nodes the one that was to be free first is not: the older run has the other two."""
    world = World().domain("d", 3).budget("org:a", 64)
    world.run("one", 8, limit="30m").run("late", 8, **EXPECTED).run("three", 8, limit="30m").cycle("+0s")
    world.run("old", 16, by=8, created="+1m", **LIMITED).run("young", 8, created="+2m", **LIMITED)
    world.cycle("+2m")
    assert moves(world, "+11m") == {
        "old": [
            ("2026-01-01T00:30:00Z", "default/late was expected to end at 2026-01-01T00:10:00Z and is still on d02.")
        ],
        "young": [("2026-01-01T10:00:00Z", "Its room was given to default/old, which is older.")],
    }


def test_a_run_that_did_not_end() -> None:
    world = World().node("n").budget("org:a", 64)
    world.run("late", 8, **EXPECTED).cycle("+0s")
    world.run("w", 8, created="+1m", **LIMITED).cycle("+2m")
    cause = "default/late was expected to end at 2026-01-01T00:10:00Z and is still on n."
    assert moves(world, "+11m") == {"w": [("2026-01-01T10:00:00Z", cause)]}
    said = f"  2026-01-01T00:11:00Z  now 2026-01-01T10:00:00Z: {cause}"
    assert said in world.runs("explain", "w", at="+12m").ok().out.splitlines()


def test_a_run_that_did_not_end_where_money_is_what_it_waits_for() -> None:
    """Its window is still to open, and by then there is room elsewhere."""
    world = World().domain("a").domain("b").budget("org:a", 64).budget("org:w", 8, start=moment("+1h"))
    for name, runtime in (("a", {"timeLimit": "10h"}), ("b", {"expected": "10m"})):
        world.run(name, 8, locality={"selector": {"fabric.domain": name}}, runtime=runtime)
    world.run("w", 8, owner="org:w").cycle("+0s")
    world.runs("complete", "a", at="+5m").ok()
    world.cycle("+5m")
    cause = "default/b was expected to end at 2026-01-01T00:10:00Z and is still on b01."
    assert moves(world, "+11m") == {"w": [("2026-01-01T01:00:00Z", cause)]}
