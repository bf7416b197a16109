"""How a large master is solved for its first stage: by its size, and by whether running claims may give way."""

from planner import bands, claims_first, components
from planner.claims_first import solve_claims_first
from planner.master import Master
from planner.solver import LEAN, Settings, Solution, solve
from policies.model import INF

MIDDLE = 3_000
"""Most integer columns of a master that is solved whole first, before its bands."""
WHOLE = 1_000
"""Most integer columns of a master that is solved whole from where claims-first ended."""
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
    whole = Solution(None, -INF, INF, optimal=False)
    if master.integers <= MIDDLE:
        whole = solve(master.model, settings | LEAN)
        if whole.values is not None and whole.objective >= whole.bound * (1 - settings["mip_rel_gap"]):
            return whole
    return _better(whole, bands.solve_large(master, settings))


def _with_recall(master: Master, settings: Settings) -> Solution:
    """Claims first, where they can be solved so, and a small master whole from there; in bands otherwise.

    Of a master with more than TERMS only the bound: the order by age stands beside it.
    """
    if len(master.model.values) > TERMS:
        return Solution(None, -INF, bands.certify(master, settings), optimal=False)
    first = Solution(None, -INF, INF, optimal=False)
    if master.integers <= MIDDLE:
        first = solve_claims_first(master, settings)
        if first.values is not None and master.integers <= WHOLE:
            limits = settings | LEAN | {"mip_max_nodes": claims_first.NODES}
            return _better(first, solve(master.model, limits, start=first.values.tolist()))
        if first.values is not None:
            return first
    return _better(first, bands.solve_large(master, settings))


def _better(one: Solution, other: Solution) -> Solution:
    best = other if other.objective > one.objective else one
    return Solution(best.values, best.objective, min(one.bound, other.bound), optimal=False)
