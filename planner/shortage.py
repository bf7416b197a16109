"""What is missing: the smallest rises of bounds that would admit a run, all else as planned (spec §3.9, §5 Deficit)."""

from dataclasses import dataclass

import numpy as np

from jobtree.world.plan import Short
from planner.greedy import Purses
from planner.room import Room
from planner.solver import options, solve
from policies.caps import amount, counted
from policies.model import INF, Model
from policies.problem import Problem, RunType
from policies.shapes import Shape


@dataclass(frozen=True)
class Missing:
    """A shortage with its clause for people."""

    short: Short
    words: str


def money(problem: Problem, purses: Purses, kind: RunType) -> list[Missing]:
    """The cheapest combination of rises that would pay the run's least width, wherever it lies; largest first.

    A small LP: least Σ rises with every GPU paid; a rise of hours or credits counts as the GPUs it provides for one
    accounting period. Of equal rises the run's own limits come first, then lending, then envelopes.
    """
    model = Model()
    base = kind.lowered.pieces()
    needs = {True: kind.base_gpus, False: sum(shape.spare_gpus for shape in base)}
    rises = _Rises(problem, purses, model)
    discount = problem.book.money.policy.spares.discount_milli
    caps: dict[int, list[tuple[int, float]]] = {}
    pays: dict[tuple[bool, int], list[int]] = {}
    for active, gpus in needs.items():
        columns = []
        for payer in kind.sources:
            ways: dict[tuple[tuple[int, int], ...], int] = {}
            for site in sorted(problem.book.money.pays_on[payer.envelope] & kind.sites):
                ways.setdefault(problem.book.touches(problem.lane(payer, site)), site)
            for touched in ways:
                column = model.column(("pay", active, payer.envelope))
                columns.append((column, 1.0))
                pays.setdefault((active, payer.envelope), []).append(column)
                for cap, weight in touched:
                    caps.setdefault(cap, []).append((column, float(weight * (1000 if active else discount))))
        model.row(("paid", active), columns, float(gpus), float(gpus))
    for cap, terms in sorted(caps.items()):
        rises.cap(cap, terms)
    rises.run_limits(kind, pays)
    solution = solve(model, options(problem.book.money.policy.solver.seed, 0.0))
    if solution.values is None:
        return []
    return rises.read(solution.values.tolist())


class _Rises:
    """Rows with a column that lifts them, at a price."""

    def __init__(self, problem: Problem, purses: Purses, model: Model) -> None:
        self.problem = problem
        self.purses = purses
        self.model = model
        self._found: list[tuple[int, int, str, tuple[str, str]]] = []

    def cap(self, index: int, terms: list[tuple[int, float]]) -> None:
        """Σ weight × pay − rise ≤ what is left, in the unit that people read."""
        cap = self.problem.book.caps[index]
        scale = cap.measure.scale
        left = max(0, cap.limit - self.purses.used[index]) / scale
        period = int(self.problem.book.money.policy.accounting_period) / 3600
        price = {"lending": 0.999, "envelope": 1.0, "subtree": 1.001, "aggregate": 1.002}[cap.rule]
        column = self.model.column(("rise", index), cost=-price / (period if cap.ahead else 1.0))
        self.model.row(("cap", index), [*((c, w / scale) for c, w in terms), (column, -1.0)], -INF, left)
        self._found.append((column, index, "", ("", "")))

    def run_limits(self, kind: RunType, pays: dict[tuple[bool, int], list[int]]) -> None:
        """The run's own borrow limit, and perRun limits of envelopes."""
        loans = [c for p in kind.sources if p.loan for c in pays.get((True, p.envelope), ())]
        if kind.max_borrow is not None and loans:
            column = self.model.column(("rise", "borrow"), cost=-0.998)
            terms = [*((c, 1.0) for c in loans), (column, -1.0)]
            self.model.row(("borrow",), terms, -INF, float(kind.max_borrow))
            words = f"at the run's own borrow limit (funding.maxBorrowGPUs {kind.max_borrow})"
            self._found.append((column, -1, "borrow", ("funding.maxBorrowGPUs", words)))
        discount = self.problem.book.money.policy.spares.discount_milli / 1000
        for payer in kind.sources:
            if payer.run_gpus is None:
                continue
            label = self.problem.book.money.envelopes[payer.envelope].label
            column = self.model.column(("rise", "per-run", payer.envelope), cost=-0.9985)
            active = [(c, 1.0) for c in pays.get((True, payer.envelope), ())]
            spare = [(c, discount) for c in pays.get((False, payer.envelope), ())]
            self.model.row(("per-run", label), [*active, *spare, (column, -1.0)], -INF, float(payer.run_gpus))
            words = f"at {label}, which pays for {payer.run_gpus} GPUs of one run (perRun.maxGPUs)"
            self._found.append((column, -1, "perRun", (label, words)))

    def read(self, values: list[float]) -> list[Missing]:
        """Rises as shortages, largest first."""
        found: list[Missing] = []
        for column, index, rule, words in self._found:
            rise = values[column]
            if rise < 1e-6:
                continue
            if index < 0:
                gpus = int(np.ceil(rise - 1e-6))
                subject, where = words
                short = Short(rule=rule, subject=subject, amount=gpus, unit="GPU")
                found.append(Missing(short, f"{counted(gpus, 1, 'GPU')} short {where}"))
                continue
            cap = self.problem.book.caps[index]
            milli = round(rise * cap.measure.scale)
            short = Short(
                rule=cap.measure.name if cap.rule == "envelope" else f"{cap.rule}-{cap.measure.name}",
                subject=cap.subject,
                amount=int(np.ceil(rise - 1e-6)),
                unit=cap.measure.unit,
            )
            found.append(Missing(short, cap.words(milli, self.purses.used[index])))
        return sorted(found, key=lambda m: (-m.short.amount, m.short.subject, m.short.rule))


@dataclass(frozen=True)
class Space:
    """Room for one run.

    ``deficit``: GPUs to be freed for its cheapest placement; ``domains``: where that is; ``missing``: GPUs for which
    there are no nodes at all, and how many ``pods`` those are; ``largest``: GPUs of the largest domain.
    """

    deficit: int
    domains: tuple[int, ...]
    missing: int
    pods: int
    largest: int


def space(room: Room, kind: RunType, movable: list[int]) -> Space:
    """Cheapest placement of the least width where others could be asked to go.

    ``movable``: per node, GPUs that are free or held by leases (not by foreign pods). Pods are weighed one by one: the
    k-th pod on a node costs what it needs beyond the free GPUs that the ones before have left (spec §5 Deficit).
    """
    costs = {d: _costs(room, d, kind.sites, movable) for d in sorted(room.nodes_of)}
    used: dict[tuple[int, int], int] = {}
    deficit = missing = pods = 0
    domains: list[int] = []
    for shape in sorted(kind.lowered.pieces(), key=lambda s: (-s.size, s)):
        options = []
        for domain, nodes in costs.items():
            ladder = _ladder(nodes, shape)
            done = used.get((domain, shape.pod), 0)
            units = shape.pods if shape.pod else shape.size
            if done + units <= len(ladder):
                options.append((sum(ladder[done : done + units]), domain not in domains, domain, units))
        if not options:
            spare = {d: len(_ladder(nodes, shape)) - used.get((d, shape.pod), 0) for d, nodes in costs.items()}
            domain = min(spare, key=lambda d: (-spare[d], d), default=-1)
            lacking = (shape.pods if shape.pod else shape.size) - spare.get(domain, 0)
            used[domain, shape.pod] = used.get((domain, shape.pod), 0) + spare.get(domain, 0)
            missing += lacking * (shape.pod or 1)
            pods += lacking if shape.pod else 0
            continue
        cost, _, domain, units = min(options)
        used[domain, shape.pod] = used.get((domain, shape.pod), 0) + units
        deficit += cost
        if domain not in domains:
            domains.append(domain)
    largest = max((sum(total for _, total in nodes) for nodes in costs.values()), default=0)
    return Space(deficit, tuple(domains), missing, pods, largest)


def _costs(room: Room, domain: int, sites: frozenset[int], movable: list[int]) -> list[tuple[int, int]]:
    """(free, movable) per node of the domain that work may be put on."""
    fleet = room.fleet
    return [
        (room.free[n], movable[n]) for n in room.nodes_of[domain] if fleet.takes_work[n] and int(fleet.site[n]) in sites
    ]


def _ladder(nodes: list[tuple[int, int]], shape: Shape) -> list[int]:
    """What each further pod (or GPU, where pods have no size) costs in this domain, cheapest first."""
    if not shape.pod:
        free = sum(f for f, _ in nodes)
        total = sum(m for _, m in nodes)
        return [0] * min(free, total) + [1] * max(0, total - free)
    steps = [
        max(0, k * shape.pod - free) - max(0, (k - 1) * shape.pod - free)
        for free, total in nodes
        for k in range(1, total // shape.pod + 1)
    ]
    return sorted(steps)


def tree_shortages(problem: Problem, purses: Purses, candidate: int, kind: RunType) -> list[Missing]:
    """Quotas above the run that its least width would break."""
    found: list[Missing] = []
    run = problem.candidates[candidate].run
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
