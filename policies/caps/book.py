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
