"""Large masters: a certificate by branching, then whole numbers size by size (docs/planner.md).

First a MIP of gangs of 64 and more GPUs, all smaller work staying continuous, says how far starts are allowed where
claims may be recalled (policies.recall). With that fixed, at the leaf of the branching (planner.branching), counts
become whole by rounding (planner.dive), size by size, each fixed before the next. Where that finds nothing, or nothing
close enough, a MIP of big gangs follows.
"""

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from planner.branching import Branching, Node
from planner.dive import Dive, columns_of
from planner.master import Master
from planner.relaxed import Relaxed
from planner.solver import LEAN, NOTHING, Settings, Solution, only_integer, solve
from policies.model import INF

BANDS: Final = (64, 16, 8, 4, 0)
"""Least Active GPUs of the run types that a band makes whole."""
FAR: Final = 10
"""How often Policy ``solver.gap`` rounding may end away from the bound before the big gangs are solved as a MIP."""
SHARE: Final = 3
"""How often ``solver.gap`` that solve may end away from the bound: closer costs too much."""
NODES: Final = 30
"""Most branch-and-bound nodes of the MIP that says how far starts are allowed."""
SEARCH: Final[Settings] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Gangs alone are soon whole by branching."""


class Rounding:
    """How a large master's relaxation becomes whole, for the objective that the master has."""

    def __init__(self, master: Master, settings: Settings) -> None:
        self.master, self.settings = master, settings
        self.relaxed = Relaxed(master.model, settings)
        self.columns = columns_of(master)

    @cached_property
    def search(self) -> Branching:
        """The branching, done: its leaf, and its bound."""
        search = Branching(self.relaxed, self.master)
        search.run()
        return search

    def run(self) -> Solution:
        """A whole point, and what no plan is worth more than."""
        search = self.search
        found = NOTHING if search.leaf is None else self._whole(search.leaf)
        bound = min(search.bound, max(search.beside, found.bound))  # of the leaf's plans more may be known
        return replace(found, bound=bound) if found.values is not None else self._after_gangs(bound)

    def _whole(self, node: Node) -> Solution:
        """A whole point of a node that is close enough, or none, and the node's bound."""
        allowed = self.allowed
        self.relaxed.only({**node.fixings, **{column: (value, value) for column, value in allowed.items()}}, node.basis)
        least = -INF if allowed else node.bound * (1 - FAR * self.settings["mip_rel_gap"])
        point, value = Dive(self.relaxed, self.master, self.columns).run(BANDS, node.bound, least)
        return Solution(point, value, node.bound, optimal=False)

    @cached_property
    def allowed(self) -> dict[int, float]:
        """Columns of how far starts are allowed at contested caps, decided with the big gangs in sight."""
        model = self.master.model
        mine = np.asarray([what == "allowed" for what, *_ in model.column_keys], dtype=np.bool_)
        if not mine.any():
            return {}
        gangs = np.asarray(model.integer, dtype=np.bool_) & self.columns.gangs(BANDS[0])
        with only_integer(model, mine | gangs):
            found = solve(model, self.settings | LEAN | SEARCH | {"mip_max_nodes": NODES})
        if found.values is None:
            return {int(column): model.upper[column] for column in np.flatnonzero(mine)}
        return {int(column): float(round(float(found.values[column]))) for column in np.flatnonzero(mine)}

    def _after_gangs(self, bound: float) -> Solution:
        """A whole point with the big gangs of a MIP of their own.

        That MIP's bound is not used: where only some of the columns that rows make whole are integer, HiGHS 1.15 may
        call optimal what is not.
        """
        model = self.master.model
        gangs = np.asarray(model.integer, dtype=np.bool_) & self.columns.gangs(BANDS[0])
        with only_integer(model, gangs):
            gap = SHARE * self.settings["mip_rel_gap"]
            first = solve(model, self.settings | LEAN | SEARCH | {"mip_rel_gap": gap})
        counts = {} if first.values is None else {int(c): round(float(first.values[c])) for c in np.flatnonzero(gangs)}
        fixed = self.allowed | {column: float(count) for column, count in counts.items()}
        self.relaxed.only({column: (value, value) for column, value in fixed.items()})
        point, value = Dive(self.relaxed, self.master, self.columns).run(BANDS, bound)
        return Solution(point, value, bound, optimal=False)
