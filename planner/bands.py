"""Large masters: a certificate by branching on the big gangs, then whole numbers size by size (docs/planner.md).

The relaxation is weak only where single gangs are a sizeable part of the objective. So those few counts are branched
on by hand, best bound first, with warm dual simplex; the bound of the best open node is the certificate. From that node
the counts become whole by rounding (planner.dive), size by size, each fixed before the next; where that ends too far
from the bound, gangs of 64 and more GPUs are solved as a MIP of their own first, all smaller work staying continuous.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import highspy
import numpy as np

from jobtree.world.values import Bools
from planner.dive import Dive, columns_of
from planner.master import Master
from planner.solver import LEAN, Floats, Settings, Solution, new_highs, only_integer, pass_model, solve, to_highs
from policies.model import INF, Model

BANDS: Final = (64, 16, 8, 4, 0)
"""Least Active GPUs of the run types that a band makes whole."""
BIG: Final = 0.005
"""A start that is worth this part of the bound is branched on by hand."""
FAR: Final = 10
"""How often Policy ``solver.gap`` rounding may end away from the bound before the big gangs are solved as a MIP."""
SHARE: Final = 3
"""How often ``solver.gap`` that solve may end away from the bound: closer costs too much."""
NODES: Final = 32
"""Most LPs of the branching by hand, but for the second child of the last node."""
SEARCH: Final[Settings] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Gangs alone are soon whole by branching."""
_WHOLE: Final = 1e-6

Fixings = tuple[tuple[int, float, float], ...]
"""(column, lower, upper)."""


@dataclass(frozen=True)
class Node:
    """A part of the search: its fixings, its LP bound and the LP's point."""

    bound: float
    fixings: Fixings
    point: Floats


def solve_large(master: Master, settings: Settings) -> Solution:
    """Maximise the master's objective; the bound is valid for the whole model."""
    node, bound = _branch(master, settings)
    if node is None:
        return Solution(None, -INF, bound, optimal=False)
    lower = np.asarray(master.model.lower, dtype=np.float64)
    upper = np.asarray(master.model.upper, dtype=np.float64)
    low, high = lower.copy(), upper.copy()
    for column, least, most in node.fixings:
        low[column], high[column] = least, most
    columns = columns_of(master)
    near = bound * (1 - FAR * settings["mip_rel_gap"]) if not master.held.stays else -INF
    point, value = Dive(master, columns, low, high, settings).run(BANDS, bound, near)
    if point is None:
        gangs = np.asarray(master.model.integer, dtype=np.bool_) & columns.gangs(BANDS[0])
        first = _gangs(master.model, gangs, settings)
        bound = min(bound, first.bound)
        if first.values is not None:
            lower[gangs] = upper[gangs] = np.round(first.values[gangs])
        point, value = Dive(master, columns, lower, upper, settings).run(BANDS, bound)
    return Solution(point, value, bound, optimal=False)


def certify(master: Master, settings: Settings) -> float:
    """The bound of the branching alone."""
    return _branch(master, settings)[1]


def _gangs(model: Model, whole: Bools, settings: Settings) -> Solution:
    """The best point in which the starts of big gangs are whole. Its bound is one of the model."""
    with only_integer(model, whole):
        return solve(model, settings | LEAN | SEARCH | {"mip_rel_gap": SHARE * settings["mip_rel_gap"]})


def _branch(master: Master, settings: Settings) -> tuple[Node | None, float]:
    """The first node without a fractional big count, best bound first, and the bound of all that is open then."""
    highs = new_highs(settings)
    pass_model(highs, to_highs(master.model, relaxed=True))
    root = _relax(highs, master, (), INF)
    if root is None:
        return None, INF
    big = _big(master, root.bound)
    heap: list[tuple[float, int, Node]] = [(-root.bound, 0, root)]
    count = 1
    while heap:
        node = heapq.heappop(heap)[2]
        column = _fractional(big, node.point)
        if column is None or count >= NODES:
            return node, node.bound
        value = float(node.point[column])
        low = (column, float(master.model.lower[column]), float(np.floor(value)))
        high = (column, float(np.ceil(value)), float(master.model.upper[column]))
        for side in (high, low):
            child = _relax(highs, master, (*node.fixings, side), node.bound)
            if child is not None:
                heapq.heappush(heap, (-child.bound, count, child))
            count += 1
    return None, root.bound


def _big(master: Master, bound: float) -> list[tuple[float, int]]:
    """Counts whose single start is worth BIG of the bound, most valuable first."""
    problem = master.problem
    unit = float(problem.book.money.policy.age.unit)
    found = []
    for kind in problem.types:
        if kind.unfunded or kind.members[0] not in master.starts.start:
            continue
        worth = kind.base_gpus * problem.candidates[kind.members[0]].weight / unit
        if worth >= BIG * bound:
            found.append((-worth, master.starts.count[kind.index]))
    return sorted(found)


def _fractional(big: list[tuple[float, int]], point: Floats) -> int | None:
    for _, column in big:
        if abs(point[column] - round(float(point[column]))) > _WHOLE:
            return column
    return None


def _relax(highs: highspy.Highs, master: Master, fixings: Fixings, above: float) -> Node | None:
    """The LP under ``fixings``; None where it is infeasible. One that fails keeps its parent's bound (``above``)."""
    bounds: dict[int, tuple[float, float]] = {}
    for column, low, high in fixings:
        was = bounds.get(column, (low, high))
        bounds[column] = max(was[0], low), min(was[1], high)
    for column, (low, high) in bounds.items():
        highs.changeColBounds(column, low, high)
    highs.run()
    status = highs.getModelStatus()
    value = highs.getInfo().objective_function_value
    point = np.asarray(highs.getSolution().col_value, dtype=np.float64)
    for column in bounds:  # only now: a changed bound drops the solution
        highs.changeColBounds(column, master.model.lower[column], master.model.upper[column])
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    bound = min(above, value) if status == highspy.HighsModelStatus.kOptimal else above
    return Node(bound, tuple((column, low, high) for column, (low, high) in sorted(bounds.items())), point)
