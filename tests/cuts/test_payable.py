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
