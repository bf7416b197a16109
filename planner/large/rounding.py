"""How a large master is solved for its first stage: by its size."""

from dataclasses import replace

import numpy as np

from planner.effort import USUAL, Effort
from planner.large import components
from planner.large.bands import Rounding
from planner.solver.blocks import blocks
from planner.solver.highs import LEAN, Settings, Solution, best_of, solve
from policies.model.linear import Model
from policies.model.master import Master
from policies.model.problem import Problem


def solve_large(master: Master, settings: Settings, effort: Effort = USUAL) -> Solution:
    """In components where there are some, else in independent blocks, whose values and bounds add up.

    The bound always holds.
    """
    if not master.starts.start:
        return solve(master.model, settings | LEAN)
    parted = components.solve_components(master, settings, effort)
    if parted is not None:
        return parted
    values = np.zeros(len(master.model.cost))
    objective = bound = relaxed = allowed = 0.0
    for block in blocks(master.model):
        found = _solve_block(block.model, master.problem, settings, effort.middle)
        if found.values is None:
            return found
        values[block.columns] = found.values
        objective, bound = objective + found.objective, bound + found.bound
        start = found.bound if found.relaxed is None else found.relaxed
        relaxed, allowed = relaxed + start, allowed + (start if found.allowed is None else found.allowed)
    return Solution(values, objective, bound, optimal=False, relaxed=relaxed, allowed=allowed)


def _solve_block(model: Model, problem: Problem, settings: Settings, middle: int) -> Solution:
    """In bands; where that does not end close enough, whole from there, up to ``middle`` integer columns."""
    if not any(model.integer) or not any(model.cost):
        return solve(model, settings | LEAN)
    found = Rounding(model, problem, settings).run()
    if found.within(settings["mip_rel_gap"]) or sum(model.integer) > middle:
        return found
    start = None if found.values is None else found.values.tolist()
    best = best_of(found, solve(model, settings | LEAN, start=start))
    return replace(best, relaxed=found.relaxed, allowed=found.allowed)
