"""Owners with several parents, with none, or with one that is no prefix (spec §1 `parents`): the nearest relation
counts, and it is one and the same for who pays first, for a start that recalls and for a running claim (§3.1, §3.5).
"""

import pytest

import planner
from jobtree.check import check
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT
from tests.support.documents import FLAVOR
from tests.support.worlds import Cycle, World

PARENTS = {
    "lab": [],
    "group": ["lab"],
    "team": ["group", "lab"],  # the group's child, and by the lab its sibling; the lab's child, and its grandchild
    "other": ["lab"],
    "guest": ["group"],
}
NEARER_FIRST = [
    ("group", "team", "other", 1),  # the group's child before its sibling
    ("team", "group", "lab", 2),  # the team's sibling, also its parent, before who is its parent alone
    ("lab", "team", "guest", 1),  # the lab's child, also its grandchild, before who is its grandchild alone
]
"""Payer, two claimants, and how near the payer is to the first."""


def family(payer: str) -> World:
    """One payer of 8 GPUs; what the others have is of another flavor."""
    world = World().domain("A", nodes=4)
    for owner, parents in PARENTS.items():
        world.budget(owner, 8, flavor=FLAVOR if owner == payer else "T4", spec={"parents": parents})
    return world


def cycle(world: World) -> Cycle:
    """The cycle at T0, whose stages are the optima of the reference."""
    snapshot = world.snapshot()
    plan = planner.plan(snapshot, AT)
    optimum = Reference(read(snapshot, AT)).optimum()

    assert check(snapshot, plan) == []
    found = {stage.name: (stage.value, stage.bound) for stage in plan.stages if stage.name in optimum}
    assert found == {name: (value, value) for name, value in optimum.items()}
    return world.cycle()


def values(found: Cycle) -> dict[str, int]:
    """Milli-GPUs of overdraw, and milli-GPUs × rank of the payers."""
    return {stage.name: stage.value for stage in found.plan.stages if stage.name in ("overdraw", "payers")}


@pytest.mark.parametrize(("payer", "nearer", "farther", "rank"), NEARER_FIRST)
def test_a_start_recalls_who_is_farther(payer: str, nearer: str, farther: str, rank: int) -> None:
    world = family(payer).run("holds", 8, owner=farther)
    world.cycle("-1h")
    found = cycle(world.run("starts", 8, owner=nearer))

    assert {run: found.funding(run) for run in found.running} == {"holds": {"unfunded": 8}, "starts": {"shared": 8}}
    assert values(found) == {"overdraw": 8000, "payers": 8000 * rank}


@pytest.mark.parametrize(("payer", "nearer", "farther"), [case[:3] for case in NEARER_FIRST])
def test_a_start_does_not_recall_who_is_nearer(payer: str, nearer: str, farther: str) -> None:
    world = family(payer).run("holds", 8, owner=nearer)
    world.cycle("-1h")
    found = cycle(world.run("starts", 8, owner=farther))

    assert {run: found.funding(run) for run in found.running} == {"holds": {"shared": 8}}
    assert values(found) == {"overdraw": 0, "payers": 0}


@pytest.mark.parametrize(("payer", "nearer", "farther"), [case[:3] for case in NEARER_FIRST])
def test_of_running_claims_the_nearer_stays_funded_though_it_came_later(payer: str, nearer: str, farther: str) -> None:
    world = family(payer).run("early", 4, owner=farther)
    world.cycle("-2h")
    world.run("late", 4, owner=nearer).cycle("-1h")
    (budget,) = (each for each in world.state().all("Budget") if each["spec"]["owner"] == payer)
    (envelope,) = budget["spec"]["envelopes"]
    world.edit("Budget", payer, spec={"envelopes": [{**envelope, "concurrency": 4}]})
    found = cycle(world)

    assert {run: found.funding(run) for run in found.running} == {"early": {"unfunded": 4}, "late": {"shared": 4}}


@pytest.mark.parametrize("budgets", [[["lab", "dean"]], [["lab"], ["dean"]], [None, ["dean", "lab"]]])
def test_two_parents_are_equally_near_and_go_by_name(budgets: list[list[str] | None]) -> None:
    world = World().domain("A").budget("lab", 4, spec={"parents": []}).budget("dean", 4, spec={"parents": []})
    for name, flavor, parents in zip(("team", "team-2"), (FLAVOR, "T4"), budgets, strict=False):
        world.budget("team", 1, name=name, flavor=flavor, spec={"parents": parents})
    found = cycle(world.run("r", 7, owner="team"))

    assert sorted((lease.payer, lease.gpus) for lease in found.leases("r")) == [
        ("dean/gpus", 4), ("lab/gpus", 2), ("team/gpus", 1)
    ]  # fmt: skip
    assert values(found) == {"overdraw": 0, "payers": 6000}


def test_named_parents_replace_the_prefix() -> None:
    world = World().domain("A").budget("org", 8).budget("lab", 8)
    world.budget("org:root", 1, spec={"parents": []}).budget("org:moved", 1, spec={"parents": ["lab"]})
    world.run("alone", 2, owner="org:root").run("moved", 2, owner="org:moved").run("below", 2, owner="org:moved:x")
    found = cycle(world)

    # The one GPU of org:moved is the parent's to the run below, for which the lab's are the grandparent's.
    payers = {run: sorted((lease.payer or "", lease.gpus) for lease in found.leases(run)) for run in found.running}
    assert payers == {"below": [("lab/gpus", 1), ("org-moved/gpus", 1)], "moved": [("lab/gpus", 2)]}
    assert values(found) == {"overdraw": 0, "payers": 7000}
    assert found.waiting == ["alone"]


def test_children_of_a_parent_without_a_budget_are_siblings() -> None:
    world = World().domain("A").budget("a", 2, spec={"parents": ["ghost"]}).budget("b", 4, spec={"parents": ["ghost"]})
    found = cycle(world.run("r", 4, owner="a"))

    assert found.funding("r") == {"owned": 2, "shared": 2}
    assert values(found) == {"overdraw": 0, "payers": 4000}


def test_who_descends_on_two_ways_counts_once_in_a_subtree() -> None:
    world = World().domain("A", nodes=2).budget("lab", 8, scope="subtree", sharing="none", spec={"parents": []})
    for group in ("group-1", "group-2"):
        world.budget(group, 16, spec={"parents": ["lab"]}, sharing="none")
    world.budget("team", 16, spec={"parents": ["group-1", "group-2"]})
    for name, gpus in (("r1", 6), ("r2", 2), ("r3", 1)):
        world.run(name, gpus, owner="team")
    found = cycle(world)

    assert (found.running, found.shorts("r3")) == (
        ["r1", "r2"], [("subtree-concurrency", "lab/gpus", 1, "GPU")]
    )  # fmt: skip
