"""Money that is missing: the smallest rises of bounds that would admit a run, all else as planned (spec §3.9)."""

import math
from collections.abc import Callable, Hashable
from functools import partial

from jobtree.world.plan import Short
from planner.missing import (
    BORROW_PRICE,
    LENDING_PRICE,
    RUN_PRICE,
    Gap,
    Missing,
    missing_at,
    over_borrow_limit,
    over_run_limit,
)
from planner.purses import Demand, Purses
from planner.solver import LEAN, NOISE, options, solve
from policies.caps import amount
from policies.model import INF, Model
from policies.problem import Candidate, Problem, RunType


class Shortages:
    """The cheapest combinations of rises that would pay runs' least widths, each a small integer model.

    Least Σ rises with every GPU paid where it lies; a rise of hours or credits counts as the GPUs it provides for one
    accounting period. Of equal rises the run's own limits come first, then lending, then the nearest payer. What
    farther claims hold counts as left, for they would give way.
    """

    def __init__(self, problem: Problem, purses: Purses) -> None:
        self._problem = problem
        self._purses = purses
        self._known: dict[object, Gap] = {}

    def alike(self, candidate: Candidate) -> Hashable:
        """Equal for candidates whose prices are equal wherever they lie."""
        return candidate.type, candidate.purse, candidate.run.max_borrow

    def by_region(self, candidate: Candidate, active: int, spare: int) -> dict[int, float]:
        """Prices of so many Active and spare GPUs if all of them lie in one region, by region."""
        region = self._problem.book.money.region
        return {
            r: self.missing(candidate, {(True, r): active, (False, r): spare}).price
            for r in sorted({region[site] for site in self._problem.types[candidate.type].sites})
        }

    def missing(self, candidate: Candidate, demand: Demand) -> Gap:
        """What is missing if they lie so."""
        key = (self.alike(candidate), tuple(sorted(demand.items())))
        if key not in self._known:
            self._known[key] = self._solve(candidate, demand)
        return self._known[key]

    def _solve(self, candidate: Candidate, demand: Demand) -> Gap:
        problem = self._problem
        kind = problem.types[candidate.type]
        near = {payer.envelope: place for place, payer in reversed(list(enumerate(candidate.payers)))}
        model = Model()
        rises = _Rises(problem, self._purses, model)
        recalls = {payer.envelope: payer.standing for payer in candidate.payers}
        caps: dict[int, dict[int | None, list[tuple[int, float]]]] = {}
        pays: dict[tuple[bool, int], list[int]] = {}
        for (active, region), gpus in sorted(demand.items(), reverse=True):
            columns = []
            for payer in kind.sources:
                if region not in problem.book.money.pays_on[payer.envelope]:
                    continue
                column = model.column(("pay", active, region, payer.envelope), integer=True)
                columns.append((column, 1.0))
                pays.setdefault((active, payer.envelope), []).append(column)
                for cap, weight in problem.book.touches(problem.lane(payer, region)):
                    mine = caps.setdefault(cap, {}).setdefault(recalls[payer.envelope], [])
                    mine.append((column, float(weight * problem.milli(active))))
            model.row(("paid", active, region), columns, float(gpus), float(gpus))
        for cap, terms in sorted(caps.items()):
            rises.cap(cap, terms, min(near[e] for e in problem.book.caps[cap].pool.envelopes if e in near))
        rises.run_limits(kind, pays)
        solution = solve(model, options(problem.book.money.policy.solver.seed, 0.0, 1000) | LEAN)
        if solution.values is None:
            return Gap(math.inf, [])
        return Gap(max(0.0, -solution.objective), rises.read(solution.values.tolist()))


class _Rises:
    """Rows with a column that lifts them, at a price."""

    def __init__(self, problem: Problem, purses: Purses, model: Model) -> None:
        self.problem = problem
        self.purses = purses
        self.model = model
        self._found: list[tuple[int, Callable[[float], Missing]]] = []

    def cap(self, index: int, terms: dict[int | None, list[tuple[int, float]]], near: int) -> None:
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
        for recalls in sorted(terms, key=lambda r: (r is not None, 0 if r is None else -r)):  # the farthest first
            far += [(pay, weight / scale) for pay, weight in terms[recalls]]
            loose = 0 if cap.ahead else self.purses.loose(index, recalls)  # nobody gives way for want of look-ahead
            left = max(0, cap.limit - used + loose) / scale
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
            self._found.append((column, lambda rise: over_borrow_limit(math.ceil(rise - NOISE), limit)))
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
        found = [missing(values[column]) for column, missing in self._found if values[column] > NOISE]
        return sorted(found, key=Missing.order)


def _over_run(label: str, limit: int, rise: float) -> Missing:
    return over_run_limit(math.ceil(rise - NOISE), label, limit)


def tree_shortages(problem: Problem, purses: Purses, candidate: Candidate) -> list[Missing]:
    """Quotas above the run that its least width would break."""
    found: list[Missing] = []
    run, kind = candidate.run, problem.types[candidate.type]
    period = int(problem.book.money.policy.accounting_period)
    for i in purses.quotas_above(run.key):
        tree = problem.trees[i]
        lacking = tree.weight(run, period) * kind.base_gpus - purses.trees[i]
        if lacking <= 0:
            continue
        scale, unit, field = (3_600_000, "GPU-hour", "maxGPUHours") if tree.hours else (1, "GPU", "maxGPUs")
        limit = amount(tree.limit, scale)
        subject = f"{tree.root[0]}/{tree.root[1]}"
        words = f"{amount(lacking, scale)} {unit}s short at the quota of run {tree.root[1]} (quota.{field} {limit})"
        found.append(Missing(Short(rule="tree", subject=subject, amount=-(-lacking // scale), unit=unit), words))
    return found
