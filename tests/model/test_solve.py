"""What a solve says it has proven, and models of which most stays as it is."""

import numpy as np

from planner.solver.highs import options, solve
from planner.solver.rest import beside, fractional, made_whole, solve_rest
from policies.model.linear import INF, Model

SETTINGS = options(1, 0.0, 100)


def knapsack(*, integer: bool) -> Model:
    """max 5a + 4b + 3c with 2a + 3b + c ≤ 4 and b + c = 1, each at most 1."""
    model = Model()
    for name, cost in (("a", 5.0), ("b", 4.0), ("c", 3.0)):
        model.column((name,), cost=cost, upper=1.0, integer=integer)
    model.row(("room",), [(0, 2.0), (1, 3.0), (2, 1.0)], -INF, 4.0)
    model.row(("one",), [(1, 1.0), (2, 1.0)], 1.0, 1.0)
    return model


def test_without_integers_the_optimum_is_the_bound() -> None:
    found = solve(knapsack(integer=False), SETTINGS)

    assert (found.objective, found.bound, found.optimal) == (8.5, 8.5, True)


def test_what_was_asked_before_is_answered_as_it_was_and_what_differs_anew() -> None:
    model = knapsack(integer=True)
    first = solve(model, SETTINGS)
    again = solve(knapsack(integer=True), SETTINGS)
    changes: list[tuple[list[float], int, float]] = [
        (model.cost, 0, 9.0),
        (model.lower, 1, 0.5),
        (model.upper, 0, 0.0),
        (model.row_lower, 0, 3.0),
        (model.row_upper, 0, 1.0),
    ]
    others = []
    for numbers, place, value in changes:
        before, numbers[place] = numbers[place], value
        others.append(solve(model, SETTINGS).objective)
        numbers[place] = before

    assert again is first
    assert (first.objective, others) == (8.0, [12.0, 4.0, 4.0, 8.0, 3.0])
    assert solve(model, SETTINGS, relaxed=True).objective == 8.5
    assert solve(model, SETTINGS) is first


def test_the_rest_is_solved_around_what_stays() -> None:
    model = knapsack(integer=True)
    point = np.asarray([1.0, 0.5, 0.5])
    off = fractional(model, point)

    whole = made_whole(model, point, SETTINGS, most=2)
    around = solve_rest(model, np.asarray([0.0, 0.5, 0.5]), off, SETTINGS)

    assert off.tolist() == [False, True, True]
    assert beside(model, off, equal=True).tolist() == [False, True, True]
    assert beside(model, off, equal=False).tolist() == [True, True, True]
    assert whole is not None
    assert whole.tolist() == [1.0, 0.0, 1.0]
    assert made_whole(model, point, SETTINGS, most=1) is None
    assert around.values is not None
    assert (around.values.tolist(), around.objective, around.bound) == ([0.0, 1.0, 0.0], 4.0, 4.0)
