"""Recall: which running claims lose their payer to starts, and to whose (spec §3.8).

A nearer claimant's start may, by the order of claims; a loan that starts may not.
"""

from collections.abc import Iterator

from jobtree.check.caps import Caps
from jobtree.check.case import Case
from jobtree.check.classes import Claim, Present
from jobtree.check.ledger import Ledger
from jobtree.check.violation import Violation


def violations(case: Case, caps: Caps, ledger: Ledger, present: Present) -> Iterator[Violation]:
    """Running claims that are funded without the loans that start, and unfunded with them."""
    if not any(caps.is_loan(lease) for lease in case.new):
        return
    family = Present(case, caps, ledger, lambda claim: not (claim.loan and starts(case, claim)))
    for lease in case.held:
        if present.classes[lease.key] == "unfunded" and family.classes[lease.key] != "unfunded":
            sentence = f"loans that start leave it without {'/'.join(lease.payer or ())}, and only nearer claimants may"
            yield Violation("loan-recalls-nobody", f"Lease {lease.namespace}/{lease.name}", sentence)


def recalled(case: Case, caps: Caps, ledger: Ledger, present: Present) -> int:
    """Stage 4: GPUs that would be funded if nothing started, and are not."""
    before = Present(case, caps, ledger, lambda claim: not starts(case, claim))
    return sum(
        lease.gpus
        for lease in case.held
        if present.classes[lease.key] == "unfunded" and before.classes[lease.key] != "unfunded"
    )


def starts(case: Case, claim: Claim) -> bool:
    """Whether the claim is made by this plan."""
    return all(lease.key not in case.leases for lease in claim.leases)
