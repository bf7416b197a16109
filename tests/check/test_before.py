"""What of a check was done before there was a plan is what the check would have done itself."""

from collections.abc import Mapping
from typing import TypeVar

from hypothesis import given, settings

from jobtree.check import Before, Rows, check
from jobtree.check.caps import Caps
from jobtree.check.case import Case
from jobtree.check.ledger import Ledger
from tests.history.histories import histories
from tests.history.play import Step, play

Key = TypeVar("Key")


@settings(max_examples=40)
@given(histories())
def test_charges_are_those_of_a_ledger_that_knows_the_plan_from_the_start(steps: list[Step]) -> None:
    for cycle in play(steps):
        case = Case(cycle.snapshot, Rows.of(cycle.snapshot), cycle.plan)
        caps = Caps(case)
        before = Before.of(cycle.snapshot, cycle.plan.at)
        whole, begun = Ledger(case, caps), Ledger(case, before.caps, before.entered)

        assert before.caps.pools == caps.pools
        assert told(begun.hours) == told(whole.hours)
        assert told(begun.credits) == told(whole.credits)
        assert told(begun.paid) == told(whole.paid)
        assert told(begun.paid_credits) == told(whole.paid_credits)


@settings(max_examples=5)
@given(histories())
def test_work_for_another_second_is_done_anew(steps: list[Step]) -> None:
    for cycle in play(steps):
        assert check(cycle.snapshot, cycle.plan, Before.of(cycle.snapshot, cycle.plan.at + 7)) == []


def told(amounts: Mapping[Key, int]) -> dict[Key, int]:
    """Without what is nothing."""
    return {key: amount for key, amount in amounts.items() if amount}
