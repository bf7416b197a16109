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


def test_a_budget_made_again_by_another_owner_pays_for_nothing_of_the_first() -> None:
    world = World().node("n").budget("org:a", 8, name="gpus", maxGPUHours=100, sharing="family").run("r", 4)
    world.cycle()
    world.delete("Budget", "gpus").budget("org:b", 8, name="gpus", maxGPUHours=100).run("s", 4, owner="org:b")
    found = world.cycle("+1h")
    assert (found.funding("r"), found.funding("s")) == ({"unfunded": 4}, {"owned": 4})
    assert found.segments("r") == [[("owned", moment("+0s"), moment("+1h")), ("unfunded", moment("+1h"), None)]]
    usage = world.usage("gpus", at="+2h")
    assert (usage["owner"], usage["gpuHoursConsumed"], usage["unfundedGPUs"]) == ("org:b", 4, 0)
    assert found.warnings["Lease default/r-20260101t000000z-g0-0"] == [
        "its payer gpus/gpus of org:a is not there, Budget gpus is of org:b now: nobody pays for it"
    ]


def test_it_pays_again_once_its_owner_is_the_first_again() -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=100).run("r", 4)
    world.cycle()
    world.edit("Budget", "org-a", spec={"owner": "org:b"}).cycle("+1h")
    assert world.usage("org-a", at="+1h")["gpuHoursConsumed"] == 0
    found = world.edit("Budget", "org-a", spec={"owner": "org:a"}).cycle("+2h")
    assert (found.funding("r"), world.usage("org-a", at="+2h")["gpuHoursConsumed"]) == ({"owned": 4}, 4)


def test_a_loan_ends_where_the_lender_hands_its_budget_over() -> None:
    world = World().node("n").budget("lab", 4, lending={"allow": True})
    world.run("r", 4, owner="club", funding={"allowBorrow": True, "sponsors": ["lab"]})
    assert world.cycle().funding("r") == {"borrowed": 4, "lenders": ["lab"]}
    world.edit("Budget", "lab", spec={"owner": "studio"})
    assert world.cycle("+1h").funding("r") == {"unfunded": 4}


def test_what_it_paid_counts_above_its_first_owner_and_not_above_the_next() -> None:
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, name="gpus").run("r", 4)
    for owner in ("org", "lab"):
        world.budget(owner, envelopes=[doc.envelope(8, scope="subtree", maxGPUHours=100)])
    world.cycle()
    world.runs("complete", "r", at="+1h").ok()
    world.edit("Budget", "gpus", spec={"owner": "lab:a"}).cycle("+1h")
    hours = {owner: world.usage(owner, at="+2h")["headroomGPUHours"] for owner in ("org", "lab")}
    assert hours == {"org": 96, "lab": 100}
    world.edit("Policy", "default", spec={"retention": {"leases": "1h"}})
    assert len(world.cycle("+3h").plan.pruned) == 1
    assert {owner: world.usage(owner, at="+4h")["headroomGPUHours"] for owner in ("org", "lab")} == hours
