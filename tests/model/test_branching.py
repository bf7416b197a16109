"""Branching on who gives way, held against the solver's own branch and bound of the same master."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from planner import Planning, lower
from planner.bands import solve_large
from planner.branching import Branching, Node
from planner.master import Master, build
from planner.relaxed import Relaxed
from planner.settling import in_parts
from planner.solver import Solution, only_integer, options, solve
from policies import demand, recall_rows
from policies.places import kinds
from tests.reference import worlds
from tests.reference.worlds import AT, World

SETTINGS = options(1, 0.0, 100_000)
NOISE = 1e-6


@pytest.fixture(autouse=True)
def _as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "EXACT", 0)
    monkeypatch.setattr(recall_rows, "SUMMED", 0)


def master_of(world: World) -> Master:
    """The master of a world, as a large problem, with the first stage for its objective."""
    planning = Planning(world.snapshot(), AT)
    problem, room = planning.problem, planning.state.room()
    master = build(problem, kinds(problem.fleet, room.free, frozenset()), room.capacity)
    master.model.maximise(demand.objective(problem, master.starts, unfunded=False))
    return master


def with_claims(data: Any) -> Master:
    """One in which running claims may give way, and something may start: of ten worlds one."""
    master = master_of(data.draw(worlds.worlds("recall")))
    assume(master.held.stays and master.starts.start)
    return master


@settings(max_examples=10, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_it_ends_at_the_optimum_over_claims_and_big_gangs(data: st.DataObject) -> None:
    master = with_claims(data)
    leaves: list[Node] = []

    def take(node: Node) -> Solution:
        leaves.append(node)
        return Solution(node.point, node.bound, node.bound, optimal=False)

    branching = Branching(Relaxed(master.model, SETTINGS), master, take, 0.0)
    found = branching.run()
    decided = np.zeros(len(master.model.cost), np.bool_)
    decided[[*master.held.columns, *branching.big]] = True
    whole = solve_large(master, SETTINGS)
    with only_integer(master.model, decided & np.asarray(master.model.integer, np.bool_)):
        optimum = solve(master.model, SETTINGS).objective

    assert not branching.claims or [in_parts(master.held, leaf.point) for leaf in leaves] == [{} for _ in leaves]
    assert whole.objective - NOISE <= whole.bound
    assert min(found.bound, whole.bound) >= optimum - NOISE
    if branching.claims:
        assert [found.objective, found.bound] == pytest.approx([optimum, optimum])
