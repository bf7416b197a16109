"""What running work holds in a model, as far as starts may touch it: columns of recall (spec §3.8), and stage 4.

Stage 4 is least Σ GPUs × (1 − stays) over the parts of running claims that were funded. Look-ahead caps bind admissions
only, so where running work has provided for more than is left, a binary says whether anything new is admitted there.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from policies.caps import Lane
from policies.classes import Sums, weigh
from policies.model import INF, Model
from policies.problem import Candidate, Problem
from policies.yielding import Takes, takes_of

PayKey = tuple[int, bool, int, int]
"""(purse, active, region, envelope)."""

Terms = dict[int, list[tuple[int, float]]]
"""Cap → columns with what one of each takes of it."""


_NOISE: Final = 0.5
"""Milli-GPUs that a point of a relaxation may be off."""


class Payment(NamedTuple):
    """A payment column of a start: what one takes per limit, where it stands (None: a loan).

    ``group``: the runs that it is for; ``most``: what all payments for them can be together.
    """

    column: int
    takes: Takes
    standing: int | None
    group: int
    most: int


class Reason(NamedTuple):
    """Why a part may have to go: ``full`` may be 1 where ``near`` payments, and what may ``stay`` of the claims before,
    take ``least`` and more.

    Of the groups of a claim it is the first to go that needs one; those before it stay, and ``least`` counts them.
    """

    full: int
    near: list[tuple[int, int]]
    stay: list[tuple[int, int]]
    least: int


@dataclass
class Held:
    """What running work holds in a model, as far as starts may touch it.

    ``stays``: part → column; ``terms``: what they take per cap; ``now``: what of that is funded before any start;
    ``reasons``: by part; ``admits``: column → (stays with what they take, what is left) of a cap on time; ``near``:
    in large models, columns of near payments; ``halves``: ``full`` column → its row, and what has to be taken beyond
    what it asks for to be whole GPUs.
    """

    problem: Problem
    stays: dict[int, int] = field(default_factory=dict)
    terms: Terms = field(default_factory=lambda: defaultdict(list))
    now: Sums = field(default_factory=lambda: defaultdict(int))
    reasons: dict[int, list[Reason]] = field(default_factory=dict)
    admits: dict[int, tuple[list[tuple[int, float]], float]] = field(default_factory=dict)
    near: list[int] = field(default_factory=list)
    halves: dict[int, tuple[int, float]] = field(default_factory=dict)

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
        return [*self.stays.values(), *full, *self.admits, *self.near]

    def settled(self, values: Sequence[float], kept: Set[int] = frozenset()) -> dict[int, float]:
        """What the pass makes of the payments in a point of the relaxation: all columns of recall, whole.

        ``kept``: columns of parts that stay whatever it makes of them.
        """
        found: dict[int, float] = {}
        for i, column in self.stays.items():
            first = self.stays.get(i - 1) if self.problem.running.parts[i].follows else None
            stays = column in kept or (i in self.reasons and (first is None or found[first] > 0))
            open_ = column not in kept and (first is None or found[first] > 0)
            for full, near, stay, least in self.reasons.get(i, ()):
                taken = sum(weight * values[each] for each, weight in near)
                taken += sum(weight * found[each] for each, weight in stay)
                found[full] = float(open_ and taken >= least - _NOISE)
                stays = stays and not found[full]
            found[column] = float(stays)
        for column, (takes, left) in self.admits.items():
            found[column] = float(sum(weight * found[each] for each, weight in takes) <= left)
        return found

    def idle(self, settled: Mapping[int, float]) -> list[int]:
        """Columns of near payments that are no reason for anything once that is settled."""
        reasons = (reason for mine in self.reasons.values() for reason in mine if settled[reason.full])
        asked = {column for reason in reasons for column, _ in reason.near}
        return [column for column in self.near if column not in asked]

    def whole_rows(self, point: Sequence[float]) -> dict[int, float]:
        """What the rows of those that go have to reach for whole GPUs to be near: spares alone are paid by the half."""
        return {row: more for full, (row, more) in sorted(self.halves.items()) if point[full] > 0.5}

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


def payments(problem: Problem, pay: Mapping[PayKey, int], examples: Mapping[int, Candidate]) -> list[Payment]:
    """Payment columns as the pass sees them. ``examples``: by purse, one of its candidates."""
    payers = {purse: problem.payers(mine) for purse, mine in examples.items()}
    known: dict[tuple[Lane, bool], Takes] = {}
    found = []
    for (purse, active, region, envelope), column in pay.items():
        payer = payers[purse][envelope]
        lane = problem.lane(payer, region)
        takes = known.get((lane, active))
        if takes is None:
            takes = known[lane, active] = takes_of(problem.book, *weigh(problem.book, lane, problem.milli(active)))
        found.append(Payment(column, takes, payer.standing, purse, problem.gpus))
    return found
