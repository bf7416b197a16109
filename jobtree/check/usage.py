"""Usage that the plan writes into Budgets: classes, charges and headroom, recomputed (spec §1 Budget status, §3.6)."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from jobtree.api.budget import EnvelopeUsage
from jobtree.api.scalars import exact
from jobtree.check.caps import CREDIT
from jobtree.check.case import Case
from jobtree.check.classes import Present
from jobtree.check.ledger import Ledger
from jobtree.check.rows import EnvelopeKey
from jobtree.check.violation import Violation

_ROUNDED = Fraction(1, 1000)
"""How far figures for people (GPU-hours, credits) may be from the exact ones."""


def violations(case: Case, ledger: Ledger, present: Present) -> Iterator[Violation]:
    """Every envelope of every Budget whose status the plan rewrites."""
    gpus: dict[EnvelopeKey, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    milli: dict[EnvelopeKey, int] = defaultdict(int)
    for lease in (*case.held, *case.new):
        if lease.payer is not None:
            name = present.classes[lease.key]
            gpus[lease.payer][name if lease.active else "spare"] += lease.gpus
            milli[lease.payer] += 0 if name == "unfunded" else case.milli(lease)
    envelopes: dict[str, list[str]] = defaultdict(list)
    for budget, name in sorted(case.envelopes):
        envelopes[budget].append(name)
    for update in case.plan.budgets:
        names = envelopes[update.name]
        told = sorted(usage.name for usage in update.status.envelopes)
        if told != names:
            sentence = f"its usage tells of {', '.join(told)}, and its envelopes are {', '.join(names) or 'none'}"
            yield Violation("usage-agrees", f"Budget {update.name}", sentence)
            continue
        for usage in update.status.envelopes:
            payer = (update.name, usage.name)
            yield from _gpus(payer, usage, gpus[payer])
            yield from _charges(payer, usage, ledger)
            most = 1000 * case.envelopes[payer].concurrency
            if exact(usage.headroom_gpus) * 1000 > max(0, most - milli[payer]):
                sentence = f"its headroom is {usage.headroom_gpus} GPUs with {milli[payer]} milli-GPUs of {most} used"
                yield Violation("usage-agrees", f"Envelope {'/'.join(payer)}", sentence)


def _gpus(payer: EnvelopeKey, usage: EnvelopeUsage, held: dict[str, int]) -> Iterator[Violation]:
    for name, given in (
        ("owned", usage.owned_gpus),
        ("shared", usage.shared_gpus),
        ("borrowed", usage.borrowed_gpus),
        ("unfunded", usage.unfunded_gpus),
        ("spare", usage.spare_gpus),
    ):
        if given != held[name]:
            sentence = f"its usage says {given} {name} GPUs, and it is {held[name]}"
            yield Violation("usage-agrees", f"Envelope {'/'.join(payer)}", sentence)


def _charges(payer: EnvelopeKey, usage: EnvelopeUsage, ledger: Ledger) -> Iterator[Violation]:
    """Charges = ledger integral: GPU-seconds to the milli-GPU-second, figures for people to their rounding."""
    exact_seconds = Fraction(ledger.paid[payer], 1000)
    figures = [
        ("gpuSecondsConsumed", usage.gpu_seconds_consumed, exact_seconds, Fraction(0)),
        ("gpuHoursConsumed", usage.gpu_hours_consumed, exact_seconds / 3600, _ROUNDED),
    ]
    if usage.credits_consumed is not None:
        spent = Fraction(ledger.paid_credits[payer], CREDIT * 1000)
        figures.append(("creditsConsumed", usage.credits_consumed, spent, _ROUNDED))
    for name, given, true, slack in figures:
        if abs(exact(given) - true) > slack:
            sentence = f"its usage says {name} {given}, and the ledger adds up to {float(true)}"
            yield Violation("charges-are-ledger", f"Envelope {'/'.join(payer)}", sentence)
