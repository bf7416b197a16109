"""Every cap there is: all pools under all measures (spec §3.4)."""

from policies import aggregates, lending, scopes
from policies.caps import CapBook
from policies.concurrency import Concurrency
from policies.credit import Credit
from policies.hours import Hours
from policies.money import Money

MEASURES = (Concurrency(), Hours(), Credit())


def book_of(money: Money) -> CapBook:
    """The caps of a money at its time."""
    return CapBook.of(money, [*scopes.pools(money), *aggregates.pools(money), *lending.pools(money)], MEASURES)
