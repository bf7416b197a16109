"""What an optimum gains where limits rise: told from its basis, or from duals, it is what solving anew says."""

from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.solver.highs import options, solve
from planner.solver.ranging import Ranging
from policies.model.linear import INF, Model
from tests.support.drawing import Draw

SETTINGS: Final = options(0, 0.0, 2_000)
RISES: Final = st.dictionaries(st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.0]), min_size=1)


@st.composite
def models(draw: Draw) -> Model:
    """A few columns within four limits on what they take."""
    model = Model()
    for number in range(draw(st.integers(2, 6))):
        upper = draw(st.sampled_from([1.0, 2.0, INF]))
        model.column(("x", number), cost=float(draw(st.integers(0, 3))), upper=upper)
    for number in range(4):
        terms = [(column, float(a)) for column in range(len(model.cost)) if (a := draw(st.integers(0, 2)))]
        model.row(("limit", number), terms, -INF, float(draw(st.integers(0, 4))))
    model.row(("all",), [(column, 1.0) for column in range(len(model.cost))], -INF, 9.0)
    return model


def gained(model: Model, rises: dict[int, float]) -> float:
    """The gain, by solving the model as it is and with its limits risen."""
    higher = model.copy()
    for row, rise in rises.items():
        higher.row_upper[row] += rise
    return solve(higher, SETTINGS).objective - solve(model, SETTINGS).objective


@given(models(), st.lists(RISES, min_size=1, max_size=4))
def test_a_gain_is_what_solving_anew_says(model: Model, asked: list[dict[int, float]]) -> None:
    ranging = Ranging(model, np.asarray(model.cost), SETTINGS)
    assume(ranging.optimum is not None)
    steady = [ranging.steady(rises) for rises in asked]
    expected = [gained(model, rises) for rises in asked]

    assert [told[0] for told in steady if told] == pytest.approx(
        [gain for told, gain in zip(steady, expected, strict=True) if told], abs=1e-6
    )
    for rises, told, gain in zip(asked, steady, expected, strict=True):
        assert gain <= ranging.most(rises) + 1e-6
        assert [told or ranging.risen(rises)] == [pytest.approx((gain, gain), abs=1e-6)]  # the objective is counted
