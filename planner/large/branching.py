"""Big gangs and levels of starts that the relaxation of a large master has in part, decided by branching.

The relaxation is weak where a gang is a sizeable part of the objective, and where starts are allowed in part at a cap
where much may be recalled. Such gangs and caps are few: they are branched on, best bound first, with warm dual simplex.
The best bound that is open in the end is one of every plan: the certificate.
"""

import heapq
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from jobtree.world.tables.values import Floats, Ints
from planner.effort import USUAL, Effort
from planner.large.dive import Columns
from planner.large.gains import Gains
from planner.solver.basis import Basis
from planner.solver.highs import NOISE, Solution
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

    From there a first way leads down to where nothing is in part. If that is not good enough, the search begins anew
    at the root, with what that way has shown of each count.

    ``relaxed``, ``beside``: the same relaxation twice, for both sides of a branching are solved side by side, one of
    them by one of the ``threads``. ``root``: the bound of the root; ``leaf``: None where not even the root has a
    point; ``closed``: the bound of what got no answer; ``proven``: of every plan, by the search up to the first way's
    end; ``top``: the root; ``decided``: columns that are branched on.
    """

    relaxed: Relaxed
    beside: Relaxed
    columns: Columns
    threads: Executor
    effort: Effort = USUAL
    big: list[int] = field(default_factory=list)
    leaf: Node | None = None
    root: float = INF
    open: list[tuple[float, int, Node]] = field(default_factory=list)
    closed: float = -INF
    proven: float = INF
    pushed: int = 0
    solved: int = 0
    top: Node | None = field(init=False)
    decided: Ints = field(init=False)
    gains: Gains = field(init=False)

    @property
    def bound(self) -> float:
        """Bound of every plan."""
        leaf = -INF if self.leaf is None else self.leaf.bound
        return min(self.proven, max([leaf, self.closed, *(node.bound for *_, node in self.open[:1])]))

    def __post_init__(self) -> None:
        self.gains = Gains(len(self.columns.worth))
        self.top = self._node({}, _solved(self.relaxed, {}, None), INF)
        if self.top is None:
            self.closed = INF
            return
        self.root = self.top.bound
        worth, least = self.columns.worth, self.effort.branching.big * max(self.root, NOISE)
        self.big = [c for c in np.argsort(-worth, kind="stable").tolist() if worth[c] >= least]
        self.decided = np.union1d(np.asarray(self.big, np.int64), np.flatnonzero(self.columns.allows > 0))
        self._push(self.top)

    def run(self) -> None:
        """Find the leaf."""
        while self.open and self.leaf is None:
            node = heapq.heappop(self.open)[2]
            column = self._gang(node) if self.solved < self.effort.branching.gangs else None
            if column is None:
                self.leaf = node
            else:
                for child in self._sides(node, column):
                    self._push(child)

    def deeper(self, least: float) -> Node | None:
        """The next node at which no big gang starts, and no level of starts is allowed, in part, worth above ``least``.

        From the best open node into the better of its sides, again and again. None: there is no such node, or there
        were LPs enough; what no plan is worth more than has come down all the same.
        """
        if self.leaf is not None:
            leaf = self.leaf
            self.leaf = None
            return self._down(leaf, least, self._plain)
        if self.proven == INF and self.top is not None:
            self.proven, self.closed, self.open = self.bound, -INF, []
            self._push(self.top)
        limits = self.effort.branching
        most = limits.gangs + min(limits.further, limits.columns // len(self.relaxed.least))
        while self.open and self.solved < most and min(self.proven, self.open[0][2].bound) > least:
            found = self._down(heapq.heappop(self.open)[2], least, self._promising)
            if found is not None:
                return found
        return None

    def _down(self, node: Node, least: float, sides: Callable[[Node], list[Node] | None]) -> Node | None:
        """The node below at which nothing is in part, by way of the better side of each; the others stay open."""
        while node.bound > least:
            inside = sides(node)
            if inside is None:
                self.closed = max(self.closed, node.bound)
                return node
            if not inside:
                return None
            node, *others = sorted(inside, key=lambda child: -child.bound)
            for child in others:
                self._push(child)
        self._push(node)
        return None

    def _plain(self, node: Node) -> list[Node] | None:
        """The sides of what is allowed in part, where most hangs on it, or else of the most valuable big gang."""
        off = np.abs(node.point - np.round(node.point))
        hangs = np.where(off > NOISE, off * self.columns.allows, 0.0)
        column = int(np.argmax(hangs)) if hangs.max() > NOISE else self._gang(node)
        return None if column is None else self._sides(node, column)

    def _promising(self, node: Node) -> list[Node] | None:
        """The sides of the count of which both promise to be worth least.

        By what it brought so far; of those that were not branched on both ways yet, the few that promise most are
        tried.
        """
        value = node.point[self.decided]
        inside = np.abs(value - np.round(value)) > NOISE
        columns, value = self.decided[inside], value[inside]
        best: tuple[float, int, list[Node] | None] = (-INF, -1, None)
        scores = self.gains.scores(columns, value)
        looks = self.effort.branching.looks
        for place in np.argsort(-scores, kind="stable").tolist():
            column, score, sides = int(columns[place]), float(scores[place]), None
            if looks and not self.gains.knows(column):
                looks -= 1
                sides = self._sides(node, column)
                score = self.gains.score(node.bound, [child.bound for child in sides])
            if score > best[0]:
                best = score, column, sides
        _, column, sides = best
        return self._sides(node, column) if sides is None and column >= 0 else sides

    def _push(self, node: Node) -> None:
        self.pushed += 1
        heapq.heappush(self.open, (-node.bound, self.pushed, node))

    def _gang(self, node: Node) -> int | None:
        """The most valuable big count that is not whole."""
        return next((c for c in self.big if abs(node.point[c] - round(float(node.point[c]))) > NOISE), None)

    def _sides(self, node: Node, column: int) -> list[Node]:
        """Both sides of a count, but those without a point."""
        value = float(node.point[column])
        least, most = node.fixings.get(column, (self.relaxed.least[column], self.relaxed.most[column]))
        down, up = (least, float(np.floor(value))), (float(np.ceil(value)), most)
        begun = self.threads.submit(_solved, self.beside, {**node.fixings, column: up}, node.basis)
        answers = _solved(self.relaxed, {**node.fixings, column: down}, node.basis), begun.result()
        found = []
        for way, (side, answer) in enumerate(zip((down, up), answers, strict=True)):
            child = self._node({**node.fixings, column: side}, answer, node.bound)
            if child is not None:
                self.gains.learn(column, way, node.bound - child.bound, abs(side[1 - way] - value))
                found.append(child)
        return found

    def _node(self, fixings: Fixings, answer: tuple[Solution, Basis], above: float) -> Node | None:
        """A node of which ``above`` is a bound; None where its relaxation has no point, or none is found.

        What it found none for may hold a plan worth as much as the node above: the certificate stays as high.
        """
        found, basis = answer
        self.solved += 1
        if found.values is None:
            self.closed = self.closed if found.infeasible else max(self.closed, above)
            return None
        return Node(min(above, found.bound), fixings, found.values, basis)


def _solved(relaxed: Relaxed, fixings: Fixings, basis: Basis | None) -> tuple[Solution, Basis]:
    """The relaxation under ``fixings``, and where it ended."""
    relaxed.only(fixings, basis)
    return relaxed.solve(), relaxed.basis()
