"""Reading a solution of the master: which runs start, and in which kind of domain each of their groups lies."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from planner.master import Master
from planner.place import Piece, Start, pieces_of
from planner.solver import Floats
from policies.claims import RunKey
from policies.places import usable
from policies.problem import Problem, RunType
from policies.recall_flows import Cell
from policies.shapes import Shape

_NOISE: Final = 1e-6


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
    counts = {rights: int(share + _NOISE) for rights, share in shares.items()}
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


def read_pieces(master: Master, values: Floats, starts: list[Start]) -> list[Piece]:
    """Pieces of the starts, each with its kind of domain."""
    places = _Places.of(master, values)
    found: list[Piece] = []
    for start in starts:
        pieces = pieces_of(master.problem, start)
        for piece in pieces:
            piece.kind = places.take(start.candidate, piece.shape)
        found += pieces
    return found


@dataclass
class _Places:
    """Groups that the solution has in each kind of domain, until they are given to runs.

    ``left``: (type, shape) → kind → groups; ``near``: cell → rights → GPUs of runs with these rights that are to lie
    there, for what they recall.
    """

    master: Master
    left: dict[tuple[int, Shape], dict[int, int]]
    near: dict[Cell, dict[int, float]]

    @classmethod
    def of(cls, master: Master, values: Floats) -> "_Places":
        left: dict[tuple[int, Shape], dict[int, int]] = {}
        for (kind, shape, place), column in master.starts.groups.items():
            count = round(float(values[column]))
            if count:
                left.setdefault((kind, shape), {})[place] = count
        near: dict[Cell, dict[int, float]] = {}
        for cell, by_rights in master.flows.near.columns.items() if master.flows.near else ():
            for rights, terms in by_rights.items():
                gpus = sum(unit * float(values[column]) for column, unit in terms)
                if gpus > _NOISE:
                    near.setdefault(cell, {})[rights] = gpus
        return cls(master, left, near)

    def take(self, candidate: int, shape: Shape) -> int:
        """A kind for a group of a run: where the run is to recall something, else where most groups are left.

        -1 (any) where the solution has no group left.
        """
        problem = self.master.problem
        kind, rights = problem.types[problem.candidates[candidate].type], problem.candidates[candidate].rights
        counts = self._counts(kind, shape)
        if not counts:
            return -1
        near = {place: self._near(kind, place) for place in counts}

        def rank(place: int) -> tuple[float, float, int]:
            wanted = {r: sum(mine.get(r, 0.0) for mine in near[place]) for mine in near[place] for r in mine}
            own = min(wanted.get(rights, 0.0), float(shape.gpus))
            others = sum(gpus for other, gpus in wanted.items() if other != rights)
            return -own, others - counts[place] * shape.gpus, place

        place = min(counts, key=rank)
        counts[place] -= 1
        if not counts[place]:
            del counts[place]
        for mine in near[place]:
            if rights in mine:
                mine[rights] -= shape.gpus
        return place

    def _near(self, kind: RunType, place: int) -> list[dict[int, float]]:
        """What is to lie there for what it recalls, by region."""
        region = self.master.problem.book.money.region
        near = self.master.flows.near
        if near is None or not self.near:
            return []
        regions = sorted({region[site] for site in usable(self.master.kinds[place], kind.sites)})
        cells = (near.network.cell(kind.index, r) for r in regions)
        return [self.near[cell] for cell in cells if cell in self.near]

    def _counts(self, kind: RunType, shape: Shape) -> dict[int, int]:
        """Counts for a shape; a run that lies together at more than its least width stands where its base stands."""
        direct = self.left.get((kind.index, shape))
        if direct is not None or not kind.lowered.together:
            return direct or {}
        return self.left.get((kind.index, kind.lowered.pieces()[0]), {})
