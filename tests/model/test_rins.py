"""Rounding made better near its relaxation, and beyond (planner.rins)."""

from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import rins
from planner.rins import improve
from planner.solver import NOTHING, Solution, options, solve
from policies.model import INF, Model

SETTINGS: Final = options(1, 0.0, 100)
NOISE: Final = 1e-6


def knapsack(costs: list[float], sizes: list[int], room: int) -> Model:
    """max Σ cost × x, Σ size × x ≤ room, each x 0, 1 or 2."""
    model = Model()
    for number, cost in enumerate(costs):
        model.column(("x", number), cost=cost, upper=2.0, integer=True)
    model.row(("room",), [(number, float(size)) for number, size in enumerate(sizes)], -INF, float(room))
    return model


def rounded(model: Model) -> tuple[Solution, Solution]:
    """The relaxation, and the point below it with its value, beside the relaxation's bound."""
    relaxed = solve(model, SETTINGS, relaxed=True)
    assert relaxed.values is not None
    below = np.floor(relaxed.values + NOISE)
    return relaxed, Solution(below, float(np.asarray(model.cost) @ below), relaxed.bound, optimal=False)


@given(
    things=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=6),
    room=st.integers(1, 20),
    poor=st.sampled_from((0.0, 1.0)),
)
def test_value_and_bound_meet_at_the_optimum(things: list[tuple[int, int]], room: int, poor: float) -> None:
    model = knapsack([float(cost) for cost, _ in things], [size for _, size in things], room)
    relaxed, below = rounded(model)
    assert relaxed.values is not None
    optimum = solve(model, SETTINGS).objective

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rins, "POOR", poor)
        found = improve(model, below, relaxed.values, SETTINGS)

    assert [found.objective, found.bound] == pytest.approx([optimum, optimum])


def test_what_is_close_enough_is_not_solved_again() -> None:
    model = knapsack([3.0, 2.0], [2, 1], 4)
    relaxed, below = rounded(model)
    assert relaxed.values is not None

    assert improve(model, below, relaxed.values, SETTINGS) is below
    assert (below.objective, below.bound) == (7.0, 7.0)


def test_near_the_relaxation_is_close_enough() -> None:
    """2a + 3b ≤ 4: the relaxation has two of a and nothing of b, the rounding one of a."""
    model = knapsack([3.0, 4.0], [2, 3], 4)
    relaxed = np.asarray([2.0, 0.0])
    lost = Solution(np.asarray([1.0, 0.0]), 3.0, 6.0, optimal=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rins, "POOR", 1.0)
        patch.setattr(rins, "solve", None)  # the whole model is not asked
        found = improve(model, lost, relaxed, SETTINGS)

    assert found.values is not None
    assert (found.values.tolist(), found.objective, found.bound) == ([2.0, 0.0], 6.0, 6.0)


def test_without_a_rounding_the_whole_model_is_solved() -> None:
    model = knapsack([3.0, 2.0], [2, 1], 5)

    found = improve(model, NOTHING, np.zeros(2), SETTINGS)

    assert (found.objective, found.bound) == (8.0, 8.0)
