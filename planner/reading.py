"""Reading a solution of the master: which runs start, and in which kind of domain each of their groups lies."""

from collections import Counter
from collections.abc import Mapping, Set

from planner.master import Master
from planner.nearby import Alike, nearby
from planner.place import Piece, Start, pieces_of
from planner.solver import NOISE, Floats, Settings
from policies.claims import RunKey
from policies.problem import Problem, RunType


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
        for candidate in _chosen(problem, kind, values[columns], started):
            steps = min(total, kind.lowered.steps)
            total -= steps
            found.append(Start(candidate, steps))
            started.add(problem.candidates[candidate].run.key)
    return found


def _chosen(problem: Problem, kind: RunType, values: Floats, started: Set[RunKey]) -> list[int]:
    """Members that start, oldest first: as many of each that may recall the same as the solution has of them."""
    shares: dict[int, float] = {}
    for candidate, value in zip(kind.members, values.tolist(), strict=True):
        rights = problem.candidates[candidate].rights
        shares[rights] = shares.get(rights, 0.0) + value
    counts = {rights: int(share + NOISE) for rights, share in shares.items()}
    missing = round(sum(shares.values())) - sum(counts.values())
    for rights in sorted(shares, key=lambda r: (counts[r] - shares[r], r))[:missing]:
        counts[rights] += 1
    found = []
    for candidate in kind.members:
        rights = problem.candidates[candidate].rights
        if counts[rights] and problem.candidates[candidate].run.key not in started:
            counts[rights] -= 1
            found.append(candidate)
    return found


def read_pieces(master: Master, values: Floats, starts: list[Start], settings: Settings) -> list[Piece]:
    """Pieces of the starts, each with its kind of domain; -1 (any) where the solution has no group left.

    It is one where its run is to recall something, otherwise the one with most groups left.
    """
    found = [piece for start in starts for piece in pieces_of(master.problem, start)]
    there = _there(master, values)
    whose = [(_alike(master, piece, there), master.problem.candidates[piece.candidate].rights) for piece in found]
    lies = nearby(master, values, there, Counter(whose), settings)
    for (alike, _), mine in lies.items():
        for place, count in mine.items():
            _take(there[alike], place, count)
    for piece, (alike, rights) in zip(found, whose, strict=True):
        left = lies.get((alike, rights)) or there.get(alike, {})
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
    """What a piece counts as; a run that lies together at more than its least width stands where its base stands."""
    kind = master.problem.types[master.problem.candidates[piece.candidate].type]
    found = Alike(kind.index, piece.shape)
    return Alike(kind.index, kind.lowered.pieces()[0]) if found not in there and kind.lowered.together else found
