"""Aggregate caps: several envelopes of one Budget together (spec §1 Budget.aggregateCaps).

Σ payments from the named envelopes ≤ maxConcurrency, maxGPUHours, maxCredits
"""

from typing import Final

from policies.caps.cap import MAXIMA, Family, Pool
from policies.inputs.money import Money

AGGREGATE: Final = Family(
    rule="aggregate",
    words="the aggregate cap {}",
    table="aggregates",
    part="aggregateCaps",
    limits=MAXIMA,
)


def pools(money: Money) -> list[Pool]:
    """One pool per aggregate cap, in (budget, name) order."""
    return [
        Pool(
            family=AGGREGATE,
            subject=f"{cap.budget}/{cap.name}",
            envelopes=cap.envelopes,
            contains=lambda _: True,
            concurrency=cap.concurrency,
            max_gpu_milliseconds=cap.max_gpu_milliseconds,
            max_millicredits=cap.max_millicredits,
            since=None,
            end=None,
            by_payer=True,
        )
        for cap in money.aggregates
    ]
