"""Money in the model: who pays for what is started, under every cap (spec §3.1–§3.4, §3.7).

Runs with equal payers share a *purse*. Per purse, role and site,

    Σ_envelopes pay = GPUs of its runs there          (all of it: nothing starts partly unfunded)
    Σ weight × milli × pay ≤ limit − used             for every cap of the book
    Σ_sponsors pay (Active) ≤ maxBorrowGPUs × starts  per run with a borrow limit
    pay to e ≤ perRun.maxGPUs × starts                per run (a spare counts its discount)

Payments are whole GPUs; a spare is paid ``discount`` of a GPU.
"""

from dataclasses import dataclass, field

from policies.model import INF, Model
from policies.places import Kind
from policies.problem import Problem, RunType
from policies.shapes import Shape

PayKey = tuple[int, bool, int, int]
"""(purse, active, site, envelope)."""


@dataclass
class Purse:
    """Types that the same payers may pay for. ``demand``: (active, kind, sites) → terms of GPUs to be paid."""

    index: int
    example: RunType
    starts: list[int] = field(default_factory=list)
    demand: dict[tuple[bool, int, frozenset[int]], list[tuple[int, float]]] = field(default_factory=dict)

    def add(self, kind: Kind, part: frozenset[int], shape: Shape, column: int) -> None:
        """Groups counted by ``column`` have to be paid for in ``kind``."""
        self.demand.setdefault((True, kind.index, part), []).append((column, float(shape.gpus)))
        if shape.spares:
            self.demand.setdefault((False, kind.index, part), []).append((column, float(shape.spare_gpus)))


def rows(model: Model, problem: Problem, purses: list[Purse]) -> dict[PayKey, int]:
    """Payment columns and all their rows."""
    pay: dict[PayKey, int] = {}
    caps: dict[int, list[tuple[int, float]]] = {}
    for purse in purses:
        _balance(model, problem, purse, pay, caps)
        _run_limits(model, problem, purse, pay)
    for cap, terms in sorted(caps.items()):
        scale = problem.book.caps[cap].measure.scale
        left = max(0, problem.room_of(cap)) / scale
        model.row(("cap", cap), [(column, weight / scale) for column, weight in terms], -INF, left)
    return pay


def _balance(
    model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int], caps: dict[int, list[tuple[int, float]]]
) -> None:
    """Σ_envelopes pay − Σ GPUs = 0 per role and site; a group on several sites first says how it lies on them."""
    per_site: dict[tuple[bool, int], list[tuple[int, float]]] = {}
    for (active, kind, part), terms in sorted(purse.demand.items(), key=lambda d: (d[0][0], d[0][1], sorted(d[0][2]))):
        if len(part) == 1:
            per_site.setdefault((active, min(part)), []).extend((column, -gpus) for column, gpus in terms)
            continue
        lies = [model.column(("lies", purse.index, active, kind, site)) for site in sorted(part)]
        key = ("lie", purse.index, active, kind, tuple(sorted(part)))
        model.row(key, [*((c, 1.0) for c in lies), *((column, -gpus) for column, gpus in terms)], 0.0, 0.0)
        for site, column in zip(sorted(part), lies, strict=True):
            per_site.setdefault((active, site), []).append((column, -1.0))
    discount = problem.book.money.policy.spares.discount_milli
    for (active, site), terms in sorted(per_site.items()):
        columns = []
        for payer in purse.example.payers:
            if site not in problem.book.money.pays_on[payer.envelope]:
                continue
            key = (purse.index, active, site, payer.envelope)
            column = pay[key] = model.column(("pay", *key))
            columns.append((column, 1.0))
            for cap, weight in problem.book.touches(problem.lane(payer, site)):
                caps.setdefault(cap, []).append((column, float(weight * (1000 if active else discount))))
        model.row(("paid", purse.index, active, site), [*columns, *terms], 0.0, 0.0)


def _run_limits(model: Model, problem: Problem, purse: Purse, pay: dict[PayKey, int]) -> None:
    mine = [(key, column) for key, column in pay.items() if key[0] == purse.index]
    loans = {payer.envelope for payer in purse.example.payers if payer.loan}
    starts = [(column, 1.0) for column in purse.starts]
    if purse.example.max_borrow is not None and loans:
        terms = [(column, 1.0) for key, column in mine if key[1] and key[3] in loans]
        limit = float(purse.example.max_borrow)
        model.row(("borrow", purse.index), [*terms, *((c, -limit) for c, _ in starts)], -INF, 0.0)
    discount = problem.book.money.policy.spares.discount_milli / 1000
    for payer in purse.example.payers:
        if payer.run_gpus is not None:
            terms = [(column, 1.0 if key[1] else discount) for key, column in mine if key[3] == payer.envelope]
            limit = float(payer.run_gpus)
            key = ("per-run", purse.index, payer.envelope)
            model.row(key, [*terms, *((c, -limit) for c, _ in starts)], -INF, 0.0)
