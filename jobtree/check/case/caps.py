"""Caps: what each payment counts against, and since when (spec §3.4, §3.6).

A *pool* bounds payments taken together, in GPUs at once, GPU-hours and credits:

    envelope, subtree   everything that the envelope pays, and with ``scope: subtree`` also what envelopes of
                        descendants pay on nodes that its flavor and selector match, while its window is open
    aggregate           everything that the envelopes it names pay
    lending             everything that the envelope pays for strangers
    use-cap             everything that anybody pays for runs of its owner, with ``scope: subtree`` also of descendants,
                        on nodes that its flavor and selector match, in its window
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from jobtree.check.case.accounts import Account, Aggregate, Envelope, UseCap
from jobtree.check.case.moment import Moment
from jobtree.check.case.named import EnvelopeKey, label
from jobtree.check.case.rows import Held

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

    ``below``: the pool sees it in its own window only: the payment is a descendant's, or the pool a use cap's.
    """

    pool: int
    since: int | None
    until: int | None
    below: bool

    def counts(self, at: int) -> bool:
        """Whether a charge at ``at`` counts."""
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


class Lane(NamedTuple):
    """What all payments of one payer, as loans or not, for owners and nodes of one kind count against.

    ``present``: pools that look now; ``timed``: those of them that bound hours or credits and count this second;
    ``charged``: what the ledger keeps whenever it was, the envelope's own pool, use caps' and all that bound hours or
    credits.
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
        self._lanes: dict[tuple[EnvelopeKey, bool, int | None, tuple[int, ...]], Lane] = {}
        self._uses: dict[tuple[str, str], int] = {}
        self._looking: dict[str, tuple[int, ...]] = {}
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
        for use in case.use_caps:
            subject = f"{use.budget}/{use.name}"
            pool = self._add("use-cap", subject, use.concurrency, use.max_gpu_milliseconds, use.max_millicredits)
            self._uses[use.budget, use.name] = pool

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

    def use(self, cap: UseCap) -> int:
        """The pool of a use cap."""
        return self._uses[cap.budget, cap.name]

    def uses_of(self, owner: str) -> tuple[int, ...]:
        """Places of the use caps that look at runs of an owner."""
        if owner not in self._looking:
            caps = enumerate(self.case.use_caps)
            self._looking[owner] = tuple(place for place, cap in caps if self.case.looks_at(cap, owner))
        return self._looking[owner]

    def _use_touches(self, owner: str, counts: Callable[[UseCap], bool]) -> Iterator[Touch]:
        """What payments for runs of an owner count against, whoever makes them."""
        for place in self.uses_of(owner):
            cap = self.case.use_caps[place]
            if counts(cap):
                yield Touch(self.use(cap), cap.start, cap.end, below=True)

    def _counts(self, flavor: str, name: str) -> Callable[[UseCap], bool]:
        node = self.case.nodes[name] if name in self.case.sites else None
        return lambda cap: cap.counts(flavor, node)

    def of_owner(self, payer: EnvelopeKey, node: str) -> list[int]:
        """The pools that look at what an envelope pays for its owner on a node."""
        uses = self._use_touches(payer.owner, self._counts(payer.flavor, node))
        return [touch.pool for touch in self._lane(payer, False, partial(self.case.matches, node=node), uses).present]

    def reach(self, payer: EnvelopeKey) -> list[int]:
        """The pools that payments of an envelope may count against, whenever and wherever."""
        above = [touch.pool for _, touch in self._ancestors(payer)]
        uses = [self.use(cap) for cap in self.case.use_caps if cap.flavor in (None, payer.flavor)]
        return [self._own[payer], self._lent[payer], *self._together.get(payer, ()), *above, *uses]

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
            payer, matches = lease.payer, partial(self.case.matches, node=lease.node)
            uses = self._use_touches(lease.run_owner, self._counts(lease.flavor, lease.node))
            if payer is None:
                found = NO_LANE
            elif payer not in self.case.envelopes:
                found = self._beneath(lease.owner, lease.flavor, matches, uses)
            else:
                key = payer, self.is_loan(lease), self.case.sites.get(lease.node), self.uses_of(lease.run_owner)
                if key not in self._lanes:
                    self._lanes[key] = self._lane(payer, key[1], matches, uses)
                found = self._lanes[key]
            self._lane_of[lease] = found
        return found

    def lane_of(self, account: Account) -> Lane:
        """The same of what leases that were pruned had paid."""
        place = {} if account.place is None else msgspec.json.decode(account.place)

        def matches(bound: Envelope | UseCap) -> bool:
            asked = ((key, value) for key, value in bound.selector if value != "*" and key in place)
            return bound.flavor in (None, account.flavor) and all(place[key] == value for key, value in asked)

        uses = self._use_touches(account.run_owner, matches)
        if account.payer not in self.case.envelopes:
            return self._beneath(account.owner, account.flavor, matches, uses)
        loan = self._lends(account.payer, account.run_owner, account.lent)
        return self._lane(account.payer, loan, matches, uses)

    def _beneath(self, owner: str, flavor: str, matches: Callable[[Envelope], bool], uses: Iterable[Touch]) -> Lane:
        """What payments of an owner count against whose envelope is not there: the subtrees above that match, and
        ``uses``.
        """
        above = (touch for each, touch in self._subtrees_above(owner, flavor) if matches(each))
        return self._lane_of_touches((*above, *uses))

    def _lane(self, payer: EnvelopeKey, loan: bool, matches: Callable[[Envelope], bool], uses: Iterable[Touch]) -> Lane:
        """The envelope itself, its aggregates, its loans, the subtrees of its ancestors that match the place, and
        ``uses``.
        """
        own = self._own[payer]
        pools = [own, *self._together.get(payer, ()), *([self._lent[payer]] if loan else [])]
        start = self.case.envelopes[payer].start
        touches = (
            *(Touch(pool, start, None, below=False) for pool in pools),
            *(touch for each, touch in self._ancestors(payer) if matches(each)),
            *uses,
        )
        return self._lane_of_touches(touches, own)

    def _lane_of_touches(self, found: Iterable[Touch], own: int | None = None) -> Lane:
        touches = tuple(found)
        counting = {touch for touch in touches if touch.counts(self.case.at)}
        on_time = {touch for touch in touches if self.pools[touch.pool].on_time}
        return Lane(
            present=tuple(touch for touch in touches if not touch.below or touch in counting),
            timed=tuple(touch for touch in touches if touch in counting and touch in on_time),
            charged=tuple(touch for touch in touches if touch.pool in {own, *self._uses.values()} or touch in on_time),
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
