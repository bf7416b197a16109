"""Usage that the plan writes into Budgets: classes, charges, what is committed and left, recomputed (spec §1, §3.6)."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from jobtree.api.kinds.budget import BudgetStatus, EnvelopeUsage
from jobtree.api.values.scalars import exact
from jobtree.check.case.accounts import Aggregate
from jobtree.check.case.caps import CREDIT, Caps, Touch
from jobtree.check.case.case import Case
from jobtree.check.case.named import EnvelopeKey
from jobtree.check.case.rows import Held
from jobtree.check.case.violation import Violation
from jobtree.check.money.ahead import reach, until_then
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger

_ROUNDED = Fraction(1, 1000)
"""How far figures for people (GPU-hours, credits) may be from the exact ones."""
_HOUR = 3_600_000
_CLASSES = ("owned", "shared", "borrowed", "unfunded", "spare")

Figures = dict[str, Fraction | int | None]


def violations(case: Case, caps: Caps, ledger: Ledger, present: Present) -> Iterator[Violation]:
    """Every envelope, aggregate and use cap of every Budget whose status the plan rewrites."""
    books = _Books(case, caps, ledger, present)
    envelopes: dict[str, list[str]] = defaultdict(list)
    for budget, name in sorted(case.known_as):
        envelopes[budget].append(name)
    for update in case.plan.budgets:
        told = sorted(usage.name for usage in update.status.envelopes)
        both = (update.status.aggregate_caps, update.status.use_caps)
        caps_told = [sorted(usage.name for usage in usages) for usages in both]
        there = (books.aggregates[update.name], [case.use_caps[place] for place in books.looking[update.name]])
        if told != envelopes[update.name] or caps_told != [sorted(cap.name for cap in caps) for caps in there]:
            names = ", ".join(envelopes[update.name]) or "none"
            sentence = (
                f"its usage tells of {', '.join([*told, *caps_told[0], *caps_told[1]])}, and its envelopes are {names}"
            )
            yield Violation("usage-agrees", f"Budget {update.name}", sentence)
            continue
        yield from _told(books, update.name, update.status)


def _told(books: "_Books", budget: str, status: BudgetStatus) -> Iterator[Violation]:
    for usage in status.envelopes:
        true = books.envelope(books.case.known_as[budget, usage.name])
        yield from _compared(f"Envelope {budget}/{usage.name}", usage, true)
    for usage in status.aggregate_caps:
        cap = next(each for each in books.aggregates[budget] if each.name == usage.name)
        yield from _compared(f"Aggregate {budget}/{usage.name}", usage, books.aggregate(cap))
    for usage in status.use_caps:
        place = next(place for place in books.looking[budget] if books.case.use_caps[place].name == usage.name)
        yield from _compared(f"Use {budget}/{usage.name}", usage, books.use(place))
    over = books.over(budget)
    if over == all(each.status == "True" for each in status.conditions):
        says, is_so = ("is healthy", "something is") if over else ("is not healthy", "nothing is")
        yield Violation("usage-agrees", f"Budget {budget}", f"it says that it {says}, and {is_so} beyond its caps")


def _compared(subject: str, usage: EnvelopeUsage, true: Figures) -> Iterator[Violation]:
    """Charges = ledger integral: GPU-seconds to the milli-GPU-second, figures for people to their rounding."""
    for name, wanted in true.items():
        given = getattr(usage, name)
        slack = 0 if name.endswith("_gpus") or name == "gpu_seconds_consumed" else _ROUNDED
        agrees = given is wanted if given is None or wanted is None else abs(exact(given) - wanted) <= slack
        if not agrees:
            rule = "charges-are-ledger" if name.endswith("_consumed") else "usage-agrees"
            shown = wanted if wanted is None else float(wanted)
            yield Violation(rule, subject, f"its usage says {name} {given}, and it is {shown}")


class _Books:
    """What the leases that are open with the plan take: of each pool, and by payer.

    ``beyond``: by Budget, GPUs that are unfunded though their envelope's window is open; ``aggregates``: its caps;
    ``looking``: places of its use caps.
    """

    def __init__(self, case: Case, caps: Caps, ledger: Ledger, present: Present) -> None:
        self.case, self.caps, self.ledger = case, caps, ledger
        self.beyond: dict[str, int] = defaultdict(int)
        self.aggregates: dict[str, list[Aggregate]] = defaultdict(list)
        for cap in case.aggregates:
            self.aggregates[cap.budget].append(cap)
        self.looking: dict[str, list[int]] = defaultdict(list)
        for place, use in enumerate(case.use_caps):
            self.looking[use.budget].append(place)
        self._payers: dict[str, list[EnvelopeKey]] = defaultdict(list)
        for key in case.envelopes:
            self._payers[key[0]].append(key)
        self._sites = {case.sites[node.name]: node for node in case.nodes.values()}
        self._gpus: dict[EnvelopeKey, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._ahead: dict[EnvelopeKey, int] = defaultdict(int)
        self._rated: dict[EnvelopeKey, int] = defaultdict(int)
        self._width: dict[int, int] = defaultdict(int)
        self._hours: dict[int, int] = defaultdict(int)
        self._credits: dict[int, int] = defaultdict(int)
        self._of_use: list[dict[str, int]] = [defaultdict(int) for _ in case.use_caps]
        for lease in (*case.held, *case.new):
            payer, name = lease.payer, present.classes[lease.key]
            if payer is not None:
                self._at_uses(lease, name)
            there = payer is not None and payer in case.envelopes
            if payer is not None and name != "unfunded":
                seconds, rate = reach(case, lease), case.rate(lease.flavor) if there else lease.recorded_rate
                self._take(caps, lease, seconds, rate)
                if there:
                    ahead = case.milli(lease) * seconds
                    self._ahead[payer] += ahead
                    self._rated[payer] += ahead * rate
            if payer is not None and there:
                self._gpus[payer][name if lease.active else "spare"] += lease.gpus
                if name == "unfunded":
                    self.beyond[payer.budget] += lease.gpus if case.envelopes[payer].is_open(case.at) else 0

    def _take(self, caps: Caps, lease: Held, seconds: int, rate: int) -> None:
        milli = self.case.milli(lease)
        for touch in caps.lane(lease).present:
            self._width[touch.pool] += milli
            if caps.pools[touch.pool].on_time:
                ahead = milli * until_then(self.case, seconds, touch)
                self._hours[touch.pool] += ahead
                self._credits[touch.pool] += ahead * rate

    def _at_uses(self, lease: Held, name: str) -> None:
        """At the use caps that look at its run and count its node, whatever their windows."""
        case = self.case
        there = lease.payer is not None and lease.payer in case.envelopes
        for place in self.caps.uses_of(lease.run_owner):
            use, mine = case.use_caps[place], self._of_use[place]
            node = case.nodes[lease.node] if lease.node in case.sites else None
            if not use.counts(lease.flavor, node):
                continue
            mine[name if lease.active else "spare"] += lease.gpus
            if name == "unfunded":
                pays = there and lease.payer is not None and case.envelopes[lease.payer].is_open(case.at)
                mine["beyond"] += case.milli(lease) if pays else 0
                continue
            until = until_then(case, reach(case, lease), Touch(0, use.start, use.end, below=True))
            ahead = case.milli(lease) * until if use.is_open(case.at) else 0
            mine["milli"] += case.milli(lease)
            mine["ahead"] += ahead
            mine["rated"] += ahead * (case.rate(lease.flavor) if there else lease.recorded_rate)

    def use(self, place: int) -> Figures:
        """The true figures of a use cap."""
        number = self.caps.use(self.case.use_caps[place])
        mine, pool, (spent, rated) = self._of_use[place], self.caps.pools[number], self._spent(number)
        left = (
            None if pool.width is None else Fraction(max(0, pool.width - mine["milli"]), 1000),
            None if pool.hours is None else Fraction(max(0, pool.hours - spent - mine["ahead"]), _HOUR),
            None if pool.credits is None else Fraction(max(0, pool.credits - rated - mine["rated"]), CREDIT * 1000),
        )
        return {
            **{f"{name}_gpus": mine[name] for name in _CLASSES},
            **_consumed(spent, rated, mine["ahead"], mine["rated"], limited=pool.credits is not None),
            **dict(zip(("headroom_gpus", "headroom_gpu_hours", "headroom_credits"), left, strict=True)),
        }

    def envelope(self, payer: EnvelopeKey) -> Figures:
        """The true figures of an envelope."""
        return {
            **self._sums([payer], self.case.envelopes[payer].max_millicredits is not None),
            **self._left(self.caps.own(payer), *self._charged(payer)),
            "headroom_gpus": Fraction(self._room(payer), 1000),
        }

    def _charged(self, payer: EnvelopeKey) -> tuple[int, int]:
        """What counts against an envelope's hours and credits; it has a subtree while its window is open."""
        envelope = self.case.envelopes[payer]
        if envelope.scope == "own" or not envelope.is_open(self.case.at):
            return self.ledger.paid[payer], self.ledger.paid_credits[payer]
        return self._spent(self.caps.own(payer))

    def over(self, budget: str) -> bool:
        """Has a Budget work that its caps do not hold, or hours or credits capped below what was charged?"""
        charged = [(self.caps.own(p), *self._charged(p)) for p in self._payers[budget]]
        pools = [self.caps.together(cap) for cap in self.aggregates[budget]]
        charged += [(number, *self._spent(number)) for number in pools]
        for place in self.looking[budget]:
            use, mine = self.case.use_caps[place], self._of_use[place]
            if use.is_open(self.case.at):
                number = self.caps.use(use)
                width = self.caps.pools[number].width
                charged.append((number, *self._spent(number)))
                if width is not None and mine["beyond"] and mine["milli"] + mine["beyond"] > width:
                    return True
        return bool(self.beyond[budget]) or any(self._overspent(*each) for each in charged)

    def _overspent(self, number: int, spent: int, rated: int) -> bool:
        pool = self.caps.pools[number]
        return (pool.hours is not None and spent > pool.hours) or (pool.credits is not None and rated > pool.credits)

    def aggregate(self, cap: Aggregate) -> Figures:
        """The true figures of an aggregate cap."""
        members = [self.case.known_as[cap.budget, name] for name in cap.envelopes]
        pool = self.caps.together(cap)
        rooms = [sum(self._room(payer) for payer in members)]
        if cap.concurrency is not None:
            rooms.append(max(0, 1000 * cap.concurrency - self._width[pool]))
        return {
            **self._sums(members, cap.max_millicredits is not None),
            **self._left(pool, *self._spent(pool)),
            "headroom_gpus": Fraction(min(rooms), 1000),
        }

    def _sums(self, payers: list[EnvelopeKey], limited: bool) -> Figures:
        paid = sum(self.ledger.paid[payer] for payer in payers)
        rated = sum(self.ledger.paid_credits[payer] for payer in payers)
        ahead = sum(self._ahead[payer] for payer in payers)
        return {
            **{f"{name}_gpus": sum(self._gpus[payer][name] for payer in payers) for name in _CLASSES},
            **_consumed(paid, rated, ahead, sum(self._rated[p] for p in payers), limited=limited),
        }

    def _spent(self, number: int) -> tuple[int, int]:
        return self.ledger.hours[number], self.ledger.credits[number]

    def _left(self, number: int, spent: int, rated: int) -> Figures:
        """``spent``, ``rated``: what was charged to hours and credits."""
        pool, hours, credit = self.caps.pools[number], spent + self._hours[number], rated + self._credits[number]
        return {
            "headroom_gpu_hours": None if pool.hours is None else Fraction(max(0, pool.hours - hours), _HOUR),
            "headroom_credits": None
            if pool.credits is None
            else Fraction(max(0, pool.credits - credit), CREDIT * 1000),
        }

    def _room(self, payer: EnvelopeKey) -> int:
        """Milli-GPUs that every pool leaves to the owner, on the nodes where that is most."""
        envelope = self.case.envelopes[payer]
        if not envelope.pays(self.case.at):
            return 0
        anywhere = self.case.policy.funding.cross_location == "allow"
        alike = (node.name for node in self._sites.values() if node.flavor == envelope.flavor)
        names = [name for name in alike if anywhere or self.case.matches(envelope, name)]
        rooms = [0]
        for name in names or [""]:
            pools = {number: self.caps.pools[number] for number in self.caps.of_owner(payer, name)}
            rooms.append(min(p.width - self._width[n] for n, p in pools.items() if p.width is not None))
        return max(rooms)


def _consumed(paid: int, rated: int, ahead: int, ahead_rated: int, *, limited: bool) -> Figures:
    """What is consumed and committed; ``limited``: in credits too."""
    return {
        "gpu_seconds_consumed": Fraction(paid, 1000),
        "gpu_hours_consumed": Fraction(paid, _HOUR),
        "gpu_hours_committed": Fraction(ahead, _HOUR),
        "credits_consumed": Fraction(rated, CREDIT * 1000) if limited else None,
        "credits_committed": Fraction(ahead_rated, CREDIT * 1000) if limited else None,
    }
