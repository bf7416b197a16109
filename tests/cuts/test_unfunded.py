"""Starts without money at their time, where the Policy lets them (spec §5: `onBudgetShortfall: startUnfunded`)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.check import check
from tests.forecast.busy import Script, played, scripts
from tests.support import documents as doc
from tests.support.drawing import Draw
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.worlds import Cycle, World


def told(cycle: Cycle) -> dict[str, str | None]:
    """What each run that waits is promised."""
    return {run: cycle.status(run).get("earliestStart") for run in cycle.waiting}


def shut(domain: str, start: str, end: str) -> dict[str, Any]:
    """Maintenance of a domain."""
    return {"selector": {"fabric.domain": domain}, "start": moment(start), "end": moment(end)}


def steps(least: int, most: int) -> dict[str, int]:
    """An elastic run's widths."""
    return {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": 2}


def unfunded(*maintenance: dict[str, Any]) -> World:
    world = World().domain("A").domain("B")
    return world.policy(reservations={"onBudgetShortfall": "startUnfunded"}, maintenance=maintenance)


def test_a_start_without_money_lies_where_none_of_its_payers_pays() -> None:
    world = unfunded().budget("org:a", 8, selector={"fabric.domain": "A"}, maxGPUHours=95).budget("org:b", 8)
    world.run("busy", 8, owner="org:b", locality={"selector": {"fabric.domain": "A"}}).cycle()

    assert told(world.run("r", 4, created="+1m").cycle("+1m")) == {"r": moment("+16m")}
    cycle = world.cycle("+16m")
    assert (cycle.running, cycle.funding("r")) == (["busy", "r"], {"unfunded": 4})


def test_a_start_without_money_is_promised_on_no_node_that_is_shut_then() -> None:
    """Whether nobody pays for the run at all, or too little; where all nodes are shut it has none."""
    for owner in ("org:a", "org:b"):
        both = [shut(domain, "+10m", "+1h") for domain in "AB"]
        world = unfunded(*both).budget("org:a", 8, maxGPUHours=1).run("r", 8, owner=owner, limit="8m")
        assert told(world.cycle()) == {"r": None}
        assert told(world.cycle("+1h")) == {"r": moment("+75m")}

        world = unfunded(both[0]).budget("org:a", 8, maxGPUHours=1).run("r", 8, owner=owner, limit="8m")
        assert told(world.cycle()) == {"r": moment("+15m")}
        assert [lease.nodes for lease in world.cycle("+15m").leases("r")] == [{"b01"}]


def test_a_start_without_money_leaves_its_room_to_nobody_else() -> None:
    world = unfunded().domain("C").budget("org:a", 8, maxGPUHours=1).budget("org:b", 16).budget("org:c", 16)
    world.run("v", 8, owner="org:b", locality={"selector": {"fabric.domain": "B"}})
    world.run("w", 8, owner="org:b", locality={"selector": {"fabric.domain": "C"}}).cycle("-24h")
    world.run("r", 8, created="+1s").run("s", 16, by=8, owner="org:c", created="+2s").run("t", 8, created="+3s")
    cycle = world.cycle("+1m")

    assert told(cycle) == {"r": moment("+16m"), "s": moment("+16m"), "t": None}


def test_what_starts_without_money_keeps_its_room_from_who_is_due_beside_it() -> None:
    """Be it that another one may grow, or that cuts for another one would take less there."""
    world = unfunded().budget("org:a", 8, maxGPUHours=0).domain("C", gpus=[4])
    on_c = {"selector": {"fabric.domain": "C"}}
    world.run("narrow", 2, locality=on_c)
    world.run("wide", 2, by=2, locality=on_c, resources={"totalGPUs": 4}, malleable=steps(2, 4)).cycle()
    assert {run: world.cycle("+15m").funding(run) for run in ("narrow", "wide")} == {
        "narrow": {"unfunded": 2},
        "wide": {"unfunded": 2},
    }

    world = unfunded().domain("C").budget("org:a", 8, maxGPUHours=1).budget("org:b", 16).budget("org:c", 16)
    world.run("v", 8, owner="org:b", locality={"selector": {"fabric.domain": "B"}})
    world.run("w", 8, owner="org:b", locality={"selector": {"fabric.domain": "C"}}).cycle("-24h")
    world.run("r", 8, created="+1s").run("s", 16, by=8, owner="org:c", created="+2s").cycle("+1m")
    assert world.cycle("+16m").running == ["r", "s"]


def test_what_starts_without_money_grows_in_what_is_left() -> None:
    """After what is due beside it, and after what is funded, be it not promised."""
    for other, width in ((0, 8), (4, 4)):
        world = unfunded().budget("org:a", 8, maxGPUHours=0).budget("org:b", 8)
        on_a: dict[str, Any] = {"locality": {"selector": {"fabric.domain": "A"}}}
        world.run("wide", 2, by=2, resources={"totalGPUs": 8}, malleable=steps(2, 8), **on_a).cycle()
        if other:
            world.run("other", other, owner="org:b", created="+15m", **on_a)
        assert world.cycle("+15m").funding("wide") == {"unfunded": width}


def test_slots_are_held_for_a_start_without_money() -> None:
    """From what does not end by then, and from nobody else; to the end of the promise, at which the run starts."""
    for at, limit, runs in (("+1m", "10m", True), ("+1m", None, False), ("+15m", "10m", False)):
        world = World().domain("A").policy(reservations={"onBudgetShortfall": "startUnfunded"})
        world.budget("org:a", 8, maxGPUHours=1).budget("org:b", 8).run("r", 8).cycle()
        cycle = world.run("q", 8, owner="org:b", created=at, limit=limit).cycle(at)
        assert ("q" in cycle.running) == runs
        cycle = world.cycle("+16m" if at == "+15m" else "+15m")
        assert (cycle.running, cycle.all("Reservation")[-1]["status"].get("history")) == (["r"], None)


def test_without_a_promise_no_start_without_money_is_told() -> None:
    """As it would never come: it is by a promise that it starts."""
    world = World().domain("A").budget("org:a", 8, maxGPUHours=0)
    world.policy(reservations={"onBudgetShortfall": "startUnfunded", "maxHeld": 0})
    assert "eta" not in world.run("r", 8).cycle().status("r")
    assert "earliestStart: none: without money it starts by a promise alone" in world.runs("plan", "r").out


def test_a_start_without_money_needs_no_stage_of_opportunistic_work() -> None:
    world = World().domain("A").budget("org:a", 8, maxGPUHours=0)
    world.policy(reservations={"onBudgetShortfall": "startUnfunded"}, stages=["starts", "growth"])
    world.run("r", 8).cycle()
    assert world.cycle("+15m").funding("r") == {"unfunded": 8}


@st.composite
def short(draw: Draw) -> Script:
    """Busy worlds where hours are short, Budgets pay in one domain alone, and one is shut for a while."""
    script: Script = draw(scripts(minutes=12))
    closed = draw(st.sampled_from([[], [shut("A", "+6m", "+15m")], [shut("B", "+3m", "+30m")]]))
    policy = {"reservations": {"onBudgetShortfall": "startUnfunded", "patience": "5m"}, "maintenance": closed}
    fleet = []
    for each in script.fleet:
        spec: dict[str, Any] = policy if each["kind"] == "Policy" else {}
        if each["kind"] == "Budget":
            (envelope,) = each["spec"]["envelopes"]
            hours = draw(st.sampled_from([{}, {"maxGPUHours": 1}, {"maxGPUHours": 5}, {"maxGPUHours": 20}]))
            selector = draw(st.sampled_from([{}, {"fabric.domain": "A"}, {"fabric.domain": "B"}]))
            spec = {"envelopes": [{**envelope, **hours, "selector": {**envelope["selector"], **selector}}]}
        fleet.append(doc.merge(each, {"spec": spec}))
    return replace(script, fleet=fleet)


@pytest.mark.slow
@examples(50)
@given(script=short())
def test_plans_hold_where_starts_need_no_money(script: Script) -> None:
    for cycle in played(script, minutes=12):
        assert [str(each) for each in check(cycle.before, cycle.plan)] == []
