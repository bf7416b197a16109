"""The present class of every claim: running and new ones in one pass (spec §3.5, §3.7, §3.8).

In the order of ``claims``, a claim is funded iff every cap that it touches still holds with it: width now, and one more
second of its hours and credits. Parts of a malleable one are funded up to the first that does not fit.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from jobtree.check.case.caps import Pool
from jobtree.check.case.claims import Claim, Claims, Part
from jobtree.check.case.rows import Held, LeaseKey
from jobtree.check.money.ledger import Ledger


class Refused(NamedTuple):
    """Why a claim is unfunded: the name of the rule that it would break, and the numbers."""

    invariant: str
    words: str


class Present:
    """The outcome of the pass. ``classes``: by lease; ``refused``: of the unfunded ones what did not hold."""

    def __init__(self, claims: Claims, ledger: Ledger, some: Iterable[Claim] | None = None) -> None:
        """``some``: the claims that take part, in their order; all others are unfunded."""
        self.classes: dict[LeaseKey, str] = dict(claims.before)
        self.refused: dict[LeaseKey, Refused] = {}
        self._pools = claims.caps.pools
        self._ledger = ledger
        self._case = claims.case
        self._named = claims.named
        self._width: dict[int, int] = defaultdict(int)
        self._hours: dict[int, int] = defaultdict(int)
        self._credits: dict[int, int] = defaultdict(int)
        for lease in claims.kept:
            self._keep(claims, lease)
        for claim in claims.ordered if some is None else some:
            self._pass(claim)

    def _keep(self, claims: Claims, lease: Held) -> None:
        """What stays as it is takes its place in subtrees before every claim."""
        lane, milli = claims.caps.lane(lease), self._case.milli(lease)
        for touch in lane.present:
            self._width[touch.pool] += milli
        for touch in lane.timed if self._case.is_charged(lease) else ():
            self._hours[touch.pool] += milli
            self._credits[touch.pool] += milli * lease.recorded_rate

    def _pass(self, claim: Claim) -> None:
        broken: Refused | None = None
        if not self._case.envelopes[claim.payer].pays(self._case.at):
            broken = Refused("payer-window", f"its window is not open at {self._case.at}")
        for part in claim.parts:
            broken = broken or self._add(part)
            for lease in part.leases:
                if broken is None:
                    self.classes[lease.key] = self._named(lease)
                else:
                    self.refused[lease.key] = broken

    def _add(self, part: Part) -> Refused | None:
        """Counts a part against every cap that it touches; if one does not hold, counts nothing and says which."""
        for number, milli in part.width.items():
            broken = self._exceeded(number, milli, part.second.get(number, 0), part.rated.get(number, 0))
            if broken is not None:
                return broken
        for used, more in ((self._width, part.width), (self._hours, part.second), (self._credits, part.rated)):
            for number, amount in more.items():
                used[number] += amount
        return None

    def _exceeded(self, number: int, width: int, second: int, rated: int) -> Refused | None:
        pool = self._pools[number]
        total = self._width[number] + width
        if pool.width is not None and total > pool.width:
            return _refused(pool.rule, f"{total} milli-GPUs", pool.width, pool)
        if pool.hours is not None and second:
            hours = self._ledger.hours[number] + self._hours[number] + second
            if hours > pool.hours:
                return _refused("hours", f"{hours} milli-GPU-seconds", pool.hours, pool)
        if pool.credits is not None and rated:
            credit = self._ledger.credits[number] + self._credits[number] + rated
            if credit > pool.credits:
                return _refused("credits", f"{credit} milli-GPU-seconds × millicredits", pool.credits, pool)
        return None


def _refused(rule: str, amount: str, limit: int, pool: Pool) -> Refused:
    return Refused(f"no-overdraft-{rule}", f"{amount} exceed {limit} of {pool.rule} {pool.subject}")
