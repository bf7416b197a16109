# ruff: noqa: N802 -- test names are case ids
"""A run whose upstream failed (spec §7 Follow): Failed now, or after the grace; cleared by a good one in its place."""

from typing import Any

from tests.support.times import moment
from tests.support.worlds import World


def after_a(**follow: Any) -> World:
    """b follows a, which is cancelled at +1m."""
    world = World().domain("A", nodes=2).budget("org:a", 16).run("a", 8).run("b", 8, follow={"after": ["a"], **follow})
    assert world.cycle().phases == {"a": "Running", "b": "Waiting"}
    world.runs("cancel", "a", at="+1m").ok()
    return world


def test_L7_with_fail_it_fails_in_the_cycle_that_sees_it() -> None:
    world = after_a(onUpstreamFailure="fail")
    cycle = world.cycle("+2m")
    assert cycle.phases == {"a": "Failed", "b": "Failed"}
    failed = cycle.condition("b", "Failed")
    assert (failed["reason"], failed["message"]) == ("UpstreamFailed", "a, which it follows, failed.")
    assert world.cycle("+3m").plan.runs == []


def test_L7_with_wait_it_fails_after_the_grace() -> None:
    world = after_a(upstreamFailureGrace="10m")
    cycle = world.cycle("+2m")
    assert (cycle.phases["b"], cycle.status("b")["followDeadline"]) == ("Waiting", moment("+12m"))
    assert world.cycle("+11m").phases["b"] == "Waiting"
    assert world.cycle("+12m").phases["b"] == "Failed"


def test_L7_a_good_one_in_its_place_clears_that() -> None:
    world = after_a(upstreamFailureGrace="10m")
    world.cycle("+2m")
    world.delete("Run", "a").run("a", 8, created="+3m")
    cycle = world.cycle("+3m")
    assert (cycle.phases, cycle.status("b").get("followDeadline")) == ({"a": "Running", "b": "Waiting"}, None)
    world.runs("complete", "a", at="+20m").ok()
    assert world.cycle("+20m").phases == {"a": "Completed", "b": "Running"}
