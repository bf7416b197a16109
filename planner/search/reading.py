"""Reading a solution of the master: which runs start, and in which kind of domain each of their groups lies."""

from collections.abc import Mapping
from typing import NamedTuple

from jobtree.world.tables.values import Floats
from planner.placement.place import Piece, Start, pieces_of
from policies.inputs.claims import RunKey
from policies.inputs.shapes import Shape
from policies.model.master import Master


class Alike(NamedTuple):
    """Groups that a master's solution does not tell apart: a type's, of one shape."""

    type: int
    shape: Shape


def read_starts(master: Master, values: Floats) -> list[Start]:
    """The starts of a solution. Among runs that only age tells apart the oldest go first: never a worse value."""
    problem = master.problem
    found: list[Start] = []
    started: set[RunKey] = set()
    for kind in sorted(problem.types, key=lambda t: (t.unfunded, t.index)):
        columns = [master.starts.start[c] for c in kind.members if c in master.starts.start]
        if not columns:
            continue
        total = round(sum(float(values[master.starts.steps[c]]) for c in kind.members if c in master.starts.steps))
        count = round(float(values[columns].sum()))
        waiting = [c for c in kind.members if problem.candidates[c].run.key not in started]
        for candidate in waiting[:count]:
            steps = min(total, kind.lowered.steps)
            total -= steps
            found.append(Start(candidate, steps))
            started.add(problem.candidates[candidate].run.key)
    return found


def read_pieces(master: Master, values: Floats, starts: list[Start]) -> list[Piece]:
    """Pieces of the starts, each with its kind of domain: the one with most groups left; -1 (any) where none is."""
    found = [piece for start in starts for piece in pieces_of(master.problem, start)]
    there = _there(master, values)
    for piece in found:
        left = there.get(_alike(master, piece, there), {})
        piece.kind = min(left, key=lambda place: (-left[place], place), default=-1)
        if piece.kind >= 0:
            _take(left, piece.kind, 1)
    return found


def _take(left: dict[int, int], place: int, count: int) -> None:
    left[place] -= count
    if not left[place]:
        del left[place]


def _there(master: Master, values: Floats) -> dict[Alike, dict[int, int]]:
    """Groups that the solution has in each kind of domain."""
    found: dict[Alike, dict[int, int]] = {}
    for (kind, shape, place), column in master.starts.groups.items():
        if count := round(float(values[column])):
            found.setdefault(Alike(kind, shape), {})[place] = count
    return found


def _alike(master: Master, piece: Piece, there: Mapping[Alike, object]) -> Alike:
    """Key under which a piece counts; a run that lies together, wider than at its least, stands where its base is."""
    kind = master.problem.type_of(piece.candidate)
    found = Alike(kind.index, piece.shape)
    return Alike(kind.index, kind.lowered.pieces()[0]) if found not in there and kind.lowered.together else found
