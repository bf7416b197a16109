"""Large masters: a certificate by branching, then whole numbers size by size (docs/planner.md).

The big gangs are branched on (large.branching). At the leaf it is rounded (large.dive) how far starts are allowed where
claims may be recalled (model.recall), then, size by size, every count, each size fixed before the next. Where counts
lose more than Policy ``solver.gap`` the big gangs are branched on once more, with what is allowed fixed. Where nothing
is found, or without recall nothing close enough, a MIP of big gangs follows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

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
        self.allowed: dict[int, float] = {}
        self.after_allowed: float | None = None

    def run(self) -> Iterator[Solution]:
        """What no plan is worth more than, by the relaxation, then by the branching; last a whole point as well."""
        search = Branching(self.relaxed, self.columns)
        yield proven(search.bound)
        search.run()
        yield proven(search.bound)
        found = NOTHING if search.leaf is None else self._whole(search.leaf)
        if found.values is None:
            found = self._after_gangs(search.bound)
        else:
            search.tighten(found.objective * (1 + self.settings["mip_rel_gap"]))
        bound = max(search.bound, found.objective)
        yield replace(found, bound=bound, relaxed=search.root, allowed=self.after_allowed)

    def _whole(self, node: Node) -> Solution:
        """A whole point of a node, close enough where nothing may be recalled, or none."""
        if not self.columns.allows.any():
            return self._dive(node.fixings, node, node.bound * (1 - FAR * self.settings["mip_rel_gap"]))
        self.allowed, self.after_allowed = self._allow(node)
        found = self._dive({**node.fixings, **_fixed(self.allowed)}, node)
        if found.values is None or not within(found.objective, self.after_allowed, self.settings["mip_rel_gap"]):
            search = Branching(self.relaxed, self.columns, _fixed(self.allowed))
            search.run()
            found = found if search.leaf is None else best_of(found, self._dive(search.leaf.fixings, search.leaf))
        return found

    def _allow(self, node: Node) -> tuple[dict[int, float], float]:
        """How far starts are allowed at contested caps, by column, rounded at a node, and what the relaxation is worth
        then; where that finds no point all starts are allowed.
        """
        self.relaxed.only(node.fixings, node.basis)
        point, value = Dive(self.relaxed, replace(self.columns, integer=self.columns.allows > 0)).run(BANDS, node.bound)
        values = self.relaxed.most if point is None else np.round(point)
        return {column: float(values[column]) for column in np.flatnonzero(self.columns.allows).tolist()}, value

    def _dive(self, fixings: Fixings, node: Node, least: float = -INF) -> Solution:
        """A whole point under these fixings."""
        self.relaxed.only(fixings, node.basis)
        point, value = Dive(self.relaxed, self.columns).run(BANDS, node.bound, least)
        return Solution(point, value, node.bound, optimal=False)

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
