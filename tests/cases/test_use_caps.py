"""Use caps: what runs of an owner use, whoever pays (spec §1 Budget.useCaps, §3.4, §3.8)."""

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import Cycle, State, World

HOUR = 3600


def capped(owner: str = "org:p", name: str | None = None, **cap: Any) -> Document:
    """A Budget with nothing but a use cap ``use``."""
    return doc.budget(owner, [], name or f"{owner.replace(':', '-')}-use", useCaps=[{"name": "use", **cap}])


def pool(**cap: Any) -> World:
    """org:p has 40 GPUs of its own, its parent shares 100, and its runs may use 24."""
    world = World().domain("A", nodes=16).budget("org", 100).budget("org:p", 40)
    return world.add(capped(**{"maxConcurrency": 24, **cap}))


def usage(state: State, budget: str = "org-p-use") -> Document:
    (found,) = state.get("Budget", budget)["status"]["useCaps"]
    return {key: value for key, value in found.items() if value and key != "name"}


def healthy(state: State, budget: str = "org-p-use") -> tuple[str, str]:
    (condition,) = state.get("Budget", budget)["status"]["conditions"]
    return condition["reason"], condition["message"]


def says(cycle: Cycle, run: str) -> str:
    return str(cycle.waits[run].message)


def test_runs_of_an_owner_hold_no_more_though_its_parent_has_room() -> None:
    cycle = pool().run("one", 16, owner="org:p").run("two", 16, owner="org:p").run("other", 64, owner="org").cycle()

    assert cycle.running == ["one", "other"]
    assert cycle.shorts("two") == [("use-concurrency", "org-p-use/use", 8, "GPU")]
    assert says(cycle, "two") == ("Asks for 16 GPUs: 8 GPUs short at the use cap org-p-use/use (16 of 24 in use).")
    assert usage(cycle) == {"ownedGPUs": 16, "headroomGPUs": 8, "gpuHoursCommitted": 16 * 24}
    assert healthy(cycle) == ("WithinCaps", "Every cap holds.")


def test_what_its_parent_pays_counts_and_so_do_its_children() -> None:
    world = pool(maxConcurrency=56).run("wide", 48, owner="org:p").run("kid", 8, owner="org:p:x")
    cycle = world.run("more", 1, owner="org:p:x").cycle()

    assert cycle.running == ["kid", "wide"]
    assert cycle.shorts("more") == [("use-concurrency", "org-p-use/use", 1, "GPU")]
    assert {key: value for key, value in usage(cycle).items() if key.endswith("GPUs")} == {
        "ownedGPUs": 32, "sharedGPUs": 24
    }  # fmt: skip


@pytest.mark.parametrize(("scope", "running"), [("own", ["kid", "one"]), ("subtree", ["one"])])
def test_scope_own_leaves_descendants_alone(scope: str, running: list[str]) -> None:
    cycle = pool(scope=scope).run("one", 24, owner="org:p").run("kid", 8, owner="org:p:x").cycle()
    assert cycle.running == running


def test_an_owner_that_has_no_envelope_bounds_those_below_it_and_is_no_parent() -> None:
    world = World().domain("A", nodes=4).budget("org", 16).add(capped("org:team", maxConcurrency=4))
    world.budget("org:team:x", 2).run("r", 4, owner="org:team:x").run("s", 1, owner="org:team:x")
    cycle = world.run("far", 8, owner="org:team").cycle()

    assert cycle.running == ["r"]
    assert cycle.shorts("s") == [("use-concurrency", "org-team-use/use", 1, "GPU")]
    assert cycle.shorts("far") == [("use-concurrency", "org-team-use/use", 8, "GPU")]
    assert cycle.funding("r") == {"owned": 2, "shared": 2}
    (nearest,) = (stage.value for stage in cycle.plan.stages if stage.name == "payers")
    assert nearest == 2000  # two GPUs of a parent's, not of a grandparent's: org:team, which pays for nobody, is none


@pytest.mark.parametrize(
    ("cap", "running"),
    [
        ({"selector": {"region": "us-west"}, "maxConcurrency": 4}, ["east", "w"]),
        ({"selector": {"region": "*"}, "maxConcurrency": 4}, ["w"]),
        ({"flavor": "A100", "maxConcurrency": 0}, ["east", "w", "x"]),
        ({"flavor": doc.FLAVOR, "maxConcurrency": 4}, ["w"]),
    ],
)
def test_it_counts_on_matching_nodes_alone(cap: Document, running: list[str]) -> None:
    world = World().domain("A").domain("B", labels={"region": "us-east"}).budget("org:p", 16).add(capped(**cap))
    world.run("w", 4, owner="org:p", locality={"selector": {"region": "us-west"}})
    world.run("east", 8, owner="org:p", locality={"selector": {"region": "us-east"}})
    cycle = world.run("x", 4, owner="org:p", locality={"selector": {"region": "us-west"}}).cycle()
    assert cycle.running == running


def test_it_binds_in_its_window() -> None:
    world = pool(maxConcurrency=0, start=moment("+1h"), end=moment("+2h"))
    world.run("before", 8, owner="org:p", created="-1h")
    assert world.cycle().funding("before") == {"owned": 8}
    within = world.run("late", 8, owner="org:p", created="+1h").cycle("+1h")
    assert (within.funding("before"), within.waiting) == ({"unfunded": 8}, ["late"])
    assert healthy(within) == (
        "Overcommitted",
        "Use cap use has 0 GPUs, and its runs hold 8 more: what is beyond is unfunded until there is room.",
    )
    after = world.cycle("+2h")
    assert (after.funding("before"), after.funding("late")) == ({"owned": 8}, {"owned": 8})
    assert after.segments("before") == [
        [
            ("owned", moment("+0s"), moment("+1h")),
            ("unfunded", moment("+1h"), moment("+2h")),
            ("owned", moment("+2h"), None),
        ]
    ]


def test_its_window_is_told_in_the_seconds_between_cycles() -> None:
    world = pool(maxConcurrency=0, start=moment("+10m"), end=moment("+20m")).run("r", 8, owner="org:p")
    world.cycle()
    assert world.cycle("+1h").segments("r") == [
        [
            ("owned", moment("+0s"), moment("+10m")),
            ("unfunded", moment("+10m"), moment("+20m")),
            ("owned", moment("+20m"), None),
        ]
    ]


@pytest.mark.parametrize(("limit", "hours", "short"), [("10h", 79, 1), ("10h", 80, 0), (None, 191, 1), (None, 192, 0)])
def test_hours_are_looked_at_ahead(limit: str | None, hours: int, short: int) -> None:
    world = (
        World().domain("A").budget("org", 100).add(capped(maxGPUHours=hours)).run("r", 8, owner="org:p", limit=limit)
    )
    cycle = world.cycle()
    assert cycle.running == ([] if short else ["r"])
    if short:
        assert cycle.shorts("r") == [("use-hours", "org-p-use/use", short, "GPU-hour")]


def test_hours_and_credits_run_out_to_the_second_and_count_from_its_start() -> None:
    world = pool(maxConcurrency=None, maxGPUHours=8, start=moment("+1h")).policy(accountingPeriod="1m")
    world.run("r", 8, owner="org:p").cycle()
    cycle = world.cycle("+3h")
    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+2h")), ("unfunded", moment("+2h"), None)]]
    assert usage(cycle) == {"unfundedGPUs": 8, "gpuSecondsConsumed": 8 * HOUR, "gpuHoursConsumed": 8}


def test_credits_are_bounded_at_the_rate_of_the_flavor() -> None:
    world = pool(maxConcurrency=None, maxCredits=16).policy(creditRates={doc.FLAVOR: 2}, accountingPeriod="1h")
    cycle = world.run("r", 8, owner="org:p").run("s", 1, owner="org:p:x").cycle()
    assert cycle.running == ["r"]
    assert cycle.shorts("s") == [("use-credits", "org-p-use/use", 2, "credit")]
    assert usage(cycle) == {"ownedGPUs": 8, "gpuHoursCommitted": 8, "creditsCommitted": 16}


def test_lowered_below_use_the_far_turn_unfunded_and_fresh_loans_last() -> None:
    sponsored = {"allowBorrow": True, "sponsors": ["team"]}
    world = World().domain("A", nodes=4).budget("org", 8).budget("org:p", 8)
    world.budget("team", 8, lending={"allow": True}).add(capped(maxConcurrency=24))
    world.run("own", 8, owner="org:p", created="-3h").run("far", 8, owner="org:p", created="-2h")
    world.run("lent", 8, owner="org:p", created="-1h", funding=sponsored).cycle()
    assert world.state().funding("lent") == {"borrowed": 8, "lenders": ["team"]}

    steps: list[tuple[int, set[str]]] = [(16, {"own", "lent"}), (8, {"lent"}), (0, set()), (24, {"own", "far", "lent"})]
    for minute, (limit, funded) in enumerate(steps, start=1):
        use = [{"name": "use", "maxConcurrency": limit}]
        cycle = world.edit("Budget", "org-p-use", spec={"useCaps": use}).cycle(f"+{minute}m")
        assert {run for run in ("own", "far", "lent") if "unfunded" not in cycle.funding(run)} == funded
        assert cycle.running == ["far", "lent", "own"]
        assert healthy(cycle)[0] == ("WithinCaps" if limit == 24 else "Overcommitted")


def test_one_run_takes_no_more_than_per_run_gpus_whoever_pays() -> None:
    world = pool(maxConcurrency=None, perRun={"maxGPUs": 44}).run("wide", 48, owner="org:p")
    cycle = world.run("fits", 40, owner="org:p").run("spare", 44, owner="org:p:x", spares=1).cycle()

    assert cycle.running == ["fits"]
    assert cycle.shorts("wide") == [("use-perRun", "org-p-use/use", 4, "GPU")]
    assert says(cycle, "wide") == (
        "Asks for 48 GPUs: 4 GPUs short at the use cap org-p-use/use, which gives one run 44 GPUs (perRun.maxGPUs)."
    )
    assert ("use-perRun", "org-p-use/use", 1, "GPU") in cycle.shorts("spare")


def test_where_many_wait_one_run_takes_no_more_either() -> None:
    world = pool(maxConcurrency=None, perRun={"maxGPUs": 4}).run("wide", 5, owner="org:p")
    for number in range(110):
        world.run(f"r{number}", 4, owner="org:p")
    cycle = world.cycle()
    assert len(cycle.running) == 32
    assert "wide" in cycle.waiting
    assert ("use-perRun", "org-p-use/use", 1, "GPU") in cycle.shorts("wide")


@pytest.mark.parametrize(
    ("limit", "stated"), [(None, "has no time limit: set runtime.timeLimit"), ("2h", "has a limit of 2h")]
)
def test_a_run_that_may_last_longer_waits_and_is_told(limit: str | None, stated: str) -> None:
    world = pool(maxConcurrency=None, perRun={"maxTime": "1h"}).run("long", 8, owner="org:p", limit=limit)
    cycle = world.run("short", 8, owner="org:p", limit="1h").cycle()

    assert cycle.running == ["short"]
    admits = f"the use cap org-p-use/use admits runs of at most 1h (perRun.maxTime), this one {stated}"
    assert says(cycle, "long") == (
        f"No envelope may pay for its 8 GPUs: org-p/gpus may not pay: {admits}; org/gpus may not pay: {admits}."
    )


@pytest.mark.parametrize(("default", "starts"), [("1h", True), ("2h", False)])
def test_the_limit_that_a_payer_gives_counts(default: str, starts: bool) -> None:
    world = World().node("n").budget("org:p", 8, perRun={"defaultTime": default})
    cycle = world.add(capped(perRun={"maxTime": "90m"})).run("r", 8, owner="org:p").cycle()
    assert cycle.running == (["r"] if starts else [])
    own = "has no limit of its own and gets 2h (perRun.defaultTime): set runtime.timeLimit"
    admits = f"the use cap org-p-use/use admits runs of at most 1h30m (perRun.maxTime), this one {own}"
    assert starts or says(cycle, "r") == (f"No envelope may pay for its 8 GPUs: org-p/gpus may not pay: {admits}.")


@pytest.mark.parametrize("count", [1, 120])
@pytest.mark.parametrize(
    ("limit", "stated"), [(None, "has no time limit: set runtime.timeLimit"), ("2h", "has a limit of 2h")]
)
def test_all_that_binds_is_named_beside_the_time(count: int, limit: str | None, stated: str) -> None:
    world = World().domain("A").domain("B").budget("org:p", 40)
    world.add(capped(maxConcurrency=4, perRun={"maxTime": "1h"})).run("on", 2, owner="org:p", limit="1h")
    world.cycle("-1m")
    for number in range(count):
        world.run(f"r{number:03}", 8, owner="org:p", limit=limit)
    admits = f"the use cap org-p-use/use admits runs of at most 1h (perRun.maxTime), this one {stated}"
    still = "with a runtime.timeLimit of 1h still: 6 GPUs short at the use cap org-p-use/use (2 of 4 in use)"

    assert says(world.cycle(), "r000") == (
        f"No envelope may pay for its 8 GPUs: org-p/gpus may not pay: {admits}; {still}."
    )


def test_running_work_keeps_its_payer_under_a_shorter_time() -> None:
    world = pool(maxConcurrency=None, perRun={"maxTime": "3h", "maxGPUs": 8}).run("r", 8, owner="org:p", limit="3h")
    world.cycle()
    lower = [{"name": "use", "perRun": {"maxTime": "1h", "maxGPUs": 1}}]
    cycle = world.edit("Budget", "org-p-use", spec={"useCaps": lower}).cycle("+1h")
    assert cycle.funding("r") == {"owned": 8}


def test_a_long_run_still_starts_where_the_cap_does_not_count() -> None:
    world = World().domain("A").domain("B", labels={"region": "us-east"}).budget("org:p", 16)
    world.add(capped(selector={"region": "us-west"}, perRun={"maxTime": "1h"}))
    cycle = world.run("r", 8, owner="org:p").run("s", 8, owner="org:p").cycle()
    assert {node for row in cycle.leases() for node in row.nodes} == {"b01"}
    assert (cycle.running, cycle.waiting) == (["r"], ["s"])
    assert says(cycle, "s") == (
        "Asks for 8 GPUs: 8 GPUs would have to be freed in B; on other nodes the use cap org-p-use/use admits runs of"
        " at most 1h (perRun.maxTime), this one has no time limit: set"
        " runtime.timeLimit."
    )


def test_nor_where_its_nodes_are_all_counted() -> None:
    world = World().domain("A").domain("B", labels={"region": "us-east"}).budget("org:p", 16)
    world.add(capped(selector={"region": "us-west"}, perRun={"maxTime": "1h"}))
    cycle = world.run("r", 8, owner="org:p", locality={"selector": {"region": "us-west"}}).cycle()
    assert says(cycle, "r") == (
        "No node that it may use is matched by an envelope that pays for it: org-p/gpus (region=*); on other nodes the"
        " use cap org-p-use/use admits runs of at most 1h (perRun.maxTime), this one has no time limit: set"
        " runtime.timeLimit."
    )


def test_charges_of_a_payer_that_is_gone_still_count() -> None:
    world = pool(maxConcurrency=None, maxGPUHours=100).policy(accountingPeriod="1h")
    world.run("r", 8, owner="org:p", limit="2h").cycle()
    world.cycle("+2h")
    world.delete("Budget", "org-p").run("s", 8, owner="org:p")
    cycle = world.cycle("+3h")
    assert usage(cycle) == {
        "sharedGPUs": 8, "gpuSecondsConsumed": 16 * HOUR, "gpuHoursConsumed": 16, "gpuHoursCommitted": 8,
        "headroomGPUHours": 76,
    }  # fmt: skip


def test_charges_count_after_their_leases_were_pruned() -> None:
    world = pool(maxConcurrency=None, maxGPUHours=20).policy(accountingPeriod="1h", retention={"leases": "0s"})
    world.run("r", 8, owner="org:p", limit="2h").cycle()
    world.cycle("+2h")
    cycle = world.run("s", 8, owner="org:p").cycle("+3h")
    assert cycle.all("Lease") == []
    assert cycle.shorts("s") == [("use-hours", "org-p-use/use", 4, "GPU-hour")]
    assert usage(cycle)["gpuHoursConsumed"] == 16


def test_what_an_unreadable_budget_pays_keeps_its_place() -> None:
    world = pool(maxConcurrency=16).run("r", 16, owner="org:p").run("s", 4, owner="org:p")
    world.cycle()
    cycle = world.edit("Budget", "org-p", spec={"limit": 500}).cycle("+1h")
    assert cycle.funding("r") == {"owned": 16}
    assert cycle.shorts("s") == [("use-concurrency", "org-p-use/use", 4, "GPU")]
    assert {key: value for key, value in usage(cycle).items() if key.endswith("GPUs")} == {"ownedGPUs": 16}


def test_nobody_recalls_at_it() -> None:
    # org:p:x holds what org:p wants: its money comes back, and the use cap has room in the next cycle only
    world = World().domain("A", nodes=2).budget("org:p", 8).add(capped(maxConcurrency=8))
    world.run("kid", 8, owner="org:p:x", created="-2h").cycle("-1h")
    world.run("own", 8, owner="org:p")
    cycle = world.cycle()
    assert (cycle.running, cycle.funding("kid")) == (["kid"], {"shared": 8})
    assert ("use-concurrency", "org-p-use/use", 8, "GPU") in cycle.shorts("own")


def test_usage_and_whatif_know_it() -> None:
    world = pool().run("one", 16, owner="org:p").run("two", 16, owner="org:p")
    cycle = world.cycle()
    printed = world.usage("org-p-use", "use")
    (told,) = cycle.get("Budget", "org-p-use")["status"]["useCaps"]
    assert printed == {"budget": "org-p-use", "owner": "org:p", "kind": "UseCap", **told}
    table = world.runs("budgets", "usage", at="+0s").ok().out
    assert "org-p-use/use (use)" in table
    wider = world.runs("whatif", "--cap", "org-p-use/use=32", at="+0s").ok().out
    assert "two" in wider


@pytest.mark.parametrize(
    ("cap", "change"),
    [
        ({"maxConcurrency": 4}, "Budget org-p-use: spec.useCaps[use].maxConcurrency: 8"),
        ({"maxGPUHours": 100}, "Budget org-p-use: spec.useCaps[use].maxGPUHours: 192"),
        ({"maxCredits": 100}, "Budget org-p-use: spec.useCaps[use].maxCredits: 192"),
        ({"perRun": {"maxGPUs": 7}}, "Budget org-p-use: spec.useCaps[use].perRun.maxGPUs: 8"),
        ({"perRun": {"maxTime": "1h"}}, "Budget org-p-use: spec.useCaps[use].perRun.maxTime: null"),
    ],
)
def test_a_remedy_names_it_and_with_it_the_run_starts(cap: Document, change: str) -> None:
    world = World().domain("A").policy(creditRates={doc.FLAVOR: 1}).budget("org:p", 8).add(capped(**cap))
    world.run("r", 8, owner="org:p").cycle()
    assert change.partition(": ")[2].replace("null", "(left out)") in world.runs("explain", "r", at="+0s").ok().out
    path, _, value = change.partition("spec.useCaps[use].")[2].partition(": ")
    field: Any = None if value == "null" else int(value)
    for name in reversed(path.split(".")):
        field = {name: field}
    use = doc.merge({"name": "use", **cap, **({"maxConcurrency": 99} if value == "null" else {})}, field)
    cycle = world.edit("Budget", "org-p-use", spec={"useCaps": [use]}).cycle("+1m")
    assert cycle.running == ["r"]
