"""The fill starts gangs too, whole or not at all: what waits could not be added to a plan (spec §1 gang, §4)."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from jobtree.check import check
from jobtree.world.plan import Plan
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from planner import Planning
from planner.effort import USUAL, Effort
from planner.filling import greedy
from planner.filling.filler import Filler, Settled
from planner.filling.purses import Purses
from planner.filling.together import Together
from planner.placement.draft import Draft
from planner.placement.place import Start
from planner.placement.room import Room
from policies.model.gangs import Gang, too_few_left
from policies.model.problem import Problem
from tests.reference import worlds
from tests.reference.ganged import ganged
from tests.reference.large import AS_LARGE, has_given_way
from tests.reference.worlds import AT, World, snapshot
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.unchanged import unchanged

KINDS = ("payers", "room", "time", "ties", "recall", "all")
WORLDS = 6
"""How many worlds of each kind."""


def run(name: str, gpus: int, gang: str = "", *, size: int = 2, age: str = "-1h", **spec: Any) -> Document:
    """A run of org:a, mostly in a gang."""
    made = doc.run(name, gpus, spec.pop("owner", "org:a"))
    tie = {"gang": {"name": gang, "size": size}} if gang else {}
    meta = {"creationTimestamp": moment(age), "uid": f"uid-{name}"}
    return doc.merge(made, {"metadata": meta, "spec": {**tie, **spec}})


def budget(gpus: int, owner: str = "org:a", **fields: Any) -> Document:
    meta = {"metadata": {"creationTimestamp": moment("-9d"), "uid": f"uid-{owner}"}}
    return doc.merge(doc.budget(owner, [doc.envelope(gpus, **fields)]), meta)


def filled(documents: list[Document]) -> dict[str, int]:
    """What the first incumbent, which the fill alone makes, starts: runs and their GPUs."""
    planning = Planning(snapshot(documents), AT)
    plan = planning.finish(next(planning.incumbents()))

    assert [str(violation) for violation in check(planning.snapshot, plan)] == []
    return widths(plan)


def widths(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for lease in plan.leases:
        name = lease.spec.run_ref.run_name
        found[name] = found.get(name, 0) + len(lease.spec.slice.nodes)
    return found


# --- whatever the world


def plans(now: Snapshot) -> Iterator[Plan]:
    """As large problems are planned: where the deadline leaves the first incumbent, and to the end."""
    planning = Planning(now, AT, AS_LARGE)
    found = list(planning.incumbents())
    yield from [planning.finish(each) for each in (found[0], found[-1])]


def in_another_order(world: World) -> set[str]:
    """Runs of gangs, and runs whose pods ask for CPU or memory: they may fit only in an order that was not tried."""
    runs = (each for each in world.documents if each["kind"] == "Run")
    return {each["metadata"]["name"] for each in runs if {"gang", "template"} & each["spec"].keys()}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_waits_could_be_added(kind: str) -> None:
    """Without a recall: a start that recalls may need a mixture of payers that only the master finds. Nor is a start
    added to the rest for which opportunistic work, where the Policy puts it first, gives way.
    """

    @examples(WORLDS)
    @given(ganged(kind))
    def holds(world: World) -> None:
        now = world.snapshot()
        excused = in_another_order(world)  # by the first plan alone
        for plan in plans(now):
            assert [str(violation) for violation in check(now, plan)] == []
            settled = unchanged(after(now, plan), AT, 0)  # no claim is older: nobody gives way
            more = planner.plan(settled, AT)  # few wait: to the optimum, as the reference has it
            assert has_given_way(more) or widths(more).keys() <= excused
            excused = set[str]()

    holds()


def whole(problem: Problem, room: Room, purses: Purses) -> tuple[list[int], ...]:
    """All that is left, in money and in room."""
    levels = [weight for taken in purses.levels.values() for weight in taken]
    return purses.used, purses.trees, levels, room.free, room.cpu, room.memory, room.pods


@pytest.mark.parametrize("effort", [Effort(exact=0), USUAL], ids=["large", "exact"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_what_was_started_leaves(kind: str, effort: Effort) -> None:
    """Whatever was tried in vain has left no trace."""

    @examples(WORLDS)
    @given(ganged(kind))
    def holds(world: World) -> None:
        planning = Planning(world.snapshot(), AT, effort)
        problem, room, draft = planning.problem, planning.state.room(), Draft()
        purses = Purses.after(problem, draft)
        filler = Filler(problem, room, purses)
        order = sorted(range(len(problem.candidates)), key=lambda i: problem.candidates[i].order)
        funded = [i for i in order if not problem.type_of(i).unfunded]
        greedy.fill(filler, draft, funded)
        greedy.fill(filler, draft, [i for i in order if i not in funded], funded)
        anew = planning.state.room()
        for piece in draft.pieces:
            anew.take(piece.chunks, piece.load)

        assert whole(problem, room, purses) == whole(problem, anew, Purses.after(problem, draft))

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_back_was_never_there(kind: str) -> None:
    @examples(WORLDS)
    @given(worlds.worlds(kind), st.integers(0, 20))
    def holds(world: World, kept: int) -> None:
        planning = Planning(world.snapshot(), AT)
        problem, room = planning.problem, planning.state.room()
        purses = Purses.after(problem, Draft())
        filler = Filler(problem, room, purses)
        seen = [_copied(problem, room, purses)]
        found: list[Settled] = []
        for index, candidate in enumerate(problem.candidates):
            one = filler.try_start(problem.types[candidate.type], Start(index, 0))
            if one is not None:
                found.append(one)
                seen.append(_copied(problem, room, purses))
        kept = min(kept, len(found))

        filler.take_back(found[kept:])
        assert whole(problem, room, purses) == seen[kept]

        for one in found[kept:]:
            filler.put_back(one)
        assert whole(problem, room, purses) == seen[-1]

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_that_does_not_start_was_never_tried(kind: str) -> None:
    @examples(WORLDS)
    @given(ganged(kind), st.integers(0, 20))
    def holds(world: World, first: int) -> None:
        planning = Planning(world.snapshot(), AT)
        problem, room = planning.problem, planning.state.room()
        purses = Purses.after(problem, Draft())
        filler = Filler(problem, room, purses)
        for index, candidate in list(enumerate(problem.candidates))[:first]:
            filler.try_start(problem.types[candidate.type], Start(index, 0))
        together = Together(problem, filler, range(len(problem.candidates)), ())
        for gang in problem.gangs:
            before = _copied(problem, room, purses)
            if not together.try_start(gang):
                assert _copied(problem, room, purses) == before
            assert all(purses.left(cap, 0) >= 0 for cap in problem.recall.room)

    holds()


def _copied(problem: Problem, room: Room, purses: Purses) -> tuple[list[int], ...]:
    return tuple([*each] for each in whole(problem, room, purses))


# --- in its turn


def test_a_gang_comes_in_the_place_of_what_its_gpus_weigh_on_average() -> None:
    fleet = [doc.node("n", 8), budget(8), run("lone", 8, age="-10h")]

    assert filled([*fleet, run("old", 4, "g", age="-20h"), run("new", 4, "g", age="-2h")]) == {"old": 4, "new": 4}
    assert filled([*fleet, run("old", 2, "g", age="-20h"), run("new", 6, "g", age="-2h")]) == {"lone": 8}


def test_what_a_gang_leaves_over_follows_in_its_own_place() -> None:
    ages = {"first": "-30h", "second": "-20h", "third": "-1h"}
    members = [run(name, 4, "g", age=age) for name, age in ages.items()]
    world = [budget(40), *members, run("lone", 4, age="-10h")]

    assert filled([doc.node("n", 12), *world]) == {"first": 4, "second": 4, "lone": 4}
    assert filled([doc.node("n", 16), *world]) == {"first": 4, "second": 4, "third": 4, "lone": 4}


def test_where_the_heaviest_leaves_too_few_others_start() -> None:
    members = [run("heavy", 7, "g", age="-30h"), run("light", 2, "g"), run("lean", 2, "g"), run("rest", 2, "g")]

    assert filled([doc.node("n", 8), budget(40), *members]) == {"light": 2, "lean": 2, "rest": 2}


def test_members_grow_once_all_have_started() -> None:
    wide = {"minTotalGPUs": 2, "maxTotalGPUs": 8, "stepGPUs": 2}
    pair = [run("wide", 8, "g", malleable=wide), run("fixed", 3, "g")]

    assert filled([doc.node("n", 8), budget(40), *pair]) == {"wide": 4, "fixed": 3}
    assert filled([doc.node("n", 6), budget(40), *pair]) == {"wide": 2, "fixed": 3}
    assert filled([doc.node("n", 4), budget(40), *pair]) == {}


def test_what_a_member_that_grows_leaves_is_there_for_others() -> None:
    wide = {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}
    fleet = [doc.node(f"n{gpus}", gpus, domain=f"d{gpus}") for gpus in (4, 8, 1)]
    members = [
        run("wide", 8, "g", age="-30h", malleable=wide, locality={"allowCrossGroupSpread": False}),
        run("there", 4, "g", age="-20h", locality={"selector": {"fabric.domain": "d4"}}),
        run("one", 1, "g", age="-1h"),
    ]

    assert filled([*fleet, budget(40), *members]) == {"wide": 8, "one": 1, "there": 4}


def test_those_with_least_choice_of_payers_and_places_come_first() -> None:
    borrow = {"allowBorrow": True, "sponsors": ["org:b"]}
    lender = budget(8, "org:b", lending={"allow": True})
    money = [run("rich", 8, "g", funding=borrow), run("poor", 8, "g")]
    nodes = [doc.node("n", 8), doc.node("m", 8, domain="d2")]
    near = [run("here", 4, "g", locality={"selector": {"fabric.domain": "d1"}}), run("there", 8, "g")]

    assert filled([*nodes, budget(8), lender, *money]) == {"rich": 8, "poor": 8}
    assert filled([*nodes, budget(40), *near]) == {"here": 4, "there": 8}


def test_members_that_nobody_pays_start_beside_funded_ones() -> None:
    free = run("free", 4, "g", owner="org:nobody", funding={"opportunistic": True})
    world = [doc.node("n", 12), budget(4), run("paid", 4, "g"), free]

    assert filled(world) == {"paid": 4, "free": 4}
    assert filled([*world, run("lone", 3, owner="org:b", age="-1m"), budget(3, "org:b")]) == {
        "paid": 4,
        "free": 4,
        "lone": 3,
    }
    assert filled([*world, run("large", 5, owner="org:b", age="-1m"), budget(5, "org:b")]) == {"large": 5}


def test_a_gang_that_does_not_start_leaves_the_quota_of_its_tree() -> None:
    root = run("root", 1, quota={"maxGPUs": 6})
    pair = [run(name, 4, "g", age="-9h", parent="root") for name in ("left", "right")]

    assert filled([doc.node("n", 16), budget(40), root, *pair, run("other", 5, parent="root")]) == {
        "root": 1,
        "other": 5,
    }


def test_a_gang_is_lost_with_members_only_where_too_few_are_left() -> None:
    keys = [("default", name) for name in "abc"]
    gang = Gang(tuple(keys), 2, ())

    assert too_few_left([gang], keys, keys[:1]) == frozenset()
    assert too_few_left([gang], keys, keys[:2]) == frozenset(keys)
    assert too_few_left([gang], keys[:2], keys[:1]) == frozenset(keys)
    assert too_few_left([gang], keys, [("other", "a")]) == frozenset()


def recalling(*waiting: Document) -> World:
    """Most of org:a's 8 GPUs are held by a child's run. Then ``waiting`` comes, and a hundred that never start."""
    before = [doc.node(f"n{n}", 8) for n in range(3)] + [budget(8), budget(1, "org:a:x")]
    before.append(run("far", 6, owner="org:a:x", age="-2h"))
    many = [run(f"never-{n:03}", 99, age="-1m") for n in range(USUAL.exact)]
    return World([*before, *waiting, *many], before)


def test_a_gang_recalls_together_or_not_at_all() -> None:
    starting = recalling(run("left", 4, "g", age="-1m"), run("right", 4, "g", age="-1m")).snapshot()
    waiting = recalling(run("left", 4, "g", age="-1m"), run("right", 5, "g", age="-1m")).snapshot()
    found = [planner.plan(now, AT, Effort(small=0)) for now in (starting, waiting)]

    assert [list(check(now, plan)) for now, plan in zip((starting, waiting), found, strict=True)] == [[], []]
    assert [widths(plan) for plan in found] == [{"left": 4, "right": 4}, {}]
    assert [stage.value for plan in found for stage in plan.stages if stage.name == "overdraw"] == [5000, 0]
