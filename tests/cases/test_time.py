"""When: natural starts, promises held, what may pass before them (spec §5)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from collections.abc import Callable
from typing import Any

import pytest

from planner.forecast.calendar import Known, known_times
from planner.state.derive import state_of
from tests.support.documents import envelope
from tests.support.times import T0, moment, unix
from tests.support.worlds import Cycle, World


def promise(cycle: Cycle, run: str) -> tuple[str, str, list[str]]:
    """When, how sure, and where a run is promised to start."""
    status = standing(cycle)[run]
    return status["earliestStart"], status["forecast"]["confidence"], status["intendedSlice"]["nodes"]


def standing(cycle: Cycle) -> dict[str, dict[str, Any]]:
    """Statuses of promises that stand, by run."""
    found = [each for each in cycle.all("Reservation") if each["status"]["state"] == "Pending"]
    return {each["spec"]["runRef"]["name"]: each["status"] for each in found}


def states(cycle: Cycle) -> dict[str, tuple[str, str]]:
    """State and reason of every Reservation, by run."""
    return {
        each["spec"]["runRef"]["name"]: (each["status"]["state"], each["status"]["reason"])
        for each in cycle.all("Reservation")
    }


def test_F4_a_window_that_opens_is_promised_and_kept() -> None:
    world = World().node("n1").budget("org:a", 8, start=moment("+2h")).run("r", 8)
    cycle = world.cycle()
    assert (cycle.phases, promise(cycle, "r")) == ({"r": "Pending"}, (moment("+2h"), "window", ["n1"]))
    status = cycle.status("r")
    assert (status["earliestStart"], status["eta"]["p50"]) == (moment("+2h"), moment("+2h"))

    cycle = world.cycle("+2h")
    assert (cycle.phases, states(cycle)) == ({"r": "Running"}, {"r": ("Activated", "Started")})
    assert "earliestStart" not in cycle.status("r")


@pytest.mark.parametrize(
    "policy", [{}, {"maintenance": [{"selector": {"row": "2"}, "start": moment("+1h"), "end": moment("+3h")}]}]
)
def test_no_promise_counts_on_a_window_that_allows_none(policy: dict[str, Any]) -> None:
    world = World().policy(**policy).node("n1")
    world.budget("org:a", 8, start=moment("+2h"), preActivation={"allowReservations": False}).run("r", 8)
    cycle = world.cycle()
    assert (cycle.phases, cycle.all("Reservation")) == ({"r": "Pending"}, [])
    assert "earliestStart" not in cycle.status("r")
    assert world.cycle("+2h").phases == {"r": "Running"}


def test_what_no_promise_counts_on_is_named_with_the_time_at_which_it_opens() -> None:
    """Who else may not pay is not named, nor what opens beyond the horizon."""
    none: dict[str, Any] = {"preActivation": {"allowReservations": False}}
    envelopes = [envelope(8, "late", start=moment("+30d"), **none), envelope(8, "next", start=moment("+2h"), **none)]
    world = World().node("n1").budget("org:a", envelopes=envelopes)
    world.budget("org:b", 8, start=moment("+1h"), sharing="none", **none).run("r", 8).cycle()

    nothing = "nothing that is known to end within the horizon frees enough room and money for it"
    assert undated(world) == (
        f"earliestStart: none: {nothing}; org-a/next opens at {moment('+2h')}, and no promise counts on that "
        "(preActivation.allowReservations)"
    )
    said = world.runs("watch", "r", at="+0s").ok().out
    assert f"the window of org-a/next opens at {moment('+2h')}" in said


def test_a_window_that_is_open_now_may_allow_no_promises_and_is_promised_on_all_the_same() -> None:
    world = World().node("n1").budget("org:a", 8, start=moment("-2h"), preActivation={"allowReservations": False})
    world.run("first", 8, runtime={"timeLimit": "2h"}).cycle("-1h")
    assert promise(world.run("r", 8).cycle(), "r")[:2] == (moment("+1h"), "fixed")


def subtree() -> World:
    """What bounds the descendants' envelopes together is over at +2h."""
    world = World().domain("A", nodes=2).budget("org", 4, scope="subtree", end=moment("+2h"))
    return world.budget("org:a", 8, sharing="none").run("r", 8)


def aggregate() -> World:
    """One of two envelopes under a cap pays for as much as that lets both, until +2h."""
    both = [envelope(8, "first", end=moment("+2h")), envelope(8, "second")]
    caps = [{"name": "all", "envelopes": ["first", "second"], "maxConcurrency": 8}]
    world = World().domain("A", nodes=2).budget("org:a", envelopes=both, spec={"aggregateCaps": caps})
    world.run("first", 8).cycle("-1h")
    return world.run("r", 8)


def use_cap() -> World:
    """From +2h on runs of org:b may use nothing, and what pays for them until then is free."""
    none = {"useCaps": [{"name": "none", "maxConcurrency": 0, "start": moment("+2h")}], "envelopes": None}
    world = World().domain("A", nodes=2).budget("org", 8).budget("org:b", spec=none)
    world.run("first", 8, owner="org:b").cycle("-1h")
    return world.run("r", 8, owner="org:a")


@pytest.mark.parametrize("made", [subtree, aggregate, use_cap])
def test_a_window_that_closes_and_leaves_others_more_is_promised_and_kept(made: Callable[[], World]) -> None:
    world = made()
    assert promise(world.cycle(), "r")[:2] == (moment("+2h"), "window")
    assert "r" not in world.cycle("+1h59m").running
    assert "r" in world.cycle("+2h").running


def undated(made: World) -> str:
    """What `plan` says of the start of a run, of which nobody knows when it is."""
    (line,) = (line for line in made.runs("plan", "r", at="+0s").ok().out.splitlines() if "earliestStart" in line)
    return line


def test_what_waits_for_money_at_no_known_time_says_so() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("first", 8).run("r", 8)
    world.cycle()

    assert undated(world) == "earliestStart: none: its budgets can pay for it at no known time"


def test_what_waits_for_room_at_no_known_time_says_so() -> None:
    world = World().domain("A").budget("org:a", 16).policy(mode="noCuts").run("first", 8).run("r", 8)
    world.cycle()

    words = "earliestStart: none: nothing that is known to end within the horizon frees enough room and money for it"
    assert undated(world) == words


def four_jobs() -> World:
    """T1: four nodes, jobs that end after one to four hours, then a gang of all and one that would run on."""
    world = World().domain("A", nodes=4).budget("org:a", 64)
    for hours in range(1, 5):
        world.run(f"j{hours}", 8, limit=f"{hours}h")
    world.cycle()
    return world.run("large", 32, by=8, limit="6h", created="+1s").run("small", 8, limit="10h", created="+2s")


def test_T1_a_gang_is_promised_and_nothing_delays_it() -> None:
    world = four_jobs()
    cycle = world.cycle("+1m")
    assert promise(cycle, "large") == (moment("+4h"), "fixed", ["a01", "a02", "a03", "a04"])
    assert promise(cycle, "small")[:2] == (moment("+10h"), "fixed")
    for hours in range(1, 4):
        cycle = world.run(f"q{hours}", 8, limit="30m", created=f"+{hours}h").cycle(f"+{hours}h")
        assert cycle.phases[f"q{hours}"] == "Running"
        assert promise(cycle, "large")[0] == moment("+4h")
        assert promise(cycle, "small")[0] == moment("+10h")
    cycle = world.cycle("+4h")
    assert (cycle.phases["large"], cycle.phases["small"]) == ("Running", "Pending")
    assert world.cycle("+10h").phases["small"] == "Running"


def test_T2_a_job_that_ends_early_brings_the_start_forward() -> None:
    world = four_jobs()
    world.cycle("+1m")
    assert world.cycle("+2h").phases["large"] == "Pending"
    world.runs("complete", "j4", at="+3h").ok()
    assert world.cycle("+3h").phases["large"] == "Running"


def test_P4_the_second_of_two_whole_fleets_is_promised_the_end_of_the_first() -> None:
    world = World().domain("A", nodes=10).budget("org:a", 160)
    cycle = world.run("x", 80, by=8, pods=8, limit="2h").run("y", 80, by=8, pods=8, limit="3h").cycle()
    assert (cycle.running, promise(cycle, "y")[0]) == (["x"], moment("+2h"))


def test_T6_a_budget_that_frees_is_promised_without_a_deficit() -> None:
    world = World().node("n", 12).budget("org:t", 4).run("one", 4, owner="org:t", limit="1h")
    cycle = world.run("two", 4, owner="org:t").cycle()
    assert promise(cycle, "two")[:2] == (moment("+1h"), "fixed")
    assert standing(cycle)["two"]["forecast"]["deficitGPUs"] == 0


def test_T10_maintenance_is_waited_for() -> None:
    window = {"selector": {"region": "*"}, "start": moment("+2h"), "end": moment("+4h")}
    world = World().policy(maintenance=[window]).node("n").budget("org:a", 16)
    cycle = world.run("long", 8, limit="3h").run("short", 8, limit="1h").cycle()
    assert (cycle.running, promise(cycle, "long")[0]) == (["short"], moment("+4h"))


def test_T11_the_oldest_are_held_and_the_others_estimated() -> None:
    world = World().policy(reservations={"maxHeld": 3}).node("n").budget("org:a", 80)
    for number in range(11):
        world.run(f"r{number:02}", 8, limit="1h")
    cycle = world.cycle()
    assert (cycle.running, sorted(standing(cycle))) == (["r00"], ["r01", "r02", "r03"])
    assert {name: cycle.status(name)["eta"]["p50"] for name in cycle.waiting} == {
        f"r{number:02}": moment(f"+{number}h") for number in range(1, 11)
    }
    cycle = world.cycle("+1h")
    assert (cycle.running, sorted(standing(cycle))) == (["r01"], ["r02", "r03", "r04"])


def test_T7_a_promise_of_a_run_that_is_gone_fails_and_the_next_starts() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64)
    world.run("one", 8, limit="1h").run("two", 8, limit="1h").run("three", 8).run("four", 8).cycle()
    cycle = world.delete("Run", "three").cycle("+1h")
    assert cycle.phases["four"] == "Running"
    assert states(cycle) == {"three": ("Failed", "RunGone"), "four": ("Activated", "Started")}


def ended(cycle: Cycle) -> dict[str, str]:
    """What promises that failed say, by name."""
    promises = ((each["metadata"]["name"], each["status"]) for each in cycle.all("Reservation"))
    return {name: status["message"] for name, status in promises if status["state"] == "Failed"}


def test_a_promise_says_that_its_run_cannot_be_read_and_not_that_it_is_gone() -> None:
    world = World().node("n").budget("org:a", 64).run("one", 8, limit="1h").run("two", 8)
    world.cycle()
    unread = world.edit("Run", "two", spec={"totalGPUs": 8}).cycle("+1m")
    mended = world.edit("Run", "two", spec={"totalGPUs": None}).cycle("+2m")
    assert ended(unread) == {"two-20260101t000000z": "Its run cannot be read; mended, it is promised a start anew."}
    assert promise(mended, "two")[0] == moment("+1h")


def test_of_two_promises_of_a_run_the_younger_ends_and_names_the_other() -> None:
    """A promise that cannot be read holds nothing, so its run is promised another one meanwhile."""
    world = World().node("n").budget("org:a", 64).run("one", 8, limit="1h").run("two", 8)
    world.cycle()
    first = "two-20260101t000000z"
    world.edit("Reservation", first, spec={"odd": 1}).cycle("+1m")
    mended = world.edit("Reservation", first, spec={"odd": None}).cycle("+2m")
    assert ended(mended) == {"two-20260101t000100z": f"Its run has another promise: {first}."}


def test_a_suspended_run_has_no_promise() -> None:
    world = World().node("n").budget("org:a", 64).run("one", 8, limit="1h").run("two", 8)
    world.cycle()
    world.runs("suspend", "two", at="+1m").ok()
    assert states(world.cycle("+1m")) == {"two": ("Failed", "NotWaiting")}
    world.runs("resume", "two", at="+2m").ok()
    cycle = world.cycle("+2m")
    assert promise(cycle, "two")[0] == moment("+1h")


def test_F7_a_start_that_no_money_will_ever_reach_gets_no_date() -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=95).run("r", 4)
    cycle = world.cycle()
    assert (cycle.shorts("r"), standing(cycle), cycle.status("r").get("eta")) == (
        [("hours", "org-a/gpus", 1, "GPU-hour")],
        {},
        None,
    )
    cycle = world.cycle("+20m")
    assert (cycle.phases, cycle.all("Reservation")) == ({"r": "Pending"}, [])


def test_F9_a_window_that_closes_and_is_edited_pays_again() -> None:
    world = World().node("n").budget("org:a", 8, start=moment("-1h"), end=moment("+2h")).run("r", 8)
    assert world.cycle().running == ["r"]
    assert world.cycle("+3h").funding("r") == {"unfunded": 8}
    window = {"start": moment("+3h"), "end": moment("+6h")}
    budget = world.state().get("Budget", "org-a")["spec"]["envelopes"][0]
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [{**budget, **window}]}).cycle("+4h")
    assert (cycle.running, cycle.funding("r")) == (["r"], {"owned": 8})


def test_F34_the_owner_starts_within_notice_whatever_comes_from_farther() -> None:
    world = World().domain("A", nodes=20).budget("org", 1).budget("org:a", 100).budget("org:b", 1)
    world.run("long", 60, owner="org:b:c").run("c0", 40, owner="org:b:c").cycle("-1h")
    world.runs("complete", "c0", at="+0s").ok()
    cycle = world.run("own", 8).run("c1", 40, owner="org:b:c").cycle()
    assert (cycle.running, promise(cycle, "own")[:2]) == (["c1", "long"], (moment("+15m"), "fixed"))
    world.runs("complete", "c1", at="+1m").ok()
    cycle = world.run("c2", 40, owner="org:b:c", created="+1m").cycle("+1m")
    assert (cycle.running, cycle.funding("own"), cycle.funding("long")) == (
        ["long", "own"],
        {"owned": 8},
        {"shared": 60},
    )


def test_F34_what_starts_at_the_same_time_is_recalled_when_the_promise_falls_due() -> None:
    world = World().domain("A", nodes=4).budget("org:a", 12)
    world.run("cousin", 12, owner="org:a:x:y", created="-50h").run("own", 4)
    cycle = world.cycle()
    assert (cycle.running, promise(cycle, "own")[0]) == (["cousin"], moment("+15m"))
    for minutes in (1, 2, 14):
        cycle = world.cycle(f"+{minutes}m")
        assert (cycle.running, promise(cycle, "own")[0]) == (["cousin"], moment("+15m"))
    cycle = world.cycle("+15m")
    assert (cycle.running, cycle.funding("cousin"), cycle.funding("own")) == (
        ["cousin", "own"],
        {"unfunded": 12},
        {"owned": 4},
    )


def test_money_that_is_promised_is_not_given_to_what_would_keep_it() -> None:
    world = World().domain("A", nodes=8).budget("org:a", 16).run("one", 8, limit="2h")
    world.cycle("-1h")
    cycle = world.run("whole", 16, limit="2h").cycle()
    assert (cycle.running, promise(cycle, "whole")[:2]) == (["one"], (moment("+1h"), "fixed"))
    cycle = world.run("later", 8, created="+1m").cycle("+1m")
    assert cycle.waits["later"].message == (
        "No envelope may pay for its 8 GPUs: what org-a/gpus has left is promised from 2026-01-01T01:00:00Z on; "
        "this one has no time limit: set runtime.timeLimit."
    )
    cycle = world.run("late", 8, limit="30m", created="+2m").cycle("+2m")
    assert (cycle.running, promise(cycle, "whole")[0]) == (["late", "one"], moment("+1h"))
    assert cycle.waits["later"].message == "Asks for 8 GPUs: 8 GPUs short at org-a/gpus (16 of 16 in use)."
    assert world.cycle("+1h").running == ["whole"]


def test_what_is_promised_is_not_said_to_be_in_use_or_spent() -> None:
    world = World().domain("A", nodes=8).budget("org:a", 20, maxGPUHours=112).run("one", 8, limit="4h")
    world.cycle()
    cycle = world.run("whole", 16, limit="5h").cycle("+1m")
    assert promise(cycle, "whole")[0] == moment("+4h")
    cycle = world.run("later", 8, limit="1h", created="+2m").cycle("+2m")
    assert cycle.waits["later"].message == (
        "Asks for 8 GPUs: 8 GPU-hours short at org-a/gpus (the rest of 112 is spent, provided for or promised); "
        "4 GPUs short at org-a/gpus (8 of 20 in use, 8 promised)."
    )


def gang_beside(world: World) -> dict[str, str]:
    """What two runs that start together, promised at +2h, are told at +1h."""
    pair = {"name": "pair", "size": 2}
    world.run("left", 8, gang=pair).run("right", 8, gang=pair).cycle()
    cycle = world.cycle("+1h")
    assert [promise(cycle, run)[0] for run in ("left", "right")] == [moment("+2h")] * 2
    return {run: cycle.waits[run].message.removeprefix("Asks for 8 GPUs: ") for run in ("left", "right")}


def test_a_gang_is_not_told_of_its_own_promise() -> None:
    split = "GPUs and money are there, but not for all of its gang at once; gang pair of 2 starts whole or not at all."
    for nodes, right in (
        (2, "8 GPUs would have to be freed in A; gang pair of 2 starts whole or not at all."),
        (4, split),
    ):
        world = World().domain("A", nodes=nodes).budget("org:a", 16).run("one", 8, limit="1h").run("two", 8, limit="2h")
        assert gang_beside(world) == {"left": split, "right": right}


def test_a_gang_is_told_of_the_promises_of_others() -> None:
    world = World().domain("A", nodes=8).budget("org:a", 32).run("one", 16, limit="90m").run("two", 16, limit="1h")
    world.cycle()
    world.run("whole", 32, limit="30m", created="-1h")
    left = (
        "No envelope may pay for its 8 GPUs: what org-a/gpus has left is promised from 2026-01-01T01:30:00Z on; "
        "this one has no time limit: set runtime.timeLimit."
    )
    assert gang_beside(world) == {"left": left, "right": left}


def lender(gpus: int, limit: str | None = None) -> World:
    """A budget of org:b that has lent 8 GPUs since half an hour, for an hour."""
    world = World().domain("A", nodes=4).budget("org:b", gpus, lending={"allow": True, "maxDuration": "1h"})
    world.run("loan", 8, owner="org:x", limit=limit, funding={"allowBorrow": True, "sponsors": ["org:b"]})
    world.cycle("-30m")
    return world


def test_a_run_is_promised_the_time_at_which_it_may_recall_a_loan() -> None:
    world = lender(8).run("own", 4, owner="org:b")
    assert promise(world.cycle(), "own")[:2] == (moment("+30m"), "fixed")
    assert world.cycle("+29m59s").running == ["loan"]
    cycle = world.cycle("+30m")
    assert (cycle.running, cycle.funding("loan"), cycle.funding("own")) == (
        ["loan", "own"],
        {"unfunded": 8},
        {"owned": 4},
    )


def test_what_is_promised_by_recall_of_a_loan_holds_no_money_beside_it() -> None:
    world = lender(12).run("own", 8, owner="org:b")
    assert promise(world.cycle(), "own")[:2] == (moment("+30m"), "fixed")
    assert world.run("beside", 4, owner="org:b", created="+1m").cycle("+1m").running == ["beside", "loan"]
    assert world.cycle("+30m").running == ["beside", "loan", "own"]


def test_the_age_of_a_loan_is_known_only_where_what_waits_could_recall_it() -> None:
    sponsored = {"allowBorrow": True, "sponsors": ["org:b"]}
    nearer, other = lender(8).run("own", 4, owner="org:b"), lender(8).run("other", 4, owner="org:y", funding=sponsored)
    ending = lender(8, limit="45m").run("own", 4, owner="org:b")
    found = [state_of(world.snapshot(T0), unix(T0)) for world in (nearer, other, ending)]
    ends = [Known(unix("+15m"), "end")]
    assert [[*known_times(state, {})] for state in found] == [[Known(unix("+30m"), "end")], [], ends]
    assert other.cycle().status("other").get("earliestStart") is None


def test_runs_that_start_together_are_promised_one_time() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("one", 8, limit="1h").run("two", 8, limit="2h")
    gang = {"name": "pair", "size": 2}
    cycle = world.run("left", 8, gang=gang).run("right", 8, gang=gang).cycle()
    assert [promise(cycle, run)[0] for run in ("left", "right")] == [moment("+2h")] * 2
    assert world.cycle("+1h").waiting == ["left", "right"]
    assert world.cycle("+2h").running == ["left", "right"]
