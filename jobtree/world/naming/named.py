"""The payer that a lease or an account names: an envelope by Budget, name, owner and flavor (spec §1 Lease, §3.2).

A Budget of that name by another owner, or an envelope of that name for another flavor, is another payer: it pays for
none of it, and was charged none of it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class PayerName(NamedTuple):
    """Name that a payer is known by."""

    budget: str
    envelope: str
    owner: str
    flavor: str


NOBODY: Final = -1
"""In place of an envelope's index: nobody pays."""
GONE_PAYER: Final = -2
"""In place of an envelope's index: one pays that is not there."""


def payer_of(index: Mapping[PayerName, int], budget: str, envelope: str, owner: str, flavor: str) -> int:
    """The envelope's index among those that are there; ``budget`` is empty where nobody pays."""
    return index.get(PayerName(budget, envelope, owner, flavor), GONE_PAYER) if budget else NOBODY
