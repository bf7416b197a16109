"""Lending caps: what sponsors' envelopes have out on loan (spec §1 Budget.lending, §3.1).

Σ payments from e for runs of no relative of its owner ≤ lending.maxConcurrency, lending.maxGPUHours
"""

from typing import Final

from policies.caps.cap import Family, Pool
from policies.inputs.money import Money

LENDING: Final = Family(
    rule="lending",
    words="the lending cap of {}",
    table="envelopes",
    part="envelopes",
    limits={
        "concurrency": ("lending_concurrency", "lending.maxConcurrency"),
        "hours": ("lending_gpu_milliseconds", "lending.maxGPUHours"),
    },
    price=0.999,  # it concerns fewest people
    recalls=False,
)


def pools(money: Money) -> list[Pool]:
    """One pool per envelope, in envelope order: what one that lends no more has out on loan stays bounded."""
    return [
        Pool(
            family=LENDING,
            subject=envelope.label,
            envelopes=(index,),
            contains=lambda lane: lane.loan,
            concurrency=envelope.lending_concurrency,
            max_gpu_milliseconds=envelope.lending_gpu_milliseconds,
            max_millicredits=None,
            since=envelope.start,
            end=envelope.end,
        )
        for index, envelope in enumerate(money.envelopes)
    ]
