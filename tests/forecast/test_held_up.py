"""What promises keep from a run for a time is not what the fleet could never hold (spec §3.9, §5)."""

from typing import Final

import pytest
from hypothesis import given

from jobtree.world.plan import Wait
from jobtree.world.tables.snapshot import Snapshot
from planner.planning import plan
from tests.forecast.busy import Script, played, scripts
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.worlds import World

NOWHERE: Final = frozenset({"NeverFits", "NoMatchingNodes"})
"""Reasons that speak of the fleet as such, whoever holds it."""

SELECTOR_A: Final = {"fabric.domain": "A"}
IN_A: Final = {"selector": SELECTOR_A}


def alone(script: Script, name: str) -> Wait | None:
    """Why a run waits on the script's fleet with nothing on it, and nobody to pay for it missing; None: it starts."""
    nodes = [each for each in script.fleet if each["kind"] == "Node"]
    (run,) = [each for _, each in script.runs if each["metadata"]["name"] == name]
    rich = doc.budget(run["spec"]["owner"], [doc.envelope(999)])
    empty: Snapshot = snapshot([*nodes, rich, run])
    return next(iter(plan(empty, AT + 86_400).waits), None)


@pytest.mark.slow
@examples(40)
@given(scripts(12))
def test_only_what_an_empty_fleet_cannot_hold_is_said_to_have_no_place_in_it(script: Script) -> None:
    said = {wait.name: wait for cycle in played(script, 12) for wait in cycle.plan.waits if wait.reason in NOWHERE}
    empty = {name: alone(script, name) for name in said}

    assert {name: _told(wait) for name, wait in empty.items()} == {name: _told(wait) for name, wait in said.items()}


def _told(wait: Wait | None) -> tuple[object, ...] | None:
    return None if wait is None else (wait.reason, wait.message, wait.shorts)


@pytest.mark.parametrize(
    ("gpus", "short"),
    [([4, 4], "1 GPU short"), ([8], "5 GPUs short")],
)
def test_nodes_that_are_promised_are_told_with_who_has_them_and_from_when(gpus: list[int], short: str) -> None:
    """A part of the domain, or all of it, is kept for an older run; the fleet could hold both sizes."""
    world = World().domain("A", gpus=gpus).policy(reservations={"maxHeld": 1})
    world.budget("org:a", 99).budget("org:b", 99).run("old", 5, limit="2h", owner="org:b")
    world.cycle()
    world.run("first", 8, limit="6h", created="+30s")
    world.cycle("+1m")
    world.run("late", 5, created="+90s")
    wait = world.cycle("+2m").waits["late"]
    until = moment("+2h")
    why = (
        f"nodes are promised to default/first from {until} on, and only runs whose timeLimit ends by then may use them"
    )

    assert (wait.reason, wait.message) == (
        "CapacityShort", f"Asks for 5 GPUs: {short}, whoever else may end: {why}."
    )  # fmt: skip


def test_a_domain_in_maintenance_is_too_small_only_until_that_is_over() -> None:
    world = World().node("a", labels={"row": "1"}).node("b", labels={"row": "2"})
    window = {"selector": {"row": "2"}, "start": moment("+1h"), "end": moment("+4h")}
    world.policy(maintenance=[window]).budget("org:a", 99).run("wide", 12)
    wait = world.cycle().waits["wide"]

    why = "4 GPUs short, whoever else may end: nodes are in maintenance before it surely ends"
    assert (wait.reason, wait.message, wait.never) == ("CapacityShort", f"Asks for 12 GPUs: {why}.", False)
    assert world.cycle("+4h").started == ["wide"]


def of_a_use_cap(selector: dict[str, str]) -> World:
    """An owner with plenty of money, whose use cap leaves 4 GPUs beside what ends at 01:00 and is promised 12 then."""
    cap = {"name": "c", "maxConcurrency": 12, **({"selector": selector} if selector else {})}
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:o", 64, spec={"useCaps": [cap]})
    world.run("first", 8, owner="org:o", limit="1h", locality=IN_A).cycle()
    world.run("elder", 12, owner="org:o", locality=IN_A).cycle("+1m")
    return world.run("short", 2, owner="org:o", limit="30m", locality=IN_A).run(
        "young", 2, owner="org:o", locality=IN_A
    )


def test_a_use_cap_is_held_as_an_envelope_is() -> None:
    world = of_a_use_cap({})
    cycle = world.cycle("+3m")

    assert cycle.running == ["first", "short"]
    assert cycle.waits["young"].message == (
        "No envelope may pay for its 2 GPUs: what the use cap org-o/c has left is promised from 2026-01-01T01:00:00Z "
        "on; this one has no time limit: set runtime.timeLimit."
    )
    assert world.cycle("+1h").running == ["elder"]


def test_a_use_cap_of_some_nodes_is_held_there_alone() -> None:
    world = of_a_use_cap(SELECTOR_A)
    cycle = world.run("anywhere", 2, owner="org:o").cycle("+3m")

    assert cycle.running == ["anywhere", "first", "short"]
    assert cycle.waits["young"].message == (
        "No node that it may use is matched by an envelope that pays for it: org-o/gpus (region=*); "
        "on other nodes what the use cap org-o/c has left is promised."
    )
    assert world.cycle("+1h").running == ["anywhere", "elder"]


def test_what_a_budget_pays_that_cannot_be_read_stops_no_promise() -> None:
    """It keeps its class and ends by its limit, but no envelope is there that gives its money up."""
    world = World().domain("A", nodes=2).budget("org:a", 8).budget("org:b", 16)
    world.run("kept", 8, owner="org:a", limit="1h").run("first", 8, owner="org:b", limit="30m").cycle()
    world.run("elder", 16, owner="org:b").cycle("+1m")
    world.edit("Budget", "org-a", spec={"envelopes": [{**doc.envelope(8), "concurency": 8}]})
    cycle = world.cycle("+2m")

    assert (cycle.running, cycle.funding("kept")) == (["first", "kept"], {"owned": 8})
    assert [each["status"]["earliestStart"] for each in cycle.all("Reservation")] == [moment("+1h")]
    assert world.cycle("+1h").running == ["elder"]
