"""A relaxation without what its bounds decide is worth what the whole one is, whatever bounds move."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.solver.highs import new_highs, options, pass_model, to_highs
from planner.solver.relaxed import Relaxed
from planner.solver.shrunk import shrink
from policies.model.linear import INF, Model
from tests.support.drawing import Draw

SETTINGS: Final = options(0, 0.0, 2_000)
COEFFICIENT: Final = st.integers(-3, 3).map(float)


@st.composite
def models(draw: Draw) -> Model:
    """A few columns that may be 0, in rows that hold there: limits, equations, and sums that have to reach 0."""
    model = Model()
    for number in range(draw(st.integers(2, 6))):
        upper = draw(st.sampled_from([1.0, 2.0, 5.0, INF]))
        model.column(("x", number), cost=draw(COEFFICIENT), upper=upper)
    for number in range(draw(st.integers(1, 6))):
        terms = [(column, a) for column in range(len(model.cost)) if (a := draw(COEFFICIENT))]
        model.row(("row", number), terms, *draw(st.sampled_from([(-INF, 3.0), (-INF, 0.0), (0.0, 0.0), (0.0, INF)])))
    model.row(("all",), [(column, 1.0) for column in range(len(model.cost))], -INF, 9.0)
    return model


STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(["fix", "fix all", "undo", "reset", "shrink", "back", "raise"]),
        st.integers(0, 5),
        st.integers(0, 2),
    ),
    max_size=12,
)


def fix(relaxed: Relaxed, columns: Sequence[int], value: float) -> None:
    """Solves with some columns at a value, which `undo` takes back."""
    relaxed.within(np.asarray(columns, np.int64), np.full(len(columns), float(value)))


@given(models(), STEPS)
def test_it_is_worth_what_the_whole_one_is(model: Model, steps: list[tuple[str, int, int]]) -> None:
    least = [row for row, low in enumerate(model.row_lower) if low == 0.0 and model.row_upper[row] == INF]
    both = Relaxed(model, SETTINGS), Relaxed(model, SETTINGS)
    root = [relaxed.basis() for relaxed in both if relaxed.best()[0] is not None]
    found: list[float] = []
    expected: list[float] = []
    for what, where, value in steps:
        column = where % len(model.cost)
        for worth, relaxed, begin in zip((found, expected), both, root, strict=True):
            if what == "fix":
                fix(relaxed, [column], value)
            elif what == "fix all":
                fix(relaxed, range(len(model.cost)), value)
            elif what == "undo":
                relaxed.undo()
            elif what == "reset":
                alone = np.asarray([column], np.int64)
                relaxed.put(alone, relaxed.least[alone], relaxed.most[alone])
            elif what == "raise" and least:
                relaxed.raise_row(least[where % len(least)], value / 2)
            elif what == "back":
                relaxed.go_to(begin)
            elif what == "shrink" and relaxed is both[0]:
                relaxed.shrink()
            point, best = relaxed.best()
            worth.append(best)
            if point is not None:
                assert float(np.asarray(model.cost) @ point) == pytest.approx(best, abs=1e-6)

    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("value", "worth"), [(1.0, 5.0), (2.0, -INF)])
def test_a_relaxation_of_which_nothing_is_left(value: float, worth: float) -> None:
    model = Model()
    columns = [model.column(("x", number), cost=2.0 + number, upper=2.0) for number in range(2)]
    model.row(("all",), [(column, 1.0) for column in columns], -INF, 3.0)
    relaxed = Relaxed(model, SETTINGS)
    fix(relaxed, columns, value)
    relaxed.shrink()

    assert relaxed.best()[1] == worth


def test_what_is_left_is_what_bounds_leave_undecided() -> None:
    model = Model()
    open_, fixed, free = (
        model.column(("x", n), cost=float(n + 1), upper=5.0, lower=low) for n, low in enumerate((0, 5, 0))
    )
    model.row(("binds",), [(open_, 1.0), (fixed, 2.0), (free, 1.0)], -INF, 12.0)
    model.row(("idle",), [(open_, 1.0), (fixed, 1.0)], -INF, 10.0)
    highs = new_highs(SETTINGS)
    pass_model(highs, to_highs(model, relaxed=True))
    highs.run()

    left = shrink(highs.getLp(), highs.getBasis())

    assert (left.columns.tolist(), left.rows.tolist(), left.place.tolist()) == ([open_, free], [0], [0, -1, 1])
    assert (list(left.lp.col_cost_), left.lp.offset_) == ([1.0, 3.0], 10.0)
    assert (list(left.lp.row_lower_), list(left.lp.row_upper_)) == ([-INF], [2.0])
    assert (list(left.lp.a_matrix_.start_), list(left.lp.a_matrix_.index_)) == ([0, 1, 2], [0, 0])
