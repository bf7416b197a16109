"""Ways of solving a large master for its first stage, by its size."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.effort import USUAL, Effort
from planner.large import components
from planner.large.bands import Rounding
from planner.solver.blocks import blocks
from planner.solver.highs import LEAN, NOTHING, Settings, Solution, best_of, proven, solve
from policies.model.linear import Model
from policies.model.master import Master
from policies.model.problem import Problem


def solve_large(master: Master, settings: Settings, effort: Effort = USUAL) -> Iterator[Solution]:
    """Solve it in components where there are some, else in independent blocks, whose values and bounds add up.

    Bounds alone as they are proven, first the relaxation's; last the solution, without values where there is none.
    """
    if not master.starts.start:
        yield solve(master.model, settings | LEAN)
        return
    last = NOTHING
    for last in components.solve_components(master, settings, effort):
        yield last
    if last.values is None:
        yield from _solve_blocks(master, settings, effort)


def _solve_blocks(master: Master, settings: Settings, effort: Effort) -> Iterator[Solution]:
    """All are begun before the first one goes on, so that their bounds add up from the start."""
    problem = master.problem
    parts = [(block.columns, _solve_block(block.model, problem, settings, effort)) for block in blocks(master.model)]
    answers = [next(solving) for _, solving in parts]
    yield proven(sum(each.bound for each in answers))
    values = np.zeros(len(master.model.cost))
    objective = bound = relaxed = allowed = 0.0
    for number, (columns, solving) in enumerate(parts):
        for answer in solving:
            answers[number] = answer
            yield proven(sum(each.bound for each in answers))
        found = answers[number]
        if found.values is None:
            yield found
            return
        values[columns] = found.values
        objective, bound = objective + found.objective, bound + found.bound
        start = found.bound if found.relaxed is None else found.relaxed
        relaxed, allowed = relaxed + start, allowed + (start if found.allowed is None else found.allowed)
    yield Solution(values, objective, bound, optimal=False, relaxed=relaxed, allowed=allowed)


def _solve_block(model: Model, problem: Problem, settings: Settings, effort: Effort) -> Iterator[Solution]:
    """In bands; where that does not end close enough, whole from there, up to ``effort.middle`` integer columns."""
    if not any(model.integer) or not any(model.cost):
        yield solve(model, settings | LEAN)
        return
    found = NOTHING
    for found in Rounding(model, problem, settings, effort).run():
        yield found
    if found.within(settings["mip_rel_gap"]) or sum(model.integer) > effort.middle:
        return
    start = None if found.values is None else found.values.tolist()
    best = best_of(found, solve(model, settings | LEAN, start=start))
    yield replace(best, relaxed=found.relaxed, allowed=found.allowed)
