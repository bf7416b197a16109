"""Every claim of a moment, such as once the plan is carried out, in the order in which they are funded (spec §3.5).

A claim is one run's GPUs at one envelope. Order: loans within ``lending.maxDuration``, then by the claimant's standing
with the payer (owner, children, siblings, parents, the rest), older loans last; within these by admission, run name,
envelope. Fixed claims are funded whole or not at all; malleable ones group by group from 0.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Final, NamedTuple

from jobtree.check.case.caps import Caps
from jobtree.check.case.moment import Moment
from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Held, LeaseKey, RunKey

Amounts = Mapping[int, int]
"""By pool."""
NOTHING: Final[Amounts] = {}


class Part(NamedTuple):
    """What is funded together, and what it takes of each pool that it touches.

    ``width``: milli-GPUs; ``second``: milli-GPU-seconds of one more second, where the pool bounds hours or credits;
    ``rated``: these × millicredits per GPU-hour.
    """

    leases: list[Held]
    width: Amounts
    second: Amounts
    rated: Amounts


class Claim(NamedTuple):
    """``admitted``: start of its oldest lease. What a running run grows by is a claim of its own, admitted now.

    ``level``: its place in the order before admission, -1 to 5, and ``loan``: as its first lease says; ``starts``:
    whether this plan makes it; a swap carries on what runs.
    """

    run: RunKey
    payer: EnvelopeKey
    loan: bool
    level: int
    admitted: int
    starts: bool
    parts: list[Part]

    @property
    def pools(self) -> set[int]:
        """The pools that it touches."""
        return {pool for part in self.parts for pool in part.width}


class Claims:
    """Every claim whose envelope is there; ``ordered`` as above."""

    def __init__(self, case: Moment, caps: Caps) -> None:
        self.case = case
        self.caps = caps
        found: dict[tuple[RunKey, EnvelopeKey, bool], list[Held]] = defaultdict(list)
        for lease in (*case.held, *case.new):
            payer = lease.payer
            if payer is not None and payer in case.envelopes:
                grown = lease.reason == "Grow" and lease.key not in case.leases
                found[lease.run_key, payer, grown].append(lease)
        claims = [self._claim(run, payer, leases) for (run, payer, _), leases in found.items()]
        self.ordered = sorted(claims, key=lambda claim: (claim.level, claim.admitted, claim.run, claim.payer))

    @cached_property
    def before(self) -> dict[LeaseKey, str]:
        """Classes before any claim is asked: what a quarantined Budget pays stays as it was."""
        case = self.case
        return {
            lease.key: case.recorded(lease) if case.is_frozen(lease) else "unfunded"
            for lease in (*case.held, *case.new)
        }

    @cached_property
    def kept(self) -> list[Held]:
        """What is held and stays paid, whatever claims there are."""
        return [lease for lease in self.case.held if self.case.stays_paid(lease)]

    @cached_property
    def clusters(self) -> list[list[Claim]]:
        """Claims that pools tie together, directly or through others, each list in order: no other claim matters to
        what is funded of them.
        """
        group: dict[int, int] = {}

        def root(pool: int) -> int:
            while (above := group.setdefault(pool, pool)) != pool:
                group[pool] = pool = group[above]
            return pool

        bounded = {number for number, pool in enumerate(self.caps.pools) if pool.bounded}
        touched = [sorted(claim.pools & bounded) for claim in self.ordered]
        for pools in touched:
            for pool in pools[1:]:
                group[root(pool)] = root(pools[0])
        found: dict[int, list[Claim]] = defaultdict(list)
        for claim, pools in zip(self.ordered, touched, strict=True):
            found[root(pools[0]) if pools else -1].append(claim)
        return list(found.values())

    def named(self, lease: Held) -> str:
        """The class of a lease of a funded claim, by the owner that it names itself."""
        if self.caps.is_loan(lease):
            return "borrowed"
        return "owned" if lease.payer is not None and lease.run_owner == lease.payer.owner else "shared"

    def without(self, claim: Claim, is_left: Callable[[Held], bool]) -> Claim:
        """A claim as if its new leases that ``is_left`` out were not."""
        leases = [lease for part in claim.parts for lease in part.leases]
        kept = [lease for lease in leases if lease.key in self.case.leases or not is_left(lease)]
        return claim if len(kept) == len(leases) else claim._replace(parts=self._parts(claim.run, kept) if kept else [])

    def _claim(self, run: RunKey, payer: EnvelopeKey, leases: list[Held]) -> Claim:
        case, owner, claimant = self.case, payer.owner, leases[0].run_owner
        loan = self.caps.is_loan(leases[0])
        admitted = min([lease.start for lease in leases])
        if loan:
            level = -1 if case.at - admitted < case.envelopes[payer].lending_duration else 5
        else:
            level = case.kin.standing(claimant, owner)
        starts = all(lease.key not in case.leases and lease.reason != "Swap" for lease in leases)
        return Claim(run, payer, loan, level, admitted, starts, self._parts(run, leases))

    def _parts(self, key: RunKey, leases: list[Held]) -> list[Part]:
        run = self.case.run_of(key)
        if run is None or not run.malleable:
            return [self._part(leases)]
        ordered = sorted(leases, key=lambda lease: lease.group)
        return [self._part(list(group)) for _, group in groupby(ordered, key=lambda lease: lease.group)]

    def _part(self, leases: list[Held]) -> Part:
        width: dict[int, int] = defaultdict(int)
        second: dict[int, int] = defaultdict(int)
        rated: dict[int, int] = defaultdict(int)
        for lease in leases:
            lane, milli = self.caps.lane(lease), self.case.milli(lease)
            for touch in lane.present:
                width[touch.pool] += milli
            for touch in lane.timed if self.case.is_charged(lease) else ():
                second[touch.pool] += milli
                rated[touch.pool] += milli * self.case.rate(lease.flavor)
        return Part(leases, width, second or NOTHING, rated or NOTHING)
