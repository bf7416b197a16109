"""The payer that a lease or an account names: an envelope by its Budget, its name and its owner (spec §1 Lease).

A Budget of that name by another owner is another payer, as if the one that is named had been deleted.
"""

EnvelopeKey = tuple[str, str, str]
"""(budget, envelope, owner)."""


def label(payer: EnvelopeKey) -> str:
    """``budget/envelope``: how people name it."""
    return f"{payer[0]}/{payer[1]}"
