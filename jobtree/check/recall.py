"""Recall: which running claims lose their payer to starts, and to whose (spec §3.8).

A nearer claimant's start may, by the order of claims, once the world has changed since the claim was admitted. A loan
that starts may not.
"""

from collections.abc import Iterator
from functools import cached_property

from jobtree.check.claims import Claim, Claims
from jobtree.check.classes import Present
from jobtree.check.ledger import Ledger
from jobtree.check.named import label
from jobtree.check.rows import Held
from jobtree.check.violation import Violation


class Recall:
    """What starts take from running claims; ``changed``: when the world last did, Unix seconds."""

    def __init__(self, claims: Claims, ledger: Ledger, present: Present, changed: int) -> None:
        self._changed = changed
        self._claims = claims
        self._ledger = ledger
        self._present = present

    @cached_property
    def lost(self) -> list[tuple[list[Claim], dict[int, list[Held]]]]:
        """Clusters of claims, and by the place of a claim in it what would be funded of it if nothing started, and is
        not.
        """
        found = []
        for cluster in self._claims.clusters:
            unfunded = {place: mine for place, claim in enumerate(cluster) if (mine := self._unfunded(claim))}
            if unfunded:
                without = Present(self._claims, self._ledger, [claim for claim in cluster if not claim.starts])
                losing = {
                    place: funded
                    for place, mine in unfunded.items()
                    if (funded := [lease for lease in mine if without.classes[lease.key] != "unfunded"])
                }
                if losing:
                    found.append((cluster, losing))
        return found

    def _unfunded(self, claim: Claim) -> list[Held]:
        """What is held unfunded of a claim that runs."""
        if claim.starts:
            return []
        refused, held = self._present.refused, self._claims.case.leases
        return [lease for part in claim.parts for lease in part.leases if lease.key in refused and lease.key in held]

    @property
    def gpus(self) -> int:
        """Stage 4: GPUs that would be funded if nothing started, and are not."""
        return sum(lease.gpus for _, losing in self.lost for mine in losing.values() for lease in mine)

    def violations(self) -> Iterator[Violation]:
        """Running claims that would stay funded if only those had started that they may give way to."""
        for cluster, losing in self.lost:
            last: dict[bool, int] = {self._yields(cluster[place]): place for place in losing}  # nothing later matters
            for yields, end in last.items():
                entitled = [claim for claim in cluster[: end + 1] if not claim.starts or (yields and not claim.loan)]
                beside = Present(self._claims, self._ledger, entitled)
                for place, mine in losing.items():
                    for lease in mine if self._yields(cluster[place]) == yields else ():
                        if beside.classes[lease.key] != "unfunded":
                            payer = label(cluster[place].payer)
                            sentence = f"starts leave it without {payer} that it does not have to give way to"
                            yield Violation.of_lease("recall-justified", lease.key, sentence)

    def _yields(self, claim: Claim) -> bool:
        """Has the world changed since the claim was admitted?"""
        return claim.admitted < self._changed
