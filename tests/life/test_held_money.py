"""Money that a promise holds keeps starts away; it takes nobody's payer (spec §3.8, §5)."""

from typing import Any

from tests.support.worlds import World


def test_a_start_beside_held_money_leaves_a_relatives_payer_where_all_fits() -> None:
    # of 10: the child's 4 that run, 4 held for w, who waits for a node; 4 more start: 8 of 10 are paid
    world = World().domain("A", gpus=[4]).domain("B", gpus=[4]).domain("C", gpus=[4])
    world.budget("org", 10).budget("corp", 8)
    world.run("kid", 4, owner="org:b", locality={"selector": {"fabric.domain": "A"}})
    world.run("busy", 4, owner="corp", limit="2h", locality={"selector": {"fabric.domain": "B"}})
    assert world.cycle().running == ["busy", "kid"]
    world.run("w", 4, owner="org", created="+1m", locality={"selector": {"fabric.domain": "B"}})
    assert world.cycle("+1m").phases["w"] == "Pending"
    world.run("late", 4, owner="org", created="+2m", locality={"selector": {"fabric.domain": "C"}})
    cycle = world.cycle("+2m")

    assert cycle.phases == {"busy": "Running", "kid": "Running", "late": "Running", "w": "Pending"}
    assert (cycle.funding("kid"), cycle.funding("late")) == ({"shared": 4}, {"owned": 4})


def test_hours_and_credits_of_a_promise_are_no_later_runs() -> None:
    both: list[dict[str, Any]] = [{"maxGPUHours": 100}, {"maxCredits": 200}]
    for limits in both:
        world = World().domain("A", 2).policy(creditRates={"H100-80GB": 2}).budget("org:a", 8, **limits)
        world.run("first", 4, limit="5h")
        world.cycle()
        world.run("gang", 8, limit="10h", created="+1m")
        world.cycle("+1m")
        world.run("late", 4, limit="4h", created="+2m").run("small", 4, limit="30m", created="+2m")
        cycle = world.cycle("+2m")
        # 20 and 80 of 100 GPU-hours are spoken for: not even two are left
        assert cycle.running == ["first"], limits
        assert "earliestStart" not in {**cycle.status("late"), **cycle.status("small")}
        assert world.cycle("+5h").running == ["gang"]


def test_hours_that_promises_take_are_gone_for_those_after_them() -> None:
    world = World().domain("A").budget("org:a", 8, maxGPUHours=125)
    world.run("first", 8, limit="5h")
    world.cycle()
    world.run("second", 8, limit="5h", created="+1m").run("third", 8, limit="5h", created="+2m")
    world.run("fourth", 8, limit="30m", created="+3m")
    cycle = world.cycle("+3m")
    # 3 × 40 of 125 GPU-hours; the last asks for 4, and would be after all of them
    starts = {run: cycle.status(run).get("earliestStart") for run in cycle.waiting}
    assert starts == {
        "second": "2026-01-01T05:00:00Z", "third": "2026-01-01T10:00:00Z", "fourth": "2026-01-01T15:00:00Z"
    }  # fmt: skip
    world.run("fifth", 8, limit="30m", created="+4m")
    assert "earliestStart" not in world.cycle("+4m").status("fifth")


def test_an_earlier_start_leaves_the_hours_of_a_later_promise() -> None:
    world = World().domain("A", gpus=[4]).domain("B", gpus=[8]).budget("org:a", 12, maxGPUHours=100)
    world.budget("org:b", 4)
    world.run("there", 8, limit="5h", locality={"selector": {"fabric.domain": "B"}})
    world.run("here", 4, owner="org:b", limit="1h", locality={"selector": {"fabric.domain": "A"}})
    world.cycle()
    world.run("gang", 8, limit="7h", created="+1m", locality={"selector": {"fabric.domain": "B"}})
    world.cycle("+1m")
    # 40 + 56 of 100 GPU-hours: 4 are left for who would pass an hour from now
    world.run("long", 4, limit="2h", created="+2m").run("short", 4, limit="1h", created="+3m")
    cycle = world.cycle("+3m")
    assert {run: cycle.status(run).get("earliestStart") for run in cycle.waiting} == {
        "gang": "2026-01-01T05:00:00Z", "long": None, "short": "2026-01-01T01:00:00Z"
    }  # fmt: skip


def test_a_start_at_notice_leaves_the_money_of_a_later_promise() -> None:
    world = World().domain("A", 3).budget("org:a", 12)
    world.run("first", 4, limit="5h")
    world.cycle()
    world.run("gang", 10, limit="10h", created="+1m")
    world.cycle("+1m")
    # t takes what gang leaves; s would last beyond the start of gang, so it has no time before the end of that
    world.run("s", 4, limit="6h", created="+2m").run("t", 2, created="+2m")
    cycle = world.cycle("+2m")
    assert cycle.running == ["first", "t"]
    assert {run: cycle.status(run).get("earliestStart") for run in cycle.waiting} == {
        "gang": "2026-01-01T05:00:00Z", "s": "2026-01-01T15:00:00Z"
    }  # fmt: skip
    assert world.cycle("+5h").running == ["gang", "t"]


def test_what_is_held_at_a_shared_budget_is_not_kept_from_who_is_due() -> None:
    world = World().domain("A", gpus=[4]).domain("B", gpus=[4]).budget("corp", 4)
    world.budget("org", 6, scope="subtree").budget("org:a", 6).budget("org:b", 6)
    here, there = ({"selector": {"fabric.domain": domain}} for domain in "AB")
    world.run("first", 4, owner="org:a", limit="1h", locality=here)
    world.run("busy", 4, owner="corp", limit="2h", locality=there)
    world.cycle()
    world.run("next", 4, owner="org:a", limit="1h", created="+1m", locality=here)
    world.run("later", 4, owner="org:b", limit="1h", created="+2m", locality=there)
    cycle = world.cycle("+2m")
    starts = {run: cycle.status(run)["earliestStart"] for run in cycle.waiting}
    assert starts == {"next": "2026-01-01T01:00:00Z", "later": "2026-01-01T02:00:00Z"}
    assert world.cycle("+1h").running == ["busy", "next"]
    assert world.cycle("+2h").running == ["later"]


def test_hours_that_are_overdrawn_keep_nobody_elses_start_away() -> None:
    world = World().domain("A", gpus=[1]).domain("B").domain("C")
    there = {name: {"selector": {"fabric.domain": name}} for name in "ABC"}
    world.budget("org:a", 8, maxGPUHours=30).budget("org:b", 16, maxGPUHours=1000).budget("org:c", 16)
    world.run("a0", 1, locality=there["A"]).run("c", 8, owner="org:c", limit="1h", locality=there["C"])
    world.run("d", 8, owner="org:c", limit="10h", locality=there["B"])
    world.cycle()
    world.run("a1", 1, limit="5h", locality=there["C"], created="+1m")
    world.run("b2", 8, owner="org:b", limit="10h", locality=there["B"], created="+2m")
    world.run("b1", 4, owner="org:b", limit="2h", locality=there["C"], created="+3m")
    cycle = world.cycle("+4m")
    assert {run: cycle.status(run).get("earliestStart") for run in cycle.waiting} == {
        "a1": "2026-01-01T01:00:00Z", "b1": "2026-01-01T01:00:00Z", "b2": "2026-01-01T10:00:00Z"
    }  # fmt: skip
