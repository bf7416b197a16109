"""Large masters: a certificate by branching, then whole numbers size by size (docs/planner.md).

First a MIP of gangs of 64 and more GPUs, all smaller work staying continuous, says how far starts are allowed where
claims may be recalled (model.recall). With that fixed the big gangs are branched on (large.branching), and counts
become whole by rounding (large.dive), size by size, each fixed before the next. Where that finds nothing, or nothing
close enough, a MIP of big gangs follows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from jobtree.world.tables.values import Bools
from planner.large.branching import Branching, Fixings, Node
from planner.large.dive import Dive, columns_of
from planner.solver.highs import LEAN, NOTHING, Settings, Solution, best_of, only_integer, proven, solve, within
from planner.solver.relaxed import Relaxed
from policies.model.linear import INF, Model
from policies.model.problem import Problem

BANDS: Final = (64, 16, 8, 4, 0)
"""Least Active GPUs of the run types that a band makes whole."""
FAR: Final = 10
"""How often Policy ``solver.gap`` rounding may end away from the bound before the big gangs are solved as a MIP."""
SHARE: Final = 3
"""How often ``solver.gap`` that solve may end away from the bound: closer costs too much."""
NODES: Final = 200
"""Most branch-and-bound nodes of the MIP that says how far starts are allowed."""
SEARCH: Final[Settings] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Gangs alone are soon whole by branching."""


class Rounding:
    """How the relaxation of a master, or of a block of one, becomes whole, for the objective that it has."""

    def __init__(self, model: Model, problem: Problem, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.relaxed = Relaxed(model, settings)
        self.columns = columns_of(model, problem)
        self.after_allowed: float | None = None

    def run(self) -> Iterator[Solution]:
        """What no plan is worth more than, by the relaxation, then by the branching; last a whole point as well."""
        search = Branching(self.relaxed, self.columns)
        yield proven(search.bound)
        search.run()
        yield proven(search.bound)
        found = NOTHING if search.leaf is None else self._whole(search.leaf)
        bound = min(search.bound, max(search.beside, found.bound))  # of the leaf's plans more may be known
        found = replace(found, bound=bound) if found.values is not None else self._after_gangs(bound)
        yield replace(found, relaxed=search.root, allowed=self.after_allowed)

    def _whole(self, node: Node) -> Solution:
        """A whole point of a node that is close enough, or none, and the node's bound."""
        if not self.allowed:
            return self._dive(node.fixings, node, node.bound * (1 - FAR * self.settings["mip_rel_gap"]))
        search = Branching(self.relaxed, self.columns, _fixed(self.allowed))
        search.run()
        self.after_allowed = search.root
        found = NOTHING if search.leaf is None else self._dive(search.leaf.fixings, search.leaf)
        if found.values is None or not within(found.objective, node.bound, self.settings["mip_rel_gap"]):
            found = best_of(found, self._dive(_fixed(self._decided), node))
        return replace(found, bound=node.bound)

    def _dive(self, fixings: Fixings, node: Node, least: float = -INF) -> Solution:
        """A whole point under these fixings."""
        self.relaxed.only(fixings, node.basis)
        point, value = Dive(self.relaxed, self.columns).run(BANDS, node.bound, least)
        return Solution(point, value, node.bound, optimal=False)

    @cached_property
    def allowed(self) -> dict[int, float]:
        """Columns of how far starts are allowed at contested caps, decided with the big gangs in sight."""
        return {column: value for column, value in self._decided.items() if self._farness[column]}

    @cached_property
    def _farness(self) -> Bools:
        return np.asarray([what == "allowed" for what, *_ in self.model.column_keys], dtype=np.bool_)

    @cached_property
    def _decided(self) -> dict[int, float]:
        """The same and the counts of big gangs, by a MIP; where that finds no point all starts are allowed."""
        model = self.model
        if not self._farness.any():
            return {}
        both = self._farness | (np.asarray(model.integer, dtype=np.bool_) & self.columns.gangs(BANDS[0]))
        with only_integer(model, both):
            found = solve(model, self.settings | LEAN | SEARCH | {"mip_max_nodes": NODES})
        if found.values is None:
            return {int(column): model.upper[column] for column in np.flatnonzero(self._farness)}
        return {int(column): float(round(float(found.values[column]))) for column in np.flatnonzero(both)}

    def _after_gangs(self, bound: float) -> Solution:
        """A whole point with the big gangs of a MIP of their own.

        That MIP's bound is not used: where only some of the columns that rows make whole are integer, HiGHS 1.15 may
        call optimal what is not.
        """
        model = self.model
        gangs = np.asarray(model.integer, dtype=np.bool_) & self.columns.gangs(BANDS[0])
        with only_integer(model, gangs):
            gap = SHARE * self.settings["mip_rel_gap"]
            first = solve(model, self.settings | LEAN | SEARCH | {"mip_rel_gap": gap})
        counts = {} if first.values is None else {int(c): round(float(first.values[c])) for c in np.flatnonzero(gangs)}
        fixed = self.allowed | {column: float(count) for column, count in counts.items()}
        self.relaxed.only(_fixed(fixed))
        point, value = Dive(self.relaxed, self.columns).run(BANDS, bound)
        return Solution(point, value, bound, optimal=False)


def _fixed(values: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    return {column: (value, value) for column, value in values.items()}
