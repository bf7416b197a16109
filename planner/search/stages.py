"""The stages of the objective, solved in the Policy's order, each with its certificate (spec §4).

Small masters are solved whole, stage by stage, and solved again with the kinds of domains split where placement could
not follow. Large ones are solved in components, whole or in bands, and once more near their solution (search.mend);
their later stages are filled greedily and certified by one LP each (planner.search.certificates).

Wherever the search is cut short, the last outcome has the best bounds that were proven until then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from jobtree.api.kinds.policy import SolverPolicy
from planner.effort import Effort
from planner.large import rounding
from planner.placement.draft import Draft
from planner.placement.lay import lay
from planner.placement.room import Room
from planner.search import seating
from planner.search.beside import beside, drop
from planner.search.certificates import Certificates, Outcome, Solved, Step
from planner.search.fills import Fills
from planner.search.mend import First, solve_again
from planner.search.objective import START_STAGES, nearness, overdraw, value_of
from planner.search.pay import pay
from planner.search.reading import read_pieces, read_starts
from planner.solver.highs import NOISE, NOTHING, Settings, Solution, options, solve, within
from policies.inputs.places import kinds
from policies.model import seats
from policies.model.master import Master, build
from policies.model.problem import Problem
from policies.model.seats import Seating


@dataclass(frozen=True)
class _Placed:
    """The outcome of a solution. ``failed``: domains of kinds in which some piece found no place; ``left``: those that
    had GPUs left before the plan was topped up.
    """

    outcome: Outcome
    failed: frozenset[int]
    left: frozenset[int]


@dataclass(frozen=True)
class Search:
    """One problem and how it is to be solved. ``new_room``: what is free before anything starts."""

    problem: Problem
    new_room: Callable[[], Room]
    settings: Settings
    effort: Effort

    @cached_property
    def certificates(self) -> Certificates:
        """Certificates of its plans."""
        return Certificates(self.problem, self.settings, sum(self.new_room().free), self.effort.steps)

    @cached_property
    def fills(self) -> Fills:
        """Plans that need no whole numbers from a solver."""
        return Fills(self.problem, self.new_room, self.certificates)

    def incumbents(self) -> Iterator[Outcome]:
        """Better and better outcomes, by plan or by bound: the greedy one, then solved ones; the last is the best."""
        first = self.certificates.of(self.fills.by_age(), self.certificates.unsolved())
        yield first
        if self.problem.candidates:
            yield from self._solved(first)

    def _solved(self, first: Outcome) -> Iterator[Outcome]:
        problem = self.problem
        split: frozenset[int] = frozenset()
        best = first
        known = self.certificates.unsolved()  # by stage, whatever is reached in the others
        nodes: list[Seating] = []
        for _ in range(self.effort.rounds):
            room = self.fills.room()
            places = kinds(problem.fleet, room.free, split)
            master = build(problem, places, room.capacity, seatings=nodes)
            self._keep_promises(master, first)
            if split and not problem.exact and master.integers > self.effort.middle:
                break  # it would only be rounded
            solved = Solved(master, NOTHING, {}, [])
            for bounds in self._stages(solved):
                before, known = known, _tighter(known, bounds)
                if known != before:
                    yield self.certificates.of(best, known)
            if solved.solution.values is None:  # nothing to start anywhere, or no answer in time
                best = self.certificates.of(best, _tighter(known, solved.bounds))
                break
            placed = self._place(master, solved.solution, room, solved.steps)
            for outcome in chain([placed.outcome], self._mended(solved, placed)):
                best = max(best, outcome, key=self._rank)
                yield self.certificates.of(best, known)
            ceiling = {name: known[name] for name in self.certificates.order[:1]}
            best = replace(self.certificates.of(best, self.certificates.given(solved, best) | ceiling), master=master)
            is_middle = master.integers <= self.effort.middle
            finer = self._finer(best, solved, split, placed.failed) if is_middle else None
            if finer is None:
                break
            yield best
            split, nodes = finer
        yield best

    def _finer(
        self, best: Outcome, solved: Solved, split: frozenset[int], failed: frozenset[int]
    ) -> tuple[frozenset[int], list[Seating]] | None:
        """Parts of the next master: the domains where placement failed, or every node, where these have not helped; in
        small worlds every node, too, where nothing failed.
        """
        if solved.master.seats or (not failed and not self.problem.exact):
            return None
        if all(stage.value == stage.bound for stage in best.stages) or self._near(best, solved):
            return None
        if failed <= split if failed else self.problem.exact:
            nodes = seating.seatings(self.fills.room())
            if seats.count(self.problem, nodes) <= self.effort.seats:
                return frozenset(node.domain for node in nodes), nodes
        return None if failed <= split else (split | failed, [])

    def _near(self, best: Outcome, solved: Solved) -> bool:
        """Is a large problem's leading stage so near to its bound, or to the master's, that solving again is idle?"""
        leading = self.certificates.leading
        first = next(stage for stage in best.stages if stage.name == leading)
        near = within(first.value, first.bound, self.effort.near * self.settings["mip_rel_gap"])
        reached = (objective for name, _, objective in solved.kept if name == leading)
        as_solved = any(first.value >= self.certificates.unit * objective - 0.5 for objective in reached)
        return not self.problem.exact and (near or as_solved)

    def _rank(self, outcome: Outcome) -> tuple[int, ...]:
        started = {start.candidate for start in outcome.draft.starts}
        values = [int(candidate in started) for candidate in sorted(self.problem.due, key=self._turn)]
        for name in self.certificates.order:
            values.append(value_of(self.problem, outcome.draft, unfunded=START_STAGES[name]))
            if name == "starts":
                values.append(-overdraw(self.problem, outcome.draft))
        return (*values, -nearness(self.problem, outcome.draft))

    def _turn(self, candidate: int) -> int:
        return self.problem.candidates[candidate].turn

    def _keep_promises(self, master: Master, first: Outcome) -> None:
        """Let what is due and can start do so: the plan by age has tried it first, beside nothing else."""
        for start in first.draft.starts:
            if start.candidate in self.problem.due and start.candidate in master.starts.start:
                master.model.lower[master.starts.start[start.candidate]] = 1.0

    def _stages(self, solved: Solved) -> Iterator[dict[str, int]]:
        """Solve the master's stages in order, each held at what it reached; of a large master only the leading one.

        Yields bounds of stages that hold whatever is reached in the others.
        """
        master = solved.master
        is_large = self._is_large(master)
        if not is_large:
            yield self.certificates.relaxed(master)
        for name, costs in self.certificates.objectives(master):
            if not costs:
                solved.bounds[name] = 0
                continue
            master.model.maximise(costs)
            if is_large and solved.kept:
                continue  # filled greedily; bounded given what the starts reach
            found = NOTHING
            for found in self._solve(master, is_large=is_large):
                if not solved.kept:
                    yield {name: self.certificates.bound(name, found.bound)}
            if self.problem.exact and (parts := _in_parts(master, found)):
                for column in parts:
                    master.model.integer[column] = True
                found = solve(master.model, self.settings)
            solved.bounds[name] = self.certificates.bound(name, found.bound)
            if found.values is None:
                break
            solved.solution = found
            if name == self.certificates.leading:
                solved.steps = tuple(self._steps(found))
            row = master.model.keep(("stage", name), costs, found.objective)
            solved.kept.append((name, row, found.objective))

    def _solve(self, master: Master, *, is_large: bool) -> Iterator[Solution]:
        """Bounds as they are proven, last the solution."""
        if is_large:
            return rounding.solve_large(master, self.settings, self.effort)
        return iter([solve(master.model, self.settings)])

    def _is_large(self, master: Master) -> bool:
        return master.integers > self.effort.small and not self.problem.exact

    def _mended(self, solved: Solved, placed: _Placed) -> Iterator[Outcome]:
        """Outcome of solving a large master again near its solution, where that is not yet close to the bound."""
        if not self._is_large(solved.master) or solved.master.integers > self.effort.again:
            return
        assert solved.solution.values is not None
        unfunded = START_STAGES[self.certificates.leading]
        worth = self._worth(placed.outcome.draft) / self.certificates.unit
        if within(worth, solved.solution.bound, self.effort.close * self.settings["mip_rel_gap"]):
            return
        first = First(solved.master, solved.solution.values, placed.outcome.draft, worth, placed.failed, placed.left)
        again = solve_again(first, self.fills.room(), self.settings, self.effort, unfunded=unfunded)
        if again is not None and again.solution.objective > worth:
            steps = *solved.steps, self._step("solved again", again.solution.objective)
            yield self._place(again.master, again.solution, self.fills.room(), steps).outcome

    def _steps(self, found: Solution) -> Iterator[Step]:
        """The value after the relaxation, after how far starts are allowed was decided, and after rounding."""
        for name, value in (("relaxation", found.relaxed), ("allowed", found.allowed), ("whole", found.objective)):
            if value is not None:
                yield self._step(name, value)

    def _step(self, name: str, value: float) -> Step:
        return Step(name, round(self.certificates.unit * value))

    def _worth(self, draft: Draft) -> int:
        return value_of(self.problem, draft, unfunded=START_STAGES[self.certificates.leading])

    def _place(self, master: Master, solution: Solution, room: Room, steps: tuple[Step, ...]) -> _Placed:
        """A solution as a plan: on nodes, paid, and topped up."""
        assert solution.values is not None
        problem = self.problem
        starts = read_starts(master, solution.values)
        draft = Draft(starts, read_pieces(master, solution.values, starts))
        if master.seats:
            failed = seating.seat(room, master, solution.values, draft.pieces)
            lost, tight = {piece.candidate for piece in failed}, {piece.kind for piece in failed}
        else:
            lost, tight = lay(problem, room, master.kinds, draft, self.certificates.worth(), self.settings, self.effort)
        drop(problem, room, draft, lost)
        steps = *steps, Step("placed", self._worth(draft))
        unpaid, nearest = pay(problem, room, draft, self.settings, self.effort)
        drop(problem, room, draft, set(unpaid))
        steps = *steps, Step("paid", self._worth(draft))
        left = frozenset(domain for domain, gpus in enumerate(room.domain_free().tolist()) if gpus)
        before = (*draft.starts,), (*draft.pieces,)
        self.fills.top_up(room, draft)
        steps = *steps, Step("topped up", self._worth(draft))
        if unpaid or before != ((*draft.starts,), (*draft.pieces,)):  # else the model of who pays is the same again
            admissible = dict(draft.paid)
            _, nearest = pay(problem, room, draft, self.settings, self.effort, settled=True)
            if beside(problem, draft).lost:
                draft.paid = admissible
        nearest = min(nearest, nearness(problem, draft))
        outcome = Outcome(draft, room, self.settings, nearest=nearest, steps=steps)
        domains = (domain for kind in master.kinds if kind.index in tight for domain in kind.domains)
        return _Placed(outcome, frozenset(domains), left)


def incumbents(
    problem: Problem, new_room: Callable[[], Room], solver: SolverPolicy, effort: Effort
) -> Iterator[Outcome]:
    """Better and better outcomes for a problem, first the greedy one."""
    gap, nodes = (0.0, effort.exact_nodes) if problem.exact else (float(solver.gap), effort.nodes)
    return Search(problem, new_room, options(solver.seed, gap, nodes), effort).incumbents()


def _tighter(known: dict[str, int], bounds: dict[str, int]) -> dict[str, int]:
    """Bounds by stage, where others are known as well."""
    return known | {name: min(bound, known.get(name, bound)) for name, bound in bounds.items()}


def _in_parts(master: Master, found: Solution) -> list[int]:
    """Columns of starts, where some run starts in part: all, as only their sums are integer.

    At an optimum no run does; but a stage is held at its optimum less a rounding, and for that a later one may trade a
    hundredth of a run for one that is worth as good as the same.
    """
    if found.values is None:
        return []
    columns = [*master.starts.start.values(), *master.starts.steps.values()]
    values = found.values[columns]
    return columns if bool((abs(values - values.round()) > NOISE).any()) else []
