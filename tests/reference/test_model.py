"""The reference model against brute force, on worlds that can be tried out one by one."""

import pytest
from hypothesis import given

from tests.reference import brute, worlds
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_reference_finds_what_trying_everything_finds(kind: str) -> None:
    @examples(8)
    @given(worlds.worlds(kind, tiny=True))
    def holds(world: World) -> None:
        known = read(world.snapshot(), AT)
        assert Reference(known).optimum() == brute.optimum(known)

    holds()
