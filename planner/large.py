"""How a large master is solved for its first stage: by its size, and by whether running claims may give way."""

from planner import bands, components
from planner.master import Master
from planner.rins import improve
from planner.solver import LEAN, NOTHING, Settings, Solution, best_of, solve
from policies.model import INF

MIDDLE = 3_000
"""Most integer columns of a master that is solved whole first, before its bands."""
WHOLE = 4_000
"""Most integer columns of a master with claims that may give way whose rounding is made better by HiGHS."""
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
        if whole.values is not None and whole.within(settings["mip_rel_gap"]):
            return whole
    return best_of(whole, bands.solve_large(master, settings))


def _with_recall(master: Master, settings: Settings) -> Solution:
    """Rounded, and made better where the master is small and tells types apart: else its MIP has starts recall what
    they cannot.

    Of a master with more than TERMS only the bound: the order by age stands beside it.
    """
    if len(master.model.values) > TERMS:
        return Solution(None, -INF, bands.certify(master, settings), optimal=False)
    rounding = bands.Rounding(master, settings)
    found = rounding.run()
    if rounding.leaf is None or rounding.parts is not None or master.integers > WHOLE:
        return found
    return improve(master.model, found, rounding.leaf.point, settings)
