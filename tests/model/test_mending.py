"""Large masters solved again near their solution, with what placement and payment need told apart (search.mend)."""

from dataclasses import replace
from typing import Final

import planner
from planner import Planning
from planner.effort import Effort
from planner.solver.highs import options, solve
from policies.model import demand
from policies.model.master import Master
from tests.reference.facts import read
from tests.reference.large import AS_LARGE, hold_between
from tests.reference.model import Reference
from tests.reference.worlds import AT, World
from tests.support import documents as doc

SETTINGS: Final = options(0, 0.0, 2_000)


def _run(name: str, gpus: int, owner: str, hours: int) -> doc.Document:
    return doc.aged(doc.run(name, gpus, owner), hours)


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


def _optimum(world: World) -> int:
    return Reference(read(world.snapshot(), AT)).optimum()["starts"]


def _master(world: World) -> Master:
    master = planner.master_of(world.snapshot(), AT, AS_LARGE, last=False)
    master.model.maximise(demand.objective(master.problem, master.starts, unfunded=False))
    return master


def _worth(master: Master) -> int:
    """The optimum of a master, in GPU-seconds of weight."""
    found = solve(master.model, SETTINGS)
    return 0 if found.values is None else round(found.objective * 86_400)


def test_counts_that_find_no_places_make_way_for_others() -> None:
    (starts, *_) = planner.plan(ODD.snapshot(), AT, AS_LARGE).stages

    assert (starts.value, starts.bound) == (_optimum(ODD), _worth(_master(ODD)))
    hold_between(ODD)


def _solved(world: World, effort: Effort) -> tuple[int, bool]:
    """What a plan is worth, and whether that comes from solving again."""
    *_, last = Planning(world.snapshot(), AT, effort).outcomes()
    return last.stages[0].value, "solved again" in [step.name for step in last.steps]


def test_a_large_problem_is_solved_again_where_its_plan_is_far_from_its_bound() -> None:
    never = replace(AS_LARGE, again=0)

    assert _solved(ODD, never) == (810_000, False)
    assert _solved(ODD, AS_LARGE) == (_optimum(ODD), True)
    assert _solved(WHOLE, AS_LARGE) == (990_000, False)


def test_a_stage_that_nothing_waits_for_does_not_lead() -> None:
    world = World([*ODD.documents, doc.policy(stages=["opportunistic", "growth", "starts"])])

    idle, starts, *_ = planner.plan(world.snapshot(), AT, AS_LARGE).stages

    assert (idle.name, idle.value, idle.bound) == ("opportunistic", 0, 0)
    assert (starts.name, starts.value, starts.bound) == ("starts", _optimum(ODD), _worth(_master(ODD)))
