"""What large problems do, done on small worlds: the optimum of the reference lies from the value to the bound."""

import os

import pytest
from hypothesis import given, settings

from planner import large
from tests.reference import worlds
from tests.reference.large import hold_between, plan_as_large

WORLDS = int(os.environ.get("JOBTREE_WORLDS", "540")) // 6
"""How many worlds for each size of what is solved whole."""


@pytest.mark.parametrize("middle", [0, large.MIDDLE], ids=["rounded", "whole"])
def test_so_it_does_where_types_are_not_told_apart(middle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch, middle=middle, fine=False)
    settings(max_examples=max(1, WORLDS // len(worlds.KINDS)))(given(worlds.worlds("recall"))(hold_between))()


@pytest.mark.parametrize("middle", [0, large.MIDDLE], ids=["rounded", "whole"])
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_the_optimum_lies_between_value_and_bound(kind: str, middle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch, middle=middle)
    settings(max_examples=max(1, WORLDS // len(worlds.KINDS)))(given(worlds.worlds(kind))(hold_between))()
