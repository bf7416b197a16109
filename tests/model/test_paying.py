"""Who pays for starts that lie on nodes: as many of them as can be paid for, whatever the master thought."""

from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from jobtree.check import check
from planner import Planning
from planner.effort import USUAL, Effort, Paying
from planner.placement.draft import Draft
from planner.search import pay, stages
from planner.search.certificates import Outcome
from planner.search.incumbent import Incumbent
from planner.search.objective import overdraw
from planner.solver.highs import Solution, solve
from policies.model.linear import Model
from tests.reference import worlds
from tests.reference.large import AS_LARGE
from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.drawing import Draw
from tests.support.effort import examples
from tests.support.times import moment

PLENTY: Final = 1000
"""GPUs of an envelope that pays for whatever there is."""


class Paid(NamedTuple):
    """What is paid of starts: its worth in GPU-seconds of weight, and what is wrong with the plan."""

    worth: int
    wrong: list[str]


@st.composite
def crowded(draw: Draw) -> World:
    """More runs on two dozen GPUs than a family and a lender have money for."""
    lending = {"allow": True, "maxConcurrency": draw(st.integers(1, 4))}
    money = [doc.budget(owner, [doc.envelope(draw(st.integers(1, 8)))]) for owner in worlds.FAMILY[:3]]
    money.append(doc.budget("org:b", [doc.envelope(draw(st.integers(1, 8)), lending=lending)]))
    runs = []
    for number in range(draw(st.integers(3, 7))):
        run = doc.run(f"r{number}", draw(st.sampled_from([1, 2, 3, 4, 6])), draw(st.sampled_from(worlds.FAMILY[:3])))
        created = moment(f"-{draw(st.sampled_from([0, 5, 40, 100]))}h")
        funding = draw(st.sampled_from([{}, {"allowBorrow": True, "sponsors": ["org:b"]}]))
        spec = {"funding": funding, "spares": draw(st.sampled_from([0, 0, 1]))}
        runs.append(doc.merge(run, {"metadata": {"creationTimestamp": created}, "spec": spec}))
    return World([*(doc.node(f"n{number}") for number in range(3)), *money, *runs])


@pytest.mark.parametrize(("some", "many"), [(crowded(), 30), (worlds.worlds("recall"), 6)], ids=["crowded", "recall"])
def test_what_is_paid_in_parts_is_no_more_than_can_be_and_where_it_is_much_less_all_is_weighed(
    some: SearchStrategy[World], many: int
) -> None:
    @examples(many)
    @given(some)
    def holds(world: World) -> None:
        wanted = next(Planning(rich(world).snapshot(), AT).outcomes())
        exact = paid(world, wanted, USUAL)
        in_parts = paid(world, wanted, replace(AS_LARGE, paying=Paying(in_parts=0, whole=0)))
        weighed = paid(world, wanted, replace(AS_LARGE, paying=Paying(in_parts=0, whole=PLENTY * PLENTY)))

        assert [exact.wrong, in_parts.wrong, weighed.wrong] == [[], [], []]
        assert in_parts.worth <= exact.worth
        assert (1 - USUAL.paying.much) * exact.worth <= weighed.worth <= exact.worth

    holds()


def paid(world: World, wanted: Outcome, effort: Effort) -> Paid:
    """As much of what is ``wanted`` as can be paid."""
    planning = Planning(world.snapshot(), AT, effort)
    problem = planning.problem
    draft = Draft(wanted.draft.starts, wanted.draft.pieces)
    lost, _ = pay.pay(problem, wanted.room, draft, wanted.settings, effort)
    kept = Draft(
        [start for start in draft.starts if start.candidate not in lost],
        [piece for piece in draft.pieces if piece.candidate not in lost],
        draft.paid,
    )
    plan = planning.finish(Incumbent.of(replace(wanted, draft=kept, stages=())))
    started = [problem.candidates[start.candidate] for start in kept.starts]
    worth = sum(problem.types[each.type].base_gpus * each.weight for each in started)
    return Paid(worth, [str(violation) for violation in check(planning.snapshot, plan)])


def rich(world: World) -> World:
    """The same world with envelopes that have GPUs in plenty."""
    return World([plenty(each) for each in world.documents], world.earlier, world.since)


def plenty(document: doc.Document) -> doc.Document:
    """Of a Budget one with envelopes of PLENTY."""
    if document["kind"] != "Budget":
        return document
    envelopes = [each | {"concurrency": PLENTY} for each in document["spec"]["envelopes"]]
    return doc.merge(document, {"spec": {"envelopes": envelopes, "aggregateCaps": None}})


@pytest.mark.parametrize(("gang", "started"), [("", ["a"]), ("g", [])], ids=["alone", "with one that nobody pays"])
def test_a_plan_that_nothing_is_added_to_is_solved_and_paid_once(
    gang: str, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the master nor the model of who pays is solved again where it would be the same."""
    tie = {"spec": {"gang": {"name": gang, "size": 2} if gang else None}}
    runs = [doc.merge(doc.run(name, 4, owner), tie) for name, owner in (("a", "org:a"), ("b", "org:z"))]
    world = World([doc.node("n0"), doc.budget("org:a", [doc.envelope(8)]), *runs])
    models: list[bytes] = []

    def counted(model: Model, *rest: Any, **named: Any) -> Solution:
        models.append(repr((model.column_keys, model.row_keys, model.cost, model.lower, model.row_lower)).encode())
        return solve(model, *rest, **named)

    for module in (stages, pay):
        monkeypatch.setattr(module, "solve", counted)
    planning = Planning(world.snapshot(), AT)
    *_, last = planning.outcomes()

    assert sorted(run for _, run in last.draft.started(planning.problem)) == started
    assert len(models) == len(set(models))


def family(root: str) -> list[doc.Document]:
    """A node, a budget of 4 GPUs, a child's claim on 2 of them, and a child that might use them as well."""
    return [
        doc.node(f"{root[-1]}0"),
        doc.budget(root, [doc.envelope(4)]),
        *(doc.budget(f"{root}:{child}", [doc.envelope(1)], parents=[root]) for child in "xy"),
        doc.aged(doc.run(f"claim-{root[-1]}", 3, f"{root}:x"), 9),
    ]


@pytest.mark.parametrize("roots", [["org:a"], ["org:a", "org:b"]], ids=["one family", "two families"])
def test_how_far_starts_are_allowed_is_decided_family_by_family(
    roots: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [document for root in roots for document in family(root)]
    runs = [
        doc.run(f"own-{owner[4:]}".replace(":", "-"), gpus, owner)
        for root in roots
        for owner, gpus in ((root, 4), (f"{root}:y", 1))
    ]
    world = World([*before, *(doc.aged(run, 1) for run in runs)], before)
    decided: list[int] = []

    def seen(model: Model, *rest: Any, **named: Any) -> Solution:
        levels = [key for key, whole in zip(model.column_keys, model.integer, strict=True) if whole]
        if levels and all(what == "allowed" for what, *_ in levels):
            decided.append(len(levels))
        return solve(model, *rest, **named)

    monkeypatch.setattr(pay, "solve", seen)
    planning = Planning(world.snapshot(), AT, AS_LARGE)
    *_, last = planning.outcomes()

    assert len(last.draft.starts) == len(runs)
    assert overdraw(planning.problem, last.draft) == 2000 * len(roots)
    assert decided == [1] * len(roots)
