"""How a large master is solved for its first stage: by its size, and by whether running claims may give way."""

from planner import components
from planner.bands import Rounding
from planner.master import Master
from planner.rins import improve
from planner.solver import LEAN, NOTHING, Settings, Solution, best_of, solve

MIDDLE = 3_000
"""Most integer columns of a master that is solved whole first, before its bands."""
WHOLE = 4_000
"""Most integer columns of a master with claims that may give way whose rounding is made better by HiGHS, and whose
bound is not handed out before that."""
TERMS = 180_000
"""Most terms of a master in which claims may give way that is made whole: beyond, that takes a minute."""


def begin(master: Master, settings: Settings) -> Rounding | None:
    """How the master is rounded, where that may take so long that its bound should be known before; else None."""
    small = master.integers <= WHOLE and not is_too_large(master)
    if small or not master.starts.start or not master.held.stays or components.is_parted(master):
        return None
    return Rounding(master, settings)


def is_too_large(master: Master) -> bool:
    """Does making it whole take too long?"""
    return len(master.model.values) > TERMS


def solve_large(master: Master, settings: Settings, rounding: Rounding | None = None) -> Solution:
    """In components where there are some; whole where that ends close enough, or nothing can start; else in bands.

    The bound always holds. ``rounding``: what `begin` has begun.
    """
    if not master.starts.start:
        return solve(master.model, settings | LEAN)
    parted = None if rounding else components.solve_components(master, settings)
    if parted is not None:
        return parted
    rounding = rounding or Rounding(master, settings)
    return _with_recall(master, rounding) if master.held.stays else _without_recall(master, rounding)


def _without_recall(master: Master, rounding: Rounding) -> Solution:
    whole = NOTHING
    if master.integers <= MIDDLE:
        whole = solve(master.model, rounding.settings | LEAN)
        if whole.values is not None and whole.within(rounding.settings["mip_rel_gap"]):
            return whole
    return best_of(whole, rounding.run())


def _with_recall(master: Master, rounding: Rounding) -> Solution:
    """Rounded, and made better where the master is small and tells types apart: else its MIP has starts recall what
    they cannot.
    """
    found, leaf = rounding.run(), rounding.search.leaf
    if leaf is None or rounding.parts is not None or master.integers > WHOLE:
        return found
    return improve(master.model, found, leaf.point, rounding.settings)
