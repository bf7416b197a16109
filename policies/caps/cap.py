"""Caps: limits on weighted sums of payments (spec §3.4), asked by everyone who weighs money.

A *pool* says whose payments count together (an envelope's own or its subtree's, an aggregate's, an envelope's loans,
those for an owner's runs); a *measure* says how a payment is weighed (GPUs now, GPU-hours ahead, credits ahead). A cap
is a pool under a measure:

    Σ over payments in the pool of  weight(payment) × milli-GPUs  ≤  limit − spent

The class pass, the greedy start, the rows of the MILP and the words of a refusal all read the same book.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Final, NamedTuple, Protocol

from jobtree.api.values.counted import counted
from policies.inputs.money import Money

HOUR_MILLI: Final = 3_600_000
"""Milli-GPU-seconds in a GPU-hour."""


class Lane(NamedTuple):
    """A way for money to flow: from an envelope, for GPUs on a site, for at most ``limit`` seconds (None = open).

    ``user``: which use caps look at the run's owner (`policies.inputs.money.Money.user_of`).
    """

    envelope: int
    loan: bool
    site: int
    limit: int | None
    user: int


class Gone(NamedTuple):
    """A way for money of an envelope that is not there: the owner that this had, its flavor; as a `Lane` the rest."""

    owner: str
    flavor: str
    site: int
    user: int


@dataclass(frozen=True)
class Family:
    """Pools of one sort: all that is known of them but whose payments count.

    ``rule``: its name in plans; ``words``: what people call a pool of its ``{}``; ``table``, ``part``: of the snapshot
    and of a Budget's spec, that have its limits; ``limits``: by measure, their column there and the field's path.
    ``price``: of a rise by a unit, where several are equal the cheapest is named; ``recalls``: may starts take back at
    it what farther claims hold (spec §3.8)?
    """

    rule: str
    words: str
    table: str
    part: str
    limits: Mapping[str, tuple[str, str]]
    price: float = 1.0
    recalls: bool = True

    def named(self, subject: str) -> str:
        """Name that people have for a pool of it."""
        return self.words.format(subject)


MAXIMA: Final[Mapping[str, tuple[str, str]]] = {
    "concurrency": ("concurrency", "maxConcurrency"),
    "hours": ("max_gpu_milliseconds", "maxGPUHours"),
    "credits": ("max_millicredits", "maxCredits"),
}
"""The limits of a family that has one under each measure, by the usual names."""


@dataclass(frozen=True)
class Pool:
    """Payments that count together. ``subject`` names it to people; ``contains`` decides for lanes of ``envelopes``.

    ``since``: charges count from then on (None: always), or with ``by_payer`` from the start of the envelope that paid
    them; ``end``: of its window. ``above``: whether it looks at payments of an envelope that is not there. ``user``:
    the bit of a use cap, 0 of any other.
    """

    family: Family
    subject: str
    envelopes: tuple[int, ...]
    contains: Callable[[Lane], bool]
    concurrency: int | None
    max_gpu_milliseconds: int | None
    max_millicredits: int | None
    since: int | None
    end: int | None
    by_payer: bool = False
    above: Callable[["Gone"], bool] | None = None
    user: int = 0


@dataclass(frozen=True)
class Cap:
    """One pool under one measure. ``limit`` and ``spent`` in milli-``unit`` × the measure's time (see Measure)."""

    pool: Pool
    measure: "Measure"
    limit: int

    @property
    def family(self) -> Family:
        """Family of its pool."""
        return self.pool.family

    @property
    def rule(self) -> str:
        """The name of its family."""
        return self.family.rule

    @property
    def subject(self) -> str:
        """Name of its pool: the Budget and its part."""
        return self.pool.subject

    @property
    def place(self) -> str:
        """Name that people have for its pool, with the family's words."""
        return self.family.named(self.subject)

    @property
    def name(self) -> str:
        """Name of its rule in shortages and prices: ``concurrency``, ``aggregate-hours``."""
        return self.measure.name if self.rule == "envelope" else f"{self.rule}-{self.measure.name}"

    @property
    def path(self) -> tuple[str, str]:
        """The Budget and the field of it that have its limit: ``rai``, ``spec.envelopes[h100].concurrency``."""
        budget, _, name = self.subject.partition("/")
        return budget, f"spec.{self.family.part}[{name}].{self.family.limits[self.measure.name][1]}"

    @property
    def ahead(self) -> bool:
        """Does it bind admissions only (look-ahead), not running work?"""
        return self.measure.ahead

    @property
    def recalls(self) -> bool:
        """May starts take back at it what farther claims hold (spec §3.8)?"""
        return self.family.recalls and not self.ahead

    def words(self, used: int, first: int = 0, *, promised: int = 0, recalls: bool = False) -> str:
        """Say where something is missing, for people, and what is taken there, ``used`` in the weighed unit.

        ``first``: what of it is for running work that nobody pays now, ``promised``: what is held by promises alone;
        ``recalls``: ``used`` has what starts of this plan take and what they recall.
        """
        scale, unit = self.measure.scale, self.measure.unit
        if self.ahead:  # what is spent grows with the clock, and a condition must not
            rest = "overdrawn: more than its" if used > self.limit else "the rest of"
            taken = "spent, provided for or promised" if promised > 0 else "spent or provided for"
            return f"at {self.place} ({rest} {amount(self.limit, scale)} is {taken})"
        said, limit, unpaid, held = amounts((used - promised, self.limit, first, promised), scale)
        taken = f"{said} of {limit} in use"
        if promised:
            taken += f", {held} promised"
        if first:
            taken += f"; {counted(unpaid, unit)} that run unfunded would be paid first"
        if recalls:
            taken += "; this cycle recalls there, and the run may start in the next"
        return f"at {self.place} ({taken})"


class Measure(Protocol):
    """Weighing of payments. ``scale``: units of the weighed sum in one ``unit`` that people read; ``column``: units
    of a limit in the snapshot in one of the Budget's field.
    """

    name: str
    unit: str
    scale: int
    column: int
    ahead: bool

    def limit(self, pool: Pool) -> int | None:
        """The pool's bound under this measure, None where it has none."""

    def weight(self, money: Money, pool: Pool, lane: Lane) -> int:
        """Weight of one milli-GPU on ``lane``."""

    def charged(self, charge: int, rated: int) -> int:
        """Weight of a past charge: ``charge`` in milli-GPU-seconds, ``rated`` the same times its credit rate."""


@dataclass(frozen=True)
class CapBook:
    """Every cap of a snapshot, in a fixed order, and which of them a lane touches."""

    money: Money
    caps: list[Cap]
    _by_envelope: dict[int, list[int]]
    _timed: dict[int, list[int]]
    _known: dict[Lane, tuple[tuple[int, int], ...]]
    _above: dict[Gone, list[int]]

    @classmethod
    def of(cls, money: Money, pools: Sequence[Pool], measures: Sequence[Measure]) -> "CapBook":
        """All (pool, measure) pairs that have a limit."""
        caps = [
            Cap(pool, measure, limit)
            for measure in measures
            for pool in pools
            if (limit := measure.limit(pool)) is not None
        ]
        by_envelope: dict[int, list[int]] = {}
        for i, cap in enumerate(caps):
            for envelope in cap.pool.envelopes:
                by_envelope.setdefault(envelope, []).append(i)
        timed = {e: [i for i in mine if caps[i].ahead] for e, mine in by_envelope.items()}
        return cls(money, caps, by_envelope, timed, {}, {})

    def touches(self, lane: Lane) -> tuple[tuple[int, int], ...]:
        """(cap, weight per milli-GPU) for every cap that a payment on ``lane`` counts against."""
        known = self._known.get(lane)
        if known is None:
            found = []
            for i in self._by_envelope.get(lane.envelope, ()):
                cap = self.caps[i]
                if cap.pool.contains(lane):
                    weight = cap.measure.weight(self.money, cap.pool, lane)
                    if weight:
                        found.append((i, weight))
            known = self._known[lane] = tuple(found)
        return known

    def above(self, gone: Gone) -> list[int]:
        """The caps that look at payments of an envelope that is not there."""
        if gone not in self._above:
            pools = ((i, cap.pool.above) for i, cap in enumerate(self.caps))
            self._above[gone] = [i for i, looks in pools if looks is not None and looks(gone)]
        return self._above[gone]

    def of_envelope(self, envelope: int, user: int) -> list[int]:
        """The caps whose pool may hold payments of this envelope for runs at which the use caps of ``user`` look."""
        mine = self._by_envelope.get(envelope, [])
        return [i for i in mine if not (bit := self.caps[i].pool.user) or bit & user]

    def time_caps(self, envelope: int) -> list[int]:
        """The caps on hours or credits whose pool may hold payments of this envelope."""
        return self._timed.get(envelope, [])

    def counts_from(self, cap: int, envelope: int) -> int | None:
        """Since when what an envelope is charged counts against a cap on hours or credits; None: always."""
        pool = self.caps[cap].pool
        return self.money.envelopes[envelope].start if pool.by_payer else pool.since


def span(money: Money, lane: Lane, pool_end: int | None) -> int:
    """Seconds that an admission on ``lane`` is provided for: min(P, window left, time limit left) (spec §3.4).

    An envelope that is not there has no window.
    """
    own_end = money.envelopes[lane.envelope].end if lane.envelope >= 0 else None
    ends = [end - money.at for end in (own_end, pool_end) if end is not None]
    limits = [] if lane.limit is None else [lane.limit]
    return max(0, min([int(money.policy.accounting_period), *ends, *limits]))


def amount(value: int, scale: int, least: int = 3) -> str:
    """A weighed sum in people's unit: exact where six decimals say it, as a given limit; else ``least``, rounded up."""
    decimals = least if value * 10**6 % scale else 6
    whole, rest = divmod(-(-value * 10**decimals // scale), 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").removesuffix(".")


def amounts(values: Sequence[int], scale: int) -> list[str]:
    """`amount` of all that one sentence names: with as many more decimals as show which is more."""
    texts = ([amount(value, scale, least) for value in values] for least in count(3))
    return next(each for each in texts if _ranks(map(Decimal, each)) == _ranks(map(Decimal, values)))


def _ranks(values: Iterable[Decimal]) -> list[int]:
    given = list(values)
    return [sorted({*given}).index(value) for value in given]
