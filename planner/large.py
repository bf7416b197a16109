"""How a large master is solved for its first stage: by its size."""

from planner import components
from planner.bands import Rounding
from planner.master import Master
from planner.solver import LEAN, NOTHING, Settings, Solution, best_of, solve

MIDDLE = 3_000
"""Most integer columns of a master that is solved whole first, before its bands."""


def solve_large(master: Master, settings: Settings) -> Solution:
    """In components where there are some; whole where that ends close enough, or nothing can start; else in bands.

    The bound always holds.
    """
    if not master.starts.start:
        return solve(master.model, settings | LEAN)
    parted = components.solve_components(master, settings)
    if parted is not None:
        return parted
    whole = NOTHING
    if master.integers <= MIDDLE:
        whole = solve(master.model, settings | LEAN)
        if whole.values is not None and whole.within(settings["mip_rel_gap"]):
            return whole
    return best_of(whole, Rounding(master, settings).run())
