"""A nearer claimant's start takes back what farther claims hold (spec §3.8, stage 4)."""

import pytest

from tests.support.worlds import Cycle, World

LOAN = {"allowBorrow": True, "sponsors": ["org:a"]}


def held(*runs: tuple[str, int, str], cap: int = 12) -> World:
    """``runs`` (name, GPUs, owner) at org:a's envelope of ``cap`` GPUs since an hour, on a fleet with room for all."""
    world = World().domain("A", nodes=4).budget("org:a", cap, lending={"allow": True})
    for name, gpus, owner in runs:
        world.run(name, gpus, owner=owner)
    world.cycle("-1h")
    return world


def overdraw(cycle: Cycle) -> tuple[int, int]:
    """Value and bound of stage 4, in milli-GPUs."""
    (stage,) = (stage for stage in cycle.plan.stages if stage.name == "overdraw")
    return stage.value, stage.bound


def test_the_farthest_claim_gives_way_and_keeps_running() -> None:
    world = held(("child", 6, "org:a:x"), ("cousin", 6, "org:a:x:y"))
    cycle = world.run("own", 4, owner="org:a").cycle()

    assert cycle.running == ["child", "cousin", "own"]
    assert [cycle.funding(run) for run in cycle.running] == [{"shared": 6}, {"unfunded": 6}, {"owned": 4}]
    assert overdraw(cycle) == (4000, 4000)
    assert cycle.segments("cousin") == [
        [("shared", "2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z"), ("unfunded", "2026-01-01T00:00:00Z", None)]
    ]


def test_nobody_gives_way_while_quota_is_left() -> None:
    world = held(("cousin", 6, "org:a:x:y"))
    cycle = world.run("own", 6, owner="org:a").cycle()

    assert [cycle.funding(run) for run in cycle.running] == [{"shared": 6}, {"owned": 6}]
    assert overdraw(cycle) == (0, 0)


def test_of_equal_claimants_the_running_one_stays() -> None:
    world = held(("first", 8, "org:a:x"))
    cycle = world.run("late", 8, owner="org:a:y").cycle()

    assert (cycle.running, cycle.waiting) == (["first"], ["late"])
    assert cycle.shorts("late") == [("concurrency", "org-a/gpus", 4, "GPU")]


def test_until_another_run_comes_nobody_recalls_what_it_lost_to_and_the_world_stays_as_it_is() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 12)
    world.run("cousin", 12, owner="org:a:x:y", created="-50h").run("own", 4, owner="org:a")
    first, second = world.cycle("+0s"), world.cycle("+1m")
    third = world.run("other", 1, owner="nobody", created="+2m").cycle("+2m")

    assert (first.running, first.waiting) == (["cousin"], ["own"])
    assert (second.running, second.funding("cousin"), second.plan.segments) == (["cousin"], {"shared": 12}, [])
    assert (third.running, third.funding("cousin")) == (["cousin", "own"], {"unfunded": 12})


def test_what_all_nearer_starts_take_together_counts_however_long_they_waited() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 14)
    world.run("old", 4, owner="org:a", created="-2h", state="Suspended")
    world.run("far", 4, owner="org:a:x:y").run("farther", 10, owner="org:a:x:z").cycle("-1h")
    world.edit("Run", "old", spec={"state": "Active"})
    first = world.run("own", 1, owner="org:a").cycle("+0s")
    second = world.cycle("+1m")

    assert (first.running, first.funding("farther")) == (["far", "farther", "old", "own"], {"unfunded": 10})
    assert (second.running, second.plan.segments) == (first.running, [])


def test_a_loan_recalls_nobody() -> None:
    world = held(("cousin", 8, "org:a:x:y"))
    cycle = world.run("loan", 6, owner="team", funding=LOAN).cycle()

    assert (cycle.running, cycle.waiting) == (["cousin"], ["loan"])
    assert cycle.funding("cousin") == {"shared": 8}


def test_a_young_loan_is_not_recalled_and_an_old_one_is() -> None:
    def world() -> World:
        made = World().domain("A", nodes=4).budget("org:a", 8, lending={"allow": True, "maxDuration": "2h"})
        made.run("loan", 7, owner="team", funding=LOAN)
        made.cycle("-1h")
        return made.run("own", 8, owner="org:a")

    young, old = world().cycle("+0s"), world().cycle("+1h")

    assert (young.running, young.funding("loan")) == (["loan"], {"borrowed": 7, "lenders": ["org:a"]})
    assert (old.running, old.funding("loan")) == (["loan", "own"], {"unfunded": 7})


def test_a_malleable_claim_gives_way_group_by_group() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 12)
    wide = {"minTotalGPUs": 2, "maxTotalGPUs": 12, "stepGPUs": 2}
    world.run("wide", 12, owner="org:a:x:y", by=2, malleable=wide)
    world.cycle("-1h")
    cycle = world.run("own", 5, owner="org:a").cycle()

    assert cycle.funding("wide") == {"shared": 6, "unfunded": 6}
    assert cycle.funding("own") == {"owned": 5}
    assert overdraw(cycle) == (5000, 5000)


def test_rather_than_recall_a_farther_payer_is_taken() -> None:
    world = World().domain("A", nodes=4).budget("org:a:x", 4, spec={"parents": ["org:a"]})
    world.run("kin", 3, owner="org:a:x:u").cycle("-1h")
    cycle = world.budget("org:a", 2).run("own", 4, owner="org:a:x").cycle()

    assert sorted((lease.payer, lease.gpus) for lease in cycle.leases("own")) == [
        ("org-a-x/gpus", 2),
        ("org-a/gpus", 2),
    ]
    assert (cycle.funding("kin"), overdraw(cycle)) == ({"unfunded": 3}, (1000, 1000))


def test_what_is_short_counts_farther_claims_as_left() -> None:
    world = held(("cousin", 6, "org:a:x:y"), cap=8)
    cycle = world.run("own", 10, owner="org:a").cycle()

    assert cycle.shorts("own") == [("concurrency", "org-a/gpus", 2, "GPU")]


def test_quota_that_returns_funds_the_recalled_claim_again() -> None:
    world = held(("cousin", 8, "org:a:x:y"))
    world.run("own", 6, owner="org:a", limit="1h").cycle()
    cycle = world.cycle("+2h")

    assert cycle.running == ["cousin"]
    assert cycle.segments("cousin") == [
        [
            ("shared", "2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z"),
            ("unfunded", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
            ("shared", "2026-01-01T01:00:00Z", None),
        ]
    ]


def test_a_group_that_is_unfunded_already_is_no_reason_for_another_to_go() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 12)
    wide = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}
    world.run("wide", 12, owner="org:a:x:y", by=4, malleable=wide).cycle("-1h")
    (envelope,) = world.state().get("Budget", "org-a")["spec"]["envelopes"]
    world.edit("Budget", "org-a", spec={"envelopes": [{**envelope, "concurrency": 8}]})
    assert world.cycle("-30m").funding("wide") == {"shared": 8, "unfunded": 4}

    cycle = world.run("own", 2, owner="org:a").run("twin", 6, owner="org:a:x:y").cycle()

    assert (cycle.waiting, cycle.funding("wide")) == (["twin"], {"shared": 4, "unfunded": 8})


@pytest.mark.parametrize("more", [[], [("big", 9)]], ids=["alone", "beside another"])
def test_nobody_gives_way_for_want_of_hours_that_are_provided_for(more: list[tuple[str, int]]) -> None:
    world = World().node("n1").node("n2").budget("org:a", 12, maxGPUHours=100, sharing="family").policy()
    world.run("far", 2, owner="org:a:x").cycle("-1h")
    for name, gpus in [("near", 4), *more]:
        world.run(name, gpus, owner="org:a")

    assert "46 GPU-hours short" in world.cycle().condition("near", "Admitted")["message"]


def f28() -> World:
    """Old claims of children have all 12 of org:a; own 5 of org:a waits, and late 1 of another child."""
    world = held(("child", 4, "org:a:x"), ("large", 6, "org:a:x:y"), ("other", 2, "org:a:z"))
    return world.run("own", 5, owner="org:a").run("late", 1, owner="org:a:w")


def test_f28_a_start_recalls_and_who_stands_as_far_as_what_is_recalled_starts_in_the_next_cycle() -> None:
    world = f28()
    first, second, third = world.cycle("+0s"), world.cycle("+1m"), world.cycle("+2m")

    classes = {"child": {"shared": 4}, "large": {"unfunded": 6}, "other": {"shared": 2}, "own": {"owned": 5}}
    assert {run: first.funding(run) for run in first.running} == classes
    assert (overdraw(first), first.shorts("late")) == ((5000, 5000), [("concurrency", "org-a/gpus", 6, "GPU")])
    words = "6 GPUs short at org-a/gpus (17 of 12 in use; this cycle recalls there, and the run may start in the next)"
    assert words in first.condition("late", "Admitted")["message"]
    assert {run: second.funding(run) for run in second.running} == classes | {"late": {"shared": 1}}
    assert (third.running, third.plan.segments, third.plan.leases) == (second.running, [], [])


def test_f29_nobody_recalls_for_others() -> None:
    world = World().domain("A", nodes=89).budget("org:a", 312)
    world.budget("org:a:x", 1, flavor="T4").budget("org:a:y", 1, flavor="T4")
    for number in range(312):
        world.run(f"r{number:03}", 1, owner="org:a:x:u")
    world.cycle("-1h")
    cycle = world.run("own", 1, owner="org:a").run("many", 311, owner="org:a:y:v").cycle()

    assert (cycle.running[:1], cycle.waiting) == (["own"], ["many"])
    assert sum(cycle.funding(run) == {"unfunded": 1} for run in cycle.running) == 1


def test_f30_the_owner_has_its_quota_back_when_the_world_has_changed_since_others_took_it() -> None:
    world = held(("child", 4, "org:a:x"), ("large", 6, "org:a:x:y"), ("other", 2, "org:a:z"), cap=18)
    world.run("own", 5, owner="org:a", created="-1m").run("young", 6, owner="org:a:v", created="-1m")
    first, second = world.cycle("+0s"), world.cycle("+1m")
    third = world.run("more", 1, owner="nobody").cycle("+2m")

    assert [sorted(set(each.running) - {"child", "large", "other"}) for each in (first, second, third)] == [
        ["young"], ["young"], ["own", "young"]
    ]  # fmt: skip
    assert (second.plan.segments, third.funding("young")) == ([], {"unfunded": 6})


def test_f31_a_loan_has_what_a_recall_left_in_the_next_cycle() -> None:
    world = World().domain("A", nodes=4).budget("org:b", 8, lending={"allow": True}).budget("org:x", 1, flavor="T4")
    world.run("child", 8, owner="org:b:kid").cycle("-1h")
    world.run("loan", 4, owner="org:x", funding={"allowBorrow": True, "sponsors": ["org:b"]})
    world.run("own", 4, owner="org:b")
    first, second = world.cycle("+0s"), world.cycle("+1m")

    assert {run: first.funding(run) for run in first.running} == {"child": {"unfunded": 8}, "own": {"owned": 4}}
    assert {run: second.funding(run) for run in second.running} == {
        "child": {"unfunded": 8}, "loan": {"borrowed": 4, "lenders": ["org:b"]}, "own": {"owned": 4}
    }  # fmt: skip


def test_f32_hours_are_not_recalled() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 8, maxGPUHours=80, sharing="family")
    world.run("kid", 8, owner="org:a:x", limit="10h").cycle("+0s")
    cycle = world.run("own", 8, owner="org:a", limit="5h").cycle("+1s")

    assert (cycle.running, cycle.shorts("own")) == (["kid"], [("hours", "org-a/gpus", 40, "GPU-hour")])
