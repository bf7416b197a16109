"""Large masters solved again near their solution, with what placement and payment need told apart (planner.mend)."""

from typing import Final

import pytest
from hypothesis import given

import planner
from planner import mend, stages
from planner.master import Master
from planner.solver import options, solve
from policies import demand, recall_rights
from tests.model.test_telling_apart import mixed
from tests.reference.facts import read
from tests.reference.large import hold_between, plan_as_large
from tests.reference.model import Reference
from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment

WORLDS: Final = 20
SETTINGS: Final = options(0, 0.0, 2_000)


def _run(name: str, gpus: int, owner: str, hours: int, region: str | None = None) -> doc.Document:
    """``region``: where it has to lie."""
    locality = {"locality": {"selector": {"region": region}}} if region else {}
    return doc.merge(
        doc.run(name, gpus, owner), {"metadata": {"creationTimestamp": moment(f"-{hours}h")}, "spec": locality}
    )


ODD: Final = World(
    [
        doc.node("n0", 6),
        doc.node("n1", 6, domain="d2"),
        doc.budget("org:a", [doc.envelope(64)]),
        *(_run(f"of-{gpus}", gpus, "org:a", 1) for gpus in (3, 4, 5, 6)),
    ]
)
"""5, 4 and 3 GPUs are as many as two domains of 6 have; but no two of them fit into one. 6 and 5 do fit."""

WHOLE: Final = World([each for each in ODD.documents if each["metadata"]["name"] not in ("of-3", "of-4")])

KIN: Final = [
    doc.node("w0", 14),
    doc.merge(doc.node("e0", 4, domain="d2"), {"metadata": {"labels": {"region": "us-east"}}}),
    doc.budget("org:a:x", [doc.envelope(4, selector={"region": "us-west"})], parents=["org:a"]),
    doc.budget("org:a:z", [doc.envelope(4, selector={"region": "us-west"})], parents=["org:a"]),
    doc.budget("org:a:y", [doc.envelope(4, selector={"region": "us-east"})], parents=["org:a"]),
    _run("claim-0", 4, "org:a:y", 9, "us-west"),
    _run("claim-1", 4, "org:a:y", 8, "us-west"),
]
"""Claims of ``y`` have all that ``x`` and ``z`` can pay in the west."""
HALVES: Final = World(
    [*KIN, _run("of-x", 4, "org:a:x", 2), _run("of-z", 4, "org:a:z", 2), _run("more", 2, "org:a:y", 1, "us-west")], KIN
)
"""One of two alike runs lies in the west, where both would take back a claim for a half of it."""


def _optimum(world: World) -> int:
    return Reference(read(world.snapshot(), AT)).optimum()["starts"]


def _master(world: World) -> Master:
    master = planner.master_of(world.snapshot(), AT, last=False)
    master.model.maximise(demand.objective(master.problem, master.starts, unfunded=False))
    return master


def _worth(master: Master) -> int:
    """The optimum of a master, in GPU-seconds of weight."""
    found = solve(master.model, SETTINGS)
    return 0 if found.values is None else round(found.objective * 86_400)


def _told_apart(world: World) -> Master:
    master = _master(world)
    if master.flows.near is not None:
        everything = master.model, master.problem, master.kinds, master.starts
        recall_rights.rows(*everything, master.flows.near, frozenset())
    return master


def test_counts_that_find_no_places_make_way_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)

    (starts, *_) = planner.plan(ODD.snapshot(), AT).stages

    assert (starts.value, starts.bound) == (_optimum(ODD), _worth(_master(ODD)))
    hold_between(ODD)


def test_one_group_is_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    optimum = _optimum(HALVES)

    assert _worth(_told_apart(HALVES)) == optimum < _worth(_master(HALVES))
    hold_between(HALVES)


def _hold_for_the_optimum(world: World) -> None:
    assert _worth(_told_apart(world)) >= _optimum(world)


def test_every_plan_has_groups_that_are_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    examples(WORLDS)(given(mixed())(_hold_for_the_optimum))()


def test_a_large_problem_is_solved_again_where_its_plan_is_far_from_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    again: list[float] = []

    def solve_again(first: mend.First, *rest: object, **options: object) -> None:
        again.append(first.worth)

    monkeypatch.setattr(stages, "solve_again", solve_again)
    values = [planner.plan(world.snapshot(), AT).stages[0].value for world in (ODD, WHOLE)]

    assert (values, again) == ([810_000, 990_000], [810_000 / 86_400])


def test_a_stage_that_nothing_waits_for_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    world = World([*ODD.documents, doc.policy(stages=["opportunistic", "growth", "starts"])])

    idle, starts, *_ = planner.plan(world.snapshot(), AT).stages

    assert (idle.name, idle.value, idle.bound) == ("opportunistic", 0, 0)
    assert (starts.name, starts.value, starts.bound) == ("starts", _optimum(ODD), _worth(_master(ODD)))
