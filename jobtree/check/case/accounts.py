"""Rows that tell what was charged, and by what: balances of pruned leases, credit rates, discounts of spares."""

from typing import NamedTuple

from jobtree.check.case.named import EnvelopeKey


class Account(NamedTuple):
    """A row of ``balances``: what leases of a payer that were pruned had been charged, (from, to, milli-GPUs)."""

    budget: str
    envelope: str
    owner: str
    run_owner: str
    flavor: str
    funding_class: str
    role: str
    lent: bool
    place: str | None
    rate_milli: int
    spans: tuple[tuple[int, int, int], ...]

    @property
    def payer(self) -> EnvelopeKey:
        """The envelope that paid."""
        return EnvelopeKey(self.budget, self.envelope, self.owner, self.flavor)


class Rate(NamedTuple):
    """A row of ``seen_rates``: millicredits per GPU-hour."""

    flavor: str
    rate_milli: int


class Discount(NamedTuple):
    """A row of ``seen_discounts``: thousandths of a GPU that a spare one weighs, from ``since`` on."""

    since: int | None
    milli: int
