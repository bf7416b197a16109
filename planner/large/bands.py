"""Large masters: a certificate by branching, then whole numbers size by size (docs/planner.md).

It is branched (large.branching) on the big gangs, and on how far starts are allowed where claims may be recalled
(model.recall). From where none of these is in part every count is rounded (large.dive), size by size, each size fixed
before the next; and so from further nodes, until one comes as close as Policy ``solver.gap``. Where nothing is found,
or without recall nothing close enough, a MIP of big gangs follows.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np

from planner.effort import USUAL, Effort
from planner.large.branching import Branching, Node
from planner.large.dive import Dive, columns_of
from planner.solver.highs import LEAN, NOTHING, Settings, Solution, only_integer, proven, solve
from planner.solver.relaxed import Relaxed
from policies.model.linear import INF, Model
from policies.model.problem import Problem

SEARCH: Final[Settings] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Gangs alone are soon whole by branching."""


class Rounding:
    """Rounding of the relaxation of a master, or of a block of one, for the objective that it has."""

    def __init__(self, model: Model, problem: Problem, settings: Settings, effort: Effort = USUAL) -> None:
        self.model, self.settings, self.effort = model, settings, effort
        self.relaxed = Relaxed(model, settings)
        self.dives = deque(Relaxed(model, settings) for _ in range(effort.rounding.beside))
        self.columns = columns_of(model, problem)
        self.recalls = bool(self.columns.allows.any())

    def run(self) -> Iterator[Solution]:
        """Yield bounds of every plan, by the relaxation, then by the branching; last a whole point as well."""
        twice = self.relaxed, Relaxed(self.model, self.settings)
        with ThreadPoolExecutor(1 + len(self.dives)) as threads:
            search = Branching(*twice, self.columns, threads, self.effort)
            yield proven(search.bound)
            search.run()
            yield proven(search.bound)
            found = self._whole(search, threads)
        if found.values is None:
            found = self._after_gangs(search.bound)
        yield replace(found, bound=max(search.bound, found.objective), relaxed=search.root)

    def _whole(self, search: Branching, threads: Executor) -> Solution:
        """The best whole point of nodes further down; where nothing may be recalled none that is not close enough.

        The first one by itself, for it is often enough. After it some nodes are rounded side by side, each by a thread
        with a relaxation of its own. Which ones hangs on what those before them came to, in their order, so no timing
        tells.
        """
        gap = self.settings["mip_rel_gap"]
        found, far = NOTHING, self.effort.rounding.far * gap
        left, begun = self.effort.rounding.nodes, deque[tuple[Node, Future[Solution]]]()
        while True:
            enough = found.objective * (1 + gap)
            beside = min(left, 1 if found.values is None else len(self.dives))
            while len(begun) < beside and (node := search.deeper(enough)) is not None:
                least = -INF if self.recalls else node.bound * (1 - far)
                self.dives.rotate()
                begun.append((node, threads.submit(self._dive, self.dives[0], node, least)))
            if not begun:
                return found
            node, diving = begun.popleft()
            left -= 1
            whole = diving.result()
            if whole.objective > found.objective:
                found = replace(whole, allowed=node.bound if self.recalls else None)
            if found.values is None:
                return found

    def _dive(self, relaxed: Relaxed, node: Node, least: float) -> Solution:
        """A whole point of a node, with as much allowed as there."""
        allowed = {int(c): float(round(node.point[c])) for c in np.flatnonzero(self.columns.allows)}
        relaxed.only({**node.fixings, **_fixed(allowed)}, node.basis)
        point, value = Dive(relaxed, self.columns, self.effort).run(node.bound, least)
        return Solution(point, value, node.bound, optimal=False)

    def _after_gangs(self, bound: float) -> Solution:
        """A whole point with the big gangs of a MIP of their own.

        That MIP's bound is not used: where only some of the columns that rows make whole are integer, HiGHS 1.15 may
        call optimal what is not.
        """
        model = self.model
        gangs = model.whole & self.columns.gangs(self.effort.rounding.bands[0])
        with only_integer(model, gangs):
            gap = self.effort.rounding.share * self.settings["mip_rel_gap"]
            first = solve(model, self.settings | LEAN | SEARCH | {"mip_rel_gap": gap})
        counts = {} if first.values is None else {int(c): round(float(first.values[c])) for c in np.flatnonzero(gangs)}
        relaxed = self.dives[0]
        relaxed.only(_fixed({column: float(count) for column, count in counts.items()}))
        point, value = Dive(relaxed, self.columns, self.effort).run(bound)
        return Solution(point, value, bound, optimal=False)


def _fixed(values: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    return {column: (value, value) for column, value in values.items()}
