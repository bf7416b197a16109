"""Use of envelopes, aggregate and use caps, as Budget statuses and ``budgets usage`` show it (spec §1 Budget.status).

    consumed   charged since the start of the envelope's present window
    committed  what funded work is provided for ahead (spec §3.4)
    headroom   limit − what counts against the cap: of GPUs those funded now, of hours and credits consumed + committed;
               with ``scope: subtree`` of the whole subtree

GPUs are those that every cap which the envelope touches still leaves to its owner, where that is most; of an aggregate
cap also no more than its envelopes have. Of a use cap all is counted of the runs that it looks at, on its nodes and in
its window, whoever pays; its headroom of GPUs is its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobtree.api.kinds.budget import AggregateUsage, BudgetStatus, EnvelopeUsage, UseUsage
from jobtree.api.kinds.lease import FundingClass
from jobtree.api.kinds.meta import Condition
from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import Time
from policies.caps import uses
from policies.caps.cap import HOUR_MILLI, Cap, CapBook, Lane, amount, amounts, span
from policies.caps.scopes import GONE
from policies.funding.ledger import Spent, lane_of
from policies.inputs.claims import UNFUNDED, LeaseRow
from policies.inputs.money import Aggregate, Envelope

Classes = Mapping[tuple[str, str], FundingClass]
FIELD = {"owned": "owned_gpus", "shared": "shared_gpus", "borrowed": "borrowed_gpus", UNFUNDED: "unfunded_gpus"}
"""Where a status counts the GPUs of a class."""


def plain(value: int, scale: int) -> int | float:
    """``value / scale``: an integer where it is whole."""
    whole, rest = divmod(value, scale)
    return whole if rest == 0 else value / scale


def budget_statuses(
    book: CapBook,
    leases: Iterable[LeaseRow],
    classes: Classes,
    spent: Spent,
    taken: Spent,
    limits_left: Mapping[tuple[str, str], int | None],
    node_site: Mapping[str, int],
) -> dict[str, BudgetStatus]:
    """Status by Budget.

    ``taken``: ``spent``, and what no claim can be asked about; ``leases``: open ones, with ``classes``;
    ``limits_left``: seconds until a run's limit ends it, where it has one.
    """
    usage = _Usage(book, spent, taken)
    for lease in leases:
        if lease.budget:
            usage.add(lease, classes[lease.key], lane_of(book.money, lease, node_site, limits_left.get(lease.run_key)))
    envelopes: dict[str, list[int]] = defaultdict(list)
    caps: dict[str, list[Aggregate]] = defaultdict(list)
    for index, envelope in enumerate(book.money.envelopes):
        envelopes[envelope.budget].append(index)
    for cap in book.money.aggregates:
        caps[cap.budget].append(cap)
    looking: dict[str, list[int]] = defaultdict(list)
    for number, use in enumerate(book.money.uses):
        looking[use.budget].append(number)
    budgets = sorted({*envelopes, *looking})
    return {budget: usage.status(envelopes[budget], caps[budget], looking[budget]) for budget in budgets}


def headroom(book: CapBook, index: int, used: list[int], *, loan: bool = False) -> int:
    """Milli-GPUs that every concurrency cap of an envelope still leaves to its owner, or with ``loan`` to a borrower
    at whom no use cap looks.

    That is on the site where it is most. ``used``: milli-GPUs per cap of the book.
    """
    if not book.money.envelopes[index].pays_at(book.money.at):
        return 0
    rooms = []
    user = 0 if loan else book.money.user_of(book.money.envelopes[index].owner)
    for site in sorted(book.money.pays_on[index]) or [GONE]:
        touched = [cap for cap, _ in book.touches(Lane(index, loan, site, None, user)) if not book.caps[cap].ahead]
        rooms.append(min(book.caps[cap].limit - used[cap] for cap in touched))
    return max(0, *rooms)


@dataclass
class _OfUse:
    """Sums of a use cap. ``gpus``: by field of a status; ``milli``: milli-GPUs that are funded; ``beyond``: those that
    are not, though their envelope's window is open; ``ahead``: milli-GPU-seconds, and ``rated`` times credit rates.
    """

    gpus: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    milli: int = 0
    beyond: int = 0
    ahead: int = 0
    rated: int = 0


@dataclass
class _Usage:
    """Sums over open leases. ``used``: per cap, in its unit; ``ahead``: milli-GPU-seconds per envelope.

    ``of_use``: of each use cap, its own sums.
    """

    book: CapBook
    spent: Spent
    taken: Spent

    def __post_init__(self) -> None:
        self.used = self.taken.used(len(self.book.caps))
        self.ahead: dict[int, int] = defaultdict(int)
        self.gpus: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.beyond: dict[int, int] = defaultdict(int)
        self.of_use = [_OfUse() for _ in self.book.money.uses]
        self.named: dict[tuple[str, str, str], Cap] = {}
        self.place = {id(cap): number for number, cap in enumerate(self.book.caps)}
        for cap in self.book.caps:
            self.named["envelope" if cap.rule == "subtree" else cap.rule, cap.subject, cap.measure.name] = cap

    def add(self, lease: LeaseRow, name: FundingClass, lane: Lane) -> None:
        """An open lease of a class."""
        money = self.book.money
        milli = lease.milli(money.policy)
        self._count(lease, name, lane, milli)
        if lease.envelope < 0:
            return
        self.gpus[lease.envelope][FIELD[name] if lease.active else "spare_gpus"] += lease.gpus
        if name == UNFUNDED:
            self.beyond[lease.envelope] += lease.gpus if money.envelopes[lease.envelope].open_at(money.at) else 0
            return
        self.ahead[lease.envelope] += milli * span(money, lane, None)
        for cap, weight in self.book.touches(lane):
            self.used[cap] += milli * weight

    def _count(self, lease: LeaseRow, name: FundingClass, lane: Lane, milli: int) -> None:
        """The same at the use caps that look at its run and count its node."""
        money = self.book.money
        for number in uses.counting(money, lane.user, lease.flavor, lane.site):
            mine, use = self.of_use[number], money.uses[number]
            mine.gpus[FIELD[name] if lease.active else "spare_gpus"] += lease.gpus
            if name == UNFUNDED:
                pays = lease.envelope >= 0 and money.envelopes[lease.envelope].open_at(money.at)
                mine.beyond += milli if pays else 0
                continue
            seconds = span(money, lane, use.end) if use.open_at(money.at) else 0
            rate = money.rate_milli(lease.envelope) if lease.envelope >= 0 else lease.rate_milli
            mine.milli += milli
            mine.ahead += milli * seconds
            mine.rated += milli * seconds * rate

    def status(self, mine: list[int], caps: list[Aggregate], looking: list[int]) -> BudgetStatus:
        """The whole status of a Budget of these envelopes, aggregate and use caps."""
        return BudgetStatus(
            envelopes=tuple(self._envelope(index) for index in mine),
            aggregate_caps=tuple(self._aggregate(cap) for cap in caps),
            use_caps=tuple(self._use(number) for number in looking),
            conditions=(_healthy([*self._over(mine), *self._overspent(mine, caps), *self._over_use(looking)]),),
            updated=Time(self.book.money.at),
        )

    def _envelope(self, index: int) -> EnvelopeUsage:
        envelope = self.book.money.envelopes[index]
        figures = self._figures([index], envelope.max_millicredits is not None)
        rest = self._rest("envelope", envelope.label)
        room = headroom(self.book, index, self.used)
        return EnvelopeUsage(name=envelope.name, headroom_gpus=plain(room, 1000), **figures, **rest)

    def _aggregate(self, cap: Aggregate) -> AggregateUsage:
        figures = self._figures(cap.envelopes, cap.max_millicredits is not None)
        subject = f"{cap.budget}/{cap.name}"
        rooms = [sum(headroom(self.book, index, self.used) for index in cap.envelopes)]
        width = self.named.get(("aggregate", subject, "concurrency"))
        if width is not None:
            rooms.append(max(0, self._left(width)))
        rest = self._rest("aggregate", subject)
        return AggregateUsage(name=cap.name, headroom_gpus=plain(min(rooms), 1000), **figures, **rest)

    def _use(self, number: int) -> UseUsage:
        use, mine = self.book.money.uses[number], self.of_use[number]
        charged, rated = self.spent.use.get(number, (0, 0))
        hours, credit = use.max_gpu_milliseconds, use.max_millicredits
        left = None if credit is None else HOUR_MILLI * credit - rated - mine.rated
        return UseUsage(
            name=use.name,
            headroom_gpus=None if use.concurrency is None else _left(1000 * use.concurrency - mine.milli, 1000),
            **mine.gpus,
            **_sums(charged, rated, mine.ahead, mine.rated, credit=credit is not None),
            headroom_gpu_hours=None if hours is None else _left(hours - charged - mine.ahead, HOUR_MILLI),
            headroom_credits=None if left is None else _left(left, 1000 * HOUR_MILLI),
        )

    def _figures(self, members: Iterable[int], credit: bool) -> dict[str, Any]:
        """GPUs, and what is consumed and committed, of some envelopes together."""
        total: dict[str, int] = defaultdict(int)
        charged = rated = ahead = ahead_rated = 0
        for member in members:
            for name, count in self.gpus[member].items():
                total[name] += count
            charged += self.spent.envelope.get(member, 0)
            rated += self.spent.credits.get(member, 0)
            ahead += self.ahead[member]
            ahead_rated += self.ahead[member] * self.book.money.rate_milli(member)
        return {**total, **_sums(charged, rated, ahead, ahead_rated, credit=credit)}

    def _rest(self, rule: str, subject: str) -> dict[str, Any]:
        """Rest of its own caps on hours and credits, None where there are none."""
        hours = self.named.get((rule, subject, "hours"))
        credit = self.named.get((rule, subject, "credits"))
        return {
            "headroom_gpu_hours": None if hours is None else _left(self._left(hours), hours.measure.scale),
            "headroom_credits": None if credit is None else _left(self._left(credit), credit.measure.scale),
        }

    def _left(self, cap: Cap) -> int:
        return cap.limit - self.used[self.place[id(cap)]]

    def _over(self, mine: Iterable[int]) -> Iterator[str]:
        """Envelopes with work that does not fit their caps any more."""
        for index in mine:
            if count := self.beyond[index]:
                name = self.book.money.envelopes[index].name
                gpus = counted(count, "GPU is", "GPUs are")
                yield f"Envelope {name} has work beyond its caps: {gpus} unfunded until there is room."

    def _over_use(self, looking: Iterable[int]) -> Iterator[str]:
        """Use caps that bind now, and lie below what runs hold of them or were charged."""
        for number in looking:
            use, mine = self.book.money.uses[number], self.of_use[number]
            if not use.open_at(self.book.money.at):
                continue
            charged, rated = self.spent.use.get(number, (0, 0))
            over = 0 if use.concurrency is None else mine.milli + mine.beyond - 1000 * use.concurrency
            if mine.beyond and over > 0:
                limit = counted(use.concurrency or 0, "GPU")
                yield (
                    f"Use cap {use.name} has {limit}, and its runs hold {amount(over, 1000)} more:"
                    " what is beyond is unfunded until there is room."
                )
            if use.max_gpu_milliseconds is not None and charged > use.max_gpu_milliseconds:
                hours, gone = amounts((use.max_gpu_milliseconds, charged), HOUR_MILLI)
                yield f"Use cap {use.name} has {counted(hours, 'GPU-hour')}, and {gone} are spent."
            if use.max_millicredits is not None and rated > HOUR_MILLI * use.max_millicredits:
                rest, gone = amounts((use.max_millicredits, -(-rated // HOUR_MILLI)), 1000)
                yield f"Use cap {use.name} has {counted(rest, 'credit')}, and {gone} are spent."

    def _overspent(self, mine: Iterable[int], caps: Iterable[Aggregate]) -> Iterator[str]:
        """Caps on hours and credits below what was charged."""
        subjects = [("envelope", "Envelope", envelope.name, envelope.label) for envelope in map(self._of, mine)]
        subjects += [("aggregate", "Aggregate cap", cap.name, f"{cap.budget}/{cap.name}") for cap in caps]
        for rule, kind, name, label in subjects:
            for measure in ("hours", "credits"):
                cap = self.named.get((rule, label, measure))
                spent = 0 if cap is None else self.spent.cap.get(self.place[id(cap)], 0)
                if cap is not None and spent > cap.limit:
                    limit, gone = amounts((cap.limit, spent), cap.measure.scale)
                    yield f"{kind} {name} has {counted(limit, cap.measure.unit)}, and {gone} are spent."

    def _of(self, index: int) -> Envelope:
        return self.book.money.envelopes[index]


def _left(value: int, scale: int) -> int | float:
    return plain(max(0, value), scale)


def _sums(charged: int, rated: int, ahead: int, ahead_rated: int, *, credit: bool) -> dict[str, Any]:
    """Sums of what is consumed and committed, as a status has it; ``credit``: in credits too."""
    return {
        "gpu_seconds_consumed": plain(charged, 1000),
        "gpu_hours_consumed": plain(charged, HOUR_MILLI),
        "gpu_hours_committed": plain(ahead, HOUR_MILLI),
        "credits_consumed": plain(rated, 1000 * HOUR_MILLI) if credit else None,
        "credits_committed": plain(ahead_rated, 1000 * HOUR_MILLI) if credit else None,
    }


def _healthy(over: list[str]) -> Condition:
    """``over``: sentences about what is overcommitted, the first is said."""
    if not over:
        return Condition(type="Healthy", status="True", reason="WithinCaps", message="Every cap holds.")
    return Condition(type="Healthy", status="False", reason="Overcommitted", message=over[0])
