"""Money in the model: who pays for what is started, under every cap (spec §3.1–§3.4).

The master builds these rows over what may start, stage 7 over starts that lie on nodes already:

    least Σ milli-GPUs × rank(payer)                  the nearest payers (`policies.model.payers`)

Runs with equal payers share a *purse*. Per purse, role and site,

    Σ_envelopes pay = GPUs of its runs there          (all of it: nothing starts partly unfunded)
    Σ weight × milli × pay ≤ limit − used             for every cap of the book
    Σ_sponsors pay (Active) ≤ maxBorrowGPUs × starts  per type with a borrow limit
    pay from e ≤ perRun.maxGPUs × starts              per type (a spare counts its discount)
    Σ pay where a use cap counts ≤ its perRun.maxGPUs × starts           likewise

Where farther claims may be recalled the rows of a cap are those of `policies.model.recall`.

Payments are whole GPUs; a spare is paid ``discount`` of a GPU. Where a cap has spares to pay, half GPUs could be left
over in a fractional solution, and beside claims that may be recalled any fraction; nowhere else, so payments under such
caps are integer columns.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policies.caps.uses import each_of
from policies.inputs.money import bits
from policies.inputs.places import Kind
from policies.inputs.shapes import Shape
from policies.model import recall
from policies.model.linear import INF, Model
from policies.model.payers import Payer, Source
from policies.model.problem import Problem
from policies.model.recall import Term
from policies.model.seats import Seat

Terms = list[tuple[int, float]]
"""(column, coefficient)."""
PayKey = tuple[int, bool, int, int]
"""(purse, active, region, envelope)."""


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
    return any(
        source.run_gpus is not None or source.watch.each or (max_borrow is not None and source.loan)
        for source in sources
    )


class Paid(NamedTuple):
    """``pay``: payment columns; ``overdraw``: stage 4, as costs to maximise."""

    pay: dict[PayKey, int]
    overdraw: dict[int, float]


def rows(model: Model, problem: Problem, purses: list[Purse], *, whole: bool = False) -> Paid:
    """Payment columns and all their rows. ``whole``: every payment is an integer."""
    pay: dict[PayKey, int] = {}
    caps: dict[int, list[Term]] = {}
    for purse in purses:
        _balance(model, problem, purse, pay, caps)
        _run_limits(model, problem, purse, pay)
    _whole_gpus(model, problem, pay, caps, everywhere=whole)
    for cap, terms in sorted(caps.items()):
        cap_rows(model, problem, cap, terms)
    paid: dict[int, Terms] = {}
    for (_, active, _, envelope), column in pay.items():
        paid.setdefault(envelope, []).append((column, problem.milli(active) / 1000))
    return Paid(pay, recall.overdraw(model, problem.recall, paid))


def cap_rows(model: Model, problem: Problem, cap: int, terms: list[Term]) -> None:
    """The rows of a cap over payments."""
    scale = problem.book.caps[cap].measure.scale
    if cap in problem.recall.room:
        most = 1000 * problem.gpus if problem.leeway.rises else None
        recall.rows(model, cap, problem.recall.room[cap], terms, scale, most)
    else:
        left = max(0, problem.room_of(cap)) / scale
        model.row(("cap", cap), [(term.column, term.weight / scale) for term in terms], -INF, left)


def _whole_gpus(
    model: Model, problem: Problem, pay: dict[PayKey, int], caps: dict[int, list[Term]], *, everywhere: bool
) -> None:
    if everywhere:
        for column in pay.values():
            model.integer[column] = True
    spare = {column for key, column in pay.items() if not key[1]}
    for cap, terms in caps.items():
        columns = [term.column for term in terms]
        if cap in problem.recall.room or not spare.isdisjoint(columns):
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


def _balance(model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int], caps: dict[int, list[Term]]) -> None:
    """Σ_envelopes pay − Σ GPUs = 0 per role and region."""
    for (active, site), terms in sorted(per_region(model, purse).items()):
        columns = []
        for source in purse.sources:
            if site not in problem.pays_on(source):
                continue
            key = (purse.index, active, site, source.envelope)
            column = pay[key] = model.column(("pay", *key))
            columns.append((column, 1.0))
            for cap, weight in problem.book.touches(problem.lane(source, site)):
                term = Term(column, float(weight * problem.milli(active)), source.level)
                caps.setdefault(cap, []).append(term)
        demand = [(column, -gpus) for column, gpus in terms]
        model.row(("paid", purse.index, active, site), [*columns, *demand], 0.0, 0.0)


def _run_limits(model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int]) -> None:
    if not limits_runs(purse.sources, purse.max_borrow):
        return
    mine = [(key, column) for key, column in pay.items() if key[0] == purse.index]
    loans = {source.envelope for source in purse.sources if source.loan}
    borrowed = [(column, 1.0) for key, column in mine if key[1] and key[3] in loans]
    taken = {
        source.envelope: [(column, problem.milli(key[1]) / 1000) for key, column in mine if key[3] == source.envelope]
        for source in purse.sources
        if source.run_gpus is not None
    }
    run_rows(model, purse, borrowed if loans else None, taken)
    by_region: dict[tuple[bool, int], Terms] = {}
    for key, column in mine:
        by_region.setdefault(key[1:3], []).append((column, 1.0))
    use_rows(model, problem, purse, by_region.items())


def run_rows(model: Model, purse: Purse, borrowed: Terms | None, taken: Mapping[int, Terms]) -> None:
    """Add the rows of a single run's limits. ``borrowed``: what sponsors pay, ``taken``: what each envelope pays.

    Σ_sponsors pay (Active) ≤ maxBorrowGPUs × starts;   Σ pay from e ≤ perRun.maxGPUs × starts
    """
    if borrowed is not None and purse.max_borrow is not None:
        starts = [(column, -float(purse.max_borrow)) for column in purse.starts]
        model.row(("borrow", purse.index), [*borrowed, *starts], -INF, 0.0)
    for source in purse.sources:
        if source.run_gpus is not None and source.envelope in taken:
            starts = [(column, -float(source.run_gpus)) for column in purse.starts]
            model.row(("per-run", purse.index, source.envelope), [*taken[source.envelope], *starts], -INF, 0.0)


def use_rows(model: Model, problem: Problem, purse: Purse, demand: Iterable[tuple[tuple[bool, int], Terms]]) -> None:
    """Add rows of use caps' limits on one run. ``demand``: (active, region) → GPUs to be paid there, by whomever."""
    there = list(demand)
    for number in bits(each_of(source.watch for source in purse.sources)):
        use = problem.book.money.uses[number]
        taken: dict[int, float] = {}  # a group's column asks for GPUs and for spares
        for (active, region), mine in there:
            for column, gpus in mine if region in use.sites else ():
                taken[column] = taken.get(column, 0.0) + gpus * problem.milli(active) / 1000
        starts = [(column, -float(use.per_run_gpus or 0)) for column in purse.starts]
        model.row(("use-run", purse.index, number), [*taken.items(), *starts], -INF, 0.0)


def objective(problem: Problem, purses: list[Purse], pay: Mapping[PayKey, int]) -> dict[int, float]:
    """Stage 7 over payment columns, as costs to maximise: − rank × GPUs (a spare counts its discount).

    Only where a purse's runs all have the same payers in the same order, as on problems that are exact.
    """
    return _costs(problem, purses, pay, lambda payers: {payer.envelope: payer.rank for payer in payers})


def order(problem: Problem, purses: list[Purse], pay: Mapping[PayKey, int]) -> dict[int, float]:
    """The ties of stage 7, likewise: − place in the order of the payers × GPUs."""
    return _costs(problem, purses, pay, lambda payers: {payer.envelope: i for i, payer in enumerate(payers)})


def distance(problem: Problem, candidate: int, paid: Mapping[tuple[bool, int], Mapping[int, int]]) -> int:
    """Stage 7 of one start, exact: Σ milli-GPUs × rank. ``paid``: (active, region) → envelope → GPUs."""
    payers = problem.payers(problem.candidates[candidate])
    return sum(
        payers[envelope].rank * gpus * problem.milli(active)
        for (active, _), payments in paid.items()
        for envelope, gpus in payments.items()
    )


def _costs(
    problem: Problem,
    purses: list[Purse],
    pay: Mapping[PayKey, int],
    weigh: Callable[[tuple[Payer, ...]], dict[int, int]],
) -> dict[int, float]:
    weights = {purse.index: weigh(problem.candidates[purse.example].payers) for purse in purses}
    return {
        column: -weights[purse][envelope] * problem.milli(active) / 1000
        for (purse, active, _, envelope), column in pay.items()
        if weights[purse][envelope]
    }
