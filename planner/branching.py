"""What the relaxation of a large master leaves in parts, decided by branching: big gangs, and who gives way.

The relaxation is weak in two ways: a gang that is a sizeable part of the objective starts in part; and a running claim
gives way in part, for a part of a start. Both are few. They are branched on, best bound first, with warm dual simplex.
The best bound that is open in the end is one of every plan: the certificate.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from planner.basis import Basis
from planner.master import Master
from planner.relaxed import Relaxed
from planner.settling import in_parts, ways
from planner.solver import NOTHING, Floats, Solution
from policies.model import INF

BIG: Final = 0.005
"""A start that is worth this part of the bound is branched on."""
GANGS: Final = 32
"""LPs after which gangs are not branched on first any more; where no claim is branched on, the most."""
STEPS: Final = 2_500_000
"""Columns of all LPs of a search over claims, but for the sides of the last node."""
EACH: Final = 4
"""LPs that there have to be for each claim that goes in part at first: else gangs alone are branched on."""
PATIENCE: Final = 160
"""Most LPs of a search over claims without a better plan, after the first."""
_WHOLE: Final = 1e-6

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
    """One search. ``whole``: a leaf made whole, and what no plan there is worth more than.

    ``close``: it ends where nothing open is worth more than this part above the best that was made whole.

    ``may_branch``: on claims, too; ``claims``: whether it does; ``closed``: the bound of leaves, and of what got no
    answer; ``leaf``: where the best was found; ``found``: how many LPs had been solved then.
    """

    relaxed: Relaxed
    master: Master
    whole: Callable[[Node], Solution]
    close: float
    may_branch: bool = True
    big: list[int] = field(default_factory=list)
    claims: bool = False
    most: int = GANGS
    best: Solution = NOTHING
    leaf: Node | None = None
    open: list[tuple[float, int, Node]] = field(default_factory=list)
    closed: float = -INF
    pushed: int = 0
    solved: int = 0
    found: int = 0

    def run(self) -> Solution:
        """The best that was made whole, and what no plan is worth more than."""
        root = self._node({}, None)
        if root is None:
            return NOTHING
        self.big = _big(self.master, root.bound)
        loose, steps = len(in_parts(self.master.held, root.point)), STEPS // len(root.point)
        self.claims = self.may_branch and 0 < EACH * loose <= steps
        self.most = max(GANGS, steps) if self.claims else GANGS
        self._push(root)
        while self.open and self.solved < self.most and not self._ended():
            self._follow(heapq.heappop(self.open)[2])
        if self.open and self.leaf is None:
            self._leaf(heapq.heappop(self.open)[2])
        bound = max([self.closed, *(node.bound for *_, node in self.open[:1])])
        return replace(self.best, bound=bound)

    def _ended(self) -> bool:
        if not self.claims or self.leaf is None:
            return self.leaf is not None
        close = self.open[0][2].bound * (1 - self.close) <= self.best.objective
        return close or self.solved > self.found + PATIENCE

    def _follow(self, node: Node) -> None:
        """Branch; where claims are in question go on at the best side, down to a leaf."""
        following: Node | None = node
        while following is not None:
            # gangs bring the bound down, claims bring a plan: first some of the one, then all of the other
            gang = self._gang(following) if self.solved < GANGS else []
            sides = gang or self._claim(following) or self._gang(following)
            if not sides:
                self._leaf(following)
                return
            inside = [both for side in sides if (both := _both(following.fixings, side)) is not None]
            children = [self._node(fixings, following) for fixings in inside]
            hopeful = [child for child in children if child is not None and child.bound > self.best.objective]
            hopeful.sort(key=lambda child: -child.bound)
            following = None if gang or not hopeful else hopeful.pop(0)
            for child in hopeful:
                self._push(child)

    def _leaf(self, node: Node) -> None:
        whole = self.whole(node)
        self.closed = max(self.closed, min(node.bound, whole.bound))
        if self.leaf is None or whole.objective > self.best.objective:
            self.best, self.leaf, self.found = whole, node, self.solved

    def _push(self, node: Node) -> None:
        self.pushed += 1
        heapq.heappush(self.open, (-node.bound, self.pushed, node))

    def _gang(self, node: Node) -> list[Fixings]:
        """Both sides of the most valuable big count that is not whole."""
        for column in self.big:
            value = float(node.point[column])
            if abs(value - round(value)) > _WHOLE:
                least, most = node.fixings.get(column, (self.relaxed.least[column], self.relaxed.most[column]))
                return [{column: (float(np.ceil(value)), most)}, {column: (least, float(np.floor(value)))}]
        return []

    def _claim(self, node: Node) -> list[Fixings]:
        """All ways of the part of a claim that is least decided."""
        loose = in_parts(self.master.held, node.point) if self.claims else {}
        if not loose:
            return []
        part = max(loose, key=lambda each: (loose[each], -each))
        return [{column: (value, value) for column, value in way.items()} for way in ways(self.master.held, part)]

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


def _both(some: Fixings, more: Fixings) -> Fixings | None:
    """What both say; None where they contradict one another."""
    found = dict(some)
    for column, (least, most) in more.items():
        low, high = some.get(column, (least, most))
        found[column] = max(low, least), min(high, most)
    return found if all(low <= high for low, high in found.values()) else None


def _big(master: Master, bound: float) -> list[int]:
    """Counts whose single start is worth BIG of the bound, most valuable first."""
    problem = master.problem
    unit = float(problem.book.money.policy.age.unit)
    found = []
    for kind in problem.types:
        if kind.unfunded or kind.members[0] not in master.starts.start:
            continue
        worth = kind.base_gpus * problem.candidates[kind.members[0]].weight / unit
        if worth >= BIG * bound:
            found.append((-worth, master.starts.count[kind.index]))
    return [column for _, column in sorted(found)]
