"""Caps: what each payment counts against, and since when (spec §3.4, §3.6).

A *pool* bounds payments taken together, in GPUs at once, GPU-hours and credits:

    envelope, subtree   everything that the envelope pays, and with ``scope: subtree`` also what envelopes of
                        descendants pay on nodes that its flavor and selector match, while its window is open
    aggregate           everything that the envelopes it names pay
    lending             everything that the envelope pays for strangers
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from jobtree.check.accounts import Account
from jobtree.check.moment import Moment
from jobtree.check.named import EnvelopeKey, label
from jobtree.check.rows import Aggregate, Envelope, Held

CREDIT = 3_600_000
"""One millicredit in milli-GPU-seconds × millicredits per GPU-hour."""


class Pool(NamedTuple):
    """Limits in milli-GPUs, milli-GPU-seconds, and milli-GPU-seconds × millicredits per GPU-hour; None = unbounded."""

    rule: str
    subject: str
    width: int | None
    hours: int | None
    credits: int | None

    @property
    def on_time(self) -> bool:
        """Whether it bounds hours or credits."""
        return self.hours is not None or self.credits is not None

    @property
    def bounded(self) -> bool:
        """Whether it bounds anything."""
        return self.width is not None or self.on_time


class Touch(NamedTuple):
    """A pool that a payment counts against, its seconds in [since, until) only.

    ``below``: the payment is a descendant's, so that the pool sees it in its own window only.
    """

    pool: int
    since: int | None
    until: int | None
    below: bool

    def counts(self, at: int) -> bool:
        """Whether a charge at ``at`` counts."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


class Lane(NamedTuple):
    """What all payments of one payer, as loans or not, for nodes of one site count against.

    ``present``: pools that look now; ``timed``: those of them that bound hours or credits and count this second;
    ``charged``: what the ledger keeps whenever it was, the envelope's own pool and all that bound hours or credits.
    """

    present: tuple[Touch, ...]
    timed: tuple[Touch, ...]
    charged: tuple[Touch, ...]


NO_LANE = Lane((), (), ())
"""Of a lease that nobody pays."""


class Caps:
    """Every pool of a moment."""

    def __init__(self, case: Moment) -> None:
        self.case = case
        self.pools: list[Pool] = []
        self._own: dict[EnvelopeKey, int] = {}
        self._lent: dict[EnvelopeKey, int] = {}
        self._together: dict[EnvelopeKey, list[int]] = defaultdict(list)
        self._aggregates: dict[tuple[str, str], int] = {}
        self._subtrees: dict[str, list[Envelope]] = defaultdict(list)
        self._above: dict[EnvelopeKey, list[tuple[Envelope, Touch]]] = {}
        self._lanes: dict[tuple[EnvelopeKey, bool, int | None], Lane] = {}
        self._lane_of: dict[Held, Lane] = {}
        self._loans: dict[Held, bool] = {}
        for key, envelope in case.envelopes.items():
            rule = "subtree" if envelope.scope == "subtree" else "envelope"
            subject = label(key)
            gpus, hours, credit = envelope.concurrency, envelope.max_gpu_milliseconds, envelope.max_millicredits
            self._own[key] = self._add(rule, subject, gpus, hours, credit)
            lent = self._add("lending", subject, envelope.lending_concurrency, envelope.lending_gpu_milliseconds, None)
            self._lent[key] = lent
            if envelope.scope == "subtree":
                self._subtrees[envelope.owner].append(envelope)
        for cap in case.aggregates:
            subject = f"{cap.budget}/{cap.name}"
            pool = self._add("aggregate", subject, cap.concurrency, cap.max_gpu_milliseconds, cap.max_millicredits)
            self._aggregates[cap.budget, cap.name] = pool
            for name in cap.envelopes:
                self._together[case.known_as[cap.budget, name]].append(pool)

    def _add(self, rule: str, subject: str, gpus: int | None, hours: int | None, millicredits: int | None) -> int:
        width = None if gpus is None else 1000 * gpus
        self.pools.append(Pool(rule, subject, width, hours, None if millicredits is None else CREDIT * millicredits))
        return len(self.pools) - 1

    def own(self, payer: EnvelopeKey) -> int:
        """The pool of an envelope itself."""
        return self._own[payer]

    def together(self, cap: Aggregate) -> int:
        """The pool of an aggregate cap."""
        return self._aggregates[cap.budget, cap.name]

    def of_owner(self, payer: EnvelopeKey, node: str) -> list[int]:
        """The pools that look at what an envelope pays for its owner on a node."""
        return [touch.pool for touch in self._lane(payer, False, partial(self.case.matches, node=node)).present]

    def reach(self, payer: EnvelopeKey) -> list[int]:
        """The pools that payments of an envelope may count against, whenever and wherever."""
        above = [touch.pool for _, touch in self._ancestors(payer)]
        return [self._own[payer], self._lent[payer], *self._together.get(payer, ()), *above]

    def is_loan(self, lease: Held) -> bool:
        """Whether a sponsor pays: a stranger, or a relative whose ``sharing: none`` keeps it out of the family's pool
        and whose payment the ledger calls borrowed from its start.
        """
        found = self._loans.get(lease)
        if found is None:
            found = False
            if lease.payer is not None and lease.payer in self.case.envelopes:
                first = next((entry[0] for entry in lease.funding if entry[0] != "unfunded"), None)
                found = self._lends(lease.payer, lease.run_owner, first == "borrowed")
            self._loans[lease] = found
        return found

    def _lends(self, payer: EnvelopeKey, borrower: str, lent: bool) -> bool:
        rank = self.case.kin.rank(borrower, payer.owner)
        if rank is None or rank == 0:
            return rank is None
        return self.case.envelopes[payer].sharing == "none" and lent

    def lane(self, lease: Held) -> Lane:
        """What a payment for this lease counts against."""
        found = self._lane_of.get(lease)
        if found is None:
            payer = lease.payer
            if payer is None:
                found = NO_LANE
            elif payer not in self.case.envelopes:
                found = self._beneath(lease.owner, lease.flavor, partial(self.case.matches, node=lease.node))
            else:
                key = payer, self.is_loan(lease), self.case.sites.get(lease.node)
                if key not in self._lanes:
                    self._lanes[key] = self._lane(payer, key[1], partial(self.case.matches, node=lease.node))
                found = self._lanes[key]
            self._lane_of[lease] = found
        return found

    def lane_of(self, account: Account) -> Lane:
        """The same of what leases that were pruned had paid."""
        place = {} if account.place is None else msgspec.json.decode(account.place)

        def matches(envelope: Envelope) -> bool:
            asked = ((key, value) for key, value in envelope.selector if value != "*" and key in place)
            return envelope.flavor == account.flavor and all(place[key] == value for key, value in asked)

        if account.payer not in self.case.envelopes:
            return self._beneath(account.owner, account.flavor, matches)
        return self._lane(account.payer, self._lends(account.payer, account.run_owner, account.lent), matches)

    def _beneath(self, owner: str, flavor: str, matches: Callable[[Envelope], bool]) -> Lane:
        """What payments of an owner count against whose envelope is not there: the subtrees above that match."""
        return self._lane_of_touches(touch for each, touch in self._subtrees_above(owner, flavor) if matches(each))

    def _lane(self, payer: EnvelopeKey, loan: bool, matches: Callable[[Envelope], bool]) -> Lane:
        """The envelope itself, its aggregates, its loans, and the subtrees of its ancestors that match the place."""
        own = self._own[payer]
        pools = [own, *self._together.get(payer, ()), *([self._lent[payer]] if loan else [])]
        start = self.case.envelopes[payer].start
        touches = (
            *(Touch(pool, start, None, below=False) for pool in pools),
            *(touch for each, touch in self._ancestors(payer) if matches(each)),
        )
        return self._lane_of_touches(touches, own)

    def _lane_of_touches(self, found: Iterable[Touch], own: int | None = None) -> Lane:
        touches = tuple(found)
        counting = {touch for touch in touches if touch.counts(self.case.at)}
        on_time = {touch for touch in touches if self.pools[touch.pool].on_time}
        return Lane(
            present=tuple(touch for touch in touches if not touch.below or touch in counting),
            timed=tuple(touch for touch in touches if touch in counting and touch in on_time),
            charged=tuple(touch for touch in touches if touch.pool == own or touch in on_time),
        )

    def _ancestors(self, payer: EnvelopeKey) -> list[tuple[Envelope, Touch]]:
        """Envelopes of ancestors with ``scope: subtree`` and the same flavor."""
        if payer not in self._above:
            self._above[payer] = self._subtrees_above(payer.owner, self.case.envelopes[payer].flavor)
        return self._above[payer]

    def _subtrees_above(self, owner: str, flavor: str) -> list[tuple[Envelope, Touch]]:
        return [
            (above, Touch(self._own[above.key], above.start, above.end, below=True))
            for ancestor in sorted(self.case.kin.line(owner) - {owner})
            for above in self._subtrees.get(ancestor, ())
            if above.flavor == flavor
        ]
