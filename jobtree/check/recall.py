"""Recall: which running claims lose their payer to starts, and to whose (spec §3.8).

A nearer claimant's start may, by the order of claims. A loan that starts may not, nor may a run that was there already
when the claim was admitted.
"""

from collections.abc import Iterator

from jobtree.check.claims import Claim, Claims
from jobtree.check.classes import Counts, Present
from jobtree.check.ledger import Ledger
from jobtree.check.rows import Held
from jobtree.check.violation import Violation


def violations(claims: Claims, ledger: Ledger, present: Present) -> Iterator[Violation]:
    """Running claims that would stay funded if only those had started that they may give way to."""
    lost = {lease.key for lease in _losing(claims, ledger, present, lambda claim: not claim.starts)}
    known: dict[int, Present] = {}
    for claim in claims.ordered if lost else ():
        mine = [lease for part in claim.parts for lease in part.leases if lease.key in lost]
        if mine and claim.admitted not in known:
            known[claim.admitted] = Present(claims, ledger, _entitled(claims, claim.admitted))
        for lease in mine:
            if known[claim.admitted].classes[lease.key] != "unfunded":
                sentence = f"starts leave it without {'/'.join(claim.payer)} that it does not have to give way to"
                yield Violation("recall-justified", f"Lease {lease.namespace}/{lease.name}", sentence)


def _entitled(claims: Claims, admitted: int) -> Counts:
    """Running claims, and the starts to which one admitted then may have to give way."""

    def counts(claim: Claim) -> bool:
        run = claims.case.run_of(claim.run)
        later = run is not None and run.created is not None and run.created > admitted
        return not claim.starts or (later and not claim.loan)

    return counts


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
