"""Recall: what starts may take of what farther claims hold, cap by cap, and who loses its payer (spec §3.8)."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from jobtree.check.case.claims import Claim, Claims
from jobtree.check.case.named import label
from jobtree.check.case.rows import Held, LeaseKey
from jobtree.check.case.violation import Violation
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger

FARTHEST: Final = 5
"""Where loans and growth stand that a plan makes: they need room beside everything."""


class _Shaken(NamedTuple):
    """Claims tied to one another of which some lose their payer to starts.

    ``lost``: by place in ``claims``, what would be funded of it if nothing started, and is not.
    """

    claims: list[Claim]
    lost: dict[int, list[Held]]


class Recall:
    """What starts take from running claims; ``changed``: when the world last did, Unix seconds."""

    def __init__(self, claims: Claims, ledger: Ledger, present: Present, changed: int) -> None:
        self._changed = changed
        self._claims = claims
        self._ledger = ledger
        self._present = present

    @cached_property
    def _found(self) -> tuple[list[_Shaken], dict[LeaseKey, bool]]:
        shaken: list[_Shaken] = []
        before: dict[LeaseKey, bool] = {}
        for cluster in self._claims.clusters:
            unfunded = {place: mine for place, claim in enumerate(cluster) if (mine := self._unfunded(claim))}
            if not unfunded:
                continue
            without = Present(self._claims, self._ledger, [claim for claim in cluster if not claim.starts]).classes
            lost = {
                place: funded
                for place, mine in unfunded.items()
                if (funded := [lease for lease in mine if without[lease.key] != "unfunded"])
            }
            if lost:
                shaken.append(_Shaken(cluster, lost))
                running = (lease for claim in cluster if not claim.starts for lease in _leases(claim))
                before.update((lease.key, without[lease.key] != "unfunded") for lease in running)
        return shaken, before

    @property
    def before(self) -> dict[LeaseKey, bool]:
        """Of running leases where some lose their payer: would they be funded if nothing started?"""
        return self._found[1]

    def _unfunded(self, claim: Claim) -> list[Held]:
        """What is unfunded of a claim that runs, be it of a swap."""
        return [] if claim.starts else [lease for lease in _leases(claim) if lease.key in self._present.refused]

    @property
    def overdraw(self) -> int:
        """Stage 4: milli-GPUs that envelopes pay beyond their concurrency, starts and all that was funded before."""
        total = 0
        for claims, _ in self._found[0]:
            paid: dict[int, int] = defaultdict(int)
            for claim in claims:
                own = self._claims.caps.own(claim.payer)
                paid[own] += self._taken(claim, own)
            total += sum(max(0, milli - (self._claims.caps.pools[own].width or 0)) for own, milli in paid.items())
        return total

    def violations(self) -> Iterator[Violation]:
        """Starts that take more of a cap than is left beside what they may not recall, and what may not be recalled."""
        yield from self._lost_to_swaps()
        for claims, lost in self._found[0]:
            for place, mine in lost.items():
                if self._is_firm(claims[place]):
                    payer = label(claims[place].payer)
                    for lease in mine:
                        sentence = f"starts leave it without {payer}, and nobody may recall it"
                        yield Violation.of_lease("recall-justified", lease.key, sentence)
            for number in sorted({number for claim in claims if claim.starts for number in claim.pools}):
                yield from self._exceeded(claims, number)

    def _lost_to_swaps(self) -> Iterator[Violation]:
        """A swap needs room beside all that runs."""
        for cluster in self._claims.clusters:
            running = [claim for claim in cluster if not claim.starts]
            others = [self._claims.without(claim, _is_swap) for claim in running]
            if others != running:
                then = Present(self._claims, self._ledger, [claim for claim in others if claim.parts]).classes
                now = Present(self._claims, self._ledger, running).classes
                for claim, lease in ((each, lease) for each in others for lease in _leases(each)):
                    if then[lease.key] != "unfunded" and now[lease.key] == "unfunded":
                        sentence = f"swaps leave it without {label(claim.payer)}, and they recall nothing"
                        yield Violation.of_lease("recall-justified", lease.key, sentence)

    def _exceeded(self, claims: list[Claim], number: int) -> Iterator[Violation]:
        """All starts at a pool, and what is funded there and not farther than the farthest of them, fit together."""
        pool = self._claims.caps.pools[number]
        starts = [claim for claim in claims if claim.starts and self._taken(claim, number)]
        if pool.width is None or not starts:
            return
        farthest = FARTHEST if pool.rule in ("lending", "use-cap") else max(self._level(claim) for claim in starts)
        running = [claim for claim in claims if not claim.starts and self._taken(claim, number)]
        stay = max((place for place, claim in enumerate(running) if self._is_firm(claim)), default=-1)
        taken = sum(self._taken(claim, number) for claim in starts) + self._kept.get(number, 0)
        for place, claim in enumerate(running):
            if place <= stay or self._level(claim) <= farthest:
                taken += self._taken(claim, number)
        if taken > pool.width:
            sentence = f"its starts and what they may not recall take {taken} milli-GPUs, more than its {pool.width}"
            yield Violation("recall-justified", f"{pool.rule.capitalize()} {pool.subject}", sentence)

    @cached_property
    def _kept(self) -> dict[int, int]:
        """By pool, what stays paid whatever claims there are."""
        found: dict[int, int] = defaultdict(int)
        for lease in self._claims.kept:
            for touch in self._claims.caps.lane(lease).present:
                found[touch.pool] += self._claims.case.milli(lease)
        return found

    def _taken(self, claim: Claim, number: int) -> int:
        """Milli-GPUs of a pool that a start takes, or a running claim as far as it is funded if nothing starts."""
        return sum(
            part.width.get(number, 0)
            for part in claim.parts
            if all(self._funded(lease, starts=claim.starts) for lease in part.leases)
        )

    def _funded(self, lease: Held, *, starts: bool) -> bool:
        return lease.key not in self._present.refused if starts else self.before[lease.key]

    def _level(self, claim: Claim) -> int:
        """Its place in the order of claims; loans that start, growth and swaps come after all."""
        alone = claim.starts and (claim.loan or any(lease.reason != "Start" for lease in _leases(claim)))
        return FARTHEST if alone else claim.level

    def _is_firm(self, claim: Claim) -> bool:
        """May nobody recall it? The owner's own, young loans, and what was admitted since the world last changed."""
        return claim.level <= 0 or claim.admitted >= self._changed


def _leases(claim: Claim) -> Iterator[Held]:
    return (lease for part in claim.parts for lease in part.leases)


def _is_swap(lease: Held) -> bool:
    return lease.reason == "Swap" and lease.active
