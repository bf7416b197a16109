"""The master MILP: every waiting run at once, groups per kind of domain, payments per purse (ARCHITECTURE.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.place import Piece, Start, pieces_of
from planner.solver import Floats
from policies import capacity, demand, flows, payments, recall_rows, seats, trees
from policies.claims import RunKey
from policies.demand import Starts
from policies.model import Model
from policies.payments import Purse
from policies.places import Capacity, Kind, usable
from policies.problem import Problem, RunType
from policies.recall_rows import Held, PayKey
from policies.seats import Seat, Seating
from policies.shapes import Shape


@dataclass
class Master:
    """The model and its columns by meaning.

    ``pay``: single payments, on exact problems; ``seats``: pods on nodes, where the model goes down to them;
    ``merged``: by the row of a cap, the other caps whose money it holds.
    """

    problem: Problem
    kinds: list[Kind]
    model: Model
    starts: Starts
    purses: list[Purse]
    pay: dict[PayKey, int]
    seats: dict[Seat, int]
    held: Held
    merged: dict[int, list[int]]

    @property
    def integers(self) -> int:
        """How many columns are integer."""
        return sum(self.model.integer)


def purse_index(problem: Problem) -> dict[int, int]:
    """Type → purse: types with equal payers share one, unless a limit of the single run keeps them apart."""
    found: dict[object, int] = {}
    index: dict[int, int] = {}
    for kind in problem.types:
        if kind.unfunded:
            continue
        own = payments.limits_runs(kind.sources, kind.max_borrow)
        example = problem.candidates[kind.members[0]]
        payers = example.payers if problem.exact else kind.sources
        key = (payers, example.recalls, kind.index if own else -1)
        index[kind.index] = found.setdefault(key, len(found))
    return index


def build(problem: Problem, kinds: list[Kind], room: Capacity, *, seatings: Sequence[Seating] = ()) -> Master:
    """Columns and rows of all rule families, in a fixed order; no objective yet.

    ``seatings``: the nodes, where the model is to say which pod lies on which.
    """
    model = Model()
    starts = demand.columns(model, problem, kinds)
    pieces = capacity.gather(model, starts.pieces)
    for kind in kinds:
        capacity.rows(model, kind, pieces.get(kind.index, []), room)
    seated = seats.columns(model, problem, kinds, starts, seatings) if seatings else {}
    purses = _purses(problem, kinds, starts, seated, {seating.node: seating.site for seating in seatings})
    held = recall_rows.columns(model, problem) if problem.exact else Held(problem)
    pay: dict[PayKey, int] = {}
    merged: dict[int, list[int]] = {}
    if problem.exact:
        pay = payments.rows(model, problem, purses, held, whole=bool(seated))
    else:
        merged = flows.rows(model, problem, purses)
    trees.rows(model, problem, starts)
    return Master(problem, kinds, model, starts, purses, pay, seated, held, merged)


def _purses(
    problem: Problem, kinds: list[Kind], starts: Starts, seated: Mapping[Seat, int], sites: Mapping[int, int]
) -> list[Purse]:
    index = purse_index(problem)
    region = problem.book.money.region
    purses: dict[int, Purse] = {}
    for kind in problem.types:
        if kind.index in index and kind.members[0] in starts.start:
            fresh = Purse(index[kind.index], kind.members[0], kind.sources, kind.max_borrow)
            purse = purses.setdefault(fresh.index, fresh)
            purse.starts += [starts.start[c] for c in kind.members]
    for seat, column in seated.items():
        kind = problem.types[seat.type]
        if not kind.unfunded:
            purses[index[kind.index]].add_seats(seat, region[sites[seat.node]], seats.unit(kind), column)
    for (type_index, shape, place), column in starts.groups.items():
        kind = problem.types[type_index]
        if not kind.unfunded and not seated:
            place_kind = kinds[place]
            regions = frozenset(region[site] for site in usable(place_kind, kind.sites))
            purses[index[type_index]].add(place_kind, regions, shape, column)
    return [purses[i] for i in sorted(purses)]


def read_starts(master: Master, values: Floats) -> list[Start]:
    """The starts of a solution. Among runs that only age tells apart the oldest go first: never a worse value."""
    problem = master.problem
    found: list[Start] = []
    started: set[RunKey] = set()
    for kind in sorted(problem.types, key=lambda t: (t.unfunded, t.index)):
        columns = [master.starts.start.get(c) for c in kind.members]
        if None in columns:
            continue
        count = round(float(np.sum(values[[c for c in columns if c is not None]])))
        total = round(sum(float(values[master.starts.steps[c]]) for c in kind.members if c in master.starts.steps))
        free = [c for c in kind.members if problem.candidates[c].run.key not in started]
        for candidate in free[:count]:
            steps = min(total, kind.lowered.steps)
            total -= steps
            found.append(Start(candidate, steps))
            started.add(problem.candidates[candidate].run.key)
    return found


def read_pieces(master: Master, values: Floats, starts: list[Start]) -> list[Piece]:
    """Pieces of the starts, each with its kind of domain; a run's groups stay in one kind while its count lasts."""
    problem = master.problem
    left: dict[tuple[int, Shape], dict[int, int]] = {}
    for (type_index, shape, place), column in master.starts.groups.items():
        count = round(float(values[column]))
        if count:
            left.setdefault((type_index, shape), {})[place] = count
    found: list[Piece] = []
    for start in starts:
        type_index = problem.candidates[start.candidate].type
        pieces = pieces_of(problem, start)
        for piece in pieces:
            piece.kind = _take(_counts(left, problem.types[type_index], piece.shape))
        found += pieces
    return found


def _counts(left: Mapping[tuple[int, Shape], dict[int, int]], kind: RunType, shape: Shape) -> dict[int, int]:
    """Counts for a shape; a run that lies together at more than its least width stands where its base stands."""
    direct = left.get((kind.index, shape))
    if direct is not None or not kind.lowered.together:
        return direct or {}
    return left.get((kind.index, kind.lowered.pieces()[0]), {})


def _take(counts: dict[int, int]) -> int:
    """The kind with most groups left; -1 (any) where the solution has none left."""
    if not counts:
        return -1
    place = min(counts, key=lambda k: (-counts[k], k))
    counts[place] -= 1
    if not counts[place]:
        del counts[place]
    return place
