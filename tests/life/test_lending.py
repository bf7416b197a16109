# ruff: noqa: N802 -- test names are case ids
"""Productive standbys (spec §2): opportunistic work on slots that standbys hold."""

from typing import Any

import pytest

from tests.support.times import moment
from tests.support.worlds import Cycle, World

FREE: dict[str, Any] = {"funding": {"opportunistic": True}}


def beside_a_standby(**run: Any) -> tuple[World, Cycle]:
    """L13: r of 8 has its standby on the other of two nodes, and a short opportunistic run of 8 comes."""
    world = World().domain("A", nodes=2).budget("org:a", 24).run("r", 8, pods=8, spares=1, limit="5h")
    world.cycle()
    world.run("short", 8, owner="org:o", limit="1h", created="+1m", **FREE, **run)
    return world, world.cycle("+1m")


def where(cycle: Cycle, run: str, role: str = "Active") -> set[str]:
    """Slots that a run holds in a role."""
    return {slot for row in cycle.leases(run, open=True) if row.role == role for slot in row.slots}


def test_L13_an_opportunistic_run_works_on_a_standbys_slots() -> None:
    world, cycle = beside_a_standby()
    assert cycle.phases == {"r": "Running", "short": "Running"}
    assert where(cycle, "short") == where(cycle, "r", "Spare")
    assert (cycle.funding("short"), cycle.funding("r")) == ({"unfunded": 8}, {"owned": 8})
    stage = next(stage for stage in cycle.plan.stages if stage.name == "opportunistic")
    assert (stage.value, stage.bound, stage.proven) == (8 * (24 * 3600), 8 * (24 * 3600), True)

    rest = world.cycle("+2m").plan
    assert (rest.leases, rest.closures, rest.runs) == ([], [], [])
    cycle = world.cycle("+2h")
    assert (cycle.phases, where(cycle, "r", "Spare")) == (
        {"r": "Running", "short": "Failed"},
        where(cycle, "r", "Spare"),
    )


def test_a_standby_never_lies_on_another_standby() -> None:
    world, cycle = beside_a_standby()
    world.run("spared", 4, by=4, spares=4, funding={"opportunistic": True}, created="+3m")
    world.edit("Run", "short", spec={"state": "Cancelled"})
    cycle = world.cycle("+3m")

    assert (cycle.phases["spared"], where(cycle, "spared")) == ("Pending", set())


def test_a_swap_takes_the_slots_back() -> None:
    world, cycle = beside_a_standby()
    (lost,) = {slot.partition("#")[0] for slot in where(cycle, "r")}
    cycle = world.delete("Node", lost).cycle("+30m")

    assert cycle.phases == {"r": "Running", "short": "Pending"}
    assert [row.closure for row in cycle.leases("short")] == ["ReclaimedBySpare"]


def test_work_that_must_be_paid_never_starts_there() -> None:
    world, _ = beside_a_standby(state="Suspended")
    cycle = world.run("paid", 8, created="+2m").cycle("+2m")
    assert cycle.phases == {"r": "Running", "short": "Pending", "paid": "Pending"}


def test_a_run_of_choice_with_money_starts_there_unfunded() -> None:
    world, _ = beside_a_standby(state="Suspended")
    cycle = world.run("rich", 8, created="+2m", **FREE).cycle("+2m")
    assert (cycle.phases["rich"], cycle.funding("rich")) == ("Running", {"unfunded": 8})


def test_free_slots_and_standbys_make_room_together_and_trees_keep_their_quota() -> None:
    world = World().domain("A", gpus=[8, 12]).budget("org:a", 24).run("r", 8, pods=8, spares=1)
    world.cycle()
    world.run("root", 4, owner="org:o", created="+1m", quota={"maxGPUs": 12}, **FREE)
    cycle = world.run("one", 8, owner="org:o", created="+2m", parent="root", **FREE).cycle("+2m")
    assert cycle.phases == {"r": "Running", "root": "Running", "one": "Running"}

    world.run("two", 4, owner="org:o", created="+3m", parent="root", **FREE)
    assert world.cycle("+3m").phases["two"] == "Pending"


def test_the_end_of_a_tenant_frees_nothing_for_a_funded_start() -> None:
    world, _ = beside_a_standby()
    cycle = world.run("paid", 8, owner="org:p", created="+2m").budget("org:p", 8).cycle("+2m")
    assert cycle.phases == {"r": "Running", "short": "Running", "paid": "Pending"}


def test_the_end_of_the_run_with_the_standby_leaves_the_tenant_where_it_is() -> None:
    world, cycle = beside_a_standby()
    slots = where(cycle, "short")
    world.runs("cancel", "r", at="+3m").ok()
    cycle = world.cycle("+4m")
    assert (cycle.phases, where(cycle, "short")) == ({"r": "Failed", "short": "Running"}, slots)


@pytest.mark.parametrize("growing", [False, True])
def test_it_starts_beside_growth_too(growing: bool) -> None:
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 40)
    world.run("r", 8, pods=8, spares=1)
    if growing:
        world.run("m", 8, by=8, malleable={"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8})
    world.cycle()
    for number in range(3):
        world.run(f"o{number}", 8, owner="org:o", created="+1m", **FREE)
    cycle = world.cycle("+1m")
    assert sorted(each for each in cycle.running if each[0] == "o") == (["o0"] if growing else ["o0", "o1", "o2"])
    assert moment("+1m") in {row.start for row in cycle.leases("o0")}
