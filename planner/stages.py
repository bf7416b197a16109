"""The stages of the objective, solved in the Policy's order, each with its certificate (spec §4).

A bound comes from a relaxation of every plan, so it holds whatever placement makes of the solution; a value is that of
the draft as placed on slots and paid in whole GPUs. Small masters are solved whole, stage by stage, and solved again
with the kinds of domains split where placement could not follow. Large ones are solved
in components, whole or in bands; their later stages are filled greedily and certified by one LP each.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Final, Literal

from planner import greedy, large, seating
from planner.draft import Draft
from planner.large import solve_large
from planner.lay import lay
from planner.master import Master, build
from planner.mend import First, solve_again
from planner.pay import pay
from planner.purses import Purses
from planner.reached import START_STAGES, nearness, recalled, value_of
from planner.reading import read_pieces, read_starts
from planner.room import Room
from planner.solver import NOTHING, Relaxation, Settings, Solution, integer_bound, options, solve
from policies import compact, demand, gangs, payers, seats
from policies.model import INF
from policies.places import kinds
from policies.problem import Problem
from policies.seats import Seating

SMALL = 400
"""Most integer columns of a master that is solved whole at once, and again with kinds split."""
ROUNDS = 8
"""Most times that a master is solved, each time with more kinds split."""
AGAIN = 4_000
"""Most integer columns of a large master that is solved again near its first solution."""
CLOSE = 2
"""How often Policy ``solver.gap`` the plan of that may end away from the bound and the master not be solved again."""
SEATS = 1000
"""Most seats of a master that goes down to nodes, in the end, where its domains left a gap."""
NODES = 2_000
EXACT_NODES = 50_000
"""Most branch-and-bound nodes of one solve: the plan does not depend on a clock."""
STEPS = 4_000
"""Most steps of simplex for the bound of a later stage of a large problem; beyond, it is that of `_everything`."""
HALF = 0.5
NEAR = 10
"""How often Policy ``solver.gap`` a large problem may end away from its bound and not be solved again."""
NOISE = 1e-7
"""Relative noise of the solver's arithmetic."""
_WHOLE: Final = 1e-6
Sense = Literal["max", "min"]


@dataclass(frozen=True)
class Certified:
    """A stage's value (of the draft as placed) and bound, in the stage's own integers.

    ``proven`` is False where there is no bound but the value, or one for these starts on these nodes only.
    """

    name: str
    unit: str
    sense: Sense
    value: int
    bound: int
    proven: bool = True


@dataclass(frozen=True)
class Outcome:
    """A draft that is finished, with the room that it leaves, and the certificates of its stages.

    ``recalled``: GPUs of running claims that lose their payer to its starts (stage 4); ``nearest``: what stage 7 cannot
    go below for these starts on these nodes; ``master``: the one that was solved last.
    """

    draft: Draft
    room: Room
    settings: Settings
    recalled: int
    stages: tuple[Certified, ...] = ()
    nearest: int = 0
    master: Master | None = None


@dataclass
class _Solved:
    """A master solved stage by stage. ``bounds``: by stage; ``kept``: (stage, row, what the row holds it at)."""

    master: Master
    solution: Solution
    bounds: dict[str, int]
    kept: list[tuple[str, int, float]]


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

    def incumbents(self) -> Iterator[Outcome]:
        """Better and better outcomes: the greedy one, then solved ones; the last is the best."""
        room = self._room()
        draft = Draft()
        self._top_up(room, draft)
        first = Outcome(draft, room, self.settings, recalled(self.problem, draft))
        first = self._certified(first, {name: self._everything(name) for name in self._order()})
        yield first
        if self.problem.candidates:
            yield from self._solved(first)

    def _room(self) -> Room:
        """A fresh room that knows which sites are wanted by how many types."""
        room = self.new_room()
        for runs in self.problem.types:
            for site in runs.sites:
                room.wanted[site] += 1
        return room

    def _order(self) -> list[str]:
        """The stages of starting that the Policy has on, in its order (spec §4)."""
        return [stage for stage in self.problem.book.money.policy.stages if stage in START_STAGES]

    def _top_up(self, room: Room, draft: Draft) -> Purses:
        """Add what still fits, so that the plan is maximal, in the order of the stages; what is left then."""
        purses = Purses.after(self.problem, draft)
        before: list[int] = []
        for stage in self._order():
            order = _by_age(self.problem, unfunded=START_STAGES[stage])
            greedy.fill(self.problem, room, purses, draft, order, before)
            before += order
        return purses

    def _solved(self, first: Outcome) -> Iterator[Outcome]:
        problem = self.problem
        split: frozenset[int] = frozenset()
        best = first
        everything = {name: self._everything(name) for name in self._order()}
        ceiling = {name: everything[name] for name in self._order()[:1]}
        nodes: list[Seating] = []
        for _ in range(ROUNDS):
            room = self._room()
            places = kinds(problem.fleet, room.free, split)
            master = build(problem, places, room.capacity, seatings=nodes)
            if split and not problem.exact and master.integers > large.MIDDLE:
                break  # it would only be rounded
            solved = self._stages(master)
            ceiling = {name: min(bound, solved.bounds.get(name, bound)) for name, bound in ceiling.items()}
            if solved.solution.values is None:  # nothing to start anywhere, or no answer in time
                best = self._certified(best, everything | solved.bounds | ceiling)
                break
            placed = self._place(master, solved.solution, room)
            best = max(best, placed.outcome, *self._mended(solved, placed), key=self._rank)
            if master.integers > large.MIDDLE:  # bounds of later stages take seconds more: this stands if time is up
                best = self._certified(best, everything | solved.bounds | ceiling)
                yield best
            best = replace(self._certified(best, self._conditional(solved, best) | ceiling), master=master)
            finer = self._finer(best, solved, split, placed.failed)
            if master.integers > large.MIDDLE or finer is None:
                break
            yield best
            split, nodes = finer
        yield best

    def _finer(
        self, best: Outcome, solved: _Solved, split: frozenset[int], failed: frozenset[int]
    ) -> tuple[frozenset[int], list[Seating]] | None:
        """What the next master tells apart: the domains where placement failed; in small worlds, then, every node."""
        if solved.master.seats or (not failed and not self.problem.exact):
            return None
        if all(stage.value == stage.bound for stage in best.stages) or self._near(best, solved.solution):
            return None
        if self.problem.exact and (split or not failed):
            nodes = seating.seatings(self._room())
            if seats.count(self.problem, nodes) <= SEATS:
                return frozenset(node.domain for node in nodes), nodes
        return None if failed <= split else (split | failed, [])

    def _near(self, best: Outcome, solution: Solution) -> bool:
        """Is a large problem's first stage so near to its bound, or to the master's, that solving again is idle?"""
        first = best.stages[0]
        near = first.bound * (1 - NEAR * self.settings["mip_rel_gap"])
        return not self.problem.exact and first.value >= min(near, self._unit * solution.objective - HALF)

    def _rank(self, outcome: Outcome) -> tuple[int, ...]:
        values: list[int] = []
        for name in self._order():
            values.append(value_of(self.problem, outcome.draft, unfunded=START_STAGES[name]))
            if name == "starts":
                values.append(-outcome.recalled)
        return (*values, -nearness(self.problem, outcome.draft))

    def _stages(self, master: Master) -> _Solved:
        """Solve the master's stages in order, each held at what it reached; of a large master only the first."""
        is_large = master.integers > SMALL and not self.problem.exact
        solved = _Solved(master, NOTHING, {}, [])
        for name, costs in self._objectives(master):
            if not costs:
                solved.bounds[name] = 0
                continue
            master.model.maximise(costs)
            if is_large and solved.kept:
                continue  # filled greedily; bounded given what the starts reach
            found = solve_large(master, self.settings) if is_large else solve(master.model, self.settings)
            if self.problem.exact and (parts := _in_parts(master, found)):
                for column in parts:
                    master.model.integer[column] = True
                found = solve(master.model, self.settings)
            solved.bounds[name] = self._bound(master, name, found.bound)
            if found.values is None:
                break
            solved.solution = found
            row = master.model.keep(("stage", name), costs, found.objective)
            solved.kept.append((name, row, found.objective))
        return solved

    def _objectives(self, master: Master) -> Iterator[tuple[str, dict[int, float]]]:
        """Stages and their costs to maximise; recall and payers where the master knows claims and payers one by one."""
        for name in self._order():
            yield name, demand.objective(self.problem, master.starts, unfunded=START_STAGES[name])
            if name == "starts" and master.held.stays:
                yield "recalled", master.held.objective()
        if self.problem.exact:
            yield "payers", payers.objective(self.problem, master.purses, master.pay)

    def _conditional(self, solved: _Solved, outcome: Outcome) -> dict[str, int]:
        """Bounds of stages given what the outcome reaches in those before: its placement may have lost some of it."""
        reached = {
            name: value_of(self.problem, outcome.draft, unfunded=unfunded) / self._unit
            for name, unfunded in START_STAGES.items()
        }
        reached["recalled"] = solved.master.held.most - outcome.recalled
        reached["payers"] = -nearness(self.problem, outcome.draft) / 1000
        model = solved.master.model
        rows = {name: (row, held) for name, row, held in solved.kept}
        for row, _ in rows.values():
            model.row_lower[row] = -INF
        bounds: dict[str, int] = {}
        intact = True
        relaxation = Relaxation(model, self.settings)
        objectives = list(self._objectives(solved.master))
        later = any(costs for _, costs in objectives[1:])
        for name, costs in objectives:
            if intact and name in solved.bounds:
                bounds[name] = solved.bounds[name]
                if costs and later and not self.problem.exact and len(bounds) == 1:
                    relaxation.best(costs)  # the others begin at its optimum
            else:
                bound = relaxation.best(costs, steps=None if self.problem.exact else STEPS).bound if costs else 0.0
                bounds[name] = self._bound(solved.master, name, bound)
            if name in rows:
                row, held = rows[name]
                half = 0.5 / {"payers": 1000, "recalled": 1}.get(name, self._unit)  # of what its integers can differ by
                intact = intact and reached[name] >= held - max(half, NOISE * abs(held))
                relaxation.raise_row(row, reached[name] - NOISE * max(1.0, abs(reached[name])))
        return bounds

    def _mended(self, solved: _Solved, placed: _Placed) -> Iterator[Outcome]:
        """What solving a large master again near its solution comes to, where that is not yet close to the bound."""
        if self.problem.exact or not SMALL < solved.master.integers <= AGAIN:
            return
        assert solved.solution.values is not None
        unfunded = START_STAGES[self._order()[0]]
        worth = value_of(self.problem, placed.outcome.draft, unfunded=unfunded) / self._unit
        if worth >= solved.solution.bound * (1 - CLOSE * self.settings["mip_rel_gap"]):
            return
        first = First(solved.master, solved.solution.values, placed.outcome.draft, worth, placed.failed, placed.left)
        again = solve_again(first, self._room(), self.settings, unfunded=unfunded)
        if again is not None and again.solution.objective > worth:
            yield self._place(again.master, again.solution, self._room()).outcome

    def _place(self, master: Master, solution: Solution, room: Room) -> _Placed:
        """A solution as a plan: on nodes, paid, and topped up."""
        assert solution.values is not None
        problem = self.problem
        starts = read_starts(master, solution.values)
        draft = Draft(starts, read_pieces(master, solution.values, starts, self.settings))
        if master.seats:
            failed = seating.seat(room, master, solution.values, draft.pieces)
            lost = {piece.candidate for piece in failed}
        else:
            failed, lost = lay(problem, room, master.kinds, draft, self._worth(), self.settings)
        _drop(problem, room, draft, lost)
        went = [i for i, column in master.held.stays.items() if solution.values[column] < HALF]
        unpaid, _ = pay(problem, room, draft, self.settings, self._may_go(went))
        _drop(problem, room, draft, set(unpaid))
        left = frozenset(domain for domain, gpus in enumerate(room.domain_free().tolist()) if gpus)
        stays = self._top_up(room, draft).stays
        went = [i for i, stay in enumerate(stays) if not stay]
        _, nearest = pay(problem, room, draft, self.settings, self._may_go(went), settled=True)
        tight = {piece.kind for piece in failed}
        nearest = min(nearest, nearness(problem, draft))  # payments that stand may recall other claims than the model's
        outcome = Outcome(draft, room, self.settings, recalled(problem, draft), nearest=nearest)
        domains = (domain for kind in master.kinds if kind.index in tight for domain in kind.domains)
        return _Placed(outcome, frozenset(domains), left)

    def _worth(self) -> list[int]:
        """What the start of each candidate adds to the first stage, at its least width."""
        unfunded = START_STAGES[self._order()[0]]
        found = []
        for candidate in self.problem.candidates:
            kind = self.problem.types[candidate.type]
            found.append(kind.base_gpus * candidate.weight if kind.unfunded == unfunded else 0)
        return found

    def _may_go(self, went: Iterable[int]) -> Set[int] | None:
        """What the payers may recall: on large problems only what the starts were found to recall."""
        return None if self.problem.exact else frozenset(went)

    def _everything(self, stage: str) -> int:
        """The bound without a solver: everything starts at full width."""
        return sum(
            (kind.base_gpus + kind.lowered.steps * kind.step_gpus) * self.problem.candidates[c].weight
            for kind in self.problem.types
            if kind.unfunded == (stage == "opportunistic")
            for c in kind.members
        )

    @property
    def _unit(self) -> int:
        """What one unit of the model's objective is in the stages' GPU-seconds of weight."""
        return int(self.problem.book.money.policy.age.unit)

    def _bound(self, master: Master, name: str, bound: float) -> int:
        """A bound of the model as an integer of the stage."""
        if name == "recalled":
            return 0 if bound == INF else max(0, master.held.most - integer_bound(bound))
        if name == "payers":
            return 0 if bound == INF else integer_bound(1000 * bound, least=True)
        return self._everything(name) if bound == INF else integer_bound(self._unit * bound)

    def _certified(self, outcome: Outcome, bounds: dict[str, int]) -> Outcome:
        """The outcome with the certificates of its stages, given their bounds."""
        problem, draft = self.problem, outcome.draft
        found = []
        for name in self._order():
            value = value_of(problem, draft, unfunded=START_STAGES[name])
            found.append(Certified(name, "GPU-seconds of weight", "max", value, bounds[name]))
            if name == "starts":
                found.append(Certified("recalled", "GPUs", "min", outcome.recalled, bounds.get("recalled", 0)))
        near = bounds.get("payers")
        least = outcome.nearest if near is None else near
        value = nearness(problem, draft)
        found.append(Certified("payers", "milli-GPUs × rank", "min", value, least, proven=near is not None))
        for stage in found:
            wrong = stage.bound < stage.value if stage.sense == "max" else stage.bound > stage.value
            if wrong:
                raise ArithmeticError(f"stage {stage.name} reaches {stage.value}, beyond its bound {stage.bound}")
        domains = compact.domains_used((p.candidate, p.domain) for p in draft.pieces)
        found.append(Certified("domains", "domains of runs", "min", domains, domains, proven=False))
        holes = compact.holes(outcome.room.domain_free())
        found.append(Certified("holes", "squared free GPUs of domains", "max", holes, holes, proven=False))
        return replace(outcome, stages=tuple(found))


def incumbents(problem: Problem, new_room: Callable[[], Room], gap: float, seed: int) -> Iterator[Outcome]:
    """Better and better outcomes for a problem, first the greedy one."""
    settings = options(seed, 0.0, EXACT_NODES) if problem.exact else options(seed, gap, NODES)
    return Search(problem, new_room, settings).incumbents()


def _in_parts(master: Master, found: Solution) -> list[int]:
    """Columns of starts, where some run starts in part: all, as only their sums are integer.

    At an optimum no run does; but a stage is held at its optimum less a rounding, and for that a later one may trade a
    hundredth of a run for one that is worth as good as the same.
    """
    if found.values is None:
        return []
    columns = [*master.starts.start.values(), *master.starts.steps.values()]
    values = found.values[columns]
    return columns if bool((abs(values - values.round()) > _WHOLE).any()) else []


def _by_age(problem: Problem, *, unfunded: bool) -> list[int]:
    """Candidates, heaviest first, then by creation and name."""
    mine = [i for i, c in enumerate(problem.candidates) if problem.types[c.type].unfunded == unfunded]
    return sorted(mine, key=lambda i: problem.candidates[i].order)


def _drop(problem: Problem, room: Room, draft: Draft, candidates: set[int]) -> None:
    """Take starts out of a draft, and where fewer of a gang are left than have to start together, all of it."""
    lost = {problem.candidates[c].run.key for c in candidates}
    for key in gangs.too_few_left(problem.gangs, draft.started(problem), lost):
        candidates |= {*problem.ways.get(key, ())}
    for piece in draft.pieces:
        if piece.candidate in candidates:
            room.give_back(piece.chunks, piece.load)
    draft.starts = [start for start in draft.starts if start.candidate not in candidates]
    draft.pieces = [piece for piece in draft.pieces if piece.candidate not in candidates]
    for candidate in candidates:
        draft.paid.pop(candidate, None)
