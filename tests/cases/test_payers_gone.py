"""Budgets that are deleted or cannot be read: what they paid, and pay, counts in the subtrees above (§2, §3.6)."""

from typing import Any

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import World


def family(**envelope: Any) -> World:
    """org bounds its subtree; org:a pays for 4 GPUs of its own."""
    return (
        World()
        .domain("A", nodes=2)
        .policy(accountingPeriod="1h")
        .budget("org", envelopes=[doc.envelope(scope="subtree", **envelope)])
        .budget("org:a", 8)
        .run("r", 4)
    )


def left(world: World, at: str, field: str = "headroomGPUHours") -> Any:
    return world.usage("org", at=at)[field]


def broken(world: World, concurrency: int = 0) -> World:
    """org:a's Budget as nobody can read it, or mended."""
    return world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(concurrency)]})


def budget(world: World, name: str) -> Document:
    return {**world.state().get("Budget", name), "status": {}}


def test_what_a_deleted_budget_paid_is_not_refunded_to_the_subtree_above() -> None:
    world = family(concurrency=6, maxGPUHours=100)
    world.cycle()
    child = budget(world, "org-a")
    assert left(world, "+10h") == 100 - 40 - 4
    world.delete("Budget", "org-a")
    world.cycle("+10h")
    assert (left(world, "+10h"), left(world, "+20h")) == (60, 60)
    world.add(child)
    world.cycle("+20h")
    assert left(world, "+20h") == 60 - 4
    assert world.usage("org-a", at="+20h")["gpuHoursConsumed"] == 40


def test_it_is_not_when_its_leases_were_pruned_either() -> None:
    world = family(concurrency=6, maxGPUHours=100)
    world.edit("Policy", "default", spec={"retention": {"leases": "1h"}})
    world.cycle()
    world.runs("complete", "r", at="+10h").ok()
    world.cycle("+10h")
    world.delete("Budget", "org-a")
    assert len(world.cycle("+12h").plan.pruned) == 1
    assert (world.cycle("+13h").leases(), left(world, "+13h")) == ([], 60)


def test_work_of_a_budget_that_cannot_be_read_holds_its_place_above() -> None:
    world = family(concurrency=6).run("s", 4, owner="org", created="+30m")
    world.delete("Run", "s")
    world.cycle()
    broken(world).run("s", 4, owner="org", created="+30m")
    cycle = world.cycle("+1h")
    assert (cycle.funding("r"), cycle.shorts("s")) == ({"owned": 4}, [("subtree-concurrency", "org/gpus", 2, "GPU")])
    assert left(world, "+1h", "headroomGPUs") == 2
    broken(world, 8)
    assert world.cycle("+2h").funding("r") == {"owned": 4}


def test_it_uses_up_hours_above_to_the_second() -> None:
    # 4 GPUs of org:a and 2 of org spend 6 GPU-hours an hour: 30 are gone after five
    world = family(concurrency=8, maxGPUHours=30).run("s", 2, owner="org")
    world.cycle()
    broken(world)
    world.cycle("+1h")
    cycle = world.cycle("+9h")
    assert cycle.segments("s") == [[("owned", moment("+0s"), moment("+5h")), ("unfunded", moment("+5h"), None)]]
    assert cycle.segments("r") == [[("owned", moment("+0s"), None)]]
    assert cycle.get("Budget", "org")["status"]["conditions"][0]["message"] == (
        "Envelope gpus has work beyond its caps: 2 GPUs are unfunded until there is room."
    )


def test_starts_above_leave_it_what_it_needs_ahead() -> None:
    world = family(concurrency=16, maxGPUHours=10)
    world.cycle()
    broken(world)
    cycle = world.cycle("+1h")
    assert left(world, "+1h") == 10 - 4 - 4
    world.run("s", 2, owner="org").run("t", 3, owner="org")
    cycle = world.cycle("+1h1s")
    assert (cycle.started, [short[:2] for short in cycle.shorts("t")]) == ([], [("subtree-hours", "org/gpus")])
