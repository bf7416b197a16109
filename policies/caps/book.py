"""Every cap there is: all pools under all measures (spec §3.4)."""

from policies.caps import aggregates, lending, scopes, uses
from policies.caps.cap import CapBook
from policies.caps.concurrency import Concurrency
from policies.caps.credit import Credit
from policies.caps.hours import Hours
from policies.inputs.money import Money

MEASURES = (Concurrency(), Hours(), Credit())


def book_of(money: Money) -> CapBook:
    """The caps of a money at its time."""
    families = (scopes, aggregates, lending, uses)
    return CapBook.of(money, [pool for family in families for pool in family.pools(money)], MEASURES)


def is_timeless(book: CapBook, until: int) -> bool:
    """Does the clock alone, up to ``until`` (Unix seconds), change nothing of who pays for what and how much?

    No cap counts hours or credits, no window opens or closes, and none asks how long a run lasts to its end. Loans age.
    """
    return not any(cap.ahead for cap in book.caps) and windows_stay(book, until)


def windows_stay(book: CapBook, until: int) -> bool:
    """Does no window open or close up to ``until`` (Unix seconds), and none ask how long a run lasts to its end?"""
    money = book.money
    windows = [(each.start, each.end) for each in money.envelopes] + [(each.start, each.end) for each in money.uses]
    if money.policy.funding.past_window == "refuse" and any(end is not None for _, end in windows):
        return False
    edges = (edge for window in windows for edge in window if edge is not None)
    return not any(money.at < edge <= until for edge in edges)


def windows_ease(book: CapBook) -> set[int]:
    """Times to come, Unix seconds, at which a window alone may let some envelope pay for more.

    An envelope opens; one closes, and what it paid leaves the caps that it shares with others; a use cap is over; one
    begins, and payers of what it leaves unfunded are free.
    """
    money = book.money
    edges = [each.start for each in money.envelopes]
    edges += [each.end for i, each in enumerate(money.envelopes) if _shares(book, i)]
    edges += [edge for use in money.uses for edge in (use.start, use.end)]
    return {edge for edge in edges if edge is not None and edge > money.at}


def _shares(book: CapBook, envelope: int) -> bool:
    """Does a cap count payments of this envelope together with those of others?"""
    return any(len(book.caps[i].pool.envelopes) > 1 for i in book.of_envelope(envelope, uses.EVERYBODY))
