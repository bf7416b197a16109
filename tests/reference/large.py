"""What large problems do, done on small worlds and held against the reference."""

from typing import Final

import planner
from jobtree.check import check
from jobtree.world.plan import Plan
from planner import Effort
from planner.effort import Paying
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT, World

AS_LARGE: Final = Effort(exact=0, small=0, middle=0, paying=Paying(whole=0))
"""Every problem counts as a large one."""


def hold_between(world: World, effort: Effort = AS_LARGE) -> None:
    """The plan passes the checker, and the optimum lies from its value to its bound."""
    snapshot = world.snapshot()
    plan = planner.plan(snapshot, AT, effort)
    starts = next(stage for stage in plan.stages if stage.name == "starts")
    optimum = Reference(read(snapshot, AT)).optimum()

    assert [str(violation) for violation in check(snapshot, plan)] == []
    if has_given_way(plan):
        assert max(starts.value, optimum["starts"]) <= starts.bound
        return
    assert starts.value <= optimum["starts"] <= starts.bound


def has_given_way(plan: Plan) -> bool:
    """Has opportunistic work given way to a start? The reference leaves it where it runs."""
    return any(closure.reason == "ReclaimUnfunded" for closure in plan.closures)
