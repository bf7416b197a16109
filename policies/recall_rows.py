"""Recall in the model: which running claims lose their payer to which starts (spec §3.8), and stage 4.

The claims that run, and the starts, are funded or not as the pass of spec §3.5 has it. Per part p of a running claim
that a start may touch, with stays ∈ {0, 1}, and per limit c that it is held to (GPUs now, or one more second of hours
or credits):

    Σ weight × pay + Σ_p weight × stays_p ≤ limit
    Σ_may recall p weight × pay + Σ_q before p weight × stays_q ≥ (limit + 1 − weight of p) × full_pc
    1 − stays_p ≤ Σ_c full_pc              it stays, unless some limit is full without it
    stays_p ≤ stays of the group before    malleable claims, group by group; that one's going is a reason too

A loan that starts is in no ``full`` row: it has to fit beside what stays. Look-ahead caps bind admissions only, so
where running work has provided for more than is left, a binary says whether anything new is admitted there. Stage 4 is
least Σ GPUs × (1 − stays) over the parts that were funded.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from policies.classes import OLD_LOAN, Part, Sums, weigh
from policies.kinship import standing_of
from policies.model import INF, Model
from policies.problem import Candidate, Problem
from policies.recall import Limit, may_recall, takes_of

PayKey = tuple[int, bool, int, int]
"""(purse, active, region, envelope)."""

Terms = dict[int, list[tuple[int, float]]]
"""Cap → columns with what one of each takes of it."""


class Payment(NamedTuple):
    """A payment column of a start: what one GPU takes per limit, where it stands (None: a loan), when it was made."""

    column: int
    takes: Mapping[Limit, int]
    standing: int | None
    created: int

    def recalls(self, part: Part) -> bool:
        """May this part give way to it?"""
        return self.standing is not None and may_recall(self.standing, self.created, part)


def affected(problem: Problem) -> list[int]:
    """Parts that a start may unfund or let in again, by their place in the pass."""
    near = _nearest(problem)
    found: list[int] = []
    shaken: set[Limit] = set()
    for i, part in enumerate(problem.running.parts):
        mine = takes_of(problem, part.touched, part.second)
        reached = any(near.get(limit, OLD_LOAN) < part.place.standing for limit in mine)
        if reached or not shaken.isdisjoint(mine) or (part.follows and found and found[-1] == i - 1):
            found.append(i)
            shaken.update(mine)
    return found


def _nearest(problem: Problem) -> dict[Limit, int]:
    """The nearest standing from which what waits may ask for each limit."""
    found: dict[Limit, int] = {}
    known: set[tuple[int, int]] = set()
    for candidate in _by_purse(problem):
        for payer in candidate.payers:
            level = standing_of(payer.rank)
            if payer.loan or (payer.envelope, level) in known:
                continue
            known.add((payer.envelope, level))
            for region in problem.book.money.pays_on[payer.envelope]:
                touched, second = weigh(problem.book, problem.lane(payer, region), 1000)
                for limit in takes_of(problem, touched, second):
                    found[limit] = min(level, found.get(limit, level))
    return found


def _by_purse(problem: Problem) -> Sequence[Candidate]:
    """One candidate for each list of payers."""
    return list({candidate.purse: candidate for candidate in problem.candidates if candidate.payers}.values())


@dataclass
class Held:
    """What running work holds in a model, as far as starts may touch it.

    ``stays``: part → column; ``terms``: what they take per cap; ``now``: what of that is funded before any start.
    """

    problem: Problem
    stays: dict[int, int] = field(default_factory=dict)
    terms: Terms = field(default_factory=lambda: defaultdict(list))
    now: Sums = field(default_factory=lambda: defaultdict(int))

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
            model.row(("admits", cap), [*terms[: len(new)], (admits, -max(0.0, left))], -INF, 0.0)
            model.row(("cap", cap), [*terms, (admits, most - left)], -INF, most)

    def objective(self) -> dict[int, float]:
        """Stage 4 as costs to maximise: GPUs of the parts that were funded and stay so."""
        parts, funded = self.problem.running.parts, self.problem.running.outcome.funded
        return {column: float(parts[i].gpus) for i, column in self.stays.items() if funded[i]}

    @property
    def most(self) -> int:
        """Stage 4's objective where nothing is recalled."""
        return round(sum(self.objective().values()))


def columns(model: Model, problem: Problem) -> Held:
    """A binary for each part that a start may touch."""
    held = Held(problem)
    for i in affected(problem):
        part = problem.running.parts[i]
        column = held.stays[i] = model.column(("stays", i), upper=1.0, integer=True)
        for cap, weight in part.touched.items():
            held.terms[cap].append((column, float(weight)))
            held.now[cap] += weight if problem.running.outcome.funded[i] else 0
    return held


def rows(model: Model, held: Held, payments: Sequence[Payment]) -> None:
    """Who is unfunded and who is not, as the pass has it."""
    problem, parts = held.problem, held.problem.running.parts
    whole = int(problem.fleet.gpus.sum())  # no start takes more than every GPU there is
    takes = [takes_of(problem, part.touched, part.second) for part in parts]
    before: dict[Limit, list[tuple[int, int]]] = defaultdict(list)
    fixed: dict[Limit, int] = defaultdict(int)
    for i, part in enumerate(parts):
        column = held.stays.get(i)
        if column is None:
            for limit, weight in takes[i].items() if problem.running.outcome.funded[i] else ():
                fixed[limit] += weight
            continue
        reasons = []
        for limit, weight in takes[i].items():
            near = [(p.column, p.takes[limit]) for p in payments if p.recalls(part) and limit in p.takes]
            most = _limit(problem, limit) - fixed[limit] - weight
            if most < sum(w for _, w in before[limit]) + whole * max((w for _, w in near), default=0):
                reasons.append((_full(model, (i, limit), [*near, *before[limit]], most), 1.0))
            before[limit].append((column, weight))
        if part.follows:
            model.row(("in-order", i), [(column, 1.0), (held.stays[i - 1], -1.0)], -INF, 0.0)
            reasons.append((held.stays[i - 1], -1.0))
        model.row(("stays", i), [(column, 1.0), *reasons], 0.0 if part.follows else 1.0, INF)
    for limit, stay in before.items():
        if limit.second:
            new = [(p.column, p.takes[limit]) for p in payments if limit in p.takes]
            terms = [(column, weight / 1000) for column, weight in (*new, *stay)]
            model.row(("second", limit.cap), terms, -INF, (_limit(problem, limit) - fixed[limit]) / 1000)


def _limit(problem: Problem, limit: Limit) -> int:
    return problem.book.caps[limit.cap].limit - problem.spent.cap.get(limit.cap, 0)


def _full(model: Model, key: tuple[int, Limit], before: list[tuple[int, int]], most: int) -> int:
    """A binary that may be 1 only where more than ``most`` is taken before."""
    i, limit = key
    column = model.column(("full", i, *limit), upper=1.0, integer=True)
    terms = [(each, weight / 1000) for each, weight in before]
    model.row(("full", i, *limit), [*terms, (column, -(most + 1) / 1000)], 0.0, INF)
    return column


def payment(problem: Problem, candidate: Candidate, key: PayKey, column: int) -> Payment:
    """A payment column for a candidate's purse as the pass sees it."""
    _, active, region, envelope = key
    payer = next(payer for payer in candidate.payers if payer.envelope == envelope)
    touched, second = weigh(problem.book, problem.lane(payer, region), problem.milli(active))
    level = None if payer.loan else standing_of(payer.rank)
    return Payment(column, takes_of(problem, touched, second), level, candidate.run.created)
