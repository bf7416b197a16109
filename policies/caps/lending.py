"""Lending caps: what sponsors' envelopes have out on loan (spec §1 Budget.lending, §3.1).

Σ payments from e for runs of no relative of its owner ≤ lending.maxConcurrency, lending.maxGPUHours
"""

from policies.caps.cap import Pool
from policies.inputs.money import Money

RULE = "lending"


def pools(money: Money) -> list[Pool]:
    """One pool per envelope, in envelope order: what one that lends no more has out on loan stays bounded."""
    return [
        Pool(
            rule=RULE,
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
