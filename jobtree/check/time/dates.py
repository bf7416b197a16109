"""Dates, again: at a promised time somebody may pay, and whoever may be cut for it still runs (spec §5, §6).

Of what the plan writes, for a time to come: some envelope of the run's flavor, of a relative that shares or of a listed
sponsor that lends, pays then; and no run is told that it may be cut whose time limit ends it by then.
"""

from collections.abc import Iterator

from jobtree.check.case.case import Case
from jobtree.check.case.violation import Violation
from jobtree.check.time.promises import Promise, after


def violations(case: Case) -> Iterator[Violation]:
    """What is wrong with the dates of promises that are made or moved."""
    written = {(each.namespace, each.name) for each in case.plan.promises}
    written |= {(each.namespace, each.name) for each in case.plan.reservations}
    for promise in after(case):
        if (promise.run[0], promise.name) in written and promise.stands and promise.start > case.at:
            yield from _unpaid(case, promise)
            yield from _over(case, promise)


def _unpaid(case: Case, promise: Promise) -> Iterator[Violation]:
    run = case.run_of(promise.run)
    if run is None or case.policy.reservations.on_budget_shortfall == "startUnfunded":
        return
    if not case.has_payer(run, promise.start):
        yield Violation("promise-payable", promise.subject, f"no envelope that may pay for it pays at {promise.start}")


def _over(case: Case, promise: Promise) -> Iterator[Violation]:
    forecast = promise.status.forecast
    for each in () if forecast is None else forecast.conflict_set:
        namespace, _, name = each.run.partition("/")
        left = case.time_left((namespace, name))
        if left is not None and case.at + left <= promise.start:
            sentence = f"{each.run} is told that it may be cut at {promise.start}, and ends by its limit by then"
            yield Violation("promise-truthful", promise.subject, sentence)
