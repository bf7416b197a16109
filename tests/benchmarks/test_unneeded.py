"""A cut is not needless where what could do without it would take room that is promised to others for later."""

from dataclasses import replace

from benchmarks.streams.unneeded import Cut, unneeded
from jobtree.cluster.statefile import StateFile
from tests.support.times import unix
from tests.support.worlds import World


def test_room_that_a_later_promise_holds_spares_nobody() -> None:
    """4 GPUs of a01 are free, and promised to `later` with the other 4 that `short` leaves: so `due` draws `old`."""
    world = World().domain("A").domain("B").budget("org:v", 99).budget("org:a", 99)
    world.run("old", 8, owner="org:v").run("short", 4, owner="org:v", limit="26h").old()
    world.run("later", 8, owner="org:v").cycle("-1m")
    world.run("due", 4).cycle()
    before = StateFile(world.save("+15m"), unix("+15m")).read()
    plan = world.cycle("+15m").plan
    alone = replace(before, reservations=tuple(each for each in before.reservations if "due" in each.name))
    room, domain = {"A": 8, "B": 8}, {"a01": "A", "b01": "B"}

    assert unneeded(room, domain, before, plan) == []
    assert unneeded(room, domain, alone, plan) == [Cut("Lottery", ("default", "old"), None, promised=True)]
