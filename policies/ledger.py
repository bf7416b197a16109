"""The ledger: what has been charged so far (spec §3.6).

    charge(segment) = weight × seconds,  weight = 1000 (Active) or 1000 × discount (Spare) milli-GPUs per GPU

Only funded segments are charged. A charge counts against a cap where it falls at or after the present ``start`` of the
envelope that paid it. Integers throughout: milli-GPU-seconds.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.caps import CapBook, Lane
from policies.claims import UNFUNDED, LeaseRow, is_loan
from policies.money import Money


@dataclass
class Spent:
    """What has been charged: per envelope in milli-GPU-seconds, and per cap of a book in the cap's own unit."""

    envelope: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    credits: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    cap: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def spent(
    book: CapBook, leases: list[LeaseRow], node_site: dict[str, int], ends: Mapping[tuple[str, str], int]
) -> Spent:
    """Charges up to ``book.money.at``.

    ``node_site``: node name → site; a node that is gone matches every subtree. ``ends``: (namespace, lease) → the end
    of leases that this cycle closes.
    """
    money = book.money
    total = Spent()
    for lease in leases:
        if lease.envelope < 0:
            continue
        last = ends.get((lease.namespace, lease.name), money.at)
        start = money.envelopes[lease.envelope].start
        charge, rated = _charge(money, lease, last, start)
        total.envelope[lease.envelope] += charge
        total.credits[lease.envelope] += rated
        loan = is_loan(money, lease.envelope, lease.run_owner)
        lane = Lane(lease.envelope, loan, node_site.get(lease.node, -1), None)
        for index in book.time_caps(lease.envelope):
            pool = book.caps[index].pool
            if lane.site < 0 or pool.contains(lane):
                same = pool.since is None or pool.since == start
                counted = (charge, rated) if same else _charge(money, lease, last, pool.since)
                total.cap[index] += book.caps[index].measure.charged(*counted)
    return total


def _charge(money: Money, lease: LeaseRow, last: int, start: int | None) -> tuple[int, int]:
    """Milli-GPU-seconds of a lease's funded segments from ``start`` up to ``last``, and the same times their rates."""
    seconds = rated = 0
    for funding_class, since, until, rate in lease.segments:
        if funding_class != UNFUNDED:
            length = (last if until is None else until) - (since if start is None else max(since, start))
            seconds += max(0, length)
            rated += max(0, length) * (rate or 0)
    weight = lease.milli(money.policy)
    return weight * seconds, weight * rated
