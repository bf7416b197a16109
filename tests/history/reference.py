"""Who was funded in every second, and what it cost: spec §3.5 and §3.6 read once more, slowly.

Every second of a history the whole pass over claims is asked again. Nothing is skipped and nothing is foreseen: no
events, no groups. Times are Unix seconds, money is in milli-GPU-seconds and, for credits, in those times millicredits
per GPU-hour.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str]
"""(budget, envelope)."""


@dataclass(frozen=True)
class Lease:
    """Facts of a lease. ``lender``: its payer's owner; ``seen``: the cycle that closed it; ``timed``: a limit did."""

    name: str
    run: str
    owner: str
    payer: Key | None
    lender: str
    gpus: int
    spare: bool
    group: int
    region: str
    malleable: bool
    start: int
    ended: int | None
    seen: int | None
    timed: bool

    def holds(self, second: int, cycle: int) -> bool:
        """Does it hold its quota in ``second``, as known since the cycle at ``cycle``?"""
        if second < self.start or (self.seen is not None and self.seen <= cycle):
            return False
        return not (self.timed and self.ended is not None and self.ended <= second)

    def runs(self, second: int) -> bool:
        """Is it there to be charged?"""
        return self.start <= second and (self.ended is None or second < self.ended)


@dataclass(frozen=True)
class Envelope:
    """An envelope as a person reads it; ``owner``: of its Budget."""

    key: Key
    owner: str
    region: str
    gpus: int
    hours: int | None
    credits: int | None
    start: int | None
    end: int | None
    subtree: bool
    shares: bool
    early: bool
    lent_gpus: int | None
    lent_hours: int | None
    loan_lasts: int

    def covers(self, region: str) -> bool:
        """Does its selector match nodes of a region?"""
        return self.region in ("*", region)

    def pays(self, second: int) -> bool:
        """Is its window open, or does it pay early?"""
        if self.start is not None and second < self.start:
            return self.early
        return self.end is None or second < self.end


@dataclass(frozen=True)
class Aggregate:
    """A cap over several envelopes."""

    members: frozenset[Key]
    gpus: int | None
    hours: int | None
    credits: int | None


@dataclass(frozen=True)
class Use:
    """A cap on what runs of an owner use; ``region``: as of an envelope."""

    owner: str
    subtree: bool
    region: str
    gpus: int | None
    hours: int | None
    credits: int | None
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Law:
    """What a cycle saw. ``owners``: with the parents their Budgets name; ``holders``: those with envelopes; ``broken``:
    Budgets that cannot be read.
    """

    envelopes: Mapping[Key, Envelope]
    aggregates: Sequence[Aggregate]
    uses: Sequence[Use]
    owners: Mapping[str, frozenset[str] | None]
    holders: frozenset[str]
    broken: frozenset[str]
    rate: int
    discount: int

    def parents(self, owner: str, also: str = "") -> frozenset[str]:
        """Those that its Budget names, or else the longest proper prefix that has an envelope, as if ``also`` had."""
        named = self.owners.get(owner)
        if named is not None:
            return named
        parts = owner.split(":")
        prefixes = [":".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
        return frozenset([prefix for prefix in prefixes if prefix in self.holders or prefix == also][:1])

    def line(self, owner: str, also: str = "") -> frozenset[str]:
        """An owner and everything above it."""
        return frozenset({owner}).union(*(self.line(above, also) for above in self.parents(owner, also)))

    def looks(self, use: Use, owner: str) -> bool:
        """Does a use cap look at runs of an owner?"""
        lines = (self.line(owner), self.line(owner, use.owner))
        return owner == use.owner or (use.subtree and any(use.owner in line for line in lines))

    def related(self, one: str, other: str) -> bool:
        """Do two owners share an ancestor, themselves counted?"""
        return bool(self.line(one) & self.line(other))

    def standing(self, claimant: str, payer: str) -> int:
        """Owner, its children, siblings, parents, the rest: the first that the claimant is."""
        above, mine = self.parents(payer), self.parents(claimant)
        kinds = (claimant == payer, payer in mine, bool(above & mine), claimant in above)
        return next((place for place, holds in enumerate(kinds) if holds), 4)

    def milli(self, lease: Lease) -> int:
        """What a lease weighs."""
        return lease.gpus * (self.discount if lease.spare else 1000)


@dataclass
class History:
    """``laws``: what each cycle saw, by its time; ``leases``: all there ever were."""

    laws: Mapping[int, Law]
    leases: Sequence[Lease]
    said: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Lease → (class, rate) in every second from its start on."""
    cost: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Lease → (charge, charge × rate) in every second from its start on."""

    def live(self) -> None:
        """Go through every second, from the first cycle to the last."""
        cycles = sorted(self.laws)
        for cycle, following in zip(cycles, [*cycles[1:], cycles[-1] + 1], strict=True):
            for second in range(cycle, following):
                self._second(second, cycle, self.laws[cycle])

    def _second(self, second: int, cycle: int, law: Law) -> None:
        there = [lease for lease in self.leases if lease.holds(second, cycle)]
        funded = self._funded(second, law, there)
        for lease in there:
            if not lease.runs(second):
                continue
            if lease.payer is not None and lease.payer not in law.envelopes and lease.payer[0] in law.broken:
                name = self.said[lease.name][-1][0] if lease.name in self.said else "unfunded"
                rate = self.said[lease.name][-1][1] if lease.name in self.said else 0
            else:
                name, rate = funded.get(lease.name, ("unfunded", 0))
            charge = 0 if name == "unfunded" else law.milli(lease)
            self.said.setdefault(lease.name, []).append((name, rate))
            self.cost.setdefault(lease.name, []).append((charge, charge * rate))

    def spent(self, lease: Lease, since: int | None, until: int, rated: bool) -> int:
        """What a lease was charged in [since, until)."""
        low = max(0, (lease.start if since is None else since) - lease.start)
        return sum(each[rated] for each in self.cost.get(lease.name, [])[low : max(low, until - lease.start)])

    def is_loan(self, lease: Lease, law: Law) -> bool:
        """A stranger pays; or a relative that does not share, and lent from the start."""
        assert lease.payer is not None
        payer = law.envelopes[lease.payer]
        if not law.related(lease.owner, payer.owner):
            return True
        if lease.owner == payer.owner or payer.shares:
            return False
        if lease.name not in self.said:
            return True  # it starts, and the family does not pay
        return next((name for name, _ in self.said[lease.name] if name != "unfunded"), "unfunded") == "borrowed"

    def _funded(self, second: int, law: Law, there: Sequence[Lease]) -> dict[str, tuple[str, int]]:
        caps = list(_caps(law, second))
        claims: dict[tuple[str, Key], list[Lease]] = {}
        for lease in there:
            if lease.payer is not None and lease.payer in law.envelopes:
                claims.setdefault((lease.run, lease.payer), []).append(lease)
        width = [0] * len(caps)
        charge = [
            sum(
                self.spent(lease, cap.since(lease), second, cap.rated)
                for lease in self.leases
                if cap.timed and self._counts(cap, lease, law)
            )
            for cap in caps
        ]
        for lease in there:
            name, rate = self.said[lease.name][-1] if lease.name in self.said else ("unfunded", 0)
            if lease.payer is not None and lease.payer[0] in law.broken and name != "unfunded":
                for i, cap in enumerate(caps):
                    if self._counts(cap, lease, law):
                        (charge if cap.timed else width)[i] += _weight(cap, lease, law, second, rate)
        found: dict[str, tuple[str, int]] = {}
        for claim in sorted(claims.values(), key=lambda each: self._place(second, law, each)):
            payer = law.envelopes[claim[0].payer or ("", "")]
            if not payer.pays(second):
                continue
            loan = self.is_loan(claim[0], law)
            name = "borrowed" if loan else "owned" if claim[0].owner == payer.owner else "shared"
            for part in _parts(claim):
                more = [
                    sum(_weight(cap, lease, law, second, law.rate) for lease in part if self._counts(cap, lease, law))
                    for cap in caps
                ]
                used = [charge[i] if cap.timed else width[i] for i, cap in enumerate(caps)]
                if any(m and u + m > cap.limit for cap, u, m in zip(caps, used, more, strict=True)):
                    break
                for i, cap in enumerate(caps):
                    (charge if cap.timed else width)[i] += more[i]
                found.update((lease.name, (name, law.rate)) for lease in part)
        return found

    def _counts(self, cap: "Cap", lease: Lease, law: Law) -> bool:
        if lease.payer is None:
            return False
        if cap.use is not None:
            return cap.use.region in ("*", lease.region) and law.looks(cap.use, lease.owner)
        if lease.payer not in law.envelopes:  # deleted or broken: those above still see what it paid
            return (lease.lender, lease.region) in cap.beneath
        return cap.counts(lease) and (not cap.loans or self.is_loan(lease, law))

    def _place(self, second: int, law: Law, claim: Sequence[Lease]) -> Any:
        payer = law.envelopes[claim[0].payer or ("", "")]
        admitted = min(lease.start for lease in claim)
        if self.is_loan(claim[0], law):
            standing = -1 if second - admitted < payer.loan_lasts else 5
        else:
            standing = law.standing(claim[0].owner, payer.owner)
        return standing, admitted, claim[0].run, payer.key


def _parts(claim: Sequence[Lease]) -> list[list[Lease]]:
    if not claim[0].malleable:
        return [list(claim)]
    return [[lease for lease in claim if lease.group == group] for group in sorted({each.group for each in claim})]


@dataclass(frozen=True)
class Cap:
    """A limit. ``timed``: on what is spent; ``rated``: in credits; ``loans``: of loans only; ``of``: whose payments,
    (payer, regions) pairs; ``start``: since when, None = always; ``by_payer``: or since the payer's own start; ``use``:
    whose runs, whoever pays.
    """

    limit: int
    timed: bool
    rated: bool
    loans: bool
    of: frozenset[tuple[Key, str]]
    beneath: "Beneath"
    start: int | None
    starts: Mapping[Key, int | None] | None
    use: Use | None = None

    def counts(self, lease: Lease) -> bool:
        """Does a lease's payment count against it?"""
        return (lease.payer, "*") in self.of or (lease.payer, lease.region) in self.of

    def since(self, lease: Lease) -> int | None:
        """From which second on its charges count."""
        return self.start if self.starts is None else self.starts[lease.payer or ("", "")]


@dataclass(frozen=True)
class Beneath:
    """Owners below one, in the regions that its envelope covers; None where it looks at nobody else."""

    law: Law
    envelope: Envelope | None = None

    def __contains__(self, payment: tuple[str, str]) -> bool:
        owner, region = payment
        above = self.envelope
        if above is None or owner == above.owner:
            return False
        return above.owner in self.law.line(owner) and above.covers(region)


def _weight(cap: Cap, lease: Lease, law: Law, second: int, rate: int) -> int:
    """What a lease adds to a cap in one second; one that has ended is charged nothing."""
    if not cap.timed:
        return law.milli(lease)
    since = cap.since(lease)
    counted = lease.runs(second) and (since is None or since <= second)
    return law.milli(lease) * (rate if cap.rated else 1) if counted else 0


def _caps(law: Law, second: int) -> Iterator[Cap]:
    for envelope in law.envelopes.values():
        of = {(envelope.key, "*")}
        beneath = Beneath(law)
        opened = envelope.start is None or envelope.start <= second
        if envelope.subtree and opened and (envelope.end is None or second < envelope.end):
            beneath = Beneath(law, envelope)
            of |= {
                (other.key, region)
                for other in law.envelopes.values()
                for region in ("east", "west")
                if other.owner != envelope.owner and envelope.owner in law.line(other.owner) and envelope.covers(region)
            }
        own = (1000 * envelope.gpus, envelope.hours, envelope.credits)
        yield from _three(own, loans=False, of=frozenset(of), beneath=beneath, start=envelope.start, starts=None)
        lent = (None if envelope.lent_gpus is None else 1000 * envelope.lent_gpus, envelope.lent_hours, None)
        mine = frozenset({(envelope.key, "*")})
        yield from _three(lent, loans=True, of=mine, beneath=Beneath(law), start=envelope.start, starts=None)
    starts = {key: envelope.start for key, envelope in law.envelopes.items()}
    for cap in law.aggregates:
        limits = (None if cap.gpus is None else 1000 * cap.gpus, cap.hours, cap.credits)
        of = {(key, "*") for key in cap.members}
        yield from _three(limits, loans=False, of=frozenset(of), beneath=Beneath(law), start=None, starts=starts)
    for use in law.uses:
        if (use.start is None or use.start <= second) and (use.end is None or second < use.end):
            limits = (None if use.gpus is None else 1000 * use.gpus, use.hours, use.credits)
            nobody, start = frozenset[tuple[Key, str]](), use.start
            yield from _three(limits, loans=False, of=nobody, beneath=Beneath(law), start=start, starts=None, use=use)


def _three(limits: Sequence[int | None], **said: Any) -> Iterator[Cap]:
    for number, limit in enumerate(limits):
        if limit is not None:
            yield Cap(limit=limit, timed=number > 0, rated=number == 2, **said)
