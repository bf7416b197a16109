"""Money that is missing: the smallest rises of bounds that would admit a run, all else as planned (spec §3.9)."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from jobtree.api.values.scalars import HOUR
from jobtree.world.plan import Short
from planner.effort import USUAL, Explaining
from planner.filling.purses import Demand, Purses
from planner.placement.draft import Draft
from planner.reasons.missing import (
    BORROW_PRICE,
    RUN_PRICE,
    Gap,
    Missing,
    missing_at,
    over_borrow_limit,
    over_run_limit,
    over_use_limit,
)
from planner.reasons.waking import Waking, Woken
from planner.solver.highs import LEAN, options, solve
from policies.caps.cap import HOUR_MILLI, amount
from policies.inputs.money import bits
from policies.model.linear import INF, Model
from policies.model.problem import Candidate, Problem, RunType

First = Callable[[int, int], int]
"""(cap, level) → what of a cap is taken before a start of that level."""


class Shortages:
    """The cheapest combinations of rises that would pay runs' least widths, each a small integer model.

    Least Σ rises with every GPU paid where it lies; a rise of hours or credits counts as the GPUs it provides for one
    accounting period. Of equal rises the run's own limits come first, then lending, then the nearest payer. What
    farther claims hold counts as left, for they would give way; what a rise would pay first is paid, beside what
    ``draft`` starts, which ``purses`` have counted.
    """

    def __init__(self, problem: Problem, purses: Purses, draft: Draft, limits: Explaining = USUAL.explaining) -> None:
        self._problem = problem
        self._purses = purses
        self._limits = limits
        self._known: dict[object, Gap] = {}
        self._waking = Waking(problem, draft)

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
        """Find what is missing if they lie so."""
        key = (self.alike(candidate), tuple(sorted(demand.items())))
        if key not in self._known:
            self._known[key] = self._solve(candidate, demand)
        return self._known[key]

    def _solve(self, candidate: Candidate, demand: Demand) -> Gap:
        """The least of what is missing where what it pays first is counted."""
        woken: Woken = frozenset()
        gap, paid_first = self._least(candidate, demand, woken)
        for _ in range(self._limits.rounds):
            if paid_first <= woken:
                break
            woken |= paid_first
            gap, paid_first = self._least(candidate, demand, woken)
        return gap

    def _least(self, candidate: Candidate, demand: Demand, woken: Woken) -> tuple[Gap, Woken]:
        """Money that is missing where the ``woken`` are paid before it, and who of them really is."""
        problem = self._problem
        kind = problem.types[candidate.type]
        near = {payer.envelope: place for place, payer in reversed(list(enumerate(candidate.payers)))}
        model = Model()
        rises = _Rises(problem, self._purses, model, sum(demand.values()), partial(self._waking.weight, woken))
        level = {payer.envelope: payer.level for payer in candidate.payers}
        caps: dict[int, dict[int, list[tuple[int, int]]]] = {}
        pays: dict[tuple[bool, int], list[int]] = {}
        uses: dict[int, list[tuple[int, int]]] = {}
        for (active, region), gpus in sorted(demand.items(), reverse=True):
            columns = []
            for payer in kind.sources:
                if region not in problem.pays_on(payer):
                    continue
                column = model.column(("pay", active, region, payer.envelope), integer=True)
                columns.append((column, 1.0))
                pays.setdefault((active, payer.envelope), []).append(column)
                for use in bits(payer.watch.each):
                    if region in problem.book.money.uses[use].sites:
                        uses.setdefault(use, []).append((column, problem.milli(active)))
                for cap, weight in problem.book.touches(problem.lane(payer, region)):
                    mine = caps.setdefault(cap, {}).setdefault(level[payer.envelope], [])
                    mine.append((column, weight * problem.milli(active)))
            model.row(("paid", active, region), columns, float(gpus), float(gpus))
        for cap, terms in sorted(caps.items()):
            rises.cap(cap, terms, min(near[e] for e in problem.book.caps[cap].pool.envelopes if e in near))
        rises.run_limits(kind, pays)
        rises.use_limits(uses)
        solution = solve(model, options(problem.book.money.policy.solver.seed, 0.0, self._limits.nodes) | LEAN)
        if solution.values is None:
            return Gap(math.inf, []), frozenset()
        paid = np.rint(solution.values).astype(np.int64).tolist()
        first: Woken = frozenset()
        while not (more := self._waking.woken(rises.of_caps(paid, partial(self._waking.weight, first)))) <= first:
            first |= more
        return Gap(max(0.0, -solution.objective), rises.read(paid, partial(self._waking.weight, first))), first


@dataclass(frozen=True)
class _Bound:
    """Bound of payments: Σ weight × column over ``terms`` ≤ ``left`` where any of them is made, in one unit."""

    terms: list[tuple[int, int]]
    left: int

    def after(self, first: int) -> "_Bound":
        """Bound where so much is taken before, in the same unit."""
        return replace(self, left=self.left - first)

    def over(self, paid: Sequence[int]) -> int:
        """Excess of what they weigh, 0 where there is none; what is overdrawn already is to be made good too."""
        weight = sum(weight * paid[column] for column, weight in self.terms)
        return max(0, weight - self.left) if weight else 0


class _Rises:
    """Rows with a column that lifts them, at a price.

    ``gpus``: that are to be paid; ``first``: what running work takes before them once a cap rises. A row that is
    overdrawn asks for its debt as soon as anything is paid there.
    """

    def __init__(self, problem: Problem, purses: Purses, model: Model, gpus: int, first: First) -> None:
        self.problem = problem
        self.purses = purses
        self.model = model
        self._gpus = gpus
        self._first = first
        self._caps: dict[int, list[tuple[int, _Bound]]] = {}
        self._limits: list[tuple[_Bound, Callable[[int], Missing]]] = []

    def cap(self, index: int, terms: dict[int, list[tuple[int, int]]], near: int) -> None:
        """Σ weight × pay − rise ≤ what is left. ``near``: place of its nearest payer.

        ``terms``: by level; those that stand so far or farther have what recall leaves to them.
        """
        cap = self.problem.book.caps[index]
        period = int(self.problem.book.money.policy.accounting_period) / HOUR
        price = cap.family.price + 1e-6 * near
        whole = not cap.ahead  # and so said: a part of a GPU is not to be had
        column = self.model.column(("rise", index), cost=-price / (period if cap.ahead else 1.0), integer=whole)
        far: list[tuple[int, int]] = []
        self._caps[index] = []
        for level in sorted(terms, reverse=True):
            far += terms[level]
            bound = _Bound([*far], self.purses.left(index, level))
            self._caps[index].append((level, bound))
            self._row(("cap", index, level), bound, cap.measure.scale, column, self._first(index, level))

    def _row(self, key: tuple[Any, ...], bound: _Bound, scale: int, rise: int, first: int = 0) -> None:
        """The bound in the unit that people read, the column that lifts it, and what is paid ``first`` then."""
        terms = [(column, weight / scale) for column, weight in bound.terms]
        left = bound.left / scale
        lifts = [(rise, -1.0)]
        if left < 0:
            opened = self.model.column(("opened", *key), upper=1.0, integer=True)
            most = self._gpus * max(weight for _, weight in terms)
            self.model.row(("opened", *key), [*terms, (opened, -most)], -INF, 0.0)
            lifts.append((opened, -left))
        if first:
            raised = self.model.column(("raised", *key), upper=1.0, integer=True)
            most = self._gpus * max(weight for _, weight in terms) + max(0.0, -left) + first / scale
            self.model.row(("raised", *key), [(rise, 1.0), (raised, -most)], -INF, 0.0)
            lifts.append((raised, first / scale))
        self.model.row(key, [*terms, *lifts], -INF, max(0.0, left))

    def run_limits(self, kind: RunType, pays: dict[tuple[bool, int], list[int]]) -> None:
        """The run's own borrow limit, and perRun limits of envelopes."""
        loans = [(c, 1) for p in kind.sources if p.loan for c in pays.get((True, p.envelope), ())]
        if kind.max_borrow is not None and loans:
            limit = kind.max_borrow
            self._limit(("borrow",), _Bound(loans, limit), 1, BORROW_PRICE, lambda over: over_borrow_limit(over, limit))
        for payer in kind.sources:
            if payer.run_gpus is None:
                continue
            label = self.problem.book.money.envelopes[payer.envelope].label
            milli = [
                (c, self.problem.milli(role)) for role in (True, False) for c in pays.get((role, payer.envelope), ())
            ]
            bound = _Bound(milli, 1000 * payer.run_gpus)
            self._limit(("per-run", label), bound, 1000, RUN_PRICE, partial(_over_run, label, payer.run_gpus))

    def use_limits(self, uses: dict[int, list[tuple[int, int]]]) -> None:
        """perRun limits of use caps."""
        for number, milli in sorted(uses.items()):
            use = self.problem.book.money.uses[number]
            bound = _Bound(milli, 1000 * (use.per_run_gpus or 0))
            self._limit(("use-run", number), bound, 1000, RUN_PRICE, partial(over_use_limit, use))

    def _limit(
        self, key: tuple[Any, ...], bound: _Bound, scale: int, price: float, missing: Callable[[int], Missing]
    ) -> None:
        self._row(key, bound, scale, self.model.column(("rise", *key), cost=-price))
        self._limits.append((bound, missing))

    def of_caps(self, paid: Sequence[int], first: First) -> dict[int, int]:
        """Caps that rise where so much is paid, by column, each by how much, in whole units that people read."""
        scale = {index: self.problem.book.caps[index].measure.scale for index in self._caps}
        over = {index: self._over(index, paid, first) for index in self._caps}
        return {index: -(-rise // scale[index]) * scale[index] for index, rise in over.items() if rise}

    def _over(self, index: int, paid: Sequence[int], first: First) -> int:
        bounds = self._caps[index]
        if not any(bound.over(paid) for _, bound in bounds):
            return 0
        return max(bound.after(first(index, level)).over(paid) for level, bound in bounds)

    def read(self, paid: Sequence[int], first: First) -> list[Missing]:
        """Shortages where so much is paid, by column; largest first."""
        found = [missing(rise) for bound, missing in self._limits if (rise := bound.over(paid))]
        for index, bounds in self._caps.items():
            if rise := self._over(index, paid, first):
                recalls = index in self.purses.levels and any(bound.left < 0 for _, bound in bounds)
                before = max(first(index, level) for level, _ in bounds)
                found.append(missing_at(self.problem, index, rise, self.purses.used[index], before, recalls=recalls))
        return sorted(found, key=Missing.order)


def _over_run(label: str, limit: int, milli: int) -> Missing:
    return over_run_limit(-(-milli // 1000), label, limit)


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
        scale, unit, field = (HOUR_MILLI, "GPU-hour", "maxGPUHours") if tree.hours else (1, "GPU", "maxGPUs")
        limit = amount(tree.limit, scale)
        subject = f"{tree.root[0]}/{tree.root[1]}"
        where = f"at the quota of run {tree.root[1]} (quota.{field} {limit})"
        found.append(Missing(Short(rule="tree", subject=subject, amount=-(-lacking // scale), unit=unit), where))
    return found
