"""What the plan says of classes: new claims are born funded, segments record every change (spec §3.5–§3.8)."""

from collections.abc import Iterator

from jobtree.check.case.case import Case
from jobtree.check.case.named import label
from jobtree.check.case.rows import Held
from jobtree.check.case.violation import Violation
from jobtree.check.money.classes import Present


def violations(case: Case, present: Present) -> Iterator[Violation]:
    """New claims are funded in the pass; the plan's segments are exactly the changes of class."""
    for lease in case.new:
        refused = present.refused.get(lease.key)
        if refused is None or lease.reason == "Swap":  # a swap keeps its run going, funded or not
            yield from _born(case, lease, present.classes[lease.key])
        else:
            payer = label(lease.payer) if lease.payer else "nobody"
            sentence = f"it would be unfunded from the start at {payer}: {refused.words}"
            yield Violation.of_lease(refused.invariant, lease.key, sentence)
    for lease in case.held:
        if case.is_frozen(lease):
            yield from _frozen(case, lease)
        else:
            yield from _recorded(case, lease, present.classes[lease.key])


def _born(case: Case, lease: Held, expected: str) -> Iterator[Violation]:
    """A new lease's ledger is one open segment of its class from its start; none will do where nobody pays."""
    given = tuple((name, since, until, _rate(name, rate)) for name, since, until, rate in lease.funding)
    wanted = ((expected, case.at, None, _expected_rate(case, lease, expected)),)
    if given != wanted and (lease.payer is not None or given):
        yield Violation.of_lease(
            "class-derived",
            lease.key,
            f"its ledger starts as {given}, and should as {wanted} (class, from, to, millicredits)",
        )


def _recorded(case: Case, lease: Held, expected: str) -> Iterator[Violation]:
    name, rate = (lease.funding[-1][0], lease.funding[-1][3]) if lease.funding else ("unfunded", None)
    for segment in case.appended.get(lease.key, ()):
        name, rate = segment.funding_class, segment.rate_milli
    wanted = _expected_rate(case, lease, expected)
    if (name, _rate(name, rate)) != (expected, wanted):
        yield Violation.of_lease(
            "class-derived",
            lease.key,
            f"with this plan its ledger ends as {name} at {_rate(name, rate)} millicredits; in the order of claims it"
            f" is {expected} at {wanted}",
        )


def _frozen(case: Case, lease: Held) -> Iterator[Violation]:
    """From now on: before, its Budget was as the last cycle saw it."""
    if any(segment.since == case.at for segment in case.appended.get(lease.key, ())):
        yield Violation.of_lease(
            "class-derived",
            lease.key,
            f"its class changes, though Budget {lease.budget} is quarantined and what it pays stays as it was",
        )


def _rate(name: str, rate: int | None) -> int:
    """Where nothing is charged no rate matters, and none is a rate of 0."""
    return 0 if name == "unfunded" else rate or 0


def _expected_rate(case: Case, lease: Held, name: str) -> int:
    return _rate(name, case.rate(lease.flavor))
