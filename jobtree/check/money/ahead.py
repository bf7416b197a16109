"""Look-ahead, for admissions only (spec §3.4): nothing is admitted that would be born unfunded.

    spent + Σ over open funded and new claims of  milli-GPUs × min(P, window left, time limit left)  ≤  limit

for every cap on hours or credits that a new claim touches; P is ``accountingPeriod``.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from jobtree.check.case.caps import Caps, Touch
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, LeaseKey
from jobtree.check.case.violation import Violation
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger


def violations(
    case: Case, caps: Caps, ledger: Ledger, present: Present, before: Mapping[LeaseKey, bool]
) -> Iterator[Violation]:
    """Remaining hours and credits cover what is funded ahead, where a new claim needs any of them.

    ``before``: of running leases, would they be funded if nothing started, where that is not as it is: hours are not
    recalled (spec §3.8).
    """
    touched = {touch.pool for lease in case.new for touch in caps.lane(lease).present if caps.pools[touch.pool].on_time}
    if not touched:
        return
    ahead: dict[int, int] = defaultdict(int)
    rated: dict[int, int] = defaultdict(int)
    asked: set[tuple[str, int]] = set()
    fresh = {lease.key for lease in case.new if lease.reason != "Swap"}  # that carries on what runs
    for lease in (*case.held, *case.new):
        if not before.get(lease.key, present.classes[lease.key] != "unfunded"):
            continue
        for touch in caps.lane(lease).present:
            if touch.pool in touched:
                charge = case.milli(lease) * span(case, lease, touch)
                ahead[touch.pool] += charge
                rate = case.rate(lease.flavor) if lease.payer in case.envelopes else lease.recorded_rate
                rated[touch.pool] += charge * rate
                if lease.key in fresh and charge:
                    asked |= {("hours", touch.pool), *([("credits", touch.pool)] if rate else [])}
    for number in sorted(touched):
        pool = caps.pools[number]
        for measure, limit, spent, more in (
            ("hours", pool.hours, ledger.hours[number], ahead[number]),
            ("credits", pool.credits, ledger.credits[number], rated[number]),
        ):
            if limit is not None and (measure, number) in asked and spent + more > limit:
                yield Violation(
                    f"look-ahead-{measure}",
                    f"{pool.rule.capitalize()} {pool.subject}",
                    f"{spent} spent and {more} needed ahead exceed {limit}"
                    f" (milli-GPU-seconds{', times millicredits' if measure == 'credits' else ''})",
                )


def span(case: Case, lease: Held, touch: Touch) -> int:
    """Seconds that a funded claim is provided for: min(P, window left, time limit left)."""
    return until_then(case, reach(case, lease), touch)


def reach(case: Case, lease: Held) -> int:
    """The same but for windows of pools above its envelope."""
    payer = None if lease.payer is None else case.envelopes.get(lease.payer)
    most = int(case.policy.accounting_period)
    if payer is not None and payer.end is not None:
        most = min(most, payer.end - case.at)
    left = case.time_left(lease.run_key)
    return max(0, most if left is None else min(most, left))


def until_then(case: Case, seconds: int, touch: Touch) -> int:
    """What of so many seconds ahead lies before a pool's window closes."""
    return seconds if touch.until is None else max(0, min(seconds, touch.until - case.at))
