"""Of the runs of a type those lie where they recall that have to (spec §3.8)."""

from collections import Counter
from typing import Final

import pytest
from hypothesis import given

import planner
from planner import bands
from planner.master import Master
from planner.place import Piece
from planner.reading import read_pieces, read_starts
from planner.solver import options
from tests.model.test_telling_apart import mixed
from tests.reference.large import hold_between, plan_as_large
from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment

WORLDS: Final = 20
SETTINGS: Final = options(0, 0.0, 2_000)
EAST: Final = {"metadata": {"labels": {"region": "us-east"}}}


def _run(name: str, owner: str, hours: int) -> doc.Document:
    patch = {"metadata": {"creationTimestamp": moment(f"-{hours}h")}, "spec": {"resources": {"gpusPerPod": 4}}}
    return doc.merge(doc.run(name, 4, owner), patch)


BEFORE: Final = [
    doc.node("w0"),
    doc.merge(doc.node("e0", domain="d2"), EAST),
    doc.budget("org:a:x", [doc.envelope(4, selector={"region": "us-west"})], parents=["org:a"]),
    doc.budget("org:a:y", [doc.envelope(4, selector={"region": "us-east"})], parents=["org:a"]),
    doc.merge(_run("claim", "org:a:y", 9), {"spec": {"locality": {"selector": {"region": "us-west"}}}}),
]
"""A claim of ``y`` has all that ``x`` can pay in the west."""


@pytest.mark.parametrize(("x", "y"), [(1, 2), (2, 1)])
def test_the_run_that_recalls_lies_where_it_does(monkeypatch: pytest.MonkeyPatch, x: int, y: int) -> None:
    plan_as_large(monkeypatch)
    world = World([*BEFORE, _run("of-x", "org:a:x", x), _run("of-y", "org:a:y", y)], BEFORE)
    master = planner.master_of(world.snapshot(), AT, last=False)
    values = bands.Rounding(master, SETTINGS).run().values
    assert values is not None
    west, east = (kind.index for kind in master.kinds)

    pieces = read_pieces(master, values, read_starts(master, values), SETTINGS)

    assert {_name(master, piece): piece.kind for piece in pieces} == {"of-x": west, "of-y": east}
    hold_between(world)


def test_runs_without_a_group_lie_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    world = World([*BEFORE, _run("of-x", "org:a:x", 1), _run("of-y", "org:a:y", 2)], BEFORE)
    master = planner.master_of(world.snapshot(), AT, last=False)
    values = bands.Rounding(master, SETTINGS).run().values
    assert values is not None
    starts = read_starts(master, values)
    for column in master.starts.groups.values():
        values[column] = 0.0

    assert [piece.kind for piece in read_pieces(master, values, starts, SETTINGS)] == [-1, -1]


def _name(master: Master, piece: Piece) -> str:
    return master.problem.candidates[piece.candidate].run.key[1]


def _hold_to_the_solution(world: World) -> None:
    """Where groups lie for themselves, each that the solution has is some start's, and no start has another."""
    master = planner.master_of(world.snapshot(), AT, last=False)
    values = bands.Rounding(master, SETTINGS).run().values
    if values is None:
        return
    types, candidates = master.problem.types, master.problem.candidates
    pieces = read_pieces(master, values, read_starts(master, values), SETTINGS)
    found = Counter((candidates[each.candidate].type, each.shape, each.kind) for each in pieces)
    there = {key: round(float(values[column])) for key, column in master.starts.groups.items()}

    assert {key: n for key, n in found.items() if not types[key[0]].lowered.together} == {
        key: n for key, n in there.items() if n and not types[key[0]].lowered.together
    }


def test_each_group_of_a_solution_is_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    examples(WORLDS)(given(mixed())(_hold_to_the_solution))()
