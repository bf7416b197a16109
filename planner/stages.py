"""The stages of the objective, solved in order, each with its certificate (spec §4).

Stage 3 is solved on the master; its bound is the solver's own dual bound on a relaxation of every plan, so it holds
whatever placement makes of the solution. Where placement cannot follow, the kinds of domains that failed are split and
the master is solved again, while it is small; what still fails is taken out, and what fits is added.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from planner import greedy
from planner.greedy import Draft, Purses
from planner.master import Master, build, read_pieces, read_starts
from planner.pay import pay
from planner.place import Start, place
from planner.room import Room
from planner.solver import Settings, Solution, options, solve
from policies import demand
from policies.model import INF
from policies.places import Kind, kinds
from policies.problem import Problem

SMALL = 1500
"""Most integer columns of a master that is solved again with split kinds."""
ROUNDS = 6
"""Most times that it is."""


@dataclass
class Certified:
    """A stage's value (of the draft as placed) and bound, in the stage's own integers."""

    name: str
    unit: str
    sense: str
    value: int
    bound: int
    proven: bool = True


@dataclass
class Outcome:
    """A draft and the certificates of its stages."""

    draft: Draft
    room: Room
    stages: list[Certified] = field(default_factory=list)


def value_of(problem: Problem, draft: Draft, *, unfunded: bool) -> int:
    """Σ Active GPUs × weight of the draft's funded (stage 3) or unfunded (stage 6) starts: GPU-seconds, exact."""
    total = 0
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        kind = problem.types[candidate.type]
        if kind.unfunded == unfunded:
            total += (kind.base_gpus + start.steps * kind.step_gpus) * candidate.weight
    return total


def by_age(problem: Problem, *, unfunded: bool) -> list[int]:
    """Candidates, heaviest first, then by creation and name."""
    mine = [
        i for i, candidate in enumerate(problem.candidates) if problem.types[candidate.type].unfunded == unfunded
    ]
    return sorted(
        mine,
        key=lambda i: (
            -problem.candidates[i].weight,
            problem.candidates[i].run.created,
            problem.candidates[i].run.key,
        ),
    )


def top_up(problem: Problem, room: Room, places: list[Kind], draft: Draft) -> None:
    """Add what still fits: funded work first, then opportunistic fill."""
    purses = Purses.fresh(problem)
    purses.add(draft)
    for unfunded in (False, True):
        greedy.fill(problem, room, places, purses, draft, by_age(problem, unfunded=unfunded))


def incumbents(problem: Problem, new_room: Callable[[], Room], gap: float, seed: int) -> Iterator[Outcome]:
    """Better and better outcomes: the greedy one, then the solved one."""
    room = new_room()
    places = kinds(problem.fleet, room.free, frozenset())
    draft = Draft()
    top_up(problem, room, places, draft)
    first = Outcome(draft, room)
    total = sum(
        (problem.types[c.type].base_gpus + problem.types[c.type].lowered.steps * problem.types[c.type].step_gpus)
        * c.weight
        for c in problem.candidates
        if not problem.types[c.type].unfunded
    )
    first.stages = _certificates(problem, first, {False: total, True: 0})
    yield first
    if problem.candidates:
        yield _solved(problem, new_room, options(seed, gap), first)


def _solved(problem: Problem, new_room: Callable[[], Room], settings: Settings, first: Outcome) -> Outcome:
    split: frozenset[int] = frozenset()
    best = first
    bound = INF
    for _ in range(ROUNDS):
        room = new_room()
        places = kinds(problem.fleet, room.free, split)
        master = build(problem, places, room.capacity)
        solution = _stage(master, settings, unfunded=False)
        bound = min(bound, solution.bound)
        if solution.values is None:
            break
        outcome, failed = _place(master, solution, room, settings)
        if value_of(problem, outcome.draft, unfunded=False) > value_of(problem, best.draft, unfunded=False):
            best = outcome
        if not failed or master.integers > SMALL or failed <= split:
            break
        split |= failed
    best.stages = _certificates(problem, best, {False: whole_bound(problem, bound), True: 0})
    return best


def whole_bound(problem: Problem, bound: float) -> int:
    """A bound in the model's units as an integer in the stage's, never below it: half a unit or 1e-9 is noise."""
    scaled = bound * int(problem.book.money.policy.age.unit)
    return math.floor(scaled + max(0.5, 1e-9 * scaled))


def _stage(master: Master, settings: Settings, *, unfunded: bool) -> Solution:
    model = master.model
    model.cost = [0.0] * len(model.cost)
    for column, weight in demand.objective(master.problem, master.starts, unfunded=unfunded).items():
        model.cost[column] = weight
    return solve(model, settings)


def _place(master: Master, solution: Solution, room: Room, settings: Settings) -> tuple[Outcome, frozenset[int]]:
    """The outcome of a solution, and the domains of kinds in which some piece found no place."""
    assert solution.values is not None
    problem = master.problem
    starts = [
        start
        for start in read_starts(master, solution.values)
        if not problem.types[problem.candidates[start.candidate].type].unfunded
    ]
    pieces = read_pieces(master, solution.values, starts)
    failed = place(problem, room, master.kinds, pieces)
    lost = {piece.candidate for piece in failed}
    draft = Draft(
        starts=[start for start in starts if start.candidate not in lost],
        pieces=[piece for piece in pieces if piece.candidate not in lost],
    )
    for piece in pieces:
        if piece.candidate in lost and piece.chunks:
            room.give_back(piece.chunks, problem.types[problem.candidates[piece.candidate].type].load)
    unpaid = set(pay(problem, room, draft, settings))
    drop(problem, room, draft, unpaid)
    top_up(problem, room, master.kinds, draft)
    tight = {piece.kind for piece in failed}
    return Outcome(draft, room), frozenset(d for kind in master.kinds if kind.index in tight for d in kind.domains)


def drop(problem: Problem, room: Room, draft: Draft, candidates: set[int]) -> None:
    """Take starts out of a draft, and with a member of a gang its whole gang."""
    keys = {problem.candidates[c].run.key for c in candidates}
    for gang in problem.gangs:
        if keys & set(gang):
            candidates |= {c for key in gang for c in problem.ways.get(key, ())}
    for piece in draft.pieces:
        if piece.candidate in candidates:
            room.give_back(piece.chunks, problem.types[problem.candidates[piece.candidate].type].load)
    draft.starts = [start for start in draft.starts if start.candidate not in candidates]
    draft.pieces = [piece for piece in draft.pieces if piece.candidate not in candidates]
    for candidate in candidates:
        draft.paid.pop(candidate, None)


def _certificates(problem: Problem, outcome: Outcome, bounds: dict[bool, int]) -> list[Certified]:
    value = value_of(problem, outcome.draft, unfunded=False)
    return [Certified("starts", "GPU-seconds of weight", "max", value, max(value, bounds[False]))]
