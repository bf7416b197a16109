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
from planner.solver.highs import Relaxation, Settings, Solution, integer_bound
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
    """Of the plans of one problem. ``free``: GPUs that are free before anything starts.

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
        relaxation = Relaxation(master.model, self.settings)
        bounds = {}
        for name in self.order:
            costs = self.costs(master, name)
            bounds[name] = self.bound(name, relaxation.best(costs).bound if costs else 0.0)
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
        model = solved.master.model
        rows = {name: (row, held) for name, row, held in solved.kept}
        for row, _ in rows.values():
            model.row_lower[row] = -INF
        bounds: dict[str, int] = {}
        intact = True
        relaxation = Relaxation(model, self.settings)
        objectives = list(self.objectives(solved.master))
        later = any(costs for _, costs in objectives[1:])
        for name, costs in objectives:
            if intact and name in solved.bounds:
                bounds[name] = solved.bounds[name]
                if costs and later and not self.problem.exact and len(bounds) == 1:
                    relaxation.best(costs)  # the others begin at its optimum
            else:
                bound = relaxation.best(costs, steps=None if self.problem.exact else self.steps).bound if costs else 0.0
                bounds[name] = self.bound(name, bound)
            if name in rows:
                stage, (row, held) = STAGES[name], rows[name]
                half = abs(stage.in_model(1, self.unit)) / 2  # of what its integers can differ by
                reached = stage.in_model(self._value(name, outcome), self.unit)
                intact = intact and reached >= held - max(half, RELATIVE * abs(held))
                relaxation.raise_row(row, reached - RELATIVE * max(1.0, abs(reached)))
        return bounds

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
