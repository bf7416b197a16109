"""Masters in which running claims may give way, not too large: who goes and which gangs start first, then all else.

There the relaxation is weak in two ways: a claim goes in part, for a part of a start; and a gang starts in part. All
else is nearly whole. So first a MIP in which only who gives way and the counts of big gangs are whole, whose bound is
one of the whole master; then, with these fixed, a MIP of the rest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from jobtree.world.values import Bools
from planner.bands import BANDS
from planner.dive import columns_of
from planner.master import Master
from planner.solver import FEW_CUTS, LEAN, Floats, Settings, Solution, only_integer, solve
from policies.model import Model

GANG = BANDS[0]
"""Least Active GPUs of a run whose starts are whole from the first."""
NODES: Final = 30
"""Most branch-and-bound nodes of either MIP."""
STAY: Final = 1e-6
"""What a GPU that keeps its payer counts, where one of a run that was just created and starts counts 1."""


def solve_claims_first(master: Master, settings: Settings) -> Solution:
    """Maximise the master's objective; the bound is valid for the whole model. No values: neither MIP found any."""
    model = master.model
    limits = settings | LEAN | FEW_CUTS | {"mip_max_nodes": NODES}
    first = _first(master)
    with only_integer(model, first), _keeping(master):
        found = solve(model, limits)
    if found.values is None:
        return found
    with _fixed(model, first, found.values):
        rest = solve(model, limits)
    return Solution(rest.values, rest.objective, found.bound, optimal=False)


def _first(master: Master) -> Bools:
    """Columns of who gives way, and of how many big gangs start."""
    first = columns_of(master).gangs(GANG)
    first[master.held.columns] = True
    return first & np.asarray(master.model.integer, dtype=np.bool_)


@contextmanager
def _keeping(master: Master) -> Iterator[None]:
    """Of points that are worth the same, one in which few claims give way.

    What this adds is never less than nothing, so a bound stays one of the objective alone.
    """
    kept = master.model.cost
    master.model.cost = list(kept)
    for column, gpus in master.held.objective().items():
        master.model.cost[column] += STAY * gpus
    try:
        yield
    finally:
        master.model.cost = kept


@contextmanager
def _fixed(model: Model, columns: Bools, values: Floats) -> Iterator[None]:
    """These columns have their values, rounded."""
    lower, upper = model.lower, model.upper
    whole = np.round(values)
    model.lower = np.where(columns, whole, lower).tolist()
    model.upper = np.where(columns, whole, upper).tolist()
    try:
        yield
    finally:
        model.lower, model.upper = lower, upper
