"""Big gangs of which the relaxation of a large master starts a part, decided by branching.

The relaxation is weak where a gang is a sizeable part of the objective, and where starts are allowed in part at a cap
where much may be recalled. Such gangs and caps are few: they are branched on, best bound first, with warm dual simplex.
The best bound that is open in the end is one of every plan: the certificate.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jobtree.world.tables.values import Floats
from planner.effort import USUAL, Effort
from planner.large.dive import Columns
from planner.solver.basis import Basis
from planner.solver.highs import NOISE
from planner.solver.relaxed import Relaxed
from policies.model.linear import INF

Fixings = Mapping[int, tuple[float, float]]
"""Column → least and most."""


@dataclass(frozen=True)
class Node:
    """A part of the search: its LP bound, its fixings, the LP's point, and where it ended."""

    bound: float
    fixings: Fixings
    point: Floats
    basis: Basis


@dataclass
class Branching:
    """One search, begun at its root, for the best node at which no big gang starts in part: the leaf.

    ``root``: the bound of the root; ``leaf``: None where not even the root has a point; ``closed``: the bound of
    what got no answer.
    """

    relaxed: Relaxed
    columns: Columns
    effort: Effort = USUAL
    big: list[int] = field(default_factory=list)
    leaf: Node | None = None
    root: float = INF
    open: list[tuple[float, int, Node]] = field(default_factory=list)
    closed: float = -INF
    pushed: int = 0
    solved: int = 0

    @property
    def beside(self) -> float:
        """Bound of every plan outside the leaf."""
        return max([self.closed, *(node.bound for *_, node in self.open[:1])])

    @property
    def bound(self) -> float:
        """Bound of every plan."""
        return self.beside if self.leaf is None else max(self.beside, self.leaf.bound)

    def __post_init__(self) -> None:
        root = self._node({}, None)
        if root is None:
            self.closed = INF
            return
        self.root = root.bound
        worth, least = self.columns.worth, self.effort.branching.big * max(root.bound, NOISE)
        self.big = [c for c in np.argsort(-worth, kind="stable").tolist() if worth[c] >= least]
        self._push(root)

    def run(self) -> None:
        """Find the leaf."""
        while self.open and self.leaf is None:
            node = heapq.heappop(self.open)[2]
            sides = self._gang(node) if self.solved < self.effort.branching.gangs else []
            if not sides:
                self.leaf = node
            for child in self._children(node, sides):
                self._push(child)

    def deeper(self, least: float) -> Node | None:
        """The next node at which no big gang starts, and no level of starts is allowed, in part, worth above ``least``.

        From the best open node into the better of its sides, again and again. None: there is no such node, or there
        were LPs enough; what no plan is worth more than has come down all the same.
        """
        if self.leaf is not None:
            self._push(self.leaf)
            self.leaf = None
        limits = self.effort.branching
        most = limits.gangs + min(limits.further, limits.columns // len(self.relaxed.least))
        while self.open and self.solved < most and self.open[0][2].bound > least:
            node = heapq.heappop(self.open)[2]
            while node.bound > least:
                sides = self._allowed(node) or self._gang(node)
                if not sides:
                    self.closed = max(self.closed, node.bound)
                    return node
                inside = sorted(self._children(node, sides), key=lambda child: child.bound)
                if not inside:
                    break
                node = inside.pop()
                for child in inside:
                    self._push(child)
            else:
                self._push(node)
        return None

    def _children(self, node: Node, sides: Sequence[Fixings]) -> Iterator[Node]:
        """The sides of a node that have a point."""
        for side in sides:
            child = self._node({**node.fixings, **side}, node)
            if child is not None:
                yield child

    def _push(self, node: Node) -> None:
        self.pushed += 1
        heapq.heappush(self.open, (-node.bound, self.pushed, node))

    def _gang(self, node: Node) -> list[Fixings]:
        """Both sides of the most valuable big count that is not whole."""
        for column in self.big:
            value = float(node.point[column])
            if abs(value - round(value)) > NOISE:
                least, most = node.fixings.get(column, (self.relaxed.least[column], self.relaxed.most[column]))
                return [{column: (float(np.ceil(value)), most)}, {column: (least, float(np.floor(value)))}]
        return []

    def _allowed(self, node: Node) -> list[Fixings]:
        """Both sides of what is allowed in part, where most hangs on it."""
        off = np.abs(node.point - np.round(node.point))
        column = int(np.argmax(np.where(off > NOISE, off * self.columns.allows, 0.0)))
        if off[column] * self.columns.allows[column] <= NOISE:
            return []
        return [{column: (whole, whole)} for whole in (0.0, 1.0)]

    def _node(self, fixings: Fixings, above: Node | None) -> Node | None:
        """The relaxation under ``fixings``, from the node ``above``; None where it has no point, or none is found.

        What it found none for may hold a plan worth as much as the node above: the certificate stays as high.
        """
        bound, basis = (INF, None) if above is None else (above.bound, above.basis)
        self.relaxed.only(fixings, basis)
        found = self.relaxed.solve()
        self.solved += 1
        if found.values is None:
            self.closed = self.closed if found.infeasible else max(self.closed, bound)
            return None
        return Node(min(bound, found.bound), fixings, found.values, self.relaxed.basis())
