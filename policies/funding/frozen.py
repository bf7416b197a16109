"""Running work that a quarantined Budget pays: it stays as it was, and no claim of it can be asked (spec §2).

It still takes its place in the subtrees of its owner's ancestors and in the use caps of its run's owner, before every
claim there:

    concurrency      its milli-GPUs
    hours, credits   its next second, and for admissions what it is provided for ahead
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from policies.caps.cap import CapBook
from policies.funding.ledger import Spent, gone
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey


def is_frozen(lease: LeaseRow) -> bool:
    """Does an envelope pay for an open lease that is not there? Where its Budget was deleted its ledger says so."""
    return not lease.closed and lease.envelope < 0 and bool(lease.budget) and lease.funding_class != UNFUNDED


def kept(
    book: CapBook,
    spent: Spent,
    leases: Iterable[LeaseRow],
    node_site: Mapping[str, int],
    limits: Mapping[RunKey, int | None],
    ended: frozenset[tuple[str, str]] = frozenset(),
) -> Spent:
    """``spent``, and what frozen ``leases`` take beside it at ``book.money.at``.

    ``limits``: when each run's time limit ends it, Unix seconds; ``ended``: leases that are charged no more.
    """
    cap: dict[int, int] = defaultdict(int, spent.cap)
    ahead: dict[int, int] = defaultdict(int, spent.ahead)
    for lease in leases:
        milli = lease.milli(book.money.policy)
        for number in book.above(gone(book.money, lease, node_site)):
            if not book.caps[number].ahead:
                cap[number] += milli
            elif lease.key not in ended:
                second = book.caps[number].measure.charged(milli, milli * lease.rate_milli)
                cap[number] += second
                ahead[number] += second * max(0, _span(book, number, limits.get(lease.run_key)) - 1)
    return Spent(spent.envelope, spent.credits, cap, ahead)


def _span(book: CapBook, cap: int, limit: int | None) -> int:
    """Seconds that it is provided for, as any admission is."""
    at, end = book.money.at, book.caps[cap].pool.end
    ends = [when - at for when in (end, limit) if when is not None]
    return min([int(book.money.policy.accounting_period), *ends])
