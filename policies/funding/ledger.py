"""The ledger: what has been charged so far (spec §3.6).

    charge(segment) = weight × seconds,  weight = 1000 (Active) or 1000 × discount (Spare) milli-GPUs per GPU

Only funded segments are charged. A charge counts against a cap where it falls at or after the present ``start`` of the
envelope that paid it. Integers throughout: milli-GPU-seconds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from jobtree.world.memory.balances import Span
from policies.caps import uses
from policies.caps.cap import CapBook, Gone, Lane
from policies.caps.scopes import GONE
from policies.inputs.balances import Balance
from policies.inputs.claims import UNFUNDED, LeaseRow, counts_as_loan, on_loan
from policies.inputs.money import Discounts, Money

Between = Callable[[int | None, int | None], tuple[int, int]]
"""(start, end), None being open → milli-GPU-seconds charged in between, and the same times their rates."""


@dataclass
class Spent:
    """Charges: per envelope in milli-GPU-seconds, and per cap of a book in the cap's own unit.

    ``ahead``: per cap, what is provided for and no claim can be asked about (`funding.frozen`); ``promised``: per cap,
    what of ``cap`` promises hold (`promises.funds`); ``use``: by use cap, what is charged in its window, and the same
    times its rate.
    """

    envelope: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    credits: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    cap: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    ahead: dict[int, int] = field(default_factory=dict)
    promised: Mapping[int, int] = field(default_factory=dict)
    use: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add_use(self, number: int, charged: tuple[int, int]) -> None:
        """A use cap is charged something more."""
        had = self.use.get(number, (0, 0))
        self.use[number] = had[0] + charged[0], had[1] + charged[1]

    def used(self, caps: int) -> list[int]:
        """Sums of so many caps that are taken before any claim is asked."""
        return [self.cap.get(i, 0) + self.ahead.get(i, 0) for i in range(caps)]


def spent(
    book: CapBook,
    leases: list[LeaseRow],
    balances: Iterable[Balance],
    node_site: dict[str, int],
    ends: Mapping[tuple[str, str], int],
) -> Spent:
    """Charges up to ``book.money.at``: of ``leases``, and of those that were pruned (``balances``).

    ``node_site``: node name → site. ``ends``: (namespace, lease) → the end of leases that this cycle closes.
    """
    money, total = book.money, Spent()
    for lease in (lease for lease in leases if lease.budget):
        last, site = ends.get(lease.key, money.at), node_site.get(lease.node, GONE)
        _add(book, total, lease, site, partial(charged, money, lease, last))
    for balance in balances:
        _add(book, total, balance, balance.place, balance.charged)
    return total


def _add(book: CapBook, total: Spent, payer: LeaseRow | Balance, site: int, between: Between) -> None:
    """Add what was charged to a payer on a site."""
    money, envelope, user = book.money, payer.envelope, book.money.user_of(payer.run_owner)
    for number in uses.counting(money, user, payer.flavor, site):
        use = money.uses[number]
        total.add_use(number, between(use.start, use.end))
    if envelope < 0:
        for cap in book.above(Gone(payer.owner, payer.flavor, site, user)):
            total.cap[cap] += book.caps[cap].measure.charged(*between(book.caps[cap].pool.since, None))
        return
    start = money.envelopes[envelope].start
    charge, rated = between(start, None)
    total.envelope[envelope] += charge
    total.credits[envelope] += rated
    if timed := book.time_caps(envelope):
        loan = counts_as_loan(money, envelope, payer.run_owner, lambda: payer.lent)
        lane = Lane(envelope, loan, site, None, user)
        for cap in (cap for cap in timed if book.caps[cap].pool.contains(lane)):
            since = book.counts_from(cap, envelope)
            counted = (charge, rated) if since == start else between(since, None)
            total.cap[cap] += book.caps[cap].measure.charged(*counted)


def lane_of(money: Money, lease: LeaseRow, node_site: Mapping[str, int], limit: int | None = None) -> Lane:
    """Way of the money for a lease; ``limit``: seconds left of its run's time limit, where caps look ahead."""
    user = money.user_of(lease.run_owner)
    return Lane(lease.envelope, on_loan(money, lease), node_site.get(lease.node, GONE), limit, user)


def gone(money: Money, lease: LeaseRow, node_site: Mapping[str, int]) -> Gone:
    """Way of the money for a lease whose payer is not there."""
    return Gone(lease.owner, lease.flavor, node_site.get(lease.node, GONE), money.user_of(lease.run_owner))


def second_of(book: CapBook, lane: Lane, milli: int, rate: int, at: int) -> Iterator[tuple[int, int]]:
    """(cap on hours or credits, its charge) for the second ``at`` of ``milli`` milli-GPUs at ``rate`` on a lane."""
    for cap in book.time_caps(lane.envelope):
        if book.caps[cap].pool.contains(lane):
            since = book.counts_from(cap, lane.envelope)
            charge = book.caps[cap].measure.charged(milli, milli * rate)
            if charge and (since is None or since <= at):
                yield cap, charge


def charged(money: Money, lease: LeaseRow, last: int, start: int | None, end: int | None = None) -> tuple[int, int]:
    """Milli-GPU-seconds of a lease's funded segments in [start, end), None being open, and the same times their rates.

    ``last``: up to when it is charged at all.
    """
    total = rated = 0
    last = last if end is None else min(last, end)
    for funding_class, since, until, rate in lease.segments:
        low, high = since if start is None else max(since, start), last if until is None else min(until, last)
        if funding_class != UNFUNDED and low < high:
            charge = sum(milli * (end - begin) for begin, end, milli in weighed(money.discounts, lease, low, high))
            total += charge
            rated += charge * (rate or 0)
    return total, rated


def weighed(discounts: Discounts, lease: LeaseRow, low: int, high: int) -> Iterator[Span]:
    """Weigh a lease in every second of [low, high): a spare GPU at the discount of its time."""
    if lease.active:
        yield low, high, 1000 * lease.gpus
        return
    edges = [low if since is None else max(low, since) for since, _ in discounts] + [high]
    for (_, milli), now, then in zip(discounts, edges, edges[1:], strict=False):
        if now < min(high, then):
            yield now, min(high, then), milli * lease.gpus
