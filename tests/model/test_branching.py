"""Branching on who gives way, held against the solver's own branch and bound of the same master."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

import numpy as np
import pytest

from jobtree.world.tables.values import Floats
from planner import Effort, Planning
from planner.large.bands import Rounding
from planner.large.branching import Branching
from planner.large.dive import columns_of
from planner.solver.highs import only_integer, options, solve
from planner.solver.relaxed import Relaxed
from policies.inputs.places import kinds
from policies.model import demand
from policies.model.master import Master, build
from tests.support.worlds import World

AT: Final = 1_767_225_600
SETTINGS = options(1, 0.0, 100_000)
NOISE = 1e-6
CROWDED = (9, 12, 23, 36, 38)
"""Worlds whose relaxation leaves claims in parts."""


def crowd(seed: int) -> World:
    """Two families whose children hold what nearer runs now ask for."""
    draw = random.Random(seed)
    world = World()
    for name in "ABC":
        world.domain(name, nodes=3)
    for owner in ("org:a", "org:b"):
        world.budget(owner, draw.randint(10, 20))
    for number in range(8):
        owner = draw.choice(("org:a", "org:b")) + draw.choice((":x", ":y", ":x:u"))
        if draw.random() < 0.3:
            wide = {"minTotalGPUs": 2, "maxTotalGPUs": 6, "stepGPUs": 2}
            world.run(f"held{number}", 6, owner=owner, by=2, malleable=wide)
        else:
            world.run(f"held{number}", draw.choice((1, 2, 3, 4, 6)), owner=owner)
    world.cycle("-1h")
    for number in range(8):
        owner = draw.choice(("org:a", "org:b")) + draw.choice(("", ":x", "", ":y"))
        world.run(
            f"new{number}",
            draw.choice((1, 2, 3, 5, 7)),
            owner=owner,
            created=f"-{50 - number}m",
            spares=draw.choice((0, 0, 1)),
        )
    return world


def crowded(seed: int) -> Master:
    """The master of a `crowd`, with the first stage for an objective."""
    planning = Planning(crowd(seed).snapshot(), AT, Effort(exact=0))
    problem, room = planning.problem, planning.state.room()
    master = build(problem, kinds(problem.fleet, room.free, frozenset()), room.capacity)
    master.model.maximise(demand.objective(problem, master.starts, unfunded=False))
    return master


@pytest.fixture
def threads() -> Iterator[Executor]:
    """One that solves the other side of each branching."""
    with ThreadPoolExecutor(1) as found:
        yield found


def twice(master: Master) -> tuple[Relaxed, Relaxed]:
    """Its relaxation, for both sides of a branching."""
    return Relaxed(master.model, SETTINGS), Relaxed(master.model, SETTINGS)


def optimum(master: Master) -> float:
    """The best whole point."""
    return solve(master.model, SETTINGS).objective


def optimum_from(master: Master, decided: Sequence[int], start: Floats) -> float:
    """The best point in which these columns, as far as they are integer, are whole, from one such point.

    Without one HiGHS 1.15 ends at 0 in some of these worlds, and says that it is the optimum.
    """
    whole = np.zeros(len(master.model.cost), np.bool_)
    whole[list(decided)] = True
    with only_integer(master.model, whole & np.asarray(master.model.integer, np.bool_)):
        return solve(master.model, SETTINGS, start=start.tolist()).objective


@pytest.mark.parametrize("seed", CROWDED)
def test_its_leaf_is_the_best_point_in_which_big_gangs_start_whole(seed: int, threads: Executor) -> None:
    master = crowded(seed)

    search = Branching(*twice(master), columns_of(master.model, master.problem), threads)
    search.run()
    assert search.leaf is not None
    best = optimum_from(master, search.big, search.leaf.point)

    assert search.big != []
    assert [search.leaf.bound, search.bound] == pytest.approx([best, best])


@pytest.mark.parametrize("seed", CROWDED)
def test_its_bound_tightens_to_the_best_point_at_which_what_is_allowed_is_whole_as_well(
    seed: int, threads: Executor
) -> None:
    master = crowded(seed)
    columns = columns_of(master.model, master.problem)
    *_, whole = Rounding(master.model, master.problem, SETTINGS).run()

    search = Branching(*twice(master), columns, threads)
    search.run()
    before = search.bound
    assert whole.values is not None
    best = optimum_from(master, [*search.big, *np.flatnonzero(columns.allows).tolist()], whole.values)
    while search.deeper(best) is not None:
        pass

    assert search.bound <= before
    assert search.bound == pytest.approx(best)


@pytest.mark.parametrize("seed", CROWDED)
def test_a_master_ends_whole_below_a_bound_of_its_optimum(seed: int) -> None:
    master = crowded(seed)

    *_, found = Rounding(master.model, master.problem, SETTINGS).run()

    assert found.values is not None
    assert found.objective - NOISE <= found.bound
    assert found.bound >= optimum(master) - NOISE
