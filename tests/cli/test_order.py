"""Lists are in the order that people count in: 2 before 10, for groups, nodes, slots, runs, budgets and payers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.plans.nodelist import compress, natural
from tests.cli.test_reading import lease, status
from tests.support.commands import jobtree
from tests.support.times import T0
from tests.support.worlds import World

NUMBERS = (10, 2, 9, 1)


@pytest.fixture(scope="module")
def world() -> World:
    """Runs r1, r2, r9 and r10 wait; ``wide`` holds twelve groups of a GPU, on n2 and n10, paid by org-10 and org-2."""
    made = World().node("n2").node("n10").budget("org:10", 16).budget("org:2", 16)
    for number in NUMBERS:
        made = made.run(f"r{number}", 32, owner="org:2", created="-1h")
    runs = status("Running", "PodsRunning")
    made = made.run("wide", 12, by=1, owner="org:2", metadata={"uid": "uid-wide"}, status=runs)
    slots = [*((f"n2#{slot}", "org-2") for slot in range(8)), *((f"n10#{slot}", "org-10") for slot in (2, 3, 0, 1))]
    held = [
        lease(f"w-{group}", "wide", [slot], group=group, payer=payer, owner=payer.replace("-", ":"), run_owner="org:2")
        for group, (slot, payer) in enumerate(slots)
    ]
    return made.add(*sorted(held, key=lambda each: str(each["metadata"]["name"])))


def test_leases_by_group_then_by_slot(world: World) -> None:
    places = [f"n2#{slot}" for slot in range(8)] + [f"n10#{slot}" for slot in (2, 3, 0, 1)]
    _, _, explained = world.runs("explain", "wide", at=T0).ok().out.partition("\nLeases\n")
    for listed in (world.runs("leases", "wide", at=T0).ok().out, explained):
        rows = [line.split() for line in listed.partition("\n\n")[0].splitlines()[1:]]
        assert [(row[1], row[3]) for row in rows] == [(str(group), place) for group, place in enumerate(places)]
    found = json.loads(world.runs("explain", "wide", "-o", "json", at=T0).ok().out)["items"]
    assert [item["spec"]["group"] for item in found if item["kind"] == "Lease"] == list(range(12))


def test_slots_of_one_group_by_node_and_ordinal() -> None:
    slots = ["n10#0", "n2#1", "n10#2", "n2#10", "n2#9"]
    made = World().node("n2", gpus=16).node("n10", gpus=16).budget("org:a", 16).run("r", 5)
    made = made.add(*(lease(f"l-{number}", "r", [slot]) for number, slot in enumerate(slots)))
    rows = [line.split() for line in made.runs("leases", "r").ok().out.splitlines()[1:]]
    assert [row[3] for row in rows] == ["n2#1", "n2#9", "n2#10", "n10#0", "n10#2"]


def test_runs_that_wait_payers_and_budgets(world: World) -> None:
    planned = jobtree("--state", world.save(), "plan", "--at", T0).ok().out
    _, _, waits = planned.partition("\nWaits\n")
    assert [line.split()[0] for line in waits.splitlines()[1:5]] == [f"default/r{number}" for number in sorted(NUMBERS)]
    assert "payingEnvelopes: org-2/gpus (8), org-10/gpus (4)\n" in world.runs("plan", "wide", at=T0).ok().out
    assert "payers: org-2/gpus, org-10/gpus\n" in world.runs("watch", "wide", "--once", at=T0).ok().out
    rows = world.runs("budgets", "usage", at=T0).ok().out.splitlines()[1:-1]
    assert [line.split()[1] for line in rows] == ["org-2/gpus", "org-10/gpus"]


@given(st.sets(st.from_regex(r"[an]?0{0,2}[0-9]{0,2}", fullmatch=True)))
def test_one_order_for_one_set_of_names(names: set[str]) -> None:
    ordered = sorted(names)
    backwards = ordered[::-1]
    assert sorted(ordered, key=natural) == sorted(backwards, key=natural)
    assert compress(ordered) == compress(backwards)
