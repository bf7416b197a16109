"""Certificates of the stages, in each stage's own integers: what a draft reaches, and what no plan can beat (spec §4).

A bound comes from a relaxation of every plan, so it holds whatever placement makes of the solution; that of a later
stage holds for plans that reach as much in those before it. A value is that of the draft as placed on slots and paid in
whole GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from jobtree.world.plan import Stage
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.search.objective import LAST_STAGES, STAGES, START_STAGES
from planner.solver.highs import Settings, Solution, integer_bound
from planner.solver.relaxed import Relaxed
from policies.model import demand, payments
from policies.model.linear import INF
from policies.model.master import Master
from policies.model.problem import Problem

RELATIVE: Final = 1e-7
"""Relative noise of the solver's arithmetic."""


class Step(NamedTuple):
    """Value that a part of the search left of the leading stage, in the stage's integers."""

    name: str
    value: int


@dataclass(frozen=True)
class Outcome:
    """A draft that is finished, with the room that it leaves, and the certificates of its stages.

    ``nearest``: what stage 7 cannot go below for these starts on these nodes; ``master``: the one that was solved last;
    ``steps``: how a solution came to be this draft.
    """

    draft: Draft
    room: Room
    settings: Settings
    stages: tuple[Stage, ...] = ()
    nearest: int = 0
    master: Master | None = None
    steps: tuple[Step, ...] = ()


@dataclass
class Solved:
    """A master solved stage by stage. ``bounds``: by stage; ``kept``: (stage, row, what the row holds it at).

    ``steps``: of the leading stage.
    """

    master: Master
    solution: Solution
    bounds: dict[str, int]
    kept: list[tuple[str, int, float]]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Certificates:
    """Certificates of the plans of one problem. ``free``: GPUs that are free before anything starts.

    ``steps``: most steps of simplex for the bound of a later stage of a large problem; beyond, it is `unsolved`'s.
    """

    problem: Problem
    settings: Settings
    free: int
    steps: int

    @property
    def order(self) -> list[str]:
        """The stages of starting that the Policy has on, in its order."""
        return [stage for stage in self.problem.book.money.policy.stages if stage in START_STAGES]

    @property
    def leading(self) -> str:
        """The first stage that something waits for, if any: a large master is solved for that one."""
        sorts = {self.problem.types[candidate.type].unfunded for candidate in self.problem.candidates}
        return next((name for name in self.order if START_STAGES[name] in sorts), self.order[0])

    @property
    def unit(self) -> int:
        """GPU-seconds of weight in one unit of the model's objective."""
        return int(self.problem.book.money.policy.age.unit)

    def unsolved(self) -> dict[str, int]:
        """The bounds without a solver: the heaviest that waits, at full width, on all that is free, whoever pays."""
        return {name: self._heaviest[name] for name in self.order}

    def relaxed(self, master: Master) -> dict[str, int]:
        """The bounds of the master's relaxation, of each stage whatever is reached in the others."""
        relaxed, bounds = Relaxed(master.model, self.settings), {}
        for name in self.order:
            costs = self.costs(master, name)
            bounds[name] = self.bound(name, relaxed.maximise(costs).bound if costs else 0.0)
        return bounds

    def worth(self) -> list[int]:
        """Values, by candidate, that its start adds to the leading stage, at its least width."""
        unfunded, types = START_STAGES[self.leading], self.problem.types
        kinds = ((types[candidate.type], candidate) for candidate in self.problem.candidates)
        return [kind.base_gpus * one.weight if kind.unfunded == unfunded else 0 for kind, one in kinds]

    def costs(self, master: Master, stage: str) -> dict[int, float]:
        """A stage of starting as an objective of the master."""
        return demand.objective(self.problem, master.starts, unfunded=START_STAGES[stage])

    def objectives(self, master: Master) -> Iterator[tuple[str, dict[int, float]]]:
        """Stages and their costs to maximise; payers where the master knows payers one by one."""
        for name in self.order:
            yield name, self.costs(master, name)
            if name == "starts" and master.overdraw:
                yield "overdraw", master.overdraw
        if self.problem.exact:
            yield "payers", payments.objective(self.problem, master.purses, master.pay)

    def given(self, solved: Solved, outcome: Outcome) -> dict[str, int]:
        """Bounds of stages given what the outcome reaches in those before: its placement may have lost some of it."""
        objectives, rows = list(self.objectives(solved.master)), {name: row for name, row, _ in solved.kept}
        reached = {name: STAGES[name].in_model(self._value(name, outcome), self.unit) for name in rows}
        lost = next((name for name, _, held in solved.kept if self._is_lost(name, reached[name], held)), None)
        names = [name for name, _ in objectives]
        intact = names if lost is None else names[: names.index(lost) + 1]
        bounds = {name: solved.bounds[name] for name in intact if name in solved.bounds}
        if all(name in bounds or not costs for name, costs in objectives):
            return dict.fromkeys(names, 0) | bounds
        for row in rows.values():
            solved.master.model.row_lower[row] = -INF
        relaxed = Relaxed(solved.master.model, self.settings)
        for name, costs in objectives:
            if name not in bounds:
                steps = None if self.problem.exact else self.steps
                bounds[name] = self.bound(name, relaxed.maximise(costs, steps=steps).bound if costs else 0.0)
            elif costs and name == names[0] and not self.problem.exact:
                relaxed.maximise(costs)  # the others begin at its optimum
            if name in rows:
                relaxed.raise_row(rows[name], reached[name] - RELATIVE * max(1.0, abs(reached[name])))
        return bounds

    def _is_lost(self, name: str, reached: float, held: float) -> bool:
        """Has a stage come to less than its row ``held``, by more than half of what its integers can differ by?"""
        return reached < held - max(abs(STAGES[name].in_model(1, self.unit)) / 2, RELATIVE * abs(held))

    def bound(self, name: str, bound: float) -> int:
        """A bound of the model as an integer of the stage."""
        if STAGES[name].sense == "min":
            return 0 if bound == INF else integer_bound(1000 * bound, least=True)
        return self._heaviest[name] if bound == INF else integer_bound(self.unit * bound)

    def of(self, outcome: Outcome, bounds: dict[str, int]) -> Outcome:
        """The outcome with the certificates of its stages, given their bounds."""
        found = []
        known = {"overdraw": 0} | bounds
        for name in self._told():
            stage, value = STAGES[name], self._value(name, outcome)
            bound = known.get(name, outcome.nearest if name == "payers" else value)
            if bound < value if stage.sense == "max" else bound > value:
                raise ArithmeticError(f"stage {name} reaches {value}, beyond its bound {bound}")
            proven = name in known
            found.append(Stage(name=name, unit=stage.unit, sense=stage.sense, value=value, bound=bound, proven=proven))
        return replace(outcome, stages=tuple(found))

    def _told(self) -> Iterator[str]:
        """Stages in the order in which a plan has them."""
        for name in self.order:
            yield name
            if name == "starts":
                yield "overdraw"
        yield from LAST_STAGES

    def _value(self, stage: str, outcome: Outcome) -> int:
        return STAGES[stage].value(self.problem, outcome.draft, outcome.room)

    @cached_property
    def _heaviest(self) -> dict[str, int]:
        """By stage of starting, the weight of the free GPUs once the heaviest work lies on them."""
        found = {}
        types = self.problem.types
        heaviest = sorted(self.problem.candidates, key=lambda candidate: -candidate.weight)
        for name, unfunded in START_STAGES.items():
            left, found[name] = self.free, 0
            for candidate in heaviest:
                kind = types[candidate.type]
                gpus = min(left, kind.gpus(kind.lowered.steps)) if kind.unfunded == unfunded else 0
                left, found[name] = left - gpus, found[name] + gpus * candidate.weight
        return found
