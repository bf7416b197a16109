"""Balances as caps count them: what pruned leases were charged, per payer, place and rate (spec §3.6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import msgspec
import pyarrow as pa

from jobtree.world.memory.balances import Span
from jobtree.world.naming.named import PayerName, payer_of
from jobtree.world.tables import rows, values
from policies.inputs.fleet import ANY, Selector

_FIRST = -2
"""Number of the first place, below all sites and `policies.caps.scopes.GONE`; the next ones count down."""


Place = tuple[str, str]
"""(flavor, labels as `jobtree.world.memory.balances.place_of` has them)."""


@dataclass(frozen=True, slots=True)
class Balance:
    """An account. ``envelope``: its index, -2 = a payer that is not there; ``owner``: the payer's.

    ``lent``: as `LeaseRow.lent`; ``place``: where its nodes lay, as a site of its own; ``whole``: the first second of
    its spans, the one after the last, and the milli-GPU-seconds of all of them.
    """

    envelope: int
    owner: str
    flavor: str
    run_owner: str
    lent: bool
    place: int
    rate_milli: int
    spans: tuple[Span, ...]
    whole: tuple[int, int, int]

    def charged(self, start: int | None, end: int | None = None) -> tuple[int, int]:
        """Milli-GPU-seconds in [start, end), None being open, and the same times its rate."""
        first, last, total = self.whole
        if (start is None or start <= first) and (end is None or end >= last):
            return total, total * self.rate_milli
        total = 0
        for since, until, milli in self.spans:
            low = since if start is None else max(since, start)
            total += milli * max(0, (until if end is None else min(until, end)) - low)
        return total, total * self.rate_milli


def read_balances(table: pa.Table, index: Mapping[PayerName, int]) -> tuple[list[Balance], dict[int, Place]]:
    """All balances, and their places by number. ``index``: of the envelopes that are there."""
    numbers: dict[Place, int] = {}
    found = [
        Balance(
            envelope=payer_of(index, account.budget, account.envelope, account.owner, account.flavor),
            owner=account.owner,
            flavor=account.flavor,
            run_owner=account.run_owner,
            lent=account.lent,
            place=numbers.setdefault((account.flavor, account.place), _FIRST - len(numbers)),
            rate_milli=account.rate_milli,
            spans=account.spans,
            whole=whole,
        )
        for account, whole in zip(rows.accounts(table), _wholes(table), strict=True)
    ]
    return found, {number: place for place, number in numbers.items()}


@values.remembering
def _wholes(table: pa.Table) -> list[tuple[int, int, int]]:
    """`Balance.whole` of each: they grow for as long as a cluster is there, and are asked many times a cycle."""
    return [_whole(account.spans) if account.spans else (0, 0, 0) for account in rows.accounts(table)]


def _whole(spans: Sequence[Span]) -> tuple[int, int, int]:
    last = max(spans, key=itemgetter(1))[1]
    return min(spans)[0], last, sum(milli * max(0, until - since) for since, until, milli in spans)


def matching(places: Mapping[int, Place], flavor: str | None, selector: Selector) -> frozenset[int]:
    """The places whose nodes an envelope or use cap of this flavor (None: of any) and selector matched.

    A label that nobody asked for when the leases went is not known: it counts as matched, so that caps stay safe.
    """
    alike = (number for number, place in places.items() if flavor in (None, place[0]))
    return frozenset(number for number in alike if _matches(places[number][1], selector))


def _matches(labels: str, selector: Iterable[tuple[str, str]]) -> bool:
    if not labels:
        return True
    known: dict[str, str | None] = msgspec.json.decode(labels)
    return all(value == ANY or known.get(key, value) == value for key, value in selector)
