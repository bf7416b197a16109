"""Large masters: a certificate by branching, then whole numbers size by size (docs/planner.md).

At the leaf of the branching (planner.branching) who gives way is fixed (planner.settling), and for whom, where types
are too many for the model to say it (planner.apart). Then counts become whole by rounding (planner.dive), size by size,
each fixed before the next. Where that finds nothing, or nothing close enough, a MIP of gangs of 64 and more GPUs
follows, all smaller work staying continuous.
"""

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from planner.apart import tell_apart
from planner.branching import Branching, Node
from planner.dive import Dive, columns_of
from planner.master import Master
from planner.relaxed import Found, Relaxed
from planner.settling import settle
from planner.solver import LEAN, NOTHING, Settings, Solution, only_integer, solve
from policies.model import INF
from policies.recall_types import Parts

BANDS: Final = (64, 16, 8, 4, 0)
"""Least Active GPUs of the run types that a band makes whole."""
FAR: Final = 10
"""How often Policy ``solver.gap`` rounding may end away from the bound before the big gangs are solved as a MIP."""
SHARE: Final = 3
"""How often ``solver.gap`` that solve may end away from the bound: closer costs too much."""
SEARCH: Final[Settings] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Gangs alone are soon whole by branching."""


class Rounding:
    """How a large master's relaxation becomes whole, for the objective that the master has.

    ``parts``: of a master that does not tell types apart.
    """

    def __init__(self, master: Master, settings: Settings) -> None:
        self.master, self.settings = master, settings
        self.relaxed = Relaxed(master.model, settings)
        self.columns = columns_of(master)
        self.parts = Parts.after(master.model, master.flows.near)

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
        """A whole point of a node, and its bound. Where no claim can give way one that is close enough, or none."""
        bound = self._settled(node)
        if bound is None:
            return NOTHING
        least = -INF if self.master.held.stays else bound * (1 - FAR * self.settings["mip_rel_gap"])
        point, value = Dive(self.relaxed, self.master, self.columns).run(BANDS, bound, least)
        return Solution(point, value, bound, optimal=False)

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
        self.relaxed.only({column: (count, count) for column, count in counts.items()})
        point, value = Dive(self.relaxed, self.master, self.columns).run(BANDS, bound)
        return Solution(point, value, bound, optimal=False)

    def _settled(self, node: Node) -> float | None:
        """Fix what a node says, and who gives way. The node's bound; None: there is no point then."""
        self.relaxed.only(node.fixings, node.basis)
        held = self.master.held
        found: Found = node.point, node.bound
        if self.parts is not None:
            found = tell_apart(self.relaxed, self.parts, node.point, node.bound)
        point, bound = found
        if point is not None and held.stays:
            point, _ = settle(self.relaxed, held, point, bound)
        return None if point is None else bound
