# ruff: noqa: N802 -- test names are case ids
"""A run whose upstream failed (spec §7 Follow): Failed now, or after the grace; cleared by a good one in its place."""

from typing import Any

import pytest

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


def test_L7_with_a_grace_of_nothing_it_fails_in_the_cycle_that_sees_it() -> None:
    assert after_a(upstreamFailureGrace="0s").cycle("+2m").phases == {"a": "Failed", "b": "Failed"}


def test_L7_a_good_one_in_its_place_clears_that() -> None:
    world = after_a(upstreamFailureGrace="10m")
    world.cycle("+2m")
    world.delete("Run", "a").run("a", 8, created="+3m")
    cycle = world.cycle("+3m")
    assert (cycle.phases, cycle.status("b").get("followDeadline")) == ({"a": "Running", "b": "Waiting"}, None)
    world.runs("complete", "a", at="+20m").ok()
    assert world.cycle("+20m").phases == {"a": "Completed", "b": "Running"}


def test_L7_a_run_whose_upstream_was_deleted_before_it_completed_fails_with_it() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("a", 8)
    world.run("now", 8, follow={"after": ["a"], "onUpstreamFailure": "fail"})
    world.run("later", 8, follow={"after": ["a"], "upstreamFailureGrace": "10m"})
    world.cycle()
    world.delete("Run", "a")
    cycle = world.cycle("+1m")
    assert cycle.phases == {"now": "Failed", "later": "Waiting"}
    assert cycle.condition("now", "Failed")["message"] == "a, which it follows, was deleted before it completed."
    assert cycle.status("later")["followDeadline"] == moment("+11m")
    assert world.cycle("+11m").phases["later"] == "Failed"


def test_L7_an_upstream_that_is_being_deleted_is_gone() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("a", 8)
    world.run("now", 8, follow={"after": ["a"], "onUpstreamFailure": "fail"})
    world.run("later", 8, follow={"after": ["a"], "upstreamFailureGrace": "10m"})
    world.cycle()
    world.edit("Run", "a", metadata={"deletionTimestamp": moment("+30s"), "finalizers": ["example.org/kept"]})
    cycle = world.cycle("+1m")
    assert [lease.closure for lease in cycle.leases("a")] == ["RunDeleted"]
    assert (cycle.phases["now"], cycle.phases["later"]) == ("Failed", "Waiting")
    assert cycle.condition("now", "Failed")["message"] == "a, which it follows, was deleted before it completed."
    assert cycle.status("later")["followDeadline"] == moment("+11m")
    assert world.cycle("+11m").phases["later"] == "Failed"


def test_L7_an_upstream_that_ends_while_it_is_being_deleted_is_told_by_its_end() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("a", 8).run("b", 8, follow={"after": ["a"]})
    world.cycle()
    world.edit("Run", "a", metadata={"deletionTimestamp": moment("+30s"), "finalizers": ["example.org/kept"]})
    world.runs("complete", "a", at="+20s").ok()
    assert world.cycle("+1m").phases == {"a": "Completed", "b": "Running"}


def test_L7_an_upstream_that_cannot_be_read_is_waited_for() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("a", 8)
    world.run("b", 8, follow={"after": ["a"], "onUpstreamFailure": "fail"})
    world.cycle()
    cycle = world.edit("Run", "a", spec={"locality": {"groupGPUs": "eight"}}).cycle("+1m")
    assert ([lease.closure for lease in cycle.leases("a")], cycle.phases["b"]) == ([None], "Waiting")


def test_L7_one_made_anew_clears_that() -> None:
    world = after_a(upstreamFailureGrace="10m")
    world.delete("Run", "a")
    assert world.cycle("+2m").status("b")["followDeadline"] == moment("+12m")
    cycle = world.run("a", 8, created="+3m").cycle("+3m")
    assert (cycle.phases, cycle.status("b").get("followDeadline")) == ({"a": "Running", "b": "Waiting"}, None)


@pytest.mark.parametrize("then", ["wait", "fail"])
def test_L7_a_completed_upstream_that_was_pruned_stays_completed(then: str) -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).policy(retention={"leases": "1h"}).run("a", 8).run("c", 8)
    world.run("b", 8, follow={"after": ["a", "c"], "onUpstreamFailure": then})
    world.cycle()
    world.runs("complete", "a", at="+10m").ok()
    world.cycle("+10m")
    world.cycle("+3h")
    world.delete("Run", "a").cycle("+4h")
    world.runs("complete", "c", at="+5h").ok()
    assert world.cycle("+5h").phases == {"b": "Running", "c": "Completed"}


def test_L7_an_upstream_that_was_never_there_is_waited_for() -> None:
    world = World().domain("A", nodes=1).budget("org:a", 8).run("b", 8, follow={"after": ["a"]})
    world.cycle()
    cycle = world.cycle("+2h")
    assert (cycle.phases, cycle.status("b").get("followDeadline")) == ({"b": "Waiting"}, None)
    assert world.run("a", 8, created="+3h").cycle("+3h").phases == {"a": "Running", "b": "Waiting"}


def test_L7_a_chain_fails_in_one_cycle_each_run_with_its_own_upstream() -> None:
    world = World().domain("A", nodes=1).budget("org:a", 8).run("a", 8)
    for name, above in {"d": "c", "c": "b", "b": "a"}.items():
        world.run(name, 8, follow={"after": [above], "onUpstreamFailure": "fail"})
    world.run("e", 8, follow={"after": ["c"], "upstreamFailureGrace": "10m"})
    world.run("f", 8, follow={"after": ["e"], "onUpstreamFailure": "fail"})
    world.cycle()
    world.runs("cancel", "a", at="+1m").ok()
    cycle = world.cycle("+2m")
    assert cycle.phases == {**dict.fromkeys("abcd", "Failed"), "e": "Waiting", "f": "Waiting"}
    assert {name: cycle.condition(name, "Failed")["message"] for name in "bcd"} == {
        "b": "a, which it follows, failed.",
        "c": "b, which it follows, failed.",
        "d": "c, which it follows, failed.",
    }
    assert cycle.status("e")["followDeadline"] == moment("+12m")
    assert world.cycle("+3m").plan.runs == []
    assert world.cycle("+12m").phases == dict.fromkeys("abcdef", "Failed")
