"""`sponsors list` and `sponsors add`: who may lend to a run, with what room, and why not."""

import json

import pytest

from tests.support.times import T0
from tests.support.worlds import World

BORROWS = {"allowBorrow": True}


@pytest.fixture
def world() -> World:
    """A run of org:a; org:b lends to all, org:c to others, org:d to nobody, org:e caps its loans."""
    return (
        World()
        .domain("A", nodes=4)
        .budget("org:a", 2)
        .budget("org:b", 8, lending={"allow": True})
        .budget("org:c", 8, lending={"allow": True, "to": ["org:x:*"]})
        .budget("org:d", 8)
        .budget("org:e", 8, lending={"allow": True, "maxConcurrency": 3})
    )


def listed(world: World, run: str) -> list[list[str]]:
    """The cells of the table, without its header; the verdict in one."""
    rows = world.runs("sponsors", "list", run, at=T0).ok().out.splitlines()[1:]
    return [row.split(maxsplit=4) for row in rows]


def test_sponsors_come_in_the_runs_order_then_those_that_would_lend(world: World) -> None:
    world.run("r", 8, funding={**BORROWS, "sponsors": ["org:e", "org:d", "org:c"]})

    assert listed(world, "r") == [
        ["org:e", "org-e/gpus", "yes", "3", "may lend"],
        ["org:d", "org-d/gpus", "yes", "-", "org-d/gpus does not lend"],
        ["org:c", "org-c/gpus", "yes", "-", "org-c/gpus lends to org:x:*, which does not match org:a"],
        ["org:b", "org-b/gpus", "no", "8", "would lend if listed"],
    ]


def test_who_is_not_listed_and_lends_to_others_only_is_told_why(world: World) -> None:
    world.run("r", 8, funding=BORROWS)

    assert listed(world, "r") == [
        ["org:b", "org-b/gpus", "no", "8", "would lend if listed"],
        ["org:c", "org-c/gpus", "no", "-", "org-c/gpus lends to org:x:*, which does not match org:a"],
        ["org:e", "org-e/gpus", "no", "3", "would lend if listed"],
    ]


def test_room_is_what_loans_and_the_owner_s_own_runs_leave(world: World) -> None:
    world.run("own", 3, owner="org:b").run("loan", 2, owner="org:y", funding={**BORROWS, "sponsors": ["org:e"]})
    world.run("r", 30, funding={**BORROWS, "sponsors": ["org:b", "org:e"]}).cycle()

    assert [row[:4] for row in listed(world, "r")][:2] == [
        ["org:b", "org-b/gpus", "yes", "5"],
        ["org:e", "org-e/gpus", "yes", "1"],
    ]


def test_a_sponsor_without_an_envelope_of_the_flavor_is_told(world: World) -> None:
    world.run("r", 8, funding={**BORROWS, "sponsors": ["org:nobody"]})

    assert listed(world, "r")[0] == [
        "org:nobody", "-", "yes", "-", "org:nobody has no envelope of H100-80GB to lend from",
    ]  # fmt: skip


def test_family_pays_without_lending_and_is_not_listed(world: World) -> None:
    world.budget("org:a:team", 4, lending={"allow": True}).run("r", 8, funding=BORROWS)

    assert "org:a:team" not in [row[0] for row in listed(world, "r")]


def test_records_say_the_same(world: World) -> None:
    world.run("r", 8, funding={**BORROWS, "sponsors": ["org:c"]})

    records = json.loads(world.runs("sponsors", "list", "r", "-o", "json", at=T0).ok().out)

    assert records[:2] == [
        {
            "owner": "org:c", "budget": "org-c", "envelope": "gpus", "listed": True, "lends": False, "roomGPUs": None,
            "verdict": "org-c/gpus lends to org:x:*, which does not match org:a",
        },
        {
            "owner": "org:b", "budget": "org-b", "envelope": "gpus", "listed": False, "lends": True, "roomGPUs": 8,
            "verdict": "would lend if listed",
        },
    ]  # fmt: skip


def test_where_nobody_would_lend_that_is_said() -> None:
    world = World().domain("A").budget("org:a", 2).run("r", 8, funding=BORROWS)

    said = world.runs("sponsors", "list", "r", at=T0).ok().out
    assert said == "Run default/r has no sponsors, and nobody would lend to it.\n"


def test_a_run_that_does_not_borrow_is_a_warning(world: World) -> None:
    world.run("r", 8, funding={"sponsors": ["org:b"]})
    warning = "warning: Run default/r: sponsors pay nothing, since its funding.allowBorrow is false\n"

    assert world.runs("sponsors", "list", "r", at=T0).ok().err == warning
    assert world.runs("sponsors", "add", "r", "org:e", at=T0).ok().err == warning


def test_a_sponsor_that_is_added_lends_in_the_next_cycle(world: World) -> None:
    world.run("r", 10, funding=BORROWS)
    assert world.cycle("+1m").waiting == ["r"]

    world.runs("sponsors", "add", "r", "org:b", at="+2m").ok()

    assert world.cycle("+3m").funding("r") == {"owned": 2, "borrowed": 8, "lenders": ["org:b"]}
