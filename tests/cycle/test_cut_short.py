"""A search that is cut short: whatever it was doing, its plan tells the best bound that was proven until then."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given

from jobtree.check import check
from jobtree.world.plan import Stage
from planner import Planning
from planner.effort import USUAL, Components
from tests.reference import worlds
from tests.reference.large import AS_LARGE
from tests.reference.worlds import AT, World, snapshot
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import T0

WAYS: Final = {
    "exact": USUAL,
    "whole": replace(USUAL, exact=0),
    "blocks": AS_LARGE,
    "blocks, then whole": replace(AS_LARGE, middle=USUAL.middle),
    "components": replace(AS_LARGE, components=Components(largest=1.0)),
}
"""The ways of solving a master."""
WORTH: Final = 86_400
"""Of a GPU of a run just created: GPU-seconds."""


def told(stages: Iterable[Stage]) -> tuple[int, int]:
    """Value and bound of stage `starts`."""
    return next((stage.value, stage.bound) for stage in stages if stage.name == "starts")


@pytest.mark.parametrize("way", WAYS)
def test_first_by_what_is_free_then_by_the_relaxation_then_by_the_solution(way: str) -> None:
    """16 GPUs are free, 12 are paid, and 5 and 8 do not fit beside each other: 5 comes first by name."""
    runs = [
        doc.merge(doc.run(name, gpus), {"metadata": {"uid": name, "creationTimestamp": T0}})
        for name, gpus in (("a", 5), ("b", 8), ("c", 8))
    ]
    nodes = [doc.node("n1"), doc.node("n2")]
    now = snapshot([*nodes, doc.budget("org:a", [doc.envelope(12)]), *runs])

    planning = Planning(now, AT, WAYS[way])
    found = [planning.finish(incumbent) for incumbent in planning.incumbents()]

    assert [tuple(gpus // WORTH for gpus in told(plan.stages)) for plan in found] == [
        (5, 16),
        (5, 12),
        (5, 8),
        (8, 8),
        (8, 8),
    ]
    assert [list(check(now, plan)) for plan in found] == [[] for _ in found]


@pytest.mark.parametrize("way", WAYS)
def test_values_rise_and_bounds_fall_and_none_is_below_what_can_be_reached(way: str) -> None:
    @examples(30)
    @given(worlds.worlds("all"))
    def holds(world: World) -> None:
        now = world.snapshot()
        found = [told(outcome.stages) for outcome in Planning(now, AT, WAYS[way]).outcomes()]
        *_, best = Planning(now, AT).outcomes()

        assert [value for value, _ in found] == sorted(value for value, _ in found)
        assert [bound for _, bound in found] == sorted((bound for _, bound in found), reverse=True)
        assert found[-1][1] >= told(best.stages)[0]

    holds()
