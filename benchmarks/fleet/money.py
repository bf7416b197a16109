"""Who pays: envelopes, the limits that a payment touches, and payers nearest first (spec §3).

Amounts are half GPUs, because a standby counts half. A payment is taken from every limit it touches, with what it has
used of the hours so far and a full period ahead, so nothing here was ever or will at once be unfunded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fleet.room import Place

HOUR = 3600
PERIOD = 24 * HOUR
UNBOUNDED = 1 << 40


@dataclass(slots=True)
class Limit:
    """GPUs held at once and GPU-hours within [start, end); None = no bound."""

    gpus: int | None = None
    hours: int | None = None
    start: int | None = None
    end: int | None = None
    held2: int = 0
    spent2: int = 0

    def seconds(self, since: int, at: int) -> int:
        """What a GPU held since ``since`` costs: spent so far, and the look-ahead."""
        spent = at - max(since, self.start or since)
        return spent + (PERIOD if self.end is None else min(PERIOD, self.end - at))

    def room2(self, since: int, at: int) -> int:
        """Half GPUs that still fit."""
        room2 = UNBOUNDED if self.gpus is None else 2 * self.gpus - self.held2
        if self.hours is not None:
            room2 = min(room2, (2 * HOUR * self.hours - self.spent2) // self.seconds(since, at))
        return max(0, room2)

    def take(self, amount2: int, since: int, at: int) -> None:
        """Take half GPUs; a negative amount gives them back."""
        self.held2 += amount2
        if self.hours is not None:
            self.spent2 += amount2 * self.seconds(since, at)


@dataclass(eq=False)
class Envelope:
    """An envelope of a Budget, with the limits that each of its payments touches."""

    owner: str
    name: str
    flavor: str
    selector: dict[str, str]
    concurrency: int
    hours: int | None = None
    start: int | None = None
    end: int | None = None
    subtree: bool = False
    shared: bool = True
    lending: dict[str, Any] | None = None
    limits: list[Limit] = field(init=False)
    loans: Limit = field(init=False)

    def __post_init__(self) -> None:
        self.limits = [Limit(self.concurrency, self.hours, self.start, self.end)]
        self.loans = Limit((self.lending or {}).get("maxConcurrency"))

    def matches(self, place: Place) -> bool:
        """Does the selector match the nodes of this place?"""
        region, cluster = place
        return self.selector["region"] in ("*", region) and self.selector.get("cluster", cluster) == cluster

    def overlaps(self, bound: "Envelope") -> bool:
        """Could this envelope pay for nodes that a bound on the subtree covers?"""
        return self.flavor == bound.flavor and self.selector["region"] in ("*", bound.selector["region"])

    def open(self, since: int, at: int) -> bool:
        """Was the window open all the time from ``since`` to ``at``?"""
        return (self.start is None or self.start <= since) and (self.end is None or at < self.end)

    def lends_to(self, owner: str) -> bool:
        """Does the lending list name this owner?"""
        return self.lending is not None and any(
            owner.startswith(to[:-1]) if to.endswith("*") else owner == to for to in self.lending["to"]
        )


@dataclass(frozen=True, slots=True)
class Payment:
    """What one envelope pays of a run: whole GPUs and standbys."""

    envelope: Envelope
    active: int
    spares: int
    loan: bool

    def book(self, since: int, at: int, sign: int = 1) -> None:
        """Take it from every limit it touches (``sign`` -1: give it back)."""
        amount2 = sign * (2 * self.active + self.spares)
        for limit in self.envelope.limits:
            limit.take(amount2, since, at)
        if self.loan:
            self.envelope.loans.take(amount2, since, at)


@dataclass(eq=False)
class Budget:
    """A Budget: one per owner. ``aggregates`` are the manifests of its aggregate caps."""

    owner: str
    envelopes: list[Envelope]
    aggregates: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Its name, and the namespace bound to its owner."""
        return self.owner.removeprefix("org:").replace(":", "-")


class Treasury:
    """All Budgets: who may pay for whom, and how much is left."""

    def __init__(self, budgets: list[Budget]) -> None:
        self.budgets = {b.owner: b for b in sorted(budgets, key=lambda b: b.owner)}
        self._payers: dict[tuple[str, str, Place], list[Envelope]] = {}
        for budget in self.budgets.values():
            self._link(budget)

    def _link(self, budget: Budget) -> None:
        for aggregate in budget.aggregates:
            limit = Limit(aggregate["maxConcurrency"])
            for envelope in budget.envelopes:
                if envelope.name in aggregate["envelopes"]:
                    envelope.limits.append(limit)
        for above in self._ancestors(budget.owner):
            for bound in self.budgets[above].envelopes:
                if bound.subtree:
                    for envelope in budget.envelopes:
                        if envelope.overlaps(bound):
                            envelope.limits.append(bound.limits[0])

    @staticmethod
    def _ancestors(owner: str) -> list[str]:
        parts = owner.split(":")
        return [":".join(parts[:i]) for i in range(len(parts) - 1, 1, -1)]

    def _kin(self, owner: str) -> list[str]:
        """Own, parent, siblings, children, grandparent, then the rest of the family by name."""
        up = self._ancestors(owner)
        family = [o for o in self.budgets if o.split(":")[1] == owner.split(":")[1]]
        siblings = [o for o in family if up and self._ancestors(o)[:1] == up[:1]]
        children = [o for o in family if self._ancestors(o)[:1] == [owner]]
        return list(dict.fromkeys([owner, *up[:1], *siblings, *children, *up[1:2], *family]))

    def payers(self, owner: str, flavor: str, place: Place) -> list[Envelope]:
        """The family's envelopes that may pay here, nearest first."""
        key = owner, flavor, place
        if key not in self._payers:
            self._payers[key] = [
                e
                for o in self._kin(owner)
                for e in self.budgets[o].envelopes
                if e.flavor == flavor and e.matches(place) and (e.shared or o == owner)
            ]
        return self._payers[key]

    def pay(
        self,
        owner: str,
        flavor: str,
        place: Place,
        need: tuple[int, int],
        funding: dict[str, Any],
        time: tuple[int, int],
    ) -> list[Payment] | None:
        """Pay for ``need`` = (GPUs, standbys) over ``time`` = (since, at), nearest first; None, and no trace, if the
        money does not suffice."""
        active, spares = need
        borrow = funding.get("maxBorrowGPUs", UNBOUNDED)
        bill: list[Payment] = []
        for envelope, loan in self._sources(owner, flavor, place, funding):
            if not active and not spares:
                break
            if not envelope.open(*time):
                continue
            room2 = min(limit.room2(*time) for limit in [*envelope.limits, *([envelope.loans] if loan else [])])
            whole = min(active, room2 // 2, borrow if loan else active)
            half = min(spares, room2 - 2 * whole) if whole == active else 0
            if whole or half:
                payment = Payment(envelope, whole, half, loan)
                payment.book(*time)
                bill.append(payment)
                active, spares = active - whole, spares - half
                borrow -= whole if loan else 0
        if active or spares:
            for payment in bill:
                payment.book(*time, sign=-1)
            return None
        return bill

    def _sources(
        self, owner: str, flavor: str, place: Place, funding: dict[str, Any]
    ) -> Iterator[tuple[Envelope, bool]]:
        for envelope in self.payers(owner, flavor, place):
            yield envelope, False
        for sponsor in funding.get("sponsors", []):
            for envelope in self.budgets[sponsor].envelopes:
                if envelope.flavor == flavor and envelope.matches(place) and envelope.lends_to(owner):
                    yield envelope, True
