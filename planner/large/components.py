"""Large masters of parts that meet on the nodes alone: prices on rows of room, and a small MIP for each part.

With prices y ≥ 0 on the rows of room every part is a problem of its own, and

    y·limits + Σ_parts max { (c − yR)·x : x ∈ X_part }  ≥  the best plan

bounds the whole. The parts keep their integers, so it is tighter than the relaxation where gangs are sizeable parts of
their payers' money. Each round's answers are proposals. A linear program mixes all proposals within the rows of room,

    max Σ value·w    Σ use·w ≤ limits,   Σ_part w ≤ 1,   w ≥ 0

and its duals, averaged with the prices of the best bound so far, are the next prices (Dantzig and Wolfe's
decomposition, smoothed). In the end one proposal of each part at most is chosen by the same program in integers, and
parts that the prices say could gain are solved once more, one after another, within the room that the others leave.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from jobtree.world.tables.values import Floats
from planner.effort import USUAL, Components, Effort
from planner.solver.highs import LEAN, NOISE, Settings, Solution, proven, solve
from planner.solver.parts import Split, split
from policies.model.demand import type_of
from policies.model.linear import INF, Model
from policies.model.master import Master


def solve_components(master: Master, settings: Settings, effort: Effort = USUAL) -> Iterator[Solution]:
    """Maximise the master's objective: bounds of the whole model as they are proven, last a point as well.

    Nothing where it has no parts.
    """
    model = master.model
    parted = split(model, model.rows_named("room"), model.rows_named("count"), _idle(master), effort.components.largest)
    if parted is None:
        return
    with ThreadPoolExecutor(effort.components.workers) as pool:
        search = _Search(parted, settings, effort.components, pool)
        relaxed = solve(model, settings, relaxed=True)
        yield proven(relaxed.bound)
        bound = relaxed.bound
        for bound in search.rounds(relaxed):
            yield proven(bound)
        values = np.zeros(len(model.cost))
        for proposals in pool.map(search.choose, parted.groups):
            for proposal in proposals:
                values[parted.parts[proposal.part].columns] = proposal.point
    for counting, columns in parted.sums:
        values[counting] = values[columns].sum()
    objective = float(np.dot(model.cost, values))
    is_optimal = bound - objective <= settings["mip_rel_gap"] * objective
    yield Solution(values, objective, bound, optimal=is_optimal, relaxed=relaxed.objective)


def _idle(master: Master) -> frozenset[int]:
    """Columns of starts that nobody pays, where they add nothing to the objective: without them no plan is worse.

    They tie families to each other, for what nobody pays is alike for all. Members of gangs may need each other.
    """
    problem, model = master.problem, master.model
    types = {kind.index for kind in problem.types if kind.unfunded and problem.tied.isdisjoint(kind.members)}
    found = frozenset(column for column, key in enumerate(model.column_keys) if type_of(problem, key) in types)
    return frozenset() if any(model.cost[column] for column in found) else found


def _prices(duals: Floats) -> Floats:
    """Duals of rows with an upper limit as prices: never negative, and nothing where they are noise."""
    return np.where(duals > NOISE, duals, 0.0)


@dataclass(frozen=True)
class _Proposal:
    """A point of a part, what it is worth, and what it takes of the part's rows of room."""

    part: int
    value: float
    use: Floats
    point: Floats


@dataclass
class _Search:
    """``proposals``: all that were made; ``prices``, ``bounds``: of the best round, the latter by part."""

    parted: Split
    settings: Settings
    limits: Components
    pool: ThreadPoolExecutor
    proposals: list[_Proposal] = field(default_factory=list)
    prices: Floats = field(default_factory=lambda: np.zeros(0))
    bounds: list[float] = field(default_factory=list)
    _known: dict[tuple[int, bytes], Solution] = field(default_factory=dict)

    def rounds(self, relaxed: Solution) -> Iterator[float]:
        """Propose at one vector of prices after another, first the relaxation's; the least bound after each."""
        parted, limits, gap = self.parted, self.limits, self.settings["mip_rel_gap"]
        columns = sum(len(part.columns) for part in parted.parts)
        prices = np.zeros(len(parted.rows)) if relaxed.duals is None else _prices(relaxed.duals[parted.rows])
        least = INF
        for number in range(max(2, min(limits.rounds, limits.columns // columns))):
            bounds = self._propose(prices)
            bound = float(prices @ parted.limits) + sum(bounds)
            if bound <= least:
                least, self.prices, self.bounds = bound, prices, bounds
            yield min(least, relaxed.bound)
            mixture = solve(self._mixture(self.proposals, whole=False), self.settings, relaxed=True)
            if mixture.duals is None or least - mixture.objective <= gap * least:
                break
            step = limits.steps[min(number, len(limits.steps) - 1)]
            prices = (1 - step) * self.prices + step * _prices(mixture.duals[: len(parted.rows)])

    def _propose(self, prices: Floats) -> list[float]:
        """Solve every part at these prices, but those whose costs are as in an earlier round; their bounds."""
        models = [replace(part.model, cost=part.priced(prices)) for part in self.parted.parts]
        keys = [(number, np.asarray(model.cost).tobytes()) for number, model in enumerate(models)]
        new = [number for number, key in enumerate(keys) if key not in self._known]
        new.sort(key=lambda number: -len(models[number].cost))  # the longest first
        for number, found in zip(new, self.pool.map(lambda number: self._solve(models[number]), new), strict=True):
            self._known[keys[number]] = found
            if found.values is not None:
                self.proposals.append(self._proposal(number, found.values))
        return [self._known[key].bound for key in keys]

    def _solve(self, model: Model, start: Sequence[float] | None = None) -> Solution:
        """The best point of a part's model."""
        lean = LEAN if len(model.cost) <= self.limits.compact else {}
        return solve(model, self.settings | {"mip_max_nodes": self.limits.nodes} | lean, start=start)

    def _proposal(self, number: int, values: Floats) -> _Proposal:
        part = self.parted.parts[number]
        point = np.where(part.model.integer, np.round(values), values)
        return _Proposal(number, float(np.dot(part.model.cost, point)), part.use(point), point)

    def _mixture(self, proposals: Sequence[_Proposal], *, whole: bool) -> Model:
        """The program that mixes proposals, its first rows the rows of room; ``whole``: all or nothing of each."""
        model = Model()
        of_part: dict[int, list[tuple[int, float]]] = {}
        of_room: dict[int, list[tuple[int, float]]] = {}
        for proposal in proposals:
            column = model.column(("proposal",), cost=proposal.value, upper=1.0, integer=whole)
            of_part.setdefault(proposal.part, []).append((column, 1.0))
            rooms = self.parted.parts[proposal.part].rooms.tolist()
            for room, use in zip(rooms, proposal.use.tolist(), strict=True):
                if use:
                    of_room.setdefault(room, []).append((column, use))
        for room, limit in enumerate(self.parted.limits.tolist()):
            model.row(("room",), of_room.get(room, []), -INF, limit)
        for terms in of_part.values():
            model.row(("part",), terms, -INF, 1.0)
        return model

    def choose(self, group: list[int]) -> list[_Proposal]:
        """A plan for parts: proposals that fit together, then each part that could gain in what the others leave."""
        proposals = [proposal for proposal in self.proposals if proposal.part in set(group)]
        ends = {"mip_rel_gap": self.limits.choice_gap, "mip_max_nodes": self.limits.choice_nodes}
        mixed = solve(self._mixture(proposals, whole=True), self.settings | ends)
        chosen: dict[int, _Proposal] = {}
        if mixed.values is not None:
            chosen = {p.part: p for p, weight in zip(proposals, mixed.values, strict=True) if weight > 1 - NOISE}
        left = self.parted.limits.copy()
        for proposal in chosen.values():
            left[self.parted.parts[proposal.part].rooms] -= proposal.use
        for number in self._hopeful(group, chosen, left):
            rooms = self.parted.parts[number].rooms
            before = chosen.get(number)
            room = left[rooms] + (before.use if before is not None else 0.0)
            after = self._refit(number, before, room)
            if after is not None and (before is None or after.value > before.value):
                left[rooms] = room - after.use
                chosen[number] = after
        return list(chosen.values())

    def _hopeful(self, group: list[int], chosen: dict[int, _Proposal], left: Floats) -> Iterator[int]:
        """Parts, the most hopeful first, until the rest could gain but little of what all could.

        By the prices a part is worth at most its bound and what the room that it may have costs.
        """
        hopes = []
        for number in group:
            rooms = self.parted.parts[number].rooms
            hope = self.bounds[number] + float(self.prices[rooms] @ left[rooms])
            if number in chosen:
                hope += float(self.prices[rooms] @ chosen[number].use) - chosen[number].value
            hopes.append((hope, number))
        rest = sum(hope for hope, _ in hopes)
        enough = self.limits.rest * rest
        for hope, number in sorted(hopes, key=lambda h: (-h[0], h[1])):
            if rest <= enough:
                return
            yield number
            rest -= hope

    def _refit(self, number: int, before: _Proposal | None, room: Floats) -> _Proposal | None:
        """The part's best point within so much of each of its rows of room."""
        part = self.parted.parts[number]
        own = len(part.model.row_upper) - len(part.rooms)
        model = replace(part.model, row_upper=[*part.model.row_upper[:own], *room.tolist()])
        start = None if before is None else before.point.tolist()
        found = self._solve(model, start)
        return None if found.values is None else self._proposal(number, found.values)
