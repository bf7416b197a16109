"""F33: the pass over all claims has the last word on who recalls (spec §3.8), on tiny trees of owners."""

import pytest
from hypothesis import given

import planner
from jobtree.check import check
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.trees import trees
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.slow
@examples(400)
@given(trees())
def test_f33_no_start_is_unfunded_by_what_comes_back(world: World) -> None:
    snapshot = world.snapshot()
    plan = planner.plan(snapshot, AT)

    assert [str(violation) for violation in check(snapshot, plan)] == []
    assert {each.class_ for lease in plan.leases for each in lease.status.funding} <= {"owned", "shared", "borrowed"}


@examples(40)
@given(trees())
def test_f33_what_the_pass_costs_counts_into_the_gap(world: World) -> None:
    snapshot = world.snapshot()
    starts, *_ = planner.plan(snapshot, AT).stages
    optimum = Reference(read(snapshot, AT)).optimum()

    assert starts.value <= optimum["starts"] <= starts.bound
