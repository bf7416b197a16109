"""Money that is missing: the smallest rises of bounds that would admit a run, all else as planned (spec §3.9)."""

import math
from collections.abc import Callable
from functools import partial

from jobtree.world.plan import Short
from planner.missing import (
    BORROW_PRICE,
    LENDING_PRICE,
    RUN_PRICE,
    Missing,
    missing_at,
    over_borrow_limit,
    over_run_limit,
)
from planner.purses import Purses, Recalls, recalls_of
from planner.solver import options, solve
from policies.caps import amount
from policies.model import INF, Model
from policies.problem import Candidate, Problem, RunType

_NOISE = 1e-6


def money(problem: Problem, purses: Purses, candidate: Candidate) -> list[Missing]:
    """The cheapest combination of rises that would pay the run's least width, wherever it lies; largest first.

    A small integer model: least Σ rises with every GPU paid; a rise of hours or credits counts as the GPUs it provides
    for one accounting period. Of equal rises the run's own limits come first, then lending, then the nearest payer.
    What farther claims hold counts as left, for they would give way.
    """
    kind = problem.types[candidate.type]
    near = {payer.envelope: place for place, payer in reversed(list(enumerate(candidate.payers)))}
    model = Model()
    base = kind.lowered.pieces()
    needs = {True: kind.base_gpus, False: sum(shape.spare_gpus for shape in base)}
    rises = _Rises(problem, purses, model)
    recalls = {payer.envelope: recalls_of(candidate, payer) for payer in candidate.payers}
    caps: dict[int, dict[Recalls | None, list[tuple[int, float]]]] = {}
    pays: dict[tuple[bool, int], list[int]] = {}
    for active, gpus in needs.items():
        columns = []
        for payer in kind.sources:
            ways: dict[tuple[tuple[int, int], ...], int] = {}
            for site in sorted(problem.book.money.pays_on[payer.envelope] & kind.sites):
                ways.setdefault(problem.book.touches(problem.lane(payer, site)), site)
            for touched in ways:
                column = model.column(("pay", active, payer.envelope), integer=True)
                columns.append((column, 1.0))
                pays.setdefault((active, payer.envelope), []).append(column)
                for cap, weight in touched:
                    mine = caps.setdefault(cap, {}).setdefault(recalls[payer.envelope], [])
                    mine.append((column, float(weight * problem.milli(active))))
        model.row(("paid", active), columns, float(gpus), float(gpus))
    for cap, terms in sorted(caps.items()):
        rises.cap(cap, terms, min(near[e] for e in problem.book.caps[cap].pool.envelopes if e in near))
    rises.run_limits(kind, pays)
    solution = solve(model, options(problem.book.money.policy.solver.seed, 0.0, 1000))
    if solution.values is None:
        return []
    return rises.read(solution.values.tolist())


class _Rises:
    """Rows with a column that lifts them, at a price."""

    def __init__(self, problem: Problem, purses: Purses, model: Model) -> None:
        self.problem = problem
        self.purses = purses
        self.model = model
        self._found: list[tuple[int, Callable[[float], Missing]]] = []

    def cap(self, index: int, terms: dict[Recalls | None, list[tuple[int, float]]], near: int) -> None:
        """Σ weight × pay − rise ≤ what is left, in the unit that people read. ``near``: place of its nearest payer.

        ``terms``: by what they recall, None for loans; those that stand so far or farther have what is left to them.
        """
        cap = self.problem.book.caps[index]
        scale = cap.measure.scale
        used = self.purses.used[index]
        period = int(self.problem.book.money.policy.accounting_period) / 3600
        price = (LENDING_PRICE if cap.rule == "lending" else 1.0) + 1e-6 * near
        column = self.model.column(("rise", index), cost=-price / (period if cap.ahead else 1.0))
        far: list[tuple[int, float]] = []
        for recalls in sorted(terms, key=lambda r: (r is not None, 0 if r is None else -r[0])):  # the farthest first
            far += [(pay, weight / scale) for pay, weight in terms[recalls]]
            left = max(0, cap.limit - used + self.purses.loose(index, recalls)) / scale
            self.model.row(("cap", index, recalls), [*far, (column, -1.0)], -INF, left)
        self._found.append((column, lambda rise: missing_at(cap, round(rise * scale), used)))

    def run_limits(self, kind: RunType, pays: dict[tuple[bool, int], list[int]]) -> None:
        """The run's own borrow limit, and perRun limits of envelopes."""
        loans = [c for p in kind.sources if p.loan for c in pays.get((True, p.envelope), ())]
        if kind.max_borrow is not None and loans:
            column = self.model.column(("rise", "borrow"), cost=-BORROW_PRICE)
            terms = [*((c, 1.0) for c in loans), (column, -1.0)]
            self.model.row(("borrow",), terms, -INF, float(kind.max_borrow))
            limit = kind.max_borrow
            self._found.append((column, lambda rise: over_borrow_limit(math.ceil(rise - _NOISE), limit)))
        discount = self.problem.milli(active=False) / 1000
        for payer in kind.sources:
            if payer.run_gpus is None:
                continue
            label, most = self.problem.book.money.envelopes[payer.envelope].label, payer.run_gpus
            column = self.model.column(("rise", "per-run", payer.envelope), cost=-RUN_PRICE)
            active = [(c, 1.0) for c in pays.get((True, payer.envelope), ())]
            spare = [(c, discount) for c in pays.get((False, payer.envelope), ())]
            self.model.row(("per-run", label), [*active, *spare, (column, -1.0)], -INF, float(payer.run_gpus))
            self._found.append((column, partial(_over_run, label, most)))

    def read(self, values: list[float]) -> list[Missing]:
        """Rises as shortages, largest first."""
        found = [missing(values[column]) for column, missing in self._found if values[column] > _NOISE]
        return sorted(found, key=Missing.order)


def _over_run(label: str, limit: int, rise: float) -> Missing:
    return over_run_limit(math.ceil(rise - _NOISE), label, limit)


def tree_shortages(problem: Problem, purses: Purses, candidate: Candidate) -> list[Missing]:
    """Quotas above the run that its least width would break."""
    found: list[Missing] = []
    run, kind = candidate.run, problem.types[candidate.type]
    period = int(problem.book.money.policy.accounting_period)
    for i, tree in enumerate(problem.trees):
        if run.key not in tree.members:
            continue
        lacking = tree.weight(run, period) * kind.base_gpus - purses.trees[i]
        if lacking <= 0:
            continue
        scale, unit, field = (3_600_000, "GPU-hour", "maxGPUHours") if tree.hours else (1, "GPU", "maxGPUs")
        limit = amount(tree.limit, scale)
        subject = f"{tree.root[0]}/{tree.root[1]}"
        words = f"{amount(lacking, scale)} {unit}s short at the quota of run {tree.root[1]} (quota.{field} {limit})"
        found.append(Missing(Short(rule="tree", subject=subject, amount=-(-lacking // scale), unit=unit), words))
    return found
