"""Open leases and claims: what running work holds, and at whose expense (spec §3, §3.5).

A *claim* is one run's GPUs at one envelope, Active and Spare together.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from jobtree.api.kinds.lease import FundingClass
from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.naming.kinship import OWN
from jobtree.world.naming.named import payer_of
from jobtree.world.tables import values as col
from jobtree.world.tables.records import read
from policies.inputs.money import Money

ACTIVE: Final = "Active"
SPARE: Final = "Spare"
UNFUNDED: Final = "unfunded"

RunKey = tuple[str, str]
"""(namespace, name)."""
LeaseKey = tuple[str, str]
"""(namespace, name)."""


class LeaseRow(msgspec.Struct, frozen=True, gc=False):
    """A lease as planner and ledger need it. ``envelope``: index, -1 = nobody pays, -2 = a payer that is not there."""

    namespace: str
    name: str
    run: str
    run_uid: str
    owner: str
    run_owner: str
    flavor: str
    group: int
    node: str
    node_uid: str
    ordinals: tuple[int, ...]
    active: bool
    start: int
    budget: str
    envelope_name: str
    envelope: int
    closed: bool
    ended: int | None
    segments: tuple[tuple[FundingClass, int, int | None, int | None], ...]

    @property
    def run_key(self) -> RunKey:
        """The run that holds it."""
        return self.namespace, self.run

    def of(self, uids: Mapping[RunKey, str]) -> "LeaseRow":
        """The lease, its run renamed where that was another object of the same name (``uids`` of the runs there)."""
        uid = uids.get(self.run_key)
        if not uid or not self.run_uid or uid == self.run_uid:
            return self
        return replace(self, run=f"{self.run} ({self.run_uid})")

    def under(self, money: Money) -> "LeaseRow":
        """The lease with its payer's index in another money, that of other Budgets."""
        envelope = payer_of(money.index, self.budget, self.envelope_name, self.owner, self.flavor)
        return self if envelope == self.envelope else replace(self, envelope=envelope)

    @property
    def key(self) -> LeaseKey:
        """Key: namespace and name."""
        return self.namespace, self.name

    @property
    def place(self) -> tuple[str, str]:
        """The node that it lies on, and its uid: another node may bear its name by now."""
        return self.node, self.node_uid

    @property
    def gpus(self) -> int:
        """GPUs that it holds."""
        return len(self.ordinals)

    @property
    def funding_class(self) -> FundingClass:
        """Class as last recorded."""
        return self.segments[-1][0] if self.segments else UNFUNDED

    @property
    def rate_milli(self) -> int:
        """Credit rate as last recorded, in millicredits per GPU-hour."""
        return (self.segments[-1][3] or 0) if self.segments else 0

    @property
    def lent(self) -> bool:
        """Was it called borrowed when it was first paid for?"""
        return next((entry[0] for entry in self.segments if entry[0] != UNFUNDED), UNFUNDED) == "borrowed"

    def milli(self, policy: PolicySpec) -> int:
        """Weight against a concurrency, in milli-GPUs: 1000 a GPU, a spare ``discount`` of that."""
        return self.gpus * (1000 if self.active else policy.spares.discount_milli)


def read_leases(leases: pa.Table, money: Money) -> list[LeaseRow]:
    """Every lease of the snapshot in (namespace, name) order."""
    payers = zip(*(col.texts(leases, name) for name in ("budget", "envelope", "owner", "flavor")), strict=True)
    return read(
        leases,
        LeaseRow,
        active=[role == ACTIVE for role in col.texts(leases, "role")],
        envelope=[payer_of(money.index, *payer) for payer in payers],
        envelope_name=col.texts(leases, "envelope"),
        segments=col.column(leases, "funding"),
    )


@dataclass
class Claim:
    """One run's open ``leases`` at one envelope, the first of which says for whom it is, and whether on loan.
    ``admitted``: start of the oldest, Unix seconds; ``limit``: seconds left of the run's time limit, None where it has
    none.
    """

    run: RunKey
    envelope: int
    admitted: int
    limit: int | None
    malleable: bool
    leases: list[LeaseRow] = field(default_factory=list)


def open_claims(
    leases: list[LeaseRow],
    money: Money,
    limits: Mapping[RunKey, int | None],
    malleable: frozenset[RunKey],
) -> list[Claim]:
    """Claims of the open leases whose payer is there. ``limits``: when each run's time limit ends it, Unix seconds."""
    claims: dict[tuple[RunKey, int], Claim] = {}
    for lease in leases:
        if lease.envelope < 0:
            continue
        key = (lease.run_key, lease.envelope)
        claim = claims.get(key)
        if claim is None:
            end = limits.get(lease.run_key)
            claim = claims[key] = Claim(
                run=lease.run_key,
                envelope=lease.envelope,
                admitted=lease.start,
                limit=None if end is None else max(0, end - money.at),
                malleable=lease.run_key in malleable,
            )
        claim.admitted = min(claim.admitted, lease.start)
        claim.leases.append(lease)
    return [claims[key] for key in sorted(claims)]


def is_loan(money: Money, envelope: int, run_owner: str) -> bool:
    """A payment for no relative, or from one that does not share, is a loan (spec §3.1)."""
    owner = money.envelopes[envelope].owner
    if owner == run_owner:
        return False
    return money.family.rank(run_owner, owner) is None or not money.envelopes[envelope].shares


def on_loan(money: Money, lease: LeaseRow) -> bool:
    """Is what pays for a lease a loan? A relative that stopped sharing pays on as family for what it shared before; a
    payer that is not there lends nothing.
    """
    return lease.envelope >= 0 and counts_as_loan(money, lease.envelope, lease.run_owner, lambda: lease.lent)


def counts_as_loan(money: Money, envelope: int, run_owner: str, lent: Callable[[], bool]) -> bool:
    """Is any payment a loan? ``lent``: was it called borrowed from its start?"""
    if not is_loan(money, envelope, run_owner):
        return False
    return money.family.rank(run_owner, money.envelopes[envelope].owner) is None or lent()


def class_of(money: Money, lease: LeaseRow) -> FundingClass:
    """The class of a lease while it is funded, by the owner that it names itself (one of a claim may name another)."""
    return class_name(money, lease.envelope, lease.run_owner, on_loan(money, lease))


def class_name(money: Money, envelope: int, run_owner: str, loan: bool) -> FundingClass:
    """The class of a funded claim (spec §3.5)."""
    if loan:
        return "borrowed"
    return "owned" if money.family.rank(run_owner, money.envelopes[envelope].owner) == OWN else "shared"
