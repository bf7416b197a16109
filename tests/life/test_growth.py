# ruff: noqa: N802 -- test names are case ids
"""Malleable runs that grow and shrink (spec §4 stage 5, §7)."""

from typing import Any

import pytest

from jobtree.world.plan import Stage
from tests.remedies.asking import ask, documents
from tests.support.times import T0, unix
from tests.support.worlds import Cycle, World

ELASTIC: dict[str, Any] = {"minTotalGPUs": 96, "maxTotalGPUs": 160, "stepGPUs": 32}


def width(cycle: Cycle, run: str) -> int:
    """Active GPUs that a run holds."""
    return sum(row.gpus for row in cycle.leases(run, open=True) if row.role == "Active")


def test_L1_a_run_grows_by_steps_and_shrinks_when_its_owner_says_so() -> None:
    world = World().budget("org:a", 400)
    for domain in "ABCDE":
        world.domain(domain, nodes=4)
    world.run("r", 96, by=32, malleable=ELASTIC)
    assert width(world.cycle(), "r") == 96
    cycle = world.cycle("+1m")
    assert (width(cycle, "r"), {row.reason for row in cycle.leases("r") if row.group == 3}) == (128, {"Grow"})
    grown = Stage(name="growth", unit="GPUs", sense="max", value=32, bound=32, proven=False)
    assert [stage for stage in cycle.plan.stages if stage.name == "growth"] == [grown]
    cycle = world.cycle("+2m")
    assert (width(cycle, "r"), cycle.status("r")["width"]["pending"]) == (160, 0)
    assert world.cycle("+3m").plan.leases == []

    world.runs("shrink", "r", "--by", "64", at="+4m").ok()
    cycle = world.cycle("+5m")
    closed = {(row.group, row.closure) for row in cycle.leases("r", open=False)}
    assert (width(cycle, "r"), closed) == (96, {(3, "Shrink"), (4, "Shrink")})
    assert (world.cycle("+6m").plan.leases, cycle.phases) == ([], {"r": "Running"})


def elastic(least: int, most: int, step: int = 4, **more: int) -> dict[str, int]:
    """Widths of a run."""
    return {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": step, **more}


def test_a_run_grows_as_far_as_it_is_funded() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 11).run("r", 4, malleable=elastic(4, 32))
    world.cycle()
    cycle = world.cycle("+1m")
    assert (width(cycle, "r"), cycle.funding("r")) == (8, {"owned": 8})
    assert world.cycle("+2m").plan.leases == []


def test_steps_a_cycle_are_the_policys() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 64).run("r", 4, malleable=elastic(4, 32))
    world.policy(elasticity={"maxGrowStepsPerCycle": 3}).cycle()
    assert [width(world.cycle(f"+{minute}m"), "r") for minute in (1, 2, 3)] == [16, 28, 32]


def test_no_growth_where_the_policy_leaves_the_stage_out() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 64).run("r", 4, malleable=elastic(4, 32))
    world.policy(stages=["starts", "opportunistic"]).cycle()
    assert width(world.cycle("+1m"), "r") == 4


def test_starts_come_before_growth_and_growth_before_opportunistic_work() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("r", 8, malleable=elastic(8, 16, 8))
    world.cycle()
    cycle = world.run("late", 8, created="+30s").cycle("+1m")
    assert (width(cycle, "r"), width(cycle, "late")) == (8, 8)

    world.runs("cancel", "late", at="+2m").ok()
    world.run("fill", 8, owner="org:o", created="+2m", funding={"opportunistic": True})
    cycle = world.cycle("+3m")
    assert (width(cycle, "r"), cycle.phases["fill"]) == (16, "Pending")


def test_two_runs_that_compete_do_not_take_turns() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 24)
    for name in ("one", "two"):
        world.run(name, 8, malleable=elastic(8, 24, 8), pods=8)
    world.cycle()
    first = world.cycle("+1m")
    assert sorted((width(first, "one"), width(first, "two"))) == [8, 16]
    for minute in range(2, 12):
        assert world.cycle(f"+{minute}m").plan.leases == []


def test_groups_that_lie_together_grow_in_their_domain() -> None:
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64)
    world.run(
        "r", 8, by=8, pods=8, malleable=elastic(8, 32, 8), locality={"groupGPUs": 8, "allowCrossGroupSpread": False}
    )
    world.cycle()
    world.cycle("+1m")
    cycle = world.cycle("+2m")
    assert width(cycle, "r") == 16
    assert len({node[0] for row in cycle.leases("r", open=True) for node in row.nodes}) == 1


def test_growth_brings_the_standbys_of_its_groups() -> None:
    world = (
        World()
        .domain("A", nodes=4)
        .budget("org:a", 64)
        .run("r", 8, by=8, pods=8, spares=1, malleable=elastic(8, 16, 8))
    )
    world.cycle()
    cycle = world.cycle("+1m")
    assert {(row.group, row.role, row.reason) for row in cycle.leases("r", open=True)} == {
        (0, "Active", "Start"), (0, "Spare", "Start"), (1, "Active", "Grow"), (1, "Spare", "Grow"),
    }  # fmt: skip


def test_a_standby_that_was_used_comes_back() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("r", 8, pods=8, spares=1)
    cycle = world.cycle()
    (node,) = {node for row in cycle.leases("r") if row.role == "Active" for node in row.nodes}
    cycle = world.delete("Node", node).node("a03", domain="A").cycle("+1h")
    assert {(row.role, row.reason) for row in cycle.leases("r", open=True)} == {("Active", "Swap"), ("Spare", "Grow")}
    assert world.cycle("+2h").plan.leases == []


def test_a_malleable_run_goes_on_without_a_lost_group_and_grows_back() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 64).run("r", 24, by=8, pods=8, malleable=elastic(8, 24, 8))
    cycle = world.cycle()
    (node,) = {node for row in cycle.leases("r") if row.group == 1 for node in row.nodes}
    cycle = world.delete("Node", node).cycle("+1h")
    assert (width(cycle, "r"), cycle.phases) == (16, {"r": "Running"})
    assert {(row.group, row.closure) for row in cycle.leases("r", open=False)} == {(1, "NodeFailure")}
    cycle = world.node("a09", domain="A").cycle("+2h")
    assert [(row.group, row.reason) for row in cycle.leases("r", open=True) if row.nodes == {"a09"}] == [(1, "Grow")]


def test_a_shrink_lets_borrowed_groups_go_first() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 16).budget("org:l", 8, lending={"allow": True})
    money = {"allowBorrow": True, "sponsors": ["org:l"]}
    world.run("r", 24, by=8, pods=8, malleable=elastic(8, 24, 8), funding=money)
    cycle = world.cycle()
    lent = {row.group for row in cycle.leases("r") if row.payer == "org-l/gpus"}
    assert len(lent) == 1
    world.runs("shrink", "r", "--by", "8", at="+1m").ok()
    cycle = world.cycle("+2m")
    assert {(row.group, row.closure) for row in cycle.leases("r", open=False)} == {(*lent, "Shrink")}
    assert cycle.funding("r") == {"owned": 16}


def test_a_run_that_starts_wider_than_it_wants_shrinks_in_the_next_cycle_and_no_date_counts_on_that() -> None:
    world = World().node("n").budget("org:a", 12).run("r", 8, malleable=elastic(4, 8, desiredTotalGPUs=4)).run("s", 4)
    first, second = world.cycle(), world.cycle("+1m")

    assert (first.phases, width(first, "r")) == ({"r": "Running", "s": "Pending"}, 8)
    assert (second.phases, width(second, "r")) == ({"r": "Running", "s": "Running"}, 4)


@pytest.mark.parametrize(("most", "told"), [(8, ["kubectl uncordon b0"]), (16, [])])
def test_what_growth_takes_first_is_no_remedy_for_opportunistic_work(most: int, told: list[str]) -> None:
    """A node that is opened again serves it only where nobody grows into that."""
    world = World().domain("A", nodes=1).budget("org:a", 64).node("b0", 4, domain="B", spec={"unschedulable": True})
    world.run("m", 4, by=4, malleable=elastic(4, most)).cycle()
    world.run("o", 4, owner="org:b", created="+30s", funding={"opportunistic": True})
    cycle = world.cycle("+1m")
    assert (width(cycle, "m"), cycle.phases["o"]) == (8, "Pending")

    found = ask(documents(world), "o", unix(T0) + 120)
    assert [remedy.how for remedy in found.found if remedy.kind == "node"] == told


@pytest.mark.parametrize(
    ("bounds", "grown"),
    [
        ({"perRun": {"defaultTime": "30m"}}, 8),
        ({"perRun": {"defaultTime": "30m"}, "maxGPUHours": 95, "sharing": "family"}, 4),
        ({"perRun": {"defaultTime": "30m"}, "maxGPUHours": 96, "sharing": "family"}, 8),
        ({"perRun": {"defaultTime": "30m", "maxTime": "1h"}}, 4),
    ],
)
def test_who_pays_for_growth_gives_a_run_no_limit(bounds: dict[str, Any], grown: int) -> None:
    """What it has is fixed at its start: a run that has none is looked ahead for over the whole period."""
    world = World().domain("A", nodes=1).budget("org", 8, **bounds).budget("org:a", 4)
    world.run("r", 4, by=4, malleable=elastic(4, 8)).cycle()
    cycle = world.cycle("+1m")
    assert (width(cycle, "r"), cycle.status("r").get("timeLimit")) == (grown, None)
    assert world.cycle("+2h").phases == {"r": "Running"}
