"""A part of a node that a promise needs stays nobody's, also where a later promise needs the rest."""

import pytest

from tests.support.times import moment
from tests.support.worlds import Cycle, World


def promised() -> World:
    """6 GPUs of the node are promised at +1h, its 2 others at +2h."""
    world = World().node("n").budget("org:a", 8, start=moment("+1h")).budget("org:b", 8, start=moment("+2h"))
    world.budget("org:c", 8)
    world.run("first", 6, owner="org:a", limit="10h").run("second", 2, owner="org:b", limit="10h")
    assert world.cycle().phases == {"first": "Pending", "second": "Pending"}
    return world


def after(world: World, gpus: int, limit: str) -> tuple[Cycle, Cycle]:
    """With a run that comes at +5m: the cycles of then and of +1h."""
    world.run("late", gpus, owner="org:c", limit=limit, created="+5m")
    return world.cycle("+5m"), world.cycle("+1h")


@pytest.mark.parametrize(
    ("gpus", "limit", "starts"),
    [(8, "90m", False), (3, "90m", False), (8, "50m", True), (2, "90m", True), (2, "3h", False), (1, "115m", True)],
)
def test_who_does_not_surely_end_before_takes_none_of_it(gpus: int, limit: str, starts: bool) -> None:
    then, due = after(promised(), gpus, limit)

    assert then.phases["late"] == ("Running" if starts else "Pending")
    assert due.phases["first"] == "Running"
