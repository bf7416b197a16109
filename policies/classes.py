"""The present class of running work (spec §3.5): who is funded now, in one pass over all claims.

Order: loans within ``lending.maxDuration`` first (a loan is a contract), then by the claimant's standing with the
payer (owner, its children, siblings, parents, the rest), older loans last; within these by admission time, run,
envelope. A claim is funded iff every cap it touches still holds with it:

    fixed width:  all of it or nothing (skipped when it is too big)
    malleable:    group by group from 0, until a group does not fit
"""

from dataclasses import dataclass

from jobtree.api.lease import FundingClass
from policies.caps import CapBook, Lane
from policies.claims import UNFUNDED, Claim, LeaseRow, class_name
from policies.ledger import Spent
from policies.money import Money

_OLD_LOAN = 5


@dataclass(frozen=True)
class Funded:
    """The outcome of the pass. ``classes``: (namespace, lease) → class; ``used``: per cap, in the cap's unit."""

    classes: dict[tuple[str, str], FundingClass]
    used: list[int]


def derive(book: CapBook, claims: list[Claim], leases: list[LeaseRow], spent: Spent, sites: dict[str, int]) -> Funded:
    """Classes of all open ``leases``; those whose payer is quarantined keep the class they have."""
    money = book.money
    used = [spent.cap.get(i, 0) for i in range(len(book.caps))]
    seconds: dict[int, int] = {}
    classes: dict[tuple[str, str], FundingClass] = {}
    for lease in leases:
        kept = lease.envelope == -2 and lease.budget in money.quarantined
        classes[lease.namespace, lease.name] = lease.funding_class if kept else UNFUNDED
    for claim in sorted(claims, key=lambda c: _order(money, c)):
        if not money.envelopes[claim.envelope].pays_at(money.at):
            continue
        name = class_name(money, claim.envelope, claim.run_owner, claim.loan)
        for part in _parts(claim):
            touched, second = _weigh(book, claim, part, sites)
            if not _fits(book, spent, used, seconds, touched, second):
                break
            for cap, weight in touched.items():
                used[cap] += weight
            for cap, weight in second.items():
                seconds[cap] = seconds.get(cap, 0) + weight
            for lease in part:
                classes[lease.namespace, lease.name] = name
    return Funded(classes, used)


def _order(money: Money, claim: Claim) -> tuple[int, int, tuple[str, str], int]:
    envelope = money.envelopes[claim.envelope]
    if claim.loan:
        young = money.at - claim.admitted < envelope.lending_duration
        standing = -1 if young else _OLD_LOAN
    else:
        standing = money.family.standing(claim.run_owner, envelope.owner)
    return standing, claim.admitted, claim.run, claim.envelope


def _parts(claim: Claim) -> list[list[LeaseRow]]:
    if not claim.malleable:
        return [claim.leases]
    groups: dict[int, list[LeaseRow]] = {}
    for lease in claim.leases:
        groups.setdefault(lease.group, []).append(lease)
    return [groups[g] for g in sorted(groups)]


def _weigh(
    book: CapBook, claim: Claim, part: list[LeaseRow], sites: dict[str, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """What a part weighs per cap; and what its next second is charged per cap on hours or credits."""
    touched: dict[int, int] = {}
    second: dict[int, int] = {}
    rate = book.money.rate_milli(claim.envelope)
    for lease in part:
        lane = Lane(claim.envelope, claim.loan, sites.get(lease.node, -1), claim.limit)
        milli = lease.milli(book.money.policy)
        for cap, weight in book.touches(lane):
            touched[cap] = touched.get(cap, 0) + weight * milli
        for cap in book.time_caps(claim.envelope):
            if book.caps[cap].pool.contains(lane):
                second[cap] = second.get(cap, 0) + book.caps[cap].measure.charged(milli, milli * rate)
    return touched, second


def _fits(
    book: CapBook,
    spent: Spent,
    used: list[int],
    seconds: dict[int, int],
    touched: dict[int, int],
    second: dict[int, int],
) -> bool:
    """Running work is held to what is used now; of hours and credits the next second must be left (spec §3.6)."""
    if any(used[cap] + weight > book.caps[cap].limit for cap, weight in touched.items() if not book.caps[cap].ahead):
        return False
    return all(
        spent.cap.get(cap, 0) + seconds.get(cap, 0) + charge <= book.caps[cap].limit for cap, charge in second.items()
    )
