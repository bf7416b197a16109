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

MILLICREDIT = 3_600_000
"""One millicredit in milli-GPU-seconds × millicredits per GPU-hour."""


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
        weight = lease.milli(money.policy)
        start = money.envelopes[lease.envelope].start
        seconds = rated = 0
        last = ends.get((lease.namespace, lease.name), money.at)
        for funding_class, since, until, rate in lease.segments:
            if funding_class == UNFUNDED:
                continue
            length = (last if until is None else until) - (since if start is None else max(since, start))
            if length > 0:
                seconds += length
                rated += length * (money.rate_milli(lease.envelope) if rate is None else rate)
        if seconds:
            total.envelope[lease.envelope] += weight * seconds
            total.credits[lease.envelope] += weight * rated
            _charge_caps(book, lease, node_site, weight * seconds, weight * rated, total)
    return total


def _charge_caps(
    book: CapBook, lease: LeaseRow, node_site: dict[str, int], charge: int, rated: int, total: Spent
) -> None:
    loan = is_loan(book.money, lease.envelope, lease.run_owner)
    lane = Lane(lease.envelope, loan, node_site.get(lease.node, -1), None)
    for index in book.time_caps(lease.envelope):
        cap = book.caps[index]
        if lane.site < 0 or cap.pool.contains(lane):
            total.cap[index] += cap.measure.charged(charge, rated)


def gpu_seconds(milli_gpu_seconds: int) -> int | float:
    """For people: whole where it is whole."""
    whole, rest = divmod(milli_gpu_seconds, 1000)
    return whole if rest == 0 else milli_gpu_seconds / 1000
