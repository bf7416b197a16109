"""Promises hold still (spec §5): they are kept, or say why not; what nothing happened to does not move."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.check import check
from planner.effort import USUAL, Effort
from tests.forecast.busy import Played, Script, played, scripts
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.worlds import Cycle, World

MANY = Effort(exact=1)
"""As where many runs wait: equal ones are of one type, and all dates are of two tiers."""


def is_quiet(cycle: Played) -> bool:
    """Did nobody do anything, and the cycle neither start nor end anything?"""
    found = cycle.plan
    return not (cycle.happened or found.changed == found.at or found.leases or found.closures or found.segments)


@pytest.mark.slow
@examples(25)
@given(script=scripts())
def test_promises_are_kept_or_their_moves_have_a_cause_over_twenty_cycles(script: Script) -> None:
    for cycle in played(script):
        assert [str(each) for each in check(cycle.before, cycle.plan)] == []


@pytest.mark.slow
@examples(25)
@given(script=scripts(estimates=False), effort=st.sampled_from([USUAL, MANY]))
def test_what_nothing_happened_to_does_not_move(script: Script, effort: Effort) -> None:
    for before, cycle in pairwise(played(script, effort=effort)):
        if is_quiet(before) and is_quiet(cycle):
            assert (cycle.plan.promises, cycle.plan.reservations, cycle.plan.lapsed) == ([], [], [])


def test_a_promise_is_no_reason_why_its_own_run_waits() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).budget("org:b", 8)
    world.run("first", 8, limit="2d").run("next", 8, owner="org:b")
    first, second = (
        [(wait.name, wait.reason, wait.message) for wait in world.cycle(at).plan.waits] for at in ("+0s", "+1m")
    )

    assert first == [("next", "CapacityShort", "Asks for 8 GPUs: 8 GPUs would have to be freed in d1.")]
    assert second == first


def test_in_a_quiet_cycle_no_victim_of_a_standing_promise_is_promised_to_another() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).budget("org:b", 16)
    world.run("victim", 8).old()
    world.run("small", 2, owner="org:b").run("large", 8, owner="org:b")
    promised = [[each.name for each in world.cycle(at).plan.reservations] for at in ("+0s", "+1m", "+2m")]

    assert promised == [["small-20260101t000000z"], [], []]


def test_nobody_is_promised_a_start_in_maintenance_by_cuts() -> None:
    window = {"selector": {"fabric.domain": "A"}, "start": "2026-01-01T00:10:00Z", "end": "2026-01-01T01:00:00Z"}
    world = World().domain("A").domain("B").budget("org:a", 24)
    world.policy(maintenance=[window], reservations={"patience": "10m"})
    world.run("busy", 8, limit="3h", locality={"selector": {"fabric.domain": "B"}})
    world.run("short", 8, limit="8m", locality={"selector": {"fabric.domain": "A"}})
    world.cycle()
    world.run("waits", 8, limit="7m", created="+1m")  # at now + notice A is free, and shut
    assert world.cycle("+1m").status("waits")["earliestStart"] == "2026-01-01T01:00:00Z"
    world.cycle("+8m")
    assert world.cycle("+1h").running == ["busy", "waits"]


def test_width_that_an_older_promise_could_have_moves_no_younger_one() -> None:
    """From 00:28 on `older` could be paid for 4 GPUs, as what was before it started early; `last` needs 2 of them."""
    world = World().domain("a", nodes=3, gpus=4).domain("b", nodes=3, gpus=4)
    world.policy(reservations={"patience": "2h", "notice": "5m"})
    world.budget("org", 14, start="2026-01-01T01:12:00Z").budget("org:a", 4, start="2026-01-01T00:21:00Z").budget(
        "org:b", 3
    )
    grows: dict[str, Any] = {"by": 2, "pods": 1, "malleable": {"minTotalGPUs": 2, "maxTotalGPUs": 6, "stepGPUs": 2}}
    lent = {"allowBorrow": True, "sponsors": ["org", "org:a", "org:b"]}
    world.run("runs", 2).run("first", 4, pods=2, owner="org:b", limit="7m")
    world.run("second", 2, limit="7m", funding=lent, **grows).run("older", 4, limit="20m", owner="org", **grows)
    world.run("last", 2, owner="org", pods=1)
    told = dates(world.cycle())

    assert (told["older"], told["last"]) == ("2026-01-01T00:28:00Z", "2026-01-01T00:35:00Z")
    assert {**dates(world.cycle("+21m")), "first": None, "second": None} == {
        "first": None,
        "second": None,
        "older": "2026-01-01T00:28:00Z",
        "last": "2026-01-01T00:28:00Z",
    }
    assert world.cycle("+28m").running == ["last", "older", "runs"]


def dates(cycle: Cycle) -> dict[str, str]:
    """When each promised run starts."""
    return {each["spec"]["runRef"]["name"]: each["status"]["earliestStart"] for each in cycle.all("Reservation")}


@pytest.mark.parametrize("at", ["+40m", "+41m", "+1h"])
def test_what_is_due_starts_before_a_later_promise_that_counts_on_its_estimated_end(at: str) -> None:
    """Its end is not sure, but it was promised first: what holds the node after it is no reason to let it wait."""
    world = World().node("n", 4).budget("org:a", 64)
    world.run("busy", 4, limit="40m").cycle("+0s")
    world.run("half", 2, created="+1m", limit="90m")
    world.run("quick", 1, created="+1m", runtime={"expected": "9m"}).run("last", 2, created="+61s", limit="1h")
    told = world.cycle("+2m")

    assert [told.status(run)["earliestStart"] for run in ("half", "quick", "last")] == [
        moment("+40m"), moment("+40m"), moment("+49m"),
    ]  # fmt: skip
    assert world.cycle(at).running == ["half", "quick"]
