"""Recall in the model: which running claims lose their payer to which starts (spec §3.8).

The claims that run, and the starts, are funded or not as the pass of spec §3.5 has it. Per part p of a running claim
that a start may touch, with stays ∈ {0, 1}, and per limit c that it is held to (GPUs now, or one more second of hours
or credits):

    Σ weight × pay + Σ_p weight × stays_p ≤ limit
    Σ_may recall p weight × pay + Σ_q before weight × stays_q ≥ Σ_p (limit + 1 − weight to the end of p)⁺ × full_pc
    Σ_may recall p weight × pay ≥ Σ_p (limit + 1 − weight to the end of p − Σ_q before weight)⁺ × full_pc
                                           p: parts of one claim, q: of the claims before it; x⁺ = max(0, x); the second
                                           is implied by whole columns
    1 − stays_p ≤ Σ_c full_pc              it stays, unless some limit is full without it
    stays_p ≤ stays of the group before    malleable claims, group by group; that one's going is a reason too

A loan that starts is in no ``full`` row: it has to fit beside what stays.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import Final, NamedTuple

from policies.classes import OLD_LOAN, Part
from policies.model import INF, Model
from policies.recall_held import Held, Payment, Reason
from policies.yielding import Limit, whole

SUMMED: Final = 2
"""Most near payments that are written out where a claim asks for their sum."""


class _Near(NamedTuple):
    """Payments that may recall at a limit. ``terms``: (column, weight) of each; ``most``: what all can take of it;
    ``unit``: what each is a multiple of.
    """

    terms: list[tuple[int, int]]
    most: int
    unit: int


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

    ``before``: what stays of the claims so far takes per limit, ``most``: all of it together, ``fixed``: what never
    goes takes of it.
    """

    def __init__(self, model: Model, held: Held, payments: Sequence[Payment]) -> None:
        self.model, self.held, self.problem = model, held, held.problem
        self.at: dict[Limit, list[Payment]] = defaultdict(list)
        for payment in payments:
            for limit in payment.takes:
                self.at[limit].append(payment)
        self.before: dict[Limit, list[tuple[int, int]]] = defaultdict(list)
        self.most: dict[Limit, int] = defaultdict(int)
        self.near: dict[tuple[Limit, tuple[int, ...]], _Near] = {}
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
            leader = self.held.stays.get(i - 1) if part.follows else None
            if leader is None and part.follows and not self.problem.running.outcome.funded[i - 1]:
                self.model.row(("in-order", i), [(column, 1.0)], -INF, 0.0)
                continue
            reasons = self.held.reasons[i] = []
            for limit, weight in self.problem.yielding.takes[i].items():
                reason = self._reason(i, limit, weight, mine[limit])
                if reason is not None:
                    reasons.append(reason)
                    asked[limit].append(reason)
                mine[limit] += weight
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
                self.most[limit] += weight

    def _reason(self, i: int, limit: Limit, weight: int, mine: int) -> Reason | None:
        """That the part is in want of room at a limit, if it can be; ``mine``: what its claim takes before it."""
        near = self._nearer(self.problem.running.parts[i], limit)
        most = self.problem.yielding.room[i][limit] - self.fixed[limit] - mine - weight
        if most >= self.most[limit] + near.most:
            return None
        stay = [*self.before[limit]]
        unit = gcd(near.unit, *(w for _, w in stay)) or 1
        full = self.model.column(("full", i, *limit), upper=1.0, integer=True)
        return Reason(full, near.terms, stay, (most // unit + 1) * unit)

    def _nearer(self, part: Part, limit: Limit) -> _Near:
        """Payments that may recall the part at a limit: the same for all that stand alike."""
        standings = tuple(near for near in range(OLD_LOAN) if self.problem.yielding.recalls(near, part))
        found = self.near.get((limit, standings))
        if found is None:
            payments = [payment for payment in self.at[limit] if payment.standing in standings]
            terms = [(payment.column, payment.takes[limit]) for payment in payments]
            found = _Near(terms, _most(payments, limit), gcd(*(weight for _, weight in terms)))
            self.near[limit, standings] = found
        return found

    def _full(self, first: int, limit: Limit, reasons: Sequence[Reason]) -> None:
        """The ``full`` of one claim share what is taken before it; one that needs nothing gives nothing.

        Were all claims before it to stay, that much less has to be taken by what starts: implied, but not in parts.
        """
        stay = reasons[0].stay
        near = self._sum(limit, reasons[0].near)
        others = [(column, weight / 1000) for column, weight in stay]
        least = [(reason.full, -max(0, reason.least) / 1000) for reason in reasons]
        row = self.model.row(("full", first, *limit), [*near, *others, *least], 0.0, INF)
        for reason in reasons:
            if reason.least % 1000 and not limit.second:
                self.held.halves[reason.full] = row, (-reason.least % 1000) / 1000
        all_stay = sum(weight for _, weight in stay)
        more = [(reason.full, (all_stay - reason.least) / 1000) for reason in reasons if reason.least > all_stay]
        if near and others and more:
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
        """What those columns are. Nearer claimants ask for fewer payments: so each is another one and the rest."""
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
