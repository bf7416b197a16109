"""Recall: which running claims lose their payer to starts, and to whose (spec §3.8).

A nearer claimant's start may, by the order of claims; a loan that starts may not.
"""

from collections.abc import Iterator

from jobtree.check.claims import Claims
from jobtree.check.classes import Counts, Present
from jobtree.check.ledger import Ledger
from jobtree.check.rows import Held
from jobtree.check.violation import Violation


def violations(claims: Claims, ledger: Ledger, present: Present) -> Iterator[Violation]:
    """Running claims that are funded without the loans that start, and unfunded with them."""
    if not any(claim.loan and claim.starts for claim in claims.ordered):
        return
    for lease in _losing(claims, ledger, present, lambda claim: not (claim.loan and claim.starts)):
        sentence = f"loans that start leave it without {'/'.join(lease.payer or ())}, and only nearer claimants may"
        yield Violation("loan-recalls-nobody", f"Lease {lease.namespace}/{lease.name}", sentence)


def recalled(claims: Claims, ledger: Ledger, present: Present) -> int:
    """Stage 4: GPUs that would be funded if nothing started, and are not."""
    return sum(lease.gpus for lease in _losing(claims, ledger, present, lambda claim: not claim.starts))


def _losing(claims: Claims, ledger: Ledger, present: Present, counts: Counts) -> list[Held]:
    """What is held unfunded, and would be funded if only the claims that count were there."""
    unfunded = [lease for lease in claims.case.held if present.classes[lease.key] == "unfunded"]
    if not unfunded:
        return []
    without = Present(claims, ledger, counts)
    return [lease for lease in unfunded if without.classes[lease.key] != "unfunded"]
