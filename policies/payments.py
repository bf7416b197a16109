"""Money in the model: who pays for what is started, under every cap (spec §3.1–§3.4).

The master builds these rows over what may start, stage 7 over starts that lie on nodes already.

Runs with equal payers share a *purse*. Per purse, role and site,

    Σ_envelopes pay = GPUs of its runs there          (all of it: nothing starts partly unfunded)
    Σ weight × milli × pay ≤ limit − used             for every cap of the book
    Σ_sponsors pay (Active) ≤ maxBorrowGPUs × starts  per type with a borrow limit
    pay from e ≤ perRun.maxGPUs × starts              per type (a spare counts its discount)

Payments are whole GPUs; a spare is paid ``discount`` of a GPU. Where a cap has spares to pay, half GPUs could be left
over in a fractional solution, and beside claims that may be recalled any fraction; nowhere else, so payments under such
caps are integer columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from policies import recall_held, recall_rows
from policies.model import INF, Model
from policies.payers import Source
from policies.places import Kind
from policies.problem import Problem
from policies.recall_held import Held, PayKey
from policies.seats import Seat
from policies.shapes import Shape

Terms = list[tuple[int, float]]
"""(column, coefficient)."""


@dataclass
class Purse:
    """Runs that the same payers may pay for.

    ``example``: one of them, a candidate; ``sources``: their payers; ``max_borrow``: of each of them; ``starts``:
    columns that count them; ``demand``: (active, kind, sites) → terms of GPUs to be paid; ``types``: of run.
    """

    index: int
    example: int
    sources: tuple[Source, ...]
    max_borrow: int | None
    starts: list[int] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    demand: dict[tuple[bool, int, frozenset[int]], Terms] = field(default_factory=dict)

    def add(self, kind: Kind, part: frozenset[int], shape: Shape, column: int) -> None:
        """Groups counted by ``column`` have to be paid for in ``kind``; ``part``: regions of money there."""
        self.demand.setdefault((True, kind.index, part), []).append((column, float(shape.gpus)))
        if shape.spares:
            self.demand.setdefault((False, kind.index, part), []).append((column, float(shape.spare_gpus)))

    def add_seats(self, seat: Seat, region: int, gpus: int, column: int) -> None:
        """Seats counted by ``column``, of ``gpus`` each, have to be paid for in ``region``."""
        self._add_there(seat.active, seat.kind, region, gpus, column)

    def add_start(self, active: bool, region: int, gpus: int, column: int) -> None:
        """A start that lies on nodes already has to be paid for, ``gpus`` of it in ``region``."""
        self._add_there(active, -1, region, gpus, column)

    def _add_there(self, active: bool, kind: int, region: int, gpus: int, column: int) -> None:
        self.demand.setdefault((active, kind, frozenset([region])), []).append((column, float(gpus)))


def limits_runs(sources: Iterable[Source], max_borrow: int | None) -> bool:
    """Does anything bound what a single run takes of these payers? Its purse is its own then."""
    return any(source.run_gpus is not None or (max_borrow is not None and source.loan) for source in sources)


def rows(model: Model, problem: Problem, purses: list[Purse], held: Held, *, whole: bool = False) -> dict[PayKey, int]:
    """Payment columns and all their rows; ``held``: what running work holds beside them, and may lose.

    ``whole``: every payment is an integer.
    """
    pay: dict[PayKey, int] = {}
    caps: dict[int, Terms] = {}
    for purse in purses:
        _balance(model, problem, purse, pay, caps)
        _run_limits(model, problem, purse, pay)
    _whole_gpus(model, pay, caps, held, everywhere=whole)
    for cap in sorted({*caps, *held.terms}):
        terms = caps.get(cap, [])
        if cap in held.terms:
            held.cap_row(model, cap, terms)
            continue
        scale = problem.book.caps[cap].measure.scale
        left = max(0, problem.room_of(cap)) / scale
        model.row(("cap", cap), [(column, weight / scale) for column, weight in terms], -INF, left)
    if held.stays:
        examples = {purse.index: problem.candidates[purse.example] for purse in purses}
        recall_rows.rows(model, held, recall_held.payments(problem, pay, examples))
    return pay


def _whole_gpus(model: Model, pay: dict[PayKey, int], caps: dict[int, Terms], held: Held, *, everywhere: bool) -> None:
    if everywhere:
        for column in pay.values():
            model.integer[column] = True
    spare = {column for key, column in pay.items() if not key[1]}
    for cap, terms in caps.items():
        columns = [column for column, _ in terms]
        if cap in held.terms or not spare.isdisjoint(columns):
            for column in columns:
                model.integer[column] = True


def per_region(model: Model, purse: Purse) -> dict[tuple[bool, int], Terms]:
    """(active, region) → GPUs to be paid there; a group on several sites first says how it lies on them."""
    found: dict[tuple[bool, int], Terms] = {}
    for (active, kind, part), terms in sorted(purse.demand.items(), key=lambda d: (d[0][0], d[0][1], sorted(d[0][2]))):
        if len(part) == 1:
            found.setdefault((active, min(part)), []).extend(terms)
            continue
        lies = [model.column(("lies", purse.index, active, kind, site)) for site in sorted(part)]
        lie = ("lie", purse.index, active, kind, tuple(sorted(part)))
        model.row(lie, [*((c, 1.0) for c in lies), *((column, -gpus) for column, gpus in terms)], 0.0, 0.0)
        for site, column in zip(sorted(part), lies, strict=True):
            found.setdefault((active, site), []).append((column, 1.0))
    return found


def _balance(model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int], caps: dict[int, Terms]) -> None:
    """Σ_envelopes pay − Σ GPUs = 0 per role and region."""
    for (active, site), terms in sorted(per_region(model, purse).items()):
        columns = []
        for source in purse.sources:
            if site not in problem.book.money.pays_on[source.envelope]:
                continue
            key = (purse.index, active, site, source.envelope)
            column = pay[key] = model.column(("pay", *key))
            columns.append((column, 1.0))
            for cap, weight in problem.book.touches(problem.lane(source, site)):
                caps.setdefault(cap, []).append((column, float(weight * problem.milli(active))))
        demand = [(column, -gpus) for column, gpus in terms]
        model.row(("paid", purse.index, active, site), [*columns, *demand], 0.0, 0.0)


def _run_limits(model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int]) -> None:
    if not limits_runs(purse.sources, purse.max_borrow):
        return
    mine = [(key, column) for key, column in pay.items() if key[0] == purse.index]
    loans = {source.envelope for source in purse.sources if source.loan}
    if purse.max_borrow is not None and loans:
        terms = [(column, 1.0) for key, column in mine if key[1] and key[3] in loans]
        starts = [(column, -float(purse.max_borrow)) for column in purse.starts]
        model.row(("borrow", purse.index), [*terms, *starts], -INF, 0.0)
    for source in purse.sources:
        if source.run_gpus is not None:
            terms = [(column, problem.milli(key[1]) / 1000) for key, column in mine if key[3] == source.envelope]
            starts = [(column, -float(source.run_gpus)) for column in purse.starts]
            model.row(("per-run", purse.index, source.envelope), [*terms, *starts], -INF, 0.0)
