"""Promises where many runs wait: made, held against, kept and cut for on fleets of any size (spec §5, §6)."""

import pytest

from planner.effort import Effort
from planner.planning import plan
from tests.cuts.test_activation import promises
from tests.support.times import moment, unix
from tests.support.worlds import World

OTHER = "A100-40GB"
"""A flavor beside `documents.FLAVOR`."""


@pytest.mark.slow
def test_on_5100_nodes_where_101_runs_wait_promises_are_made_held_activated_and_cut_for() -> None:
    """A gang waits for two nodes that free up hour by hour; a hundred more wait for one that nobody has to leave."""
    world = World().policy(reservations={"maxHeld": 2}).domain("A", nodes=2).node("x", domain="X", flavor=OTHER)
    for number in range(100):
        world.domain(f"E{number}", nodes=51, flavor="L40S")
    world.budget("org:a", 64).budget("org:v", 8, flavor=OTHER).budget("org:w", 8, flavor=OTHER)
    there = {"resources": {"gpuType": OTHER}}
    world.run("victim", 8, owner="org:v", spec=there)
    world.cycle("-24h")
    world.run("first", 8, limit="1h").run("second", 8, limit="2h").run("gang", 16, by=8, limit="6h")
    for number in range(100):
        world.run(f"w{number:02}", 8, owner="org:w", limit="1h", spec=there)
    promised = world.cycle()
    told = {run: (status["earliestStart"], status["state"]) for run, status in promises(promised).items()}
    cut = world.cycle("+15m")
    world.run("short", 8, limit="30m", created="+50m").run("open", 8, created="+50m")
    passed, kept = world.cycle("+1h"), world.cycle("+2h")

    assert told == {"gang": (moment("+2h"), "Pending"), "w00": (moment("+15m"), "Pending")}
    assert promised.status("victim")["killProbability"] == 1
    assert (cut.started, [(lease.run, lease.closure) for lease in cut.leases("victim")]) == (
        ["w00"], [("victim", "Lottery")],
    )  # fmt: skip
    assert passed.started == ["short"]
    assert (kept.started, promises(kept)["gang"]["state"]) == (["gang", "w01"], "Activated")


def test_promises_at_more_times_than_are_looked_at_stand_where_they_were_told() -> None:
    """Twenty nodes free up minute by minute, each promised to somebody; and again after that."""
    world = World().domain("A", nodes=20).budget("org:a", 400)
    for number in range(20):
        world.run(f"old{number:02}", 8, limit=f"{120 + number}m")
    world.cycle()
    for number in range(30):
        world.run(f"new{number:02}", 8, limit="3h", created="+5m")
    first = world.cycle("+10m")
    world.run("late", 8, created="+20m")
    again = plan(world.snapshot("+30m"), unix("+30m"), Effort(exact=1))

    assert len({status["earliestStart"] for status in promises(first).values()}) > 12
    assert [each.name for each in again.promises] == []


def test_a_short_start_by_cuts_stands_at_a_moment_by_which_it_has_ended() -> None:
    """Of 21 promised times two are looked at, and the run that is due first lasts five minutes."""
    world = World().domain("A", nodes=20).node("x", domain="X", flavor=OTHER).policy(lottery={"term": "10m"})
    world.budget("org:a", 400).budget("org:v", 8, flavor=OTHER).budget("org:w", 8, flavor=OTHER)
    there = {"resources": {"gpuType": OTHER}}
    world.run("victim", 8, owner="org:v", spec=there)
    for number in range(20):
        world.run(f"old{number:02}", 8, limit=f"{120 + number}m")
    world.cycle()
    world.run("short", 8, owner="org:w", limit="5m", spec=there, created="+5m")
    for number in range(20):
        world.run(f"new{number:02}", 8, limit="3h", created="+5m")

    first = promises(world.cycle("+10m"))
    again = plan(world.snapshot("+12m"), unix("+12m"), Effort(exact=0, fewest_moments=2, moments_of_many=2))

    assert (first["short"]["earliestStart"], len(first)) == (moment("+25m"), 21)
    assert [each.name for each in again.promises] == []
