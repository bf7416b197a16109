"""Work that is unfunded by its own choice gives way to funded starts (spec §6)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

from tests.support.times import moment
from tests.support.worlds import World

FREE: dict[str, Any] = {"funding": {"opportunistic": True}}


def test_T8_opportunistic_work_gives_way_in_the_same_cycle() -> None:
    world = World().node("n").budget("org:f", 4).budget("org:w", 4)
    world.run("v", 4, owner="org:v", **FREE).run("f", 4, owner="org:f").cycle()
    cycle = world.run("w", 4, owner="org:w", created="+1m").cycle("+1m")
    assert cycle.phases == {"v": "Pending", "f": "Running", "w": "Running"}
    (lost,) = cycle.leases("v")
    assert (lost.closure, lost.ended) == ("ReclaimUnfunded", moment("+1m"))
    assert (cycle.funding("w"), cycle.funding("f")) == ({"owned": 4}, {"owned": 4})


def test_its_spares_go_with_it() -> None:
    world = World().domain("A", gpus=[4, 4]).budget("org:w", 8)
    world.run("v", 4, owner="org:v", spares=1, **FREE).cycle()
    cycle = world.run("w", 6, owner="org:w", created="+1m").cycle("+1m")
    assert cycle.phases == {"v": "Pending", "w": "Running"}
    assert [(lost.closure, lost.ended) for lost in cycle.leases("v")] == [("ReclaimUnfunded", moment("+1m"))] * 2
