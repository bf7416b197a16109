"""Recall in the model: which running claims lose their payer to which starts (spec §3.8), and stage 4.

The claims that run, and the starts, are funded or not as the pass of spec §3.5 has it. Per part p of a running claim
that a start may touch, with stays ∈ {0, 1}, and per limit c that it is held to (GPUs now, or one more second of hours
or credits):

    Σ weight × pay + Σ_p weight × stays_p ≤ limit
    Σ_may recall p weight × pay + Σ_q before weight × stays_q ≥ Σ_p (limit + 1 − weight to the end of p) × full_pc
    Σ_may recall p weight × pay ≥ Σ_p (limit + 1 − weight to the end of p − Σ_q before weight) × full_pc
                                           p: parts of one claim, q: of the claims before it
    1 − stays_p ≤ Σ_c full_pc              it stays, unless some limit is full without it
    stays_p ≤ stays of the group before    malleable claims, group by group; that one's going is a reason too

A loan that starts is in no ``full`` row: it has to fit beside what stays. Look-ahead caps bind admissions only, so
where running work has provided for more than is left, a binary says whether anything new is admitted there. Stage 4 is
least Σ GPUs × (1 − stays) over the parts that were funded.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import gcd
from typing import Final, NamedTuple

from policies.classes import Part, Sums, weigh
from policies.kinship import standing_of
from policies.model import INF, Model
from policies.problem import Candidate, Problem
from policies.recall import may_recall
from policies.yielding import Limit, Takes, takes_of, whole

PayKey = tuple[int, bool, int, int]
"""(purse, active, region, envelope)."""

Terms = dict[int, list[tuple[int, float]]]
"""Cap → columns with what one of each takes of it."""


TIGHT: Final = 500
"""Most parts that may give way in a model with ``starts-full`` rows: larger ones take three times as long with them."""
SUMMED: Final = 2
"""Most near payments that are written out where a claim asks for their sum."""
_NOISE: Final = 0.5
"""Milli-GPUs that a point of a relaxation may be off."""


class Payment(NamedTuple):
    """A payment column of a start: what one takes per limit, where it stands (None: a loan), when it was made.

    ``group``: the runs that it is for; ``most``: what all payments for them can be together.
    """

    column: int
    takes: Takes
    standing: int | None
    created: int
    group: int
    most: int

    def recalls(self, part: Part) -> bool:
        """May this part give way to it?"""
        return self.standing is not None and may_recall(self.standing, self.created, part)


class Reason(NamedTuple):
    """Why a part may have to go: ``full`` may be 1 where ``least`` and more is taken ``before`` it.

    Of the groups of a claim it is the first to go that needs one; those before it stay, and ``least`` counts them.
    """

    full: int
    before: list[tuple[int, int]]
    least: int


@dataclass
class Held:
    """What running work holds in a model, as far as starts may touch it.

    ``stays``: part → column; ``terms``: what they take per cap; ``now``: what of that is funded before any start;
    ``reasons``: by part; ``admits``: column → (stays with what they take, what is left) of a cap on time; ``near``,
    ``lies``: in large models, columns of near payments and of where their runs lie, with the number of their rights.
    """

    problem: Problem
    stays: dict[int, int] = field(default_factory=dict)
    terms: Terms = field(default_factory=lambda: defaultdict(list))
    now: Sums = field(default_factory=lambda: defaultdict(int))
    reasons: dict[int, list[Reason]] = field(default_factory=dict)
    admits: dict[int, tuple[list[tuple[int, float]], float]] = field(default_factory=dict)
    near: dict[int, int] = field(default_factory=dict)
    lies: dict[int, int] = field(default_factory=dict)

    def cap_row(self, model: Model, cap: int, new: list[tuple[int, float]]) -> None:
        """The row of a cap: ``new`` payments and what stays. A cap on time binds only where something is admitted."""
        what = self.problem.book.caps[cap]
        scale = what.measure.scale
        left = (self.problem.room_of(cap) + self.now[cap]) / scale
        stay = [(column, weight / scale) for column, weight in self.terms[cap]]
        most = sum(weight for _, weight in stay)
        terms = [*((column, weight / scale) for column, weight in new), *stay]
        if not what.ahead or most <= left:
            model.row(("cap", cap), terms, -INF, left)
        elif new:
            admits = model.column(("admits", cap), upper=1.0, integer=True)
            self.admits[admits] = stay, left
            model.row(("admits", cap), [*terms[: len(new)], (admits, -max(0.0, left))], -INF, 0.0)
            model.row(("cap", cap), [*terms, (admits, most - left)], -INF, most)

    @property
    def columns(self) -> list[int]:
        """All columns of recall."""
        full = (reason.full for mine in self.reasons.values() for reason in mine)
        return [*self.stays.values(), *full, *self.admits, *self.near, *self.lies]

    def settled(self, values: Sequence[float], kept: Set[int] = frozenset()) -> dict[int, float]:
        """What the pass makes of the payments in a point of the relaxation: all columns of recall, whole.

        ``kept``: columns of parts that stay whatever it makes of them.
        """
        found: dict[int, float] = {}
        for i, column in self.stays.items():
            first = self.stays.get(i - 1) if self.problem.running.parts[i].follows else None
            stays = column in kept or (i in self.reasons and (first is None or found[first] > 0))
            open_ = column not in kept and (first is None or found[first] > 0)
            for full, before, least in self.reasons.get(i, ()):
                taken = sum(weight * found.get(each, values[each]) for each, weight in before)
                found[full] = float(open_ and taken >= least - _NOISE)
                stays = stays and not found[full]
            found[column] = float(stays)
        for column, (stay, left) in self.admits.items():
            found[column] = float(sum(weight * found[each] for each, weight in stay) <= left)
        return found

    def idle(self, settled: Mapping[int, float]) -> list[int]:
        """Columns of near payments, and of where they lie, that are no reason for anything once that is settled."""
        reasons = (reason for mine in self.reasons.values() for reason in mine if settled[reason.full])
        asked = {column for reason in reasons for column, _ in reason.before}
        rights = {number for column, number in self.near.items() if column in asked}
        return [
            *(column for column in self.near if column not in asked),
            *(column for column, number in self.lies.items() if number not in rights),
        ]

    def objective(self) -> dict[int, float]:
        """Stage 4 as costs to maximise: GPUs of the parts that were funded and stay so."""
        parts, funded = self.problem.running.parts, self.problem.running.outcome.funded
        return {column: float(parts[i].gpus) for i, column in self.stays.items() if funded[i]}

    @property
    def most(self) -> int:
        """Stage 4's objective where nothing is recalled."""
        return round(sum(self.objective().values()))


def columns(model: Model, problem: Problem, goes: Set[int] | None = None) -> Held:
    """A binary for each part that a start may touch; with ``goes`` those that are funded and not in it stay."""
    held = Held(problem)
    for i in problem.yielding.parts:
        if goes is not None and i not in goes and problem.running.outcome.funded[i]:
            continue
        part = problem.running.parts[i]
        column = held.stays[i] = model.column(("stays", i), upper=1.0, integer=True)
        for cap, weight in part.touched.items():
            held.terms[cap].append((column, float(weight)))
            held.now[cap] += weight if problem.running.outcome.funded[i] else 0
    return held


def rows(model: Model, held: Held, payments: Sequence[Payment]) -> None:
    """Who is unfunded and who is not, as the pass has it."""
    rows_of = _Rows(model, held, payments)
    claim: list[int] = []
    for i in held.problem.yielding.parts:
        if not (claim and held.problem.running.parts[i].follows and i - 1 in held.stays):
            rows_of.claim(claim)
            claim = []
        if i in held.stays:
            claim.append(i)
        else:
            rows_of.keep(i)
    rows_of.claim(claim)
    rows_of.add_up()
    rows_of.seconds()


class _Rows:
    """The rows of the parts, claim by claim in the order of the pass.

    ``before``: what stays of the claims so far takes per limit, ``fixed``: what never goes takes of it.
    """

    def __init__(self, model: Model, held: Held, payments: Sequence[Payment]) -> None:
        self.model, self.held, self.problem = model, held, held.problem
        self.at: dict[Limit, list[Payment]] = defaultdict(list)
        for payment in payments:
            for limit in payment.takes:
                self.at[limit].append(payment)
        self.before: dict[Limit, list[tuple[int, int]]] = defaultdict(list)
        self.fixed: dict[Limit, int] = defaultdict(int)
        self.sums: dict[Limit, dict[frozenset[tuple[int, int]], int]] = defaultdict(dict)

    def keep(self, i: int) -> None:
        """A part that never goes."""
        for limit, weight in self.problem.yielding.takes[i].items():
            self.fixed[limit] += weight

    def claim(self, parts: Sequence[int]) -> None:
        """Parts of one claim, each following the one before."""
        mine: dict[Limit, int] = defaultdict(int)
        asked: dict[Limit, list[Reason]] = defaultdict(list)
        for i in parts:
            part, column = self.problem.running.parts[i], self.held.stays[i]
            reasons = self.held.reasons[i] = []
            for limit, weight in self.problem.yielding.takes[i].items():
                reason = self._reason(i, limit, weight, mine[limit])
                if reason is not None:
                    reasons.append(reason)
                    asked[limit].append(reason)
                mine[limit] += weight
            leader = self.held.stays.get(i - 1) if part.follows else None
            if leader is None and part.follows and not self.problem.running.outcome.funded[i - 1]:
                self.model.row(("in-order", i), [(column, 1.0)], -INF, 0.0)
                del self.held.reasons[i]
                continue
            given: list[tuple[int, float]] = []
            if leader is not None:
                self.model.row(("in-order", i), [(column, 1.0), (leader, -1.0)], -INF, 0.0)
                given = [(leader, -1.0)]
            goes = ((reason.full, 1.0) for reason in reasons)
            self.model.row(("stays", i), [(column, 1.0), *goes, *given], 1.0 - len(given), INF)
        for limit, reasons in asked.items():
            self._full(parts[0], limit, reasons)
        for i in parts:
            for limit, weight in self.problem.yielding.takes[i].items():
                self.before[limit].append((self.held.stays[i], weight))

    def _reason(self, i: int, limit: Limit, weight: int, mine: int) -> Reason | None:
        """That the part is in want of room at a limit, if it can be; ``mine``: what its claim takes before it."""
        near = self._near(i, limit)
        most = self.problem.yielding.room[i][limit] - self.fixed[limit] - mine - weight
        stay = self.before[limit]
        if most >= sum(w for _, w in stay) + _most(near, limit):
            return None
        before = [*((payment.column, payment.takes[limit]) for payment in near), *stay]
        unit = gcd(*(w for _, w in before)) if before else 1
        return Reason(
            self.model.column(("full", i, *limit), upper=1.0, integer=True), before, (most // unit + 1) * unit
        )

    def _near(self, i: int, limit: Limit) -> list[Payment]:
        return [payment for payment in self.at[limit] if payment.recalls(self.problem.running.parts[i])]

    def _full(self, first: int, limit: Limit, reasons: Sequence[Reason]) -> None:
        """One ``full`` at most may be 1, and only where that much is taken before the claim.

        Were all claims before it to stay, that much less has to be taken by what starts: implied, but not in parts.
        """
        stay = self.before[limit]
        before = reasons[0].before
        near = self._sum(limit, before[: len(before) - len(stay)])
        others = [(column, weight / 1000) for column, weight in stay]
        least = [(reason.full, -reason.least / 1000) for reason in reasons]
        self.model.row(("full", first, *limit), [*near, *others, *least], 0.0, INF)
        all_stay = sum(weight for _, weight in stay)
        more = [(reason.full, (all_stay - reason.least) / 1000) for reason in reasons if reason.least > all_stay]
        if near and others and more and len(self.held.stays) <= TIGHT:
            self.model.row(("starts-full", first, *limit), [*near, *more], 0.0, INF)

    def _sum(self, limit: Limit, near: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
        """What these payments take: where they are many one column, the same for all claims that ask for them."""
        if len(near) <= SUMMED:
            return [(column, weight / 1000) for column, weight in near]
        known = self.sums[limit]
        mine = frozenset(near)
        if mine not in known:
            known[mine] = self.model.column(("near-sum", *limit, len(known)))
        return [(known[mine], 1.0)]

    def add_up(self) -> None:
        """What those columns are. Younger claims ask for fewer payments: so each is another one and the rest."""
        for limit, sums in self.sums.items():
            done: list[frozenset[tuple[int, int]]] = []
            for number, (near, total) in enumerate(sorted(sums.items(), key=lambda each: (len(each[0]), each[1]))):
                inside = max((other for other in done if other <= near), key=len, default=frozenset())
                terms = [(column, weight / 1000) for column, weight in sorted(near - inside)]
                more = [(sums[inside], 1.0)] if inside else []
                self.model.row(("near-sum", *limit, number), [*terms, *more, (total, -1.0)], 0.0, 0.0)
                done.append(near)

    def seconds(self) -> None:
        """The next second of hours and credits has room for all that stays and starts."""
        for limit, stay in self.before.items():
            if limit.second:
                new = [(payment.column, payment.takes[limit]) for payment in self.at[limit]]
                terms = [(column, weight / 1000) for column, weight in (*new, *stay)]
                self.model.row(("second", limit.cap), terms, -INF, _left(self.held, limit) / 1000)


def _most(payments: Sequence[Payment], limit: Limit) -> int:
    """What these payments can take of a limit at most."""
    groups: dict[int, int] = {}
    for payment in payments:
        groups[payment.group] = max(groups.get(payment.group, 0), payment.most * payment.takes[limit])
    return sum(groups.values())


def _left(held: Held, limit: Limit) -> int:
    """What a limit leaves beside charges and what runs and never changes."""
    problem, funded = held.problem, held.problem.running.outcome.funded
    fixed = (i for i in problem.yielding.at(limit) if i not in held.stays and funded[i])
    return whole(problem.book, problem.spent, limit) - sum(problem.yielding.takes[i][limit] for i in fixed)


def payment(problem: Problem, candidate: Candidate, key: PayKey, column: int) -> Payment:
    """A payment column for a candidate's purse as the pass sees it."""
    group, active, region, envelope = key
    payer = next(payer for payer in candidate.payers if payer.envelope == envelope)
    touched, second = weigh(problem.book, problem.lane(payer, region), problem.milli(active))
    level = None if payer.loan else standing_of(payer.rank)
    return Payment(column, takes_of(problem.book, touched, second), level, candidate.run.created, group, problem.gpus)
