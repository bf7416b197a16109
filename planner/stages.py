"""The stages of the objective, solved in the Policy's order, each with its certificate (spec §4).

A bound comes from a relaxation of every plan, so it holds whatever placement makes of the solution; a value is that of
the draft as placed on slots and paid in whole GPUs. Small masters are solved whole, stage by stage, and solved again
with the kinds of domains split where placement could not follow. Large ones are solved in bands; their later stages are
filled greedily and certified by one LP each.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from planner import bands, greedy
from planner.draft import Draft
from planner.master import Master, build, read_pieces, read_starts
from planner.pay import pay
from planner.place import place
from planner.purses import Purses
from planner.room import Room
from planner.solver import Settings, Solution, options, solve
from policies import compact, demand, payers
from policies.model import INF
from policies.places import kinds
from policies.problem import Problem

SMALL = 400
"""Most integer columns of a master that is solved whole at once, and again with kinds split."""
MIDDLE = 12000
"""Most integer columns of a master that is solved whole from where its bands ended."""
ROUNDS = 8
"""Most times that a small master is solved, each time with more kinds split."""

Sense = Literal["max", "min"]


@dataclass
class Certified:
    """A stage's value (of the draft as placed) and bound, in the stage's own integers."""

    name: str
    unit: str
    sense: Sense
    value: int
    bound: int
    proven: bool = True


@dataclass
class Outcome:
    """A draft with the room that it leaves, and the certificates of its stages.

    ``nearest``: what stage 7 cannot go below for these starts on these nodes; ``master``: the one that was
    solved last.
    """

    draft: Draft
    room: Room
    stages: list[Certified] = field(default_factory=list)
    nearest: int = 0
    master: Master | None = None


@dataclass(frozen=True)
class Planner:
    """One problem and how it is to be solved. ``new_room``: what is free before anything starts."""

    problem: Problem
    new_room: Callable[[], Room]
    settings: Settings

    def _room(self) -> Room:
        """A fresh room that knows which sites are wanted by how many types."""
        room = self.new_room()
        for kind in self.problem.types:
            for site in kind.sites:
                room.wanted[site] += 1
        return room

    def incumbents(self) -> Iterator[Outcome]:
        """Better and better outcomes: the greedy one, then the solved one."""
        room = self._room()
        draft = Draft()
        self._top_up(room, draft)
        first = Outcome(draft, room)
        first.stages = self._certificates(first, {name: self._everything(name) for name in self._order()}, 0)
        yield first
        if self.problem.candidates:
            yield self._solved(first)

    def _order(self) -> list[str]:
        """The stages of starting that the Policy has on, in its order (spec §4)."""
        return [stage for stage in self.problem.book.money.policy.stages if stage in ("starts", "opportunistic")]

    def _top_up(self, room: Room, draft: Draft) -> None:
        """Add what still fits, so that the plan is maximal, in the order of the stages."""
        purses = Purses.after(self.problem, draft)
        for stage in self._order():
            order = _by_age(self.problem, unfunded=stage == "opportunistic")
            greedy.fill(self.problem, room, purses, draft, order)

    def _solved(self, first: Outcome) -> Outcome:
        problem = self.problem
        split: frozenset[int] = frozenset()
        best, bounds, nearest = first, {name: self._everything(name) for name in self._order()}, None
        for _ in range(ROUNDS):
            room = self._room()
            places = kinds(problem.fleet, room.free, split)
            master = build(problem, places, room.capacity, merged=not problem.exact)
            large = master.integers > SMALL and not problem.exact
            solution, found = self._master(master, large=large)
            bounds = {name: min(bounds[name], found.get(name, bounds[name])) for name in bounds}
            nearest = found.get("payers")
            if solution.values is None:
                break
            outcome, failed = self._place(master, solution, room)
            if self._rank(outcome) > self._rank(best):
                best = outcome
            if master.integers > MIDDLE or not failed or failed <= split:
                break
            split |= failed
        best.master = master
        best.stages = self._certificates(best, bounds, best.nearest if nearest is None else nearest)
        return best

    def _rank(self, outcome: Outcome) -> tuple[int, ...]:
        values = [value_of(self.problem, outcome.draft, unfunded=name == "opportunistic") for name in self._order()]
        return (*values, -nearness(self.problem, outcome.draft))

    def _master(self, master: Master, *, large: bool) -> tuple[Solution, dict[str, int]]:
        """Solve the master's stages in order. Returns the last solution, and a bound per stage."""
        bounds: dict[str, int] = {}
        best = Solution(None, -INF, INF, optimal=False)
        for number, name in enumerate(self._order()):
            costs = demand.objective(self.problem, master.starts, unfunded=name == "opportunistic")
            if not costs:
                bounds[name] = 0
                continue
            master.model.maximise(costs)
            if large and best.values is not None:
                bounds[name] = self._whole(solve(master.model, self.settings, relaxed=True).bound)
                continue
            found = self._in_bands(master) if large else solve(master.model, self.settings)
            bounds[name] = self._whole(found.bound)
            if found.values is None:
                break
            best = found
            master.model.keep(("stage", number), costs, found.objective)
        if self.problem.exact and not large and best.values is not None:
            costs = payers.objective(self.problem, master.purses, master.pay)
            master.model.maximise(costs)
            found = solve(master.model, self.settings)
            if found.values is not None:
                best = found
                bounds["payers"] = math.ceil(-1000 * found.bound - 0.5)
        return best, bounds

    def _in_bands(self, master: Master) -> Solution:
        found = bands.solve_large(master, self.settings)
        if found.values is None or master.integers > MIDDLE:
            return found
        whole = solve(master.model, self.settings, start=found.values.tolist())
        best = whole if whole.values is not None else found
        return Solution(best.values, best.objective, min(found.bound, whole.bound), optimal=whole.optimal)

    def _place(self, master: Master, solution: Solution, room: Room) -> tuple[Outcome, frozenset[int]]:
        """The outcome of a solution, and the domains of kinds in which some piece found no place."""
        assert solution.values is not None
        problem = self.problem
        starts = read_starts(master, solution.values)
        pieces = read_pieces(master, solution.values, starts)
        failed = place(room, master.kinds, pieces)
        draft = Draft(starts=starts, pieces=pieces)
        _drop(problem, room, draft, {piece.candidate for piece in failed})
        unpaid, _ = pay(problem, room, draft, self.settings)
        _drop(problem, room, draft, set(unpaid))
        self._top_up(room, draft)
        _, nearest = pay(problem, room, draft, self.settings)
        tight = {piece.kind for piece in failed}
        return Outcome(draft, room, nearest=nearest), frozenset(
            d for kind in master.kinds if kind.index in tight for d in kind.domains
        )

    def _everything(self, stage: str) -> int:
        """The bound without a solver: everything starts at full width."""
        return sum(
            (kind.base_gpus + kind.lowered.steps * kind.step_gpus) * self.problem.candidates[c].weight
            for kind in self.problem.types
            if kind.unfunded == (stage == "opportunistic")
            for c in kind.members
        )

    def _whole(self, bound: float) -> int:
        """A bound in the model's units as an integer in the stage's, never below it: half a unit or 1e-9 is noise."""
        if bound == INF:
            return max(self._everything(name) for name in self._order())
        scaled = bound * int(self.problem.book.money.policy.age.unit)
        return math.floor(scaled + max(0.5, 1e-9 * scaled))

    def _certificates(self, outcome: Outcome, bounds: dict[str, int], nearest: int) -> list[Certified]:
        problem, draft = self.problem, outcome.draft
        found = []
        for name in self._order():
            value = value_of(problem, draft, unfunded=name == "opportunistic")
            found.append(Certified(name, "GPU-seconds of weight", "max", value, max(value, bounds[name])))
        near = nearness(problem, draft)
        found.append(Certified("payers", "milli-GPUs × rank", "min", near, min(near, nearest)))
        domains = compact.domains_used((p.candidate, p.domain) for p in draft.pieces)
        found.append(Certified("domains", "domains of runs", "min", domains, domains, proven=False))
        holes = compact.holes(outcome.room.domain_free())
        found.append(Certified("holes", "squared free GPUs of domains", "max", holes, holes, proven=False))
        return found


def incumbents(problem: Problem, new_room: Callable[[], Room], gap: float, seed: int) -> Iterator[Outcome]:
    """Better and better outcomes for a problem, first the greedy one."""
    return Planner(problem, new_room, options(seed, 0.0 if problem.exact else gap)).incumbents()


def value_of(problem: Problem, draft: Draft, *, unfunded: bool) -> int:
    """Σ Active GPUs × weight of the draft's funded (stage 3) or unfunded (stage 6) starts: GPU-seconds, exact."""
    total = 0
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        kind = problem.types[candidate.type]
        if kind.unfunded == unfunded:
            total += (kind.base_gpus + start.steps * kind.step_gpus) * candidate.weight
    return total


def nearness(problem: Problem, draft: Draft) -> int:
    """Stage 7: Σ milli-GPUs × rank of the payers, exact."""
    total = 0
    for candidate, paid in draft.paid.items():
        rank = {payer.envelope: payer.rank for payer in problem.candidates[candidate].payers}
        for (active, _), payments in paid.items():
            milli = 1000 if active else problem.book.money.policy.spares.discount_milli
            total += sum(rank[envelope] * gpus * milli for envelope, gpus in payments.items())
    return total


def _by_age(problem: Problem, *, unfunded: bool) -> list[int]:
    """Candidates, heaviest first, then by creation and name."""
    mine = [i for i, c in enumerate(problem.candidates) if problem.types[c.type].unfunded == unfunded]
    return sorted(mine, key=lambda i: problem.candidates[i].order)


def _drop(problem: Problem, room: Room, draft: Draft, candidates: set[int]) -> None:
    """Take starts out of a draft, and with a member of a gang its whole gang."""
    keys = {problem.candidates[c].run.key for c in candidates}
    for gang in problem.gangs:
        if keys & set(gang):
            candidates |= {c for key in gang for c in problem.ways.get(key, ())}
    for piece in draft.pieces:
        if piece.candidate in candidates:
            room.give_back(piece.chunks, piece.load)
    draft.starts = [start for start in draft.starts if start.candidate not in candidates]
    draft.pieces = [piece for piece in draft.pieces if piece.candidate not in candidates]
    for candidate in candidates:
        draft.paid.pop(candidate, None)
