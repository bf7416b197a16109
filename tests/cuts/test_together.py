"""Cuts for runs that start together, and for what opportunistic work is warned of (spec §1 ``gang``, §5, §6)."""

from typing import Any

import pytest

from tests.cuts.test_activation import closed, crowded, old_world, promises
from tests.support.times import moment
from tests.support.worlds import World

FREE: dict[str, Any] = {"funding": {"opportunistic": True}}
PAIR: dict[str, Any] = {"gang": {"name": "pair", "size": 2}}


def crowd(*names: str) -> World:
    """A domain that old runs of 8 fill."""
    world = old_world({"A": len(names)}, *sorted({*names, "w", "x"}))
    for name in names:
        world.run(name, 8, owner=f"org:{name}")
    world.old()
    return world


def test_a_gang_of_runs_is_promised_one_start_by_cuts() -> None:
    world = crowd("p", "q", "r")
    world.run("w1", 8, owner="org:w", **PAIR).run("w2", 8, owner="org:w", **PAIR)
    cycle = world.cycle()
    told = promises(cycle)
    assert {name: each["earliestStart"] for name, each in told.items()} == {"w1": moment("+15m"), "w2": moment("+15m")}
    assert told["w1"]["forecast"]["conflictSet"] == told["w2"]["forecast"]["conflictSet"]
    assert told["w1"]["intendedSlice"] != told["w2"]["intendedSlice"]
    chances = [float(cycle.status(name)["killProbability"]) for name in "pqr"]
    assert chances == pytest.approx([2 / 3] * 3, abs=1e-6)  # both promises name it, and are one draw
    assert world.cycle("+14m").running == ["p", "q", "r"]
    cycle = world.cycle("+15m")
    assert [cycle.phases[name] for name in ("w1", "w2")] == ["Running", "Running"]
    assert [reason for *_, reason in closed(cycle)] == ["Lottery", "Lottery"]
    assert {name: each["state"] for name, each in promises(cycle).items()} == {"w1": "Activated", "w2": "Activated"}
    assert world.cycle("+16m").plan.closures == []


def test_nobody_of_any_members_owner_is_drawn_for_its_gang() -> None:
    world = crowd("w", "q", "x", "r")
    world.run("a", 8, owner="org:w", **PAIR).run("b", 8, owner="org:x", **PAIR)
    world.cycle()
    assert closed(world.cycle("+15m")) == [("q", 0, "Lottery"), ("r", 0, "Lottery")]


def test_members_of_several_sizes_have_room_in_their_own_domains() -> None:
    world = World().domain("A", nodes=1, gpus=4).domain("B", nodes=1, gpus=8)
    for owner in "pqwx":
        world.budget(f"org:{owner}", 96)
    world.run("p", 4, owner="org:p", locality={"selector": {"fabric.domain": "A"}}).run("q", 8, owner="org:q").old()
    world.run("small", 4, owner="org:w", locality={"selector": {"fabric.domain": "A"}}, **PAIR)
    world.run("large", 8, owner="org:x", **PAIR)
    world.cycle()
    cycle = world.cycle("+15m")
    assert cycle.running == ["large", "small"]
    assert closed(cycle) == [("p", 0, "Lottery"), ("q", 0, "Lottery")]


def test_opportunistic_work_gives_way_to_a_gang() -> None:
    world = World().domain("A", nodes=2).budget("org:w", 16)
    world.run("v", 8, owner="org:v", **FREE).run("u", 8, owner="org:v", **FREE).cycle()
    world.run("w1", 8, owner="org:w", created="+1m", **PAIR).run("w2", 8, owner="org:w", created="+1m", **PAIR)
    cycle = world.cycle("+1m")
    assert cycle.running == ["w1", "w2"]
    assert [reason for *_, reason in closed(cycle)] == ["ReclaimUnfunded"] * 2


def noticed(**v: Any) -> World:
    """1 × 8 with opportunistic V, which has five minutes' notice; then funded W arrives."""
    world = World().node("n").budget("org:w", 8).policy(opportunistic={"notice": "5m"})
    world.run("v", 8, owner="org:v", **FREE, **v)
    world.cycle("-1h")
    return world.run("w", 8, owner="org:w")


def test_opportunistic_work_is_given_its_notice() -> None:
    world = noticed()
    cycle = world.cycle()
    assert (cycle.running, promises(cycle)["w"]["earliestStart"]) == (["v"], moment("+5m"))
    assert promises(cycle)["w"]["forecast"]["remedies"] == [
        {"run": "default/v", "action": "ReclaimUnfunded", "gpus": 8}
    ]
    assert float(cycle.status("v")["killProbability"]) == 1
    assert world.cycle("+4m").running == ["v"]
    cycle = world.cycle("+5m")
    assert cycle.phases == {"v": "Pending", "w": "Running"}
    assert closed(cycle) == [("v", 0, "ReclaimUnfunded")]


def test_a_natural_start_sooner_than_the_notice_cuts_no_opportunistic_work() -> None:
    world = noticed(limit="63m")
    cycle = world.cycle()
    assert promises(cycle)["w"]["earliestStart"] == moment("+3m")
    assert "conflictSet" not in promises(cycle)["w"]["forecast"]


def test_funded_work_is_not_drawn_at_the_notice_of_opportunistic_work() -> None:
    world = noticed().budget("org:f", 8)
    world.cycle()
    world.edit("Run", "v", spec={"state": "Cancelled"})
    cycle = world.run("f", 8, owner="org:f", created="+1m").cycle("+5m")
    assert cycle.phases["w"] == "Running"  # what it waited for ended by itself: it starts, and nothing is drawn
    assert [reason for *_, reason in closed(cycle) if reason == "Lottery"] == []


def test_a_promise_by_cuts_is_not_put_off_when_a_natural_start_comes_in_reach() -> None:
    world = crowded(limit="36h10m")
    assert promises(world.cycle())["w"]["earliestStart"] == moment("+15m")
    assert promises(world.cycle("+11m"))["w"]["earliestStart"] == moment("+15m")
    assert world.cycle("+15m").running == ["w"]


@pytest.mark.parametrize("limit", [None, "1h"])  # what was cut for one that is over does not come back
def test_a_start_in_what_others_cuts_leave_is_dated_with_these_and_stays_so(limit: str | None) -> None:
    world = old_world({"A": 1}, "p", "w", "x").policy(reservations={"notice": "5m"}).run("p", 8, owner="org:p")
    world.old()
    world.run("w", 4, owner="org:w", limit=limit).run("x", 4, owner="org:x", created="+1m").cycle()
    for minute in (1, 2):
        told = promises(world.cycle(f"+{minute}m"))
        assert {name: each["earliestStart"] for name, each in told.items()} == dict.fromkeys("wx", moment("+5m"))
        assert [each.get("history", []) for each in told.values()] == [[], []]
    assert world.cycle("+5m").running == ["w", "x"]


def test_nobody_is_cut_for_a_start_that_is_no_sooner_than_the_natural_one() -> None:
    world = old_world({"A": 1}, "p", "w").policy(lottery={"term": "60h"})
    world.run("p", 8, owner="org:p", limit="40h").old()
    world.run("w", 8, owner="org:w")
    for time in ("+0s", "+1m", "+2m"):
        told = promises(world.cycle(time))["w"]
        assert (told["earliestStart"], told.get("history", [])) == (moment("+16h"), [])
        assert "conflictSet" not in told["forecast"]


def test_one_for_which_a_node_was_cleared_may_lie_where_a_start_before_it_lay_better() -> None:
    world = World().policy(lottery={"term": "0s"}, reservations={"notice": "5m"})
    world.node("a", 3, labels={"of": "v"}).node("b", 2).node("c", 2, labels={"of": "k"})
    for owner in ("org:f", "org:k", "org:v", "org:w"):
        world.budget(owner, 8)
    world.run("v", 1, owner="org:v", locality={"selector": {"of": "v"}})
    world.run("k", 1, owner="org:k", locality={"selector": {"of": "k"}}).cycle("-1h")
    world.run("full", 5, owner="org:f", limit="25m").cycle("-20m")
    world.run("wide", 5, owner="org:w").run("late", 1, owner="org:k").cycle()

    due = world.cycle("+5m")

    assert due.running == ["k", "late", "wide"]  # on what v held wide has two chunks, not three, and late another node
