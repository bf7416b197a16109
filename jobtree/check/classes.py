"""The present class of every claim: running and new ones in one pass (spec §3.5, §3.7, §3.8).

A claim is one run's GPUs at one envelope. Order: loans within ``lending.maxDuration``, then by the claimant's standing
with the payer (owner, children, siblings, parents, the rest), older loans last; within these by admission, run name,
envelope. A claim is funded iff every cap that it touches still holds with it: width now, and one more second of its
hours and credits. Fixed claims are funded whole or not at all; malleable ones group by group from 0, to the first
that does not fit.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

from jobtree.check.caps import Caps, Pool
from jobtree.check.ledger import Ledger
from jobtree.check.moment import Moment
from jobtree.check.rows import EnvelopeKey, Held, LeaseKey, RunKey


class Claim(NamedTuple):
    """``admitted``: start of its oldest lease. What a running run grows by is a claim of its own, admitted now."""

    run: RunKey
    payer: EnvelopeKey
    loan: bool
    admitted: int
    leases: list[Held]


Counts = Callable[[Claim], bool]


class Refused(NamedTuple):
    """Why a claim is unfunded: the name of the rule that it would break, and the numbers."""

    invariant: str
    words: str


class Present:
    """The outcome of the pass. ``classes``: by lease; ``refused``: of the unfunded ones what did not hold."""

    def __init__(self, case: Moment, caps: Caps, ledger: Ledger, counts: Counts = lambda _: True) -> None:
        """``counts``: whether a claim takes part; those that do not are unfunded."""
        self.classes: dict[LeaseKey, str] = {}
        self.refused: dict[LeaseKey, Refused] = {}
        self._caps = caps
        self._ledger = ledger
        self._case = case
        self._width: dict[int, int] = defaultdict(int)
        self._hours: dict[int, int] = defaultdict(int)
        self._credits: dict[int, int] = defaultdict(int)
        for lease in (*case.held, *case.new):
            self.classes[lease.key] = lease.recorded_class if case.is_frozen(lease) else "unfunded"
        for claim in sorted(filter(counts, claims(case, caps)), key=self._order):
            self._pass(claim)

    def _order(self, claim: Claim) -> tuple[int, int, RunKey, EnvelopeKey]:
        case, envelope = self._case, self._case.envelopes[claim.payer]
        if claim.loan:
            place = -1 if case.at - claim.admitted < envelope.lending_duration else 5
        else:
            place = case.kin.standing(claim.leases[0].run_owner, case.owner_of[claim.payer[0]])
        return place, claim.admitted, claim.run, claim.payer

    def _pass(self, claim: Claim) -> None:
        case = self._case
        waiting = parts(case, claim)
        broken: Refused | None = None
        if not case.envelopes[claim.payer].pays(case.at):
            broken = Refused("payer-window", f"its window is not open at {case.at}")
        name = self._name(claim)
        while waiting and broken is None:
            broken = self._add(waiting[0])
            if broken is None:
                self.classes.update((lease.key, name) for lease in waiting.pop(0))
        if broken is not None:
            self.refused.update((lease.key, broken) for part in waiting for lease in part)

    def _name(self, claim: Claim) -> str:
        if claim.loan:
            return "borrowed"
        return "owned" if claim.leases[0].run_owner == self._case.owner_of[claim.payer[0]] else "shared"

    def _add(self, leases: list[Held]) -> Refused | None:
        """Counts the leases against every cap they touch; if one does not hold, counts nothing and says which."""
        width: dict[int, int] = defaultdict(int)
        second: dict[int, int] = defaultdict(int)
        rated: dict[int, int] = defaultdict(int)
        for lease in leases:
            lane, milli = self._caps.lane(lease), self._case.milli(lease)
            for touch in lane.present:
                width[touch.pool] += milli
            for touch in lane.timed if self._case.is_charged(lease) else ():
                second[touch.pool] += milli
                rated[touch.pool] += milli * self._case.rate(lease.flavor)
        for number, milli in width.items():
            broken = self._exceeded(number, milli, second.get(number, 0), rated.get(number, 0))
            if broken is not None:
                return broken
        for used, more in ((self._width, width), (self._hours, second), (self._credits, rated)):
            for number, amount in more.items():
                used[number] += amount
        return None

    def _exceeded(self, number: int, width: int, second: int, rated: int) -> Refused | None:
        pool = self._caps.pools[number]
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


def claims(case: Moment, caps: Caps) -> list[Claim]:
    """Every claim after the plan whose envelope is there."""
    found: dict[tuple[RunKey, EnvelopeKey, bool], list[Held]] = defaultdict(list)
    for lease in (*case.held, *case.new):
        payer = lease.payer
        if payer is not None and payer in case.envelopes:
            grown = lease.reason == "Grow" and lease.key not in case.leases
            found[lease.run_key, payer, grown].append(lease)
    return [
        Claim(run, payer, caps.is_loan(leases[0]), min(lease.start for lease in leases), leases)
        for (run, payer, _), leases in found.items()
    ]


def parts(case: Moment, claim: Claim) -> list[list[Held]]:
    """What is funded together: the whole claim of a fixed run, each group of a malleable one's, from 0."""
    run = case.run_of(claim.run)
    if run is None or not run.malleable:
        return [claim.leases]
    ordered = sorted(claim.leases, key=lambda lease: lease.group)
    return [list(group) for _, group in groupby(ordered, key=lambda lease: lease.group)]
