"""How a large master is solved for its first stage: by its size, and by whether running claims may give way."""

from planner import bands, components
from planner.master import Master
from planner.solver import LEAN, NOTHING, Settings, Solution, solve
from policies.model import INF
from policies.recall_types import Parts

MIDDLE = 3_000
"""Most integer columns of a master that is solved whole first, before its bands."""
WHOLE = 4_000
"""Most integer columns of a master with claims that may give way that is solved whole from where rounding ended."""
NODES = 30
"""Most branch-and-bound nodes of that."""
CUTS = 500
"""Cuts that HiGHS keeps there: with its thousands it finds less in the same time."""
TERMS = 180_000
"""Most terms of a master in which claims may give way that is made whole: rounding takes a minute beyond."""


def solve_large(master: Master, settings: Settings) -> Solution:
    """In components where there are some; whole where that ends close enough, or nothing can start; else in bands.

    The bound always holds.
    """
    if not master.starts.start:
        return solve(master.model, settings | LEAN)
    parted = components.solve_components(master, settings)
    if parted is not None:
        return parted
    return _with_recall(master, settings) if master.held.stays else _without_recall(master, settings)


def _without_recall(master: Master, settings: Settings) -> Solution:
    whole = NOTHING
    if master.integers <= MIDDLE:
        whole = solve(master.model, settings | LEAN)
        if whole.values is not None and whole.objective >= whole.bound * (1 - settings["mip_rel_gap"]):
            return whole
    return _better(whole, bands.solve_large(master, settings))


def _with_recall(master: Master, settings: Settings) -> Solution:
    """Rounded; from there whole, where the master is small and tells types apart: else its MIP has starts recall what
    they cannot. The bound is the lesser one.

    Of a master with more than TERMS only the bound: the order by age stands beside it.
    """
    if len(master.model.values) > TERMS:
        return Solution(None, -INF, bands.certify(master, settings), optimal=False)
    found = bands.solve_large(master, settings)
    close = found.objective >= found.bound * (1 - settings["mip_rel_gap"])
    if close or master.integers > WHOLE or Parts.after(master.model, master.flows.near) is not None:
        return found
    start = None if found.values is None else found.values.tolist()
    limits = settings | LEAN | {"mip_max_nodes": NODES, "mip_pool_soft_limit": CUTS}
    return _better(found, solve(master.model, limits, start=start))


def _better(one: Solution, other: Solution) -> Solution:
    best = other if other.objective > one.objective else one
    return Solution(best.values, best.objective, min(one.bound, other.bound), optimal=False)
