"""What large problems do, done on small worlds: the optimum of the reference lies from the value to the bound."""

import pytest
from hypothesis import given

from planner.large import rounding as large
from tests.reference import worlds
from tests.reference.large import hold_between, plan_as_large
from tests.support.effort import examples


@pytest.mark.parametrize("middle", [0, large.MIDDLE], ids=["rounded", "whole"])
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_optimum_lies_between_value_and_bound(kind: str, middle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch, middle=middle)
    examples(12)(given(worlds.worlds(kind))(hold_between))()
