"""Promises that cuts keep: dates, warnings, the order of cuts, draws and their proofs (spec §5, §6)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import Cycle, World

ORIGIN = "5f" * 32


def promises(cycle: Cycle) -> dict[str, Any]:
    """Status of each Reservation by its run."""
    return {each["spec"]["runRef"]["name"]: each["status"] for each in cycle.all("Reservation")}


def crowded(**v: Any) -> World:
    """1 × 8 with V, which has run for a day; then W of another owner arrives."""
    world = World().node("n").budget("org:v", 8).budget("org:w", 8)
    world.run("v", 8, owner="org:v", **v).old()
    return world.run("w", 8, owner="org:w")


def test_without_notice_a_promise_by_cuts_is_kept_by_the_next_cycle() -> None:
    world = crowded().policy(reservations={"notice": "0s"})
    cycle = world.cycle()
    assert (cycle.running, promises(cycle)["w"]["earliestStart"]) == (["v"], moment("+1s"))
    assert world.cycle("+1m").running == ["w"]


def test_a_due_promise_that_its_cycle_cannot_keep_moves_and_says_why() -> None:
    world = crowded()
    world.cycle()
    world.delete("Budget", "org-v")  # who turns unfunded may be cut from the next cycle on
    told = promises(world.cycle("+15m"))["w"]

    assert (told["state"], told["earliestStart"]) == ("Pending", moment("+15m1s"))
    assert [(each["at"], each["earliestStart"], each["cause"]) for each in told["history"]] == [
        (
            moment("+15m"), moment("+15m1s"),
            "It could not start at its time: Asks for 8 GPUs: 8 GPUs would have to be freed in d1.",
        )
    ]  # fmt: skip
    assert world.cycle("+16m").running == ["w"]


def test_T3_who_is_in_the_way_is_told_and_drawn_after_notice() -> None:
    world = crowded()
    cycle = world.cycle()
    (reservation,) = cycle.all("Reservation")
    name = f"default/{reservation['metadata']['name']}"
    forecast = reservation["status"]["forecast"]
    assert reservation["status"]["earliestStart"] == moment("+15m")
    assert forecast["deficitGPUs"] == 8
    assert forecast["conflictSet"] == [{"run": "default/v", "killProbability": 1}]
    assert forecast["remedies"] == [{"run": "default/v", "action": "Lottery", "gpus": 8}]
    assert (cycle.status("v")["conflictSets"], cycle.status("v")["killProbability"]) == ([name], 1)
    assert world.cycle("+14m").running == ["v"]

    cycle = world.cycle("+15m")
    assert cycle.phases == {"v": "Failed", "w": "Running"}
    (lost,) = cycle.leases("v")
    assert (lost.closure, lost.ended) == ("Lottery", moment("+15m"))
    assert promises(cycle)["w"]["state"] == "Activated"
    (lease,) = (each for each in cycle.all("Lease") if each["spec"]["runRef"]["name"] == "v")
    plan = cycle.all("Plan")[-1]
    assert lease["status"]["cause"] == {"plan": plan["metadata"]["name"], "reservation": name}
    drawn = plan["status"]["lottery"]
    assert lease["status"]["proof"] == {
        "plan": plan["metadata"]["name"], "reservation": name, "draw": 0, "position": 1, "secret": drawn["secret"],
    }  # fmt: skip
    assert drawn["draws"][0]["pools"] == [[{"owner": "org:v", "tokens": ["default/v#0"]}]]
    assert drawn["draws"][0]["picks"] == ["default/v#0"]


@pytest.mark.parametrize(("lost", "date"), [("+14m", "+29m"), ("+15m", "+30m")])
def test_nobody_is_drawn_who_was_not_told_for_as_long_as_any_other(lost: str, date: str) -> None:
    """The small run was to go; its node is lost, and only the large one is left."""
    world = old_world({"A": 3}, "small", "large", "w")
    world.run("small", 8, owner="org:small").run("large", 16, by=8, owner="org:large").old()
    world.run("w", 8, owner="org:w")
    before = promises(world.cycle())["w"]["forecast"]["conflictSet"]
    (lease,) = world.state().leases("small")
    world.delete("Node", *lease.nodes)
    told = promises(world.cycle(lost))["w"]

    assert before == [{"run": "default/small", "killProbability": 1}]
    assert told["forecast"]["conflictSet"] == [{"run": "default/large", "killProbability": 1}]
    assert told["earliestStart"] == moment(date)
    assert world.cycle("+15m").running == ["large"]
    assert world.cycle(date).running == ["w"]


def test_T3a_a_run_is_protected_for_twelve_hours() -> None:
    world = World().node("n").budget("org:v", 8).budget("org:w", 8).run("v", 8, owner="org:v")
    world.cycle("-1h")
    cycle = world.run("w", 8, owner="org:w").cycle()
    assert promises(cycle)["w"]["earliestStart"] == moment("+11h")


def test_T3b_its_own_owners_runs_are_never_drawn() -> None:
    world = World().node("n").budget("org:v", 16).run("v", 8, owner="org:v")
    world.old()
    cycle = world.run("w", 8, owner="org:v").cycle()
    assert cycle.all("Reservation") == []
    why = "only runs of its own owner org:v are in the way, and when they end is not known"
    assert cycle.waits["w"].undated == why
    assert f"earliestStart: none: {why}\n" in world.runs("plan", "w", at="+0s").ok().out


def test_T4_a_natural_start_within_patience_cuts_nobody() -> None:
    world = crowded(limit="30h")
    cycle = world.cycle()
    assert promises(cycle)["w"]["earliestStart"] == moment("+6h")
    assert "conflictSet" not in promises(cycle)["w"]["forecast"]
    assert "killProbability" not in cycle.status("v")
    assert world.cycle("+6h").phases == {"v": "Failed", "w": "Running"}


def test_T5_a_natural_start_beyond_patience_is_not_awaited() -> None:
    world = crowded(limit="72h")
    assert promises(world.cycle())["w"]["earliestStart"] == moment("+15m")
    assert world.cycle("+15m").running == ["w"]


def old_world(domains: dict[str, int], *owners: str) -> World:
    """Domains of so many nodes of 8, and a Budget of 96 GPUs for each of these owners."""
    world = World()
    for name, nodes in domains.items():
        world.domain(name, nodes=nodes)
    for owner in owners:
        world.budget(f"org:{owner}", 96)
    return world


def closed(cycle: Cycle) -> list[tuple[str, int, str | None]]:
    """Run, group and reason of every lease that has ended."""
    return [(row.run, row.group, row.closure) for row in cycle.leases(open=False)]


def test_X1_shrink_then_exactly_one_group_by_lottery() -> None:
    world = old_world({"A": 3}, "p", "q", "r")
    wide: dict[str, Any] = {"malleable": {"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8}}
    world.run("a", 8, owner="org:p").run("b", 16, by=8, owner="org:q", **wide).old()
    cycle = world.run("c", 16, by=8, owner="org:r").cycle()
    assert [(each["action"], each["run"], each["gpus"]) for each in promises(cycle)["c"]["forecast"]["remedies"]] == [
        ("Shrink", "default/b", 8), ("Lottery", "default/a", 8), ("Lottery", "default/b", 16),
    ]  # fmt: skip
    cycle = world.cycle("+15m")
    assert cycle.status("c")["phase"] == "Running"
    assert closed(cycle) in ([("a", 0, "Lottery"), ("b", 1, "Shrink")], [("b", 0, "Lottery"), ("b", 1, "Shrink")])


@pytest.mark.parametrize(
    ("without", "gone"),
    [
        ([], [("unfunded", 0, "ReclaimUnfunded")]),
        (["unfunded"], [("spare", 0, "DropSpare")]),
        (["unfunded", "spare"], [("wide", 1, "Shrink")]),
        (["unfunded", "spare", "wide"], [("fixed", 0, "Lottery")]),
    ],
)
def test_X2_the_gentlest_kind_alone_is_cut(without: list[str], gone: list[tuple[str, int, str]]) -> None:
    world = World().budget("org:s", 96).budget("org:m", 96).budget("org:f", 96).budget("org:w", 96)
    there = [name for name in ("unfunded", "spare", "wide", "fixed") if name not in without]
    for number, name in enumerate(there):
        world.domain(f"D{number}", nodes={"unfunded": 1, "fixed": 1}.get(name, 2))
    if "unfunded" in there:
        world.run("unfunded", 8, owner="org:u", funding={"opportunistic": True})
    if "spare" in there:
        world.run("spare", 8, pods=8, owner="org:s", spares=1)
    if "wide" in there:
        wide = {"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8}
        world.run("wide", 16, by=8, owner="org:m", malleable=wide)
    world.run("fixed", 8, owner="org:f").old()
    world.run("w", 8, owner="org:w").cycle()
    cycle = world.cycle("+15m")
    assert (closed(cycle), cycle.phases["w"]) == (gone, "Running")


def test_X3_the_highest_groups_go_first_as_numbers() -> None:
    world = old_world({"A": 12}, "m", "w")
    wide = {"minTotalGPUs": 72, "maxTotalGPUs": 96, "stepGPUs": 8}
    world.run("m", 96, by=8, owner="org:m", malleable=wide).old()
    world.run("w", 24, by=8, owner="org:w").cycle()
    assert closed(world.cycle("+15m")) == [("m", 9, "Shrink"), ("m", 10, "Shrink"), ("m", 11, "Shrink")]


def test_X5_the_chance_of_each_is_told_by_owner() -> None:
    world = old_world({"A": 10}, "p", "q", "w").run("p", 8, owner="org:p")
    for number in range(9):
        world.run(f"q{number}", 8, owner="org:q")
    world.old()
    cycle = world.run("w", 8, owner="org:w").cycle()
    chances = {name: cycle.status(name)["killProbability"] for name in ("p", *(f"q{i}" for i in range(9)))}
    assert chances == {"p": 0.5, **{f"q{i}": 0.055556 for i in range(9)}}


def test_X7_the_domain_with_the_least_harm_is_chosen_before_any_draw() -> None:
    world = World().domain("A", nodes=1, gpus=16).domain("B", nodes=1, gpus=16)
    for owner in ("a", "b", "c", "w"):
        world.budget(f"org:{owner}", 96)
    world.run("a1", 8, owner="org:a", locality={"selector": {"fabric.domain": "A"}})
    world.run("a2", 8, owner="org:a", locality={"selector": {"fabric.domain": "A"}})
    world.run("b", 8, owner="org:b", locality={"selector": {"fabric.domain": "B"}}).old()
    cycle = world.run("w", 16, owner="org:w").cycle()
    assert promises(cycle)["w"]["forecast"]["conflictSet"] == [{"run": "default/b", "killProbability": 1}]
    assert closed(world.cycle("+15m")) == [("b", 0, "Lottery")]


def test_X8_a_big_gang_is_in_no_set_of_least_harm() -> None:
    world = old_world({"A": 10}, "p", "q", "s", "w")
    world.run("gang", 64, by=8, owner="org:p").run("q", 8, owner="org:q").run("s", 8, owner="org:s").old()
    cycle = world.run("w", 8, owner="org:w").cycle()
    told = {name: cycle.status(name).get("killProbability") for name in ("gang", "q", "s")}
    assert told == {"gang": None, "q": 0.5, "s": 0.5}


def test_at_most_so_many_gpus_are_cut_in_a_cycle() -> None:
    world = old_world({"A": 1}, "v", "w").policy(cuts={"maxGPUsPerCycle": 7}).run("v", 8, owner="org:v")
    world.old()
    cycle = world.run("w", 8, owner="org:w").cycle()
    assert (cycle.all("Reservation"), cycle.status("v").get("killProbability")) == ([], None)
    assert cycle.waits["w"].undated == "more than 7 GPUs would have to go at once (cuts.maxGPUsPerCycle)"
    assert world.cycle("+15m").running == ["v"]
    world.edit("Policy", "default", spec={"cuts": {"maxGPUsPerCycle": 8}}).cycle("+16m")
    assert world.cycle("+31m").running == ["w"]


def test_a_promise_that_the_limit_on_cuts_puts_off_names_it() -> None:
    world = old_world({"A": 2}, "u", "v", "w", "x").policy(cuts={"maxGPUsPerCycle": 16})
    world.run("u", 8, owner="org:u").run("v", 8, owner="org:v").old()
    world.run("x", 8, owner="org:x").run("w", 8, owner="org:w").cycle()  # in seconds of their own also on a cluster
    told = promises(world.edit("Policy", "default", spec={"cuts": {"maxGPUsPerCycle": 8}}).cycle("+15m"))

    (move,) = told["w"]["history"]
    limit = "a cycle cuts at most 8 GPUs (cuts.maxGPUsPerCycle)"
    assert (told["x"]["state"], told["w"]["state"]) == ("Activated", "Pending")
    assert move["cause"] == f"More would have had to go for it: {limit}."
    assert "w" in world.cycle("+16m").running


@pytest.mark.parametrize(("most", "apart"), [(16, "+15m"), (15, "+20m"), (8, "+20m")])
def test_what_several_promises_cut_at_a_time_is_no_more_than_a_cycle_may(most: int, apart: str) -> None:
    """The younger one is told a later time at once, a `bucket` away, and has it."""
    world = old_world({"A": 2}, "u", "v", "w", "x").policy(cuts={"maxGPUsPerCycle": most})
    world.run("u", 8, owner="org:u").run("v", 8, owner="org:v").old()
    cycle = world.run("x", 8, owner="org:x").run("w", 8, owner="org:w").cycle("+1s")
    told = {run: each["earliestStart"] for run, each in promises(cycle).items()}

    assert told == {"x": moment("+15m1s"), "w": moment(f"{apart}1s")}
    world.cycle("+15m1s")
    cycle = world.cycle("+20m1s")
    assert (cycle.running, promises(cycle)["w"]["earliestStart"]) == (["w", "x"], told["w"])


def test_a_promise_that_no_draw_may_be_made_for_says_so() -> None:
    world = crowded()
    world.cycle()
    told = promises(world.delete("Secret", "jobtree-lottery").cycle("+15m"))["w"]

    (move,) = told["history"]
    assert move["cause"] == "Nothing could be drawn: this plan had no secret of the lottery."


def test_a_promise_that_ends_without_a_date_says_why() -> None:
    world = crowded()
    world.cycle()
    told = promises(world.policy(cuts={"maxGPUsPerCycle": 7}).cycle("+5m"))["w"]

    limit = "more than 7 GPUs would have to go at once (cuts.maxGPUsPerCycle)"
    assert (told["state"], told["reason"]) == ("Failed", "NoKnownTime")
    assert told["message"] == f"No known time lets its run start any more: {limit}."


@pytest.mark.parametrize(("most", "running"), [(9, ["v"]), (10, ["w"])])
def test_spares_that_go_with_a_drawn_run_count_among_what_a_cycle_cuts(most: int, running: list[str]) -> None:
    """They are no part of the harm, which is 8: only their leases close with the run's."""
    world = old_world({"A": 1, "B": 1}, "v", "w").policy(cuts={"maxGPUsPerCycle": most})
    world.run("v", 8, by=4, spares=1, owner="org:v").old()
    world.run("w", 8, owner="org:w").cycle()
    assert world.cycle("+15m").running == running


def test_no_cuts_in_mode_noCuts() -> None:
    world = old_world({"A": 1}, "v", "w").policy(mode="noCuts").run("v", 8, owner="org:v")
    world.old()
    assert world.run("w", 8, owner="org:w").cycle().all("Reservation") == []
    assert world.cycle("+15m").running == ["v"]


def test_T12_a_due_promise_may_start_unfunded_where_only_money_is_short() -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=95)
    world.policy(reservations={"onBudgetShortfall": "startUnfunded"}).run("r", 4)
    cycle = world.cycle()
    assert (cycle.running, promises(cycle)["r"]["earliestStart"]) == ([], moment("+15m"))
    assert world.cycle("+14m").running == []
    cycle = world.cycle("+15m")
    assert (cycle.running, cycle.funding("r")) == (["r"], {"unfunded": 4})
    assert promises(cycle)["r"]["state"] == "Activated"


def test_T6_a_budget_shortfall_cuts_nobody() -> None:
    world = World().node("n", 12).budget("org:t", 4).budget("org:v", 8)
    world.run("one", 4, owner="org:t", limit="25h").run("v", 8, owner="org:v").old()
    cycle = world.run("two", 4, owner="org:t").cycle()
    assert promises(cycle)["two"]["earliestStart"] == moment("+1h")
    assert "conflictSet" not in promises(cycle)["two"]["forecast"]
    assert world.cycle("+1h").running == ["two", "v"]


def test_a_start_waits_for_the_pods_of_its_victims() -> None:
    world = crowded()
    world.cycle()
    pod = doc.foreign_pod("v-0", "n", 8)
    own = {"metadata": {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": "v"}}}
    world.add(doc.merge(pod, {**own, "status": {"phase": "Running", "startTime": moment("-24h")}}))
    cycle = world.cycle("+15m")
    assert (cycle.phases, closed(cycle)) == ({"v": "Failed", "w": "Pending"}, [("v", 0, "Lottery")])
    assert (promises(cycle)["w"]["state"], promises(cycle)["w"]["reason"]) == ("Activated", "WaitingForVictims")
    cycle = world.cycle("+16m")
    assert (cycle.running, promises(cycle)["w"]["reason"]) == ([], "WaitingForVictims")
    cycle = world.delete("Pod", "v-0").cycle("+17m")
    assert (cycle.running, promises(cycle)["w"]["state"]) == (["w"], "Activated")


def pod_of(run: str, gpus: int) -> doc.Document:
    """The pod of a run on n, which stays for a while once its lease has ended."""
    own = {"metadata": {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": run}}}
    pod = doc.merge(doc.foreign_pod(f"{run}-0", "n", gpus), own)
    return doc.merge(pod, {"status": {"phase": "Running", "startTime": moment("-24h")}})


def test_what_waits_for_its_victims_pods_keeps_what_was_free_for_it() -> None:
    """`w` has 2 free GPUs and 4 of `v`, whose pod is still there; `x` of 2 arrives."""
    world = World().node("n").budget("org:v", 8).budget("org:w", 8).budget("org:x", 8)
    world.run("k", 2, owner="org:w").run("v", 4, owner="org:v").old()
    world.run("w", 6, owner="org:w").cycle()
    cycle = world.add(pod_of("v", 4)).cycle("+15m")
    assert (cycle.running, promises(cycle)["w"]["reason"]) == (["k"], "WaitingForVictims")
    assert world.run("x", 2, owner="org:x", created="+15m").cycle("+16m").running == ["k"]
    assert world.delete("Pod", "v-0").cycle("+17m").running == ["k", "w"]


def test_who_starts_in_what_others_victims_leave_over_waits_for_their_pods_too() -> None:
    """`large` goes for `second`, and leaves over what `first` lacks: nothing goes for it while that is held."""
    world = World().node("n").budget("org:v", 9).budget("org:a", 9).budget("org:b", 9)
    world.foreign_pod("p", "n", 2).run("small", 2, owner="org:v").run("large", 4, owner="org:v").old()
    world.run("first", 4, owner="org:a", created="+1m").run("second", 2, owner="org:b", created="+2m")
    world.cycle("+5m")
    world.delete("Pod", "p").add(pod_of("large", 4)).add(pod_of("small", 2))
    for at in ("+20m", "+21m"):
        cycle = world.cycle(at)
        assert (cycle.running, promises(cycle)["first"]["reason"]) == (["second", "small"], "WaitingForVictims")
    cycle = world.delete("Pod", "large-0").cycle("+22m")
    assert cycle.running == ["first", "second", "small"]
