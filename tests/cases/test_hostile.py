# ruff: noqa: N802 -- test names are case ids
"""No object, and no thousand objects of one tenant, may take the cycle from the others (V3, V4)."""

from __future__ import annotations

import pytest

from tests.support.worlds import World


def chained(length: int, **fields: object) -> World:
    """Runs r0000, r0001, ..., each the parent of the next, all with a quota, and another tenant's run."""
    world = World().node("n").budget("org:a", 4).budget("org:b", 8).run("other", 4, owner="org:b")
    for number in range(length):
        up = {"parent": f"r{number - 1:04}"} if number else {}
        world.run(f"r{number:04}", 1, quota={"maxGPUs": 100}, **up, **fields)  # type: ignore[arg-type]  # as they come
    return world


def test_V3_runs_too_deep_in_a_tree_are_set_aside_in_one_warning_and_the_rest_is_planned() -> None:
    cycle = chained(100).cycle()
    said = [warning for warning in cycle.plan.warnings if "spec.parent" in warning.message]

    assert cycle.running == ["other", "r0000", "r0001", "r0002", "r0003"]
    names = ", ".join(f"r{number:04}" for number in range(64, 74))
    words = f"spec.parent: 36 runs lie deeper than 64 in the tree of default/r0000: {names}, 26 more"
    assert [(each.object, each.message) for each in said] == [
        ("Run default/r0064", f"{words}; allowed is a tree in which no run lies deeper than 64")
    ]
    assert cycle.phases["r0099"] == ""


def test_V3_what_runs_too_deep_already_stays() -> None:
    world = World().node("n").budget("org:a", 8).run("r0064", 4)
    assert world.cycle().running == ["r0064"]
    for number in range(64):
        up = {"parent": f"r{number - 1:04}"} if number else {}
        world.run(f"r{number:04}", 1, created="+1m", **up)  # type: ignore[arg-type]  # as they come
    world.state()
    cycle = world.edit("Run", "r0064", spec={"parent": "r0063"}).cycle("+1m")

    assert cycle.phases["r0064"] == "Running"
    assert [lease.open for lease in cycle.leases("r0064")] == [True]
    assert len(cycle.running) == 5


@pytest.mark.parametrize("relation", ["parent", "follow"])
def test_V4_a_circle_is_one_warning(relation: str) -> None:
    world = World().node("n").budget("org:b", 8).run("other", 4, owner="org:b")
    for number in range(50):
        up = f"r{(number - 1) % 50:02}"
        world.run(f"r{number:02}", 1, **({"parent": up} if relation == "parent" else {"follow": {"after": [up]}}))
    cycle = world.cycle()
    said = [warning.message for warning in cycle.plan.warnings if "makes a cycle" in warning.message]

    assert cycle.running == ["other"]
    assert len(said) == 1
    assert said[0].count(" → ") == 11
    assert "40 more" in said[0]
    assert world.runs("state", "--all").ok().err.count("makes a cycle") == 1
    assert "makes a cycle" in world.runs("explain", "r33").refused()
