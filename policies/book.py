"""Every cap there is: all pools under all measures (spec §3.4)."""

from policies import aggregates, lending, scopes, uses
from policies.caps import CapBook
from policies.concurrency import Concurrency
from policies.credit import Credit
from policies.hours import Hours
from policies.money import Money

MEASURES = (Concurrency(), Hours(), Credit())


def book_of(money: Money) -> CapBook:
    """The caps of a money at its time."""
    families = (scopes, aggregates, lending, uses)
    return CapBook.of(money, [pool for family in families for pool in family.pools(money)], MEASURES)
