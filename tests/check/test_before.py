"""What of a check was done before there was a plan is what the check would have done itself."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given

from jobtree.check import Before, check
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.money.ledger import Ledger
from jobtree.world.plan import Closure, Plan
from jobtree.world.tables.snapshot import Snapshot
from tests.history.histories import histories
from tests.history.play import Step, play
from tests.support.effort import examples

Key = TypeVar("Key")


@pytest.mark.slow
@examples(40)
@given(histories())
def test_charges_are_those_of_a_ledger_that_knows_the_plan_from_the_start(steps: list[Step]) -> None:
    for cycle in play(steps):
        before = Before.of(cycle.snapshot, cycle.plan.at)
        case = Case(before.told, cycle.plan)
        caps = Caps(case)
        whole, begun = Ledger(case, caps), Ledger(case, before.caps, before.entered)

        assert before.caps.pools == caps.pools
        assert told(begun.hours) == told(whole.hours)
        assert told(begun.credits) == told(whole.credits)
        assert told(begun.paid) == told(whole.paid)
        assert told(begun.paid_credits) == told(whole.paid_credits)


@examples(8)
@given(histories())
def test_one_plan_leaves_nothing_behind_for_the_check_of_another(steps: list[Step]) -> None:
    for cycle in play(steps):
        before = Before.of(cycle.snapshot, cycle.plan.at)
        plans = [cycle.plan, *others(cycle.snapshot, cycle.plan), cycle.plan]

        assert [check(cycle.snapshot, plan, before) for plan in plans] == [
            check(cycle.snapshot, plan) for plan in plans
        ]


@examples(5)
@given(histories())
def test_work_for_another_second_is_done_anew(steps: list[Step]) -> None:
    for cycle in play(steps):
        assert check(cycle.snapshot, cycle.plan, Before.of(cycle.snapshot, cycle.plan.at + 7)) == []


def others(snapshot: Snapshot, plan: Plan) -> Iterator[Plan]:
    """Plans that decide nothing, that end all that runs, and that do not say what becomes of it."""
    yield msgspec.structs.replace(plan, closures=[], segments=[], leases=[], runs=[], budgets=[], waits=[])
    for reason in ("Failed", "TimeLimit", "RunDeleted"):
        yield msgspec.structs.replace(plan, closures=[*ending(snapshot, plan.at, reason)], leases=[], segments=[])
    yield msgspec.structs.replace(plan, runs=[], segments=[])


def ending(snapshot: Snapshot, at: int, reason: str) -> Iterator[Closure]:
    """All open leases end, for one reason."""
    leases = snapshot.tables["leases"].select(["namespace", "name", "closed"]).to_pylist()
    for lease in leases:
        if not lease["closed"]:
            yield Closure(namespace=lease["namespace"], name=lease["name"], ended=at, reason=reason)


def told(amounts: Mapping[Key, int]) -> dict[Key, int]:
    """Without what is nothing."""
    return {key: amount for key, amount in amounts.items() if amount}
