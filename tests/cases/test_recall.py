"""A nearer claimant's start takes back what farther claims hold (spec §3.8, stage 4)."""

import pytest

import planner
from jobtree.check import check
from jobtree.cluster.statefile import StateFile
from jobtree.world.snapshot import Snapshot, take
from planner import large
from tests.reference.large import plan_as_large
from tests.reference.worlds import AT
from tests.support.worlds import Cycle, World

LOAN = {"allowBorrow": True, "sponsors": ["org:a"]}


def held(*runs: tuple[str, int, str], cap: int = 12) -> World:
    """``runs`` (name, GPUs, owner) at org:a's envelope of ``cap`` GPUs since an hour, on a fleet with room for all."""
    world = World().domain("A", nodes=4).budget("org:a", cap, lending={"allow": True})
    for name, gpus, owner in runs:
        world.run(name, gpus, owner=owner)
    world.cycle("-1h")
    return world


def recalled(cycle: Cycle) -> tuple[int, int]:
    """Value and bound of stage 4."""
    (stage,) = (stage for stage in cycle.plan.stages if stage.name == "recalled")
    return stage.value, stage.bound


def test_the_farthest_claim_gives_way_and_keeps_running() -> None:
    world = held(("child", 6, "org:a:x"), ("cousin", 6, "org:a:x:y"))
    cycle = world.run("own", 4, owner="org:a").cycle()

    assert cycle.running == ["child", "cousin", "own"]
    assert [cycle.funding(run) for run in cycle.running] == [{"shared": 6}, {"unfunded": 6}, {"owned": 4}]
    assert recalled(cycle) == (6, 6)
    assert cycle.segments("cousin") == [
        [("shared", "2025-12-31T23:00:00Z", "2026-01-01T00:00:00Z"), ("unfunded", "2026-01-01T00:00:00Z", None)]
    ]


def test_nobody_gives_way_while_quota_is_left() -> None:
    world = held(("cousin", 6, "org:a:x:y"))
    cycle = world.run("own", 6, owner="org:a").cycle()

    assert [cycle.funding(run) for run in cycle.running] == [{"shared": 6}, {"owned": 6}]
    assert recalled(cycle) == (0, 0)


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
    assert recalled(cycle) == (6, 6)


def test_the_payer_with_the_fewest_gpus_to_recall_is_taken() -> None:
    world = World().domain("A", nodes=4)
    world.budget("org:a", envelopes=[_envelope("one"), _envelope("two")])
    world.run("big", 8, owner="org:a:x:y").run("small", 6, owner="org:a:x:z")
    world.cycle("-1h")
    cycle = world.run("own", 4, owner="org:a").cycle()

    assert [cycle.funding(run) for run in ("big", "own", "small")] == [{"shared": 8}, {"owned": 4}, {"unfunded": 6}]
    assert recalled(cycle) == (6, 6)


def _envelope(name: str) -> dict[str, object]:
    return {"name": name, "flavor": "H100-80GB", "selector": {"region": "*"}, "concurrency": 8}


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


def test_what_a_recall_leaves_over_starts_what_was_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().node("n1").node("n2").budget("org:a", 6).policy().run("kid", 6, owner="org:a:x")
    world.cycle("-1h")
    for number, (name, gpus, owner) in enumerate((("cou", 1, "org:a:z"), ("own", 5, "org:a"), ("late", 1, "org:a:z"))):
        world.run(name, gpus, owner=owner, created=f"-{9 - number}m")
    plan_as_large(monkeypatch)
    monkeypatch.setattr(large, "TERMS", 0)  # nothing is made whole

    plan = planner.plan(take(StateFile(world.save(), AT).read()), AT)

    assert sorted(lease.spec.run_ref.name for lease in plan.leases) == ["cou", "own"]


def contended(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """8 GPUs of quota, 6 of which a farther claim holds, for runs of 5, 4 and 4; as a large problem."""
    world = World().node("n1").node("n2").budget("org:a", 8).policy().run("kid", 6, owner="org:a:x")
    world.cycle("-1h")
    for name, gpus in (("five", 5), ("four", 4), ("four-more", 4)):
        world.run(name, gpus, owner="org:a", created="-9m")
    return as_large(world, monkeypatch)


def as_large(world: World, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """A world as a problem whose bound is handed out before its whole numbers."""
    plan_as_large(monkeypatch)
    monkeypatch.setattr(large, "WHOLE", 0)
    return take(StateFile(world.save(), AT).read())


def leading(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Value and bound of stage 3 in each incumbent, in GPUs, all that start being equally old."""
    found = [outcome.stages[0] for outcome in planner.Planning(snapshot, AT).outcomes()]
    weight = found[0].bound // 13
    return [(stage.value // weight, stage.bound // weight) for stage in found]


def test_the_bound_of_a_large_master_is_known_before_its_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leading(contended(monkeypatch))[:3] == [(5, 13), (5, 8), (8, 8)]


def test_beside_a_master_too_large_to_be_made_whole_its_relaxation_says_what_is_tried_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = contended(monkeypatch)
    monkeypatch.setattr(large, "TERMS", 0)

    assert leading(snapshot) == [(5, 13), (8, 8)]
    assert check(snapshot, planner.plan(snapshot, AT)) == []


@pytest.mark.parametrize("terms", [0, 1 << 30], ids=["too large", "made whole"])
@pytest.mark.parametrize("own", [[], ["own"]], ids=["nothing funded", "beside another"])
def test_what_has_no_place_does_not_keep_others_away(
    own: list[str], terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {"selector": {"fabric.domain": "nowhere"}}
    world = World().node("n1").node("n2").budget("org:a", 8).policy().run("kid", 6, owner="org:a:x")
    world.cycle("-1h")
    world.run("lost", 2, owner="org:a", locality=lost)
    world.run("nobody-pays", 3, owner="org:b", funding={"opportunistic": True})
    for name in own:
        world.run(name, 4, owner="org:a")
    snapshot = as_large(world, monkeypatch)
    monkeypatch.setattr(large, "TERMS", terms)

    plan = planner.plan(snapshot, AT)

    assert sorted({lease.spec.run_ref.name for lease in plan.leases}) == ["nobody-pays", *own]
    assert check(snapshot, plan) == []


@pytest.mark.parametrize("more", [[], [("big", 9)]], ids=["alone", "beside another"])
def test_nobody_gives_way_for_want_of_hours_that_are_provided_for(more: list[tuple[str, int]]) -> None:
    world = World().node("n1").node("n2").budget("org:a", 12, maxGPUHours=100, sharing="family").policy()
    world.run("far", 2, owner="org:a:x").cycle("-1h")
    for name, gpus in [("near", 4), *more]:
        world.run(name, gpus, owner="org:a")

    assert "46 GPU-hours short" in world.cycle().condition("near", "Admitted")["message"]
