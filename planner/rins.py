"""A rounding of a large master made better: near the relaxation first, then by HiGHS from there.

Counts in which rounding and relaxation agree stay as they are. What is left is a small MIP, solved in a part of a
second: the neighbourhood that the relaxation induces (Danna, Rothberg, Le Pape, Math. Programming 102, 2005). Where
that does not end close enough, HiGHS solves the whole master from there, for its bound above all; and what it finds is
made better near the relaxation once more.
"""

from dataclasses import replace

import numpy as np

from planner.rest import fractional, solve_rest
from planner.solver import LEAN, NOISE, Floats, Settings, Solution, best_of, solve
from policies.model import Model

NODES = 30
"""Most branch-and-bound nodes of the whole master."""
CUTS = 2_000
"""Cuts that HiGHS keeps of a whole master of which a good point is known."""
FEW = 500
"""Cuts that it keeps elsewhere: with its thousands it finds less in the same time."""
FOUND: Settings = {
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_pool_soft_limit": CUTS,
}
"""How HiGHS solves a whole master of which a good point is known: in half of its time."""
POOR = 0.02
"""Part of the bound by which a rounding may miss it: a poorer one leads HiGHS astray, which begins with none then."""


def improve(model: Model, found: Solution, relaxed: Floats, settings: Settings) -> Solution:
    """The best that is found, to Policy ``solver.gap``, and the lesser bound; ``relaxed``: where rounding began.

    Rounding may leave money in parts. HiGHS completes such a point where it can.
    """
    limits = settings | LEAN | {"mip_max_nodes": NODES, "mip_pool_soft_limit": FEW}
    if found.values is None or not found.within(POOR):
        best = best_of(found, solve(model, limits))
    else:
        best = _around(model, found, relaxed, settings)
        if best.values is None or best.within(settings["mip_rel_gap"]):
            return best
        best = best_of(best, solve(model, limits | FOUND, start=best.values.tolist()))
    return _around(model, best, relaxed, settings)


def _around(model: Model, found: Solution, relaxed: Floats, settings: Settings) -> Solution:
    """The best point that is the same where ``found`` and relaxation are the same whole number, if there is any.

    What is close enough is not solved again.
    """
    if found.values is None or found.within(settings["mip_rel_gap"]):
        return found
    off = fractional(model, found.values)
    same = np.asarray(model.integer, np.bool_) & ~off & (np.abs(found.values - relaxed) < NOISE)
    around = solve_rest(model, found.values, ~same, settings | {"mip_pool_soft_limit": FEW}, begin=True)
    if around.values is None or (around.objective < found.objective and not off.any()):
        return found
    return replace(around, bound=found.bound, optimal=False)
