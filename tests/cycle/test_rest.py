"""A live world at rest leaves no Plan of its own; any write beside it, or another thing to say, makes one."""

from collections.abc import Callable

import pytest

from exporters.lake import rest
from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import Time
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import take
from planner import plan
from tests.support.times import unix
from tests.support.worlds import World


def waiting() -> World:
    """One run waits for more than there is; two cycles have come and gone."""
    world = World().node("n").budget("org:a", 8).run("r", 16)
    world.cycle()
    world.cycle("+1m")
    return world


def next_writes(world: World, at: str) -> tuple[Intake, list[Write]]:
    """What a cycle at that time would write, on a cluster that has pods."""
    intake = StateFile(world.save(at), unix(at)).read()
    made = plan(take(intake, unix(at)), unix(at))
    return intake, writes_for(intake, made, planjson.encode(made), pods=True)


def test_the_same_again_is_no_plan() -> None:
    intake, writes = next_writes(waiting(), "+2m")
    last = rest.resting(intake, writes)
    assert last is not None
    assert last.name == "20260101t000100z"


@pytest.mark.parametrize(("minutes", "due"), [(2, False), (10, False), (11, True), (99, True)])
def test_the_last_plan_is_marked_every_ten_minutes(minutes: int, due: bool) -> None:
    intake, writes = next_writes(waiting(), f"+{minutes}m")
    last = rest.resting(intake, writes)
    assert last is not None
    at = unix(f"+{minutes}m")
    mark = Write("patch", Ref("Plan", "", last.name), {"status": {"observed": str(Time(at))}}, "status")
    assert list(rest.marked(last, at)) == ([mark] if due else [])


def test_a_change_makes_a_plan() -> None:
    changes: list[Callable[[World], World]] = [
        lambda world: world.run("small", 4, created="+90s"),
        lambda world: world.node("m"),
        lambda world: world.edit("Node", "n", spec={"unschedulable": True}),
        lambda world: world.budget("org:b", 8),
    ]
    for change in changes:
        world = waiting()
        change(world)
        assert rest.resting(*next_writes(world, "+2m")) is None


def test_a_plan_that_was_not_carried_out_is_no_rest() -> None:
    world = waiting()
    world.edit("Plan", "20260101t000100z", status={"phase": "Planned"})
    assert rest.resting(*next_writes(world, "+2m")) is None
