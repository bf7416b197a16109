"""Odds where several promises draw from the same runs: each is told its chance over all their draws (spec §6)."""

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from math import sqrt

import pytest

from jobtree.world.memory.lottery import Lot
from planner.cutting.activation import Activation
from planner.cutting.trial import Trial
from planner.dates.holding import held_state
from policies.promises.rules import held
from tests.cuts.test_activation import closed, promises
from tests.support.times import unix
from tests.support.worlds import Cycle, World

TIMES = 200
"""Positions of a chain: with fewer the odds given one outcome of the first draw would pass."""
OWNERS = ("p", "q", "r", "w", "x")


def nodes_of_4(**owners: str) -> World:
    """An old run of 4 of some owner on each node of a domain; a run takes a node."""
    world = World().domain("A", nodes=len(owners), gpus=4)
    for name in OWNERS:
        world.budget(f"org:{name}", 96)
    for name, owner in owners.items():
        world.run(name, 4, owner=f"org:{owner}")
    world.old()
    return world


def told(cycle: Cycle, runs: Iterable[str]) -> dict[str, float]:
    return {run: float(cycle.status(run).get("killProbability", 0)) for run in runs}


def named(cycle: Cycle, run: str) -> dict[str, float]:
    """Who may be drawn for a promise, and how likely."""
    conflicts = promises(cycle)[run]["forecast"]["conflictSet"]
    return {each["run"].removeprefix("default/"): float(each["killProbability"]) for each in conflicts}


def test_two_draws_that_leave_nobody_are_sure() -> None:
    world = World().node("n")
    for name in OWNERS:
        world.budget(f"org:{name}", 8)
    world.run("p", 4, owner="org:p").run("q", 4, owner="org:q").old()
    cycle = world.run("w", 4, owner="org:w").run("x", 4, owner="org:x").cycle()
    assert named(cycle, "w") == named(cycle, "x") == {"p": 0.5, "q": 0.5}
    assert told(cycle, "pq") == {"p": 1, "q": 1}
    assert closed(world.cycle("+15m")) == [("p", 0, "Lottery"), ("q", 0, "Lottery")]


@pytest.mark.parametrize("later", ["+0s", "+1m"])
def test_two_of_three_equal_runs_are_drawn_whenever_the_second_is_promised(later: str) -> None:
    world = nodes_of_4(p="p", q="q", r="r")
    world.run("w", 4, owner="org:w")
    if later != "+0s":
        assert told(world.cycle(), "pqr") == pytest.approx(dict.fromkeys("pqr", 1 / 3), abs=1e-6)
        world.run("x", 4, owner="org:x", created=later)
    else:
        world.run("x", 4, owner="org:x")
    cycle = world.cycle(later)
    assert named(cycle, "x") == pytest.approx(dict.fromkeys("pqr", 1 / 3), abs=1e-6)
    assert told(cycle, "pqr") == pytest.approx(dict.fromkeys("pqr", 2 / 3), abs=2e-6)


def test_the_odds_of_a_later_draw_are_the_mean_over_the_first() -> None:
    world = nodes_of_4(p="p", q0="q", q1="q", q2="q")
    cycle = world.run("w", 4, owner="org:w").run("x", 4, owner="org:x").cycle()
    mine = ("q0", "q1", "q2")
    assert named(cycle, "w") == pytest.approx({"p": 1 / 2} | dict.fromkeys(mine, 1 / 6), abs=1e-6)
    # was p drawn, one of three equal ones is; else p, or one of the two that are left
    assert named(cycle, "x") == pytest.approx({"p": 1 / 4} | dict.fromkeys(mine, 1 / 4), abs=1e-6)
    assert told(cycle, ("p", *mine)) == pytest.approx({"p": 3 / 4} | dict.fromkeys(mine, 5 / 12), abs=2e-6)


@pytest.mark.slow
def test_what_is_told_of_two_promises_is_how_often_runs_are_drawn() -> None:
    world = nodes_of_4(p="p", q0="q", q1="q", q2="q")
    runs = ("p", "q0", "q1", "q2")
    published = told(world.run("w", 4, owner="org:w").run("x", 4, owner="org:x").cycle(), runs)
    at = unix("+15m")
    snapshot = world.snapshot("+15m")
    state = held_state(snapshot, at)
    due = held(snapshot.tables["reservations"], {run.key: run for run in state.pending})
    secret, counts = "5f" * 32, Counter[str]()
    for position in range(1, 1 + TIMES):
        secret = sha256(bytes.fromhex(secret)).hexdigest()
        trial = Trial.of(state, {promise.run_key: promise.nodes for promise in due})
        activation = Activation(trial, Lot(position, secret), frozenset(promise.run_key for promise in due))
        activation.settle(due)
        counts.update(run for _, run in activation.trial.gone)
    assert sum(counts.values()) == 2 * TIMES
    far = {run: (p, counts[run]) for run, p in published.items()
           if abs(counts[run] - TIMES * p) > 4 * sqrt(TIMES * p * (1 - p))}  # fmt: skip
    assert far == {}
