"""Stage 3: most funded demand started (spec §4), and what a start is made of.

    max Σ over started runs of  Active GPUs × (age.unit + min(age, age.cap))

A run starts whole: each of its groups lies in some kind of domain,

    Σ_kinds groups(type, shape, kind) = per run × Σ starts (+ per step × Σ steps),   steps ≤ most steps × start
    steps(type, kind) ≤ most steps × groups(type, kind)   where a run's groups must lie in one domain;
    groups(type, kind) ≤ (1 + most steps) × runs(type, kind),  Σ_kinds runs ≤ Σ starts   where steps look like the base
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from policies.inputs.claims import RunKey
from policies.inputs.places import Kind, usable
from policies.inputs.shapes import Shape
from policies.model.capacity import PieceKey
from policies.model.linear import INF, Model
from policies.model.problem import Problem, RunType
from policies.model.trees import Width


@dataclass
class Starts:
    """Columns of the starts.

    ``start``, ``steps``: by candidate; ``count``: starts by type; ``groups``: by (type, shape, kind); ``pieces``: the
    same by what they ask of a place.
    """

    start: dict[int, int]
    count: dict[int, int]
    steps: dict[int, int]
    groups: dict[tuple[int, Shape, int], int]
    pieces: dict[PieceKey, list[int]]


def columns(model: Model, problem: Problem, kinds: list[Kind]) -> Starts:
    """Columns and rows of every type that has a place to be in."""
    starts = Starts({}, {}, {}, {}, {})
    for kind in problem.types:
        _type(model, kind, [k for k in kinds if usable(k, kind.sites)], starts)
    for run, ways in sorted(problem.ways.items()):
        if len(ways) > 1:
            model.row(("one-way", *run), [(starts.start[c], 1.0) for c in ways if c in starts.start], -INF, 1.0)
    return starts


def _type(model: Model, kind: RunType, places: list[Kind], starts: Starts) -> None:
    if not places:
        return
    single = len(kind.members) == 1
    for candidate in kind.members:
        starts.start[candidate] = model.column(("start", candidate), upper=1.0, integer=single)
    own = [starts.start[c] for c in kind.members]
    count = own[0]
    if not single:
        count = model.column(("starts", kind.index), upper=float(len(own)), integer=True)
        model.row(("type", kind.index), [*((c, 1.0) for c in own), (count, -1.0)], 0.0, 0.0)
    starts.count[kind.index] = count
    steps = _steps(model, kind, starts) if kind.lowered.steps else None
    wanted: dict[Shape, list[tuple[int, float]]] = {}
    for shape, times in kind.pieces:
        wanted.setdefault(shape, []).append((count, -float(times)))
    for shape, times in kind.step_pieces:
        if steps is not None:
            wanted.setdefault(shape, []).append((steps, -float(times)))
    for shape, terms in wanted.items():
        mine = []
        for place in places:
            column = model.column(("groups", kind.index, shape, place.index), integer=True)
            starts.groups[kind.index, shape, place.index] = column
            starts.pieces.setdefault((shape, place.index, usable(place, kind.sites), kind.load), []).append(column)
            mine.append((column, 1.0))
        model.row(("whole", kind.index, shape), [*mine, *terms], 0.0, 0.0)
    if kind.lowered.together and kind.lowered.steps:
        _together(model, kind, places, starts)


def _together(model: Model, kind: RunType, places: list[Kind], starts: Starts) -> None:
    (base, _), (step, _) = kind.pieces[0], kind.step_pieces[0]
    most = float(kind.lowered.steps)
    if base == step:  # one column counts both, so how many runs are in a place needs one of its own
        lies = [model.column(("lies-together", kind.index, place.index), integer=True) for place in places]
        for place, column in zip(places, lies, strict=True):
            groups = starts.groups[kind.index, base, place.index]
            model.row(("together", kind.index, place.index), [(groups, 1.0), (column, -1.0 - most)], -INF, 0.0)
        whole = [*((column, 1.0) for column in lies), (starts.count[kind.index], -1.0)]
        model.row(("together-runs", kind.index), whole, -INF, 0.0)
        return
    for place in places:
        base_column, step_column = (starts.groups[kind.index, shape, place.index] for shape in (base, step))
        model.row(("together", kind.index, place.index), [(step_column, 1.0), (base_column, -most)], -INF, 0.0)


def _steps(model: Model, kind: RunType, starts: Starts) -> int:
    most = float(kind.lowered.steps)
    for candidate in kind.members:
        column = starts.steps[candidate] = model.column(("steps", candidate), upper=most)
        model.row(("steps", candidate), [(column, 1.0), (starts.start[candidate], -most)], -INF, 0.0)
    total = model.column(("all-steps", kind.index), upper=most * len(kind.members), integer=True)
    model.row(("all-steps", kind.index), [*((starts.steps[c], 1.0) for c in kind.members), (total, -1.0)], 0.0, 0.0)
    return total


def type_of(problem: Problem, key: tuple[Any, ...]) -> int:
    """Type of which a column with this key counts starts, widths or places; -1 where it counts anything else."""
    what, number, *_ = key
    if what in ("start", "steps"):
        return problem.candidates[int(number)].type
    return int(number) if what in ("starts", "all-steps", "groups", "lies-together") else -1


def objective(problem: Problem, starts: Starts, *, unfunded: bool) -> dict[int, float]:
    """Column → GPU-weight in units of ``age.unit``: of funded starts (stage 3), or of unfunded ones (stage 6)."""
    unit = float(problem.book.money.policy.age.unit)
    found: dict[int, float] = {}
    for candidate, column in starts.start.items():
        kind = problem.type_of(candidate)
        if kind.unfunded == unfunded:
            weight = problem.candidates[candidate].weight / unit
            found[column] = weight * kind.base_gpus
            if candidate in starts.steps:
                found[starts.steps[candidate]] = weight * kind.step_gpus
    return found


def by_run(problem: Problem, starts: Starts) -> dict[RunKey, list[int]]:
    """Run → its start columns, funded or not."""
    return {run: [starts.start[way] for way in ways if way in starts.start] for run, ways in problem.ways.items()}


def widths(problem: Problem, starts: Starts) -> dict[RunKey, list[Width]]:
    """Run → the terms of its Active GPUs, funded or not."""
    return {
        run: [width for way in ways for width in _width(problem, starts, way)] for run, ways in problem.ways.items()
    }


def _width(problem: Problem, starts: Starts, candidate: int) -> Iterator[Width]:
    run = problem.candidates[candidate].run
    kind = problem.type_of(candidate)
    if candidate in starts.start:
        yield Width(run, starts.start[candidate], kind.base_gpus)
    if candidate in starts.steps:
        yield Width(run, starts.steps[candidate], kind.step_gpus)
