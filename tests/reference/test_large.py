"""What large problems do, done on small worlds: the optimum of the reference lies from the value to the bound."""

from dataclasses import replace

import pytest
from hypothesis import given

from planner.effort import USUAL
from tests.reference import worlds
from tests.reference.large import AS_LARGE, hold_between
from tests.reference.worlds import World
from tests.support.effort import examples


@pytest.mark.parametrize("middle", [0, USUAL.middle], ids=["rounded", "whole"])
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_optimum_lies_between_value_and_bound(kind: str, middle: int) -> None:
    effort = replace(AS_LARGE, middle=middle)

    @examples(12)
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        hold_between(world, effort)

    holds()
