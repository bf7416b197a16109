"""Where many wait on few nodes the search goes down to nodes as well: no gap is left that small models can close."""

from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.effort import USUAL, Effort
from tests.support.drawing import Draw
from tests.support.effort import examples
from tests.support.times import T0, unix
from tests.support.worlds import World

MANY = Effort(exact=0)
"""As where many runs wait."""


@st.composite
def crowds(draw: Draw) -> World:
    """A domain of two or three small nodes, and more pods of other sizes than fit there, of other ages."""
    world = World().budget("org:a", 64)
    world.domain("A", nodes=draw(st.integers(2, 3)), gpus=draw(st.integers(3, 7)))
    for number in range(draw(st.integers(3, 5))):
        pods, each, hours = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 20))
        world.run(f"r{number}", pods * each, pods=each, created=f"-{hours}h")
    return world


@examples(40)
@given(crowds())
def test_what_many_wait_for_is_found_as_where_few_wait(world: World) -> None:
    snapshot = world.snapshot()
    exact, many = (planner.plan(snapshot, unix(T0), effort).stages[0] for effort in (USUAL, MANY))

    assert (many.name, many.value, many.bound) == ("starts", exact.value, exact.value)
