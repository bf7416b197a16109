"""An older promise is not put off for a younger one: what it loses to a wrong estimate it takes back from these."""

import pytest

import planner
from planner.effort import Effort
from tests.support.times import moment, unix
from tests.support.worlds import World


def told(world: World, at: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Minutes after the first cycle, and nodes, of each promise that stands after a cycle."""
    world.cycle(at)
    made = [each for each in world.state().all("Reservation") if each["status"]["state"] == "Pending"]
    return {
        each["spec"]["runRef"]["name"]: (
            (unix(each["status"]["earliestStart"]) - unix("2026-01-01T00:00:00Z")) // 60,
            tuple(each["status"]["intendedSlice"]["nodes"]),
        )
        for each in made
    }


@pytest.mark.parametrize("gang", [16, 8])
def test_a_wrong_estimate_puts_the_younger_promise_off(gang: int) -> None:
    """n1 and n3 are free in half an hour and n2, which was to be sooner, is not: the older run has what there is."""
    world = World().domain("d", 3).budget("org:a", 64)
    world.run("one", 8, limit="30m").run("late", 8, limit="10h", runtime={"expected": "10m"})
    world.run("three", 8, limit="30m")
    world.cycle("+0s")
    world.run("old", gang, by=8, limit="10h", created="+1m")
    world.run("young", 24 - gang, by=8, limit="10h", created="+2m")

    before, after = told(world, "+2m"), told(world, "+11m")

    assert {name: at for name, (at, _) in before.items()} == {"old": 30 if gang == 16 else 10, "young": 30}
    assert {name: at for name, (at, _) in after.items()} == {"old": 30, "young": 600}


def test_a_due_promise_that_cannot_start_is_dated_before_younger_ones() -> None:
    """The node is not free when it was to be: the next one is for who waits longest."""
    world = World().domain("d", 2).budget("org:a", 64)
    world.run("late", 8, limit="10h", runtime={"expected": "10m"}).run("two", 8, limit="30m")
    world.cycle("+0s")
    world.run("old", 8, limit="10h", created="+1m").run("young", 8, limit="10h", created="+2m")

    before, after = told(world, "+2m"), told(world, "+10m")

    assert {name: at for name, (at, _) in before.items()} == {"old": 10, "young": 30}
    assert {name: at for name, (at, _) in after.items()} == {"old": 30, "young": 600}


def test_a_lost_place_moves_the_youngest_promise_alone() -> None:
    """Whoever is between the one that lost its place and the youngest keeps time and node."""
    world = World().domain("d", 4).budget("org:a", 64)
    world.run("late", 8, limit="10h", runtime={"expected": "10m"})
    for name in ("two", "three", "four"):
        world.run(name, 8, limit="30m")
    world.cycle("+0s")
    for minute, name in enumerate(("old", "second", "third", "young"), 1):
        world.run(name, 8, limit="10h", created=f"+{minute}m")

    before, after = told(world, "+4m"), told(world, "+11m")

    assert {name: at for name, (at, _) in before.items()} == {"old": 10, "second": 30, "third": 30, "young": 30}
    kept = {name: before[name] for name in ("second", "third")}
    assert after == {"old": before["young"], **kept, "young": (600, before["old"][1])}


def test_of_promises_due_at_once_the_run_that_was_there_first_has_what_is_left() -> None:
    """Not the one whose name comes first."""
    world = World().node("n").node("o").budget("org:a", 64).run("x", 8, limit="1h").run("y", 8, limit="1h")
    world.cycle("+0s")
    world.run("old", 8, created="+1m").run("new", 8, created="+2m").cycle("+2m")

    cycle = world.edit("Node", "o", spec={"unschedulable": True}).cycle("+1h")

    assert cycle.phases == {"x": "Failed", "y": "Failed", "old": "Running", "new": "Pending"}


def test_money_that_is_held_for_a_younger_promise_keeps_no_older_one_that_is_due_from_its_cuts() -> None:
    """Both count on cuts, and what `new` takes of org:a's money comes free only with what is cut for it."""
    world = World().node("a", 4, domain="A").node("b", domain="B").policy(lottery={"term": "10m"})
    world.budget("org:a", 13, scope="subtree").budget("org:a:y", 8).budget("org:v", 3)
    world.run("y", 8, owner="org:a:y").run("v", 3, owner="org:v").cycle("-24h")
    world.run("old", 4).cycle("+0s")
    world.run("new", 4, limit="17m", created="+7m").cycle("+7m")

    cycle = world.cycle("+15m")

    assert cycle.phases == {"y": "Running", "v": "Failed", "old": "Running", "new": "Pending"}


def test_what_comes_free_early_is_promised_to_those_that_were_promised_late() -> None:
    world = World().node("n", 16).budget("org:a", 16)
    for number in range(16):
        world.run(f"r{number:02}", 1, limit="10h")
    world.cycle()
    for number in range(12):
        world.run(f"w{number:02}", 1, limit="1h", created="+0s")
    world.cycle("+1m")
    for number in range(16):
        world.edit("Run", f"r{number:02}", metadata={"annotations": {"rq.davidlangworthy.io/eta": moment("+2h")}})
    for number in range(8):
        world.run(f"y{number}", 1, limit="1h", created="+59m")
    plan = planner.plan(world.snapshot("+1h"), unix(moment("+1h")), Effort(exact=0))

    starts = {each.name[:3]: each.status.earliest_start for each in plan.promises}
    assert starts == {f"w{number:02}": unix(moment("+2h")) for number in range(12)}
    made = sorted(int(each.spec.earliest_start) for each in plan.reservations)
    assert made == [unix(moment("+2h"))] * 4 + [unix(moment("+3h"))] * 4


@pytest.mark.parametrize("room", ["free", "to be cut"])
def test_nobody_is_promised_money_of_an_older_promise_beyond_its_start(room: str) -> None:
    """After `notice` there is money for six hours of the young, but for five alone nobody else is promised it."""
    world = World().domain("d", 2 if room == "to be cut" else 4).budget("org:a", 12).budget("org:v", 8)
    if room == "to be cut":
        world.run("victim", 8, owner="org:v").cycle("-24h")
    world.run("first", 4, limit="5h").cycle("+0s")
    world.run("old", 10, limit="10h", created="+30s").cycle("+1m")
    world.run("young", 5, limit="6h", created="+90s")

    minutes = {name: at for name, (at, _) in told(world, "+2m").items()}

    assert minutes == {"old": 5 * 60, "young": 15 * 60}


@pytest.mark.parametrize(("limit", "due"), [("1h", 60), (None, 16)])
def test_a_gang_of_malleable_runs_has_the_date_at_which_it_fits_at_least_widths(limit: str | None, due: int) -> None:
    """At its widest one member alone would fill the node: the gang was not dated, or not held where cuts start it."""
    world = World().domain("d", 1).budget("org:a", 64).budget("org:v", 8).budget("org:z", 8)
    world.run("first", 8, owner="org:v", limit=limit).cycle("-24h" if limit is None else "+0s")
    wide = {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}
    for name, created in (("one", "+10s"), ("two", "+11s")):
        world.run(name, 8, created=created, malleable=wide, gang={"name": "g", "size": 2})
    world.run("young", 8, owner="org:z", limit="10m", created="+20s")

    before, after = told(world, "+1m"), told(world, "+2m")

    assert {name: before[name][0] for name in ("one", "two")} == {"one": due, "two": due}
    assert {name: after[name][0] for name in ("one", "two")} == {"one": due, "two": due}
    assert "young" not in after or after["young"][0] > due


def test_a_younger_promise_moves_up_beside_an_older_one_by_cuts_whatever_touches_that() -> None:
    """`short` comes and goes on the node on which `old` waits for the victim: `young` could have its money then."""
    world = World().node("n", domain="N").node("o", domain="O")
    world.policy(reservations={"patience": "10m"}, lottery={"term": "10m"})
    world.budget("org:a", 8).budget("org:v", 12).budget("org:s", 4)
    world.run("victim", 4, owner="org:v").run("busy", 8, owner="org:v", limit="40h").cycle("-24h")
    world.run("old", 8, limit="10m", created="-1m").cycle("+0s")

    first = told(world.run("young", 4, limit="1h", created="+1m"), "+1m")
    world.run("short", 4, owner="org:s", limit="5m", created="+5m")
    others = [told(world, at) for at in ("+5m", "+10m")]
    cycle = world.cycle("+15m")

    assert first == {"old": (15, ("n",)), "young": (25, ("n",))}
    assert others == [first, first]
    assert cycle.phases["old"] == "Running"


def test_nobody_is_promised_money_that_comes_free_and_is_an_older_ones_later() -> None:
    """From half an hour on there is money for `new`, and from an hour on it is all of the older."""
    world = World().domain("d", 4).budget("org:a", 8)
    world.run("r", 4, limit="30m").run("q", 4, limit="1h").cycle("+0s")
    world.run("old", 8, created="+1m").run("new", 4, created="+2m")

    assert {name: at for name, (at, _) in told(world, "+2m").items()} == {"old": 60}
