"""Dates by cuts are payable: no cut is told for a run that has no money by then (spec §5)."""

from typing import Any

import pytest

from tests.cuts.test_activation import promises
from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import World


def waiting(since: str, *windows: dict[str, str], **r: Any) -> World:
    """1 × 8 with R, which runs ``since``; then S waits, whose owner has an envelope of each of the windows."""
    world = World().node("n").budget("org:a", 8)
    world.budget("org:b", envelopes=[{**doc.envelope(8, **each), "name": f"e{n}"} for n, each in enumerate(windows)])
    world.run("r", 8, owner="org:a", **r).cycle(since)
    return world.run("s", 8, owner="org:b", limit="1h")


def until(*times: str) -> list[dict[str, str]]:
    """Windows by their ends, or start and end."""
    return [dict(zip(("start", "end")[-len(each.split()) :], map(moment, each.split()), strict=True)) for each in times]


@pytest.mark.parametrize("limit", [None, "2h"])
def test_nobody_is_warned_of_a_cut_for_a_run_whose_money_ends_before(limit: str | None) -> None:
    world = waiting("-1m", *until("+30m"), limit=limit)
    cycle = world.cycle()
    told = {name: cycle.status("r").get(name) for name in ("killProbability", "conflictSets")}
    assert (promises(cycle), told) == ({}, {"killProbability": None, "conflictSets": None})
    words = "earliestStart: none: its budgets can pay for it at no known time at which cuts could make room for it"
    assert words in world.runs("plan", "s", at="+1m").out
    assert world.cycle("+12h").phases == {"r": "Running" if limit is None else "Failed", "s": "Pending"}


@pytest.mark.parametrize(
    ("since", "windows", "date"),
    [
        ("-24h", ["+15m"], None),
        ("-24h", ["+16m"], "+15m"),
        ("-1m", ["+11h59m"], None),
        ("-1m", ["+12h"], "+11h59m"),
        ("-24h", ["+10m", "+3h +9h"], "+3h"),  # the next one opens later
        ("-24h", ["+10m", "+5m +9h"], "+15m"),  # or is open by then
        ("-1m", ["+10m", "+3h +9h"], None),  # and is over before R may be drawn
    ],
)
def test_a_date_by_cuts_is_the_first_one_with_money(since: str, windows: list[str], date: str | None) -> None:
    world = waiting(since, *until(*windows))
    cycle = world.cycle()
    found = {name: each["earliestStart"] for name, each in promises(cycle).items()}
    assert found == ({} if date is None else {"s": moment(date)})
    paying = [each.envelope for made in cycle.plan.reservations for each in made.spec.paying_envelopes]
    assert paying == ([] if date is None else [f"e{len(windows) - 1}"])
    if date is not None:
        assert world.cycle(date).phases == {"r": "Failed", "s": "Running"}


def test_opportunistic_work_gives_way_to_no_run_whose_money_ends_before() -> None:
    def dated(*ends: str) -> dict[str, str]:
        world = World().node("n").policy(opportunistic={"notice": "5m"})
        world.run("r", 8, owner="org:a", funding={"opportunistic": True}).cycle("-24h")
        world.budget("org:b", envelopes=[doc.envelope(8, **each) for each in until(*ends)])
        return {
            name: each["earliestStart"] for name, each in promises(world.run("s", 8, owner="org:b").cycle()).items()
        }

    assert (dated("+5m"), dated("+6m")) == ({}, {"s": moment("+5m")})


def test_what_ends_by_its_limit_before_a_date_is_no_victim_of_it() -> None:
    """2 × 8: R ends before A and B may be cut, S asks for both nodes: its room is that of R and of one other."""
    world = World().node("m").node("n").budget("org:a", 16).budget("org:b", 16)
    world.run("r", 8, owner="org:a", limit="25h").cycle("-24h")
    world.run("v", 8, owner="org:a").cycle("-24h")
    (told,) = promises(world.run("s", 16, owner="org:b").cycle("+50m")).values()
    assert (told["earliestStart"], told["forecast"]["conflictSet"]) == (
        moment("+65m"),
        [{"run": "default/v", "killProbability": 1.0}],
    )


def lent(**v: Any) -> World:
    """1 × 8 of which org:b has lent all to `loan`, half an hour ago, for an hour; its own run `own` waits for 4."""
    world = World().domain("A").budget("org:b", 8, lending={"allow": True, "maxDuration": "1h"})
    world.policy(lottery={"term": v.get("term", "0s")})
    world.run("loan", 8, owner="org:x", funding={"allowBorrow": True, "sponsors": ["org:b"]})
    world.cycle("-30m")
    return world.run("own", 4, owner="org:b")


@pytest.mark.parametrize(("term", "date"), [("0s", "+30m"), ("10m", "+30m"), ("2h", "+90m")])
def test_a_loan_that_holds_the_slots_too_is_cut_once_it_is_of_age(term: str, date: str) -> None:
    world = lent(term=term)
    cycle = world.cycle()
    (told,) = promises(cycle).values()
    assert told["earliestStart"] == moment(date)
    assert told["forecast"]["conflictSet"] == [{"run": "default/loan", "killProbability": 1.0}]
    assert cycle.plan.reservations[0].spec.paying_envelopes[0].budget == "org-b"
    assert world.cycle("+1m").plan.promises == []
    assert world.cycle("+29m").running == ["loan"]
    cycle = world.cycle(date)
    assert (cycle.running, cycle.funding("own")) == (["own"], {"owned": 4})


def test_the_money_of_a_loan_that_ages_is_promised_once() -> None:
    world = lent().run("next", 8, owner="org:b", created="+1s")
    first = world.cycle("+2s")
    assert [*promises(first)] == ["own"]
    assert promises(world.cycle("+1m"))["own"]["earliestStart"] == moment("+30m")


def test_money_that_another_run_frees_is_waited_for_where_the_slots_are_held_for_good() -> None:
    """org:b pays for a run on n until that ends; s may use m alone, where somebody else's work has no end."""
    world = World().domain("A").domain("B").budget("org:a", 8).budget("org:b", 8)
    on = {name: {"selector": {"fabric.domain": name}} for name in "AB"}
    world.run("mine", 8, owner="org:b", limit="26h", locality=on["A"]).run("other", 8, owner="org:a", locality=on["B"])
    world.old()
    world.run("s", 8, owner="org:b", locality=on["B"])
    assert promises(world.cycle())["s"]["earliestStart"] == moment("+2h")
    assert world.cycle("+2h").running == ["s"]
