"""The payer that a lease or an account names: an envelope by Budget, name, owner and flavor (spec §1 Lease, §3.2).

A Budget of that name by another owner, or an envelope of that name for another flavor, is another payer, as if the one
that is named had been deleted.
"""

from typing import NamedTuple


class EnvelopeKey(NamedTuple):
    """What a payer is known by."""

    budget: str
    envelope: str
    owner: str
    flavor: str


def label(payer: EnvelopeKey) -> str:
    """``budget/envelope``: how people name it."""
    return f"{payer.budget}/{payer.envelope}"
