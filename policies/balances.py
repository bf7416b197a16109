"""Balances as caps count them: what pruned leases were charged, per payer, place and rate (spec §3.6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from jobtree.world import rows
from jobtree.world.balances import Span
from policies.fleet import ANY, Selector

_FIRST = -2
"""Number of the first place: below those of sites, and of nodes that are gone."""


Place = tuple[str, str]
"""(flavor, labels as `jobtree.world.balances.place_of` has them)."""


@dataclass(frozen=True, slots=True)
class Balance:
    """An account of an envelope that is there (``envelope``: its index). ``lent``: as `LeaseRow.lent`.

    ``place``: where its nodes lay, as a site of its own.
    """

    envelope: int
    run_owner: str
    lent: bool
    place: int
    rate_milli: int
    spans: tuple[Span, ...]

    def charged(self, start: int | None) -> tuple[int, int]:
        """Milli-GPU-seconds from ``start`` on, and the same times its rate."""
        total = sum(
            milli * (until - (since if start is None else max(since, start)))
            for since, until, milli in self.spans
            if start is None or until > start
        )
        return total, total * self.rate_milli


def read_balances(table: pa.Table, index: Mapping[tuple[str, str], int]) -> tuple[list[Balance], dict[int, Place]]:
    """The balances of envelopes that are there (``index``), and their places by number."""
    numbers: dict[Place, int] = {}
    found = []
    for account in rows.accounts(table):
        envelope = index.get((account.budget, account.envelope))
        if envelope is not None:
            place = account.flavor, account.place
            number = numbers.setdefault(place, _FIRST - len(numbers))
            found.append(Balance(envelope, account.run_owner, account.lent, number, account.rate_milli, account.spans))
    return found, {number: place for place, number in numbers.items()}


def matching(places: Mapping[int, Place], flavor: str, selector: Selector) -> frozenset[int]:
    """The places whose nodes an envelope of this flavor and selector matched.

    A label that nobody asked for when the leases went is not known: it counts as matched, so that caps stay safe.
    """
    return frozenset(number for number, place in places.items() if place[0] == flavor and _matches(place[1], selector))


def _matches(labels: str, selector: Iterable[tuple[str, str]]) -> bool:
    if not labels:
        return True
    known: dict[str, str | None] = msgspec.json.decode(labels)
    return all(value == ANY or known.get(key, value) == value for key, value in selector)
