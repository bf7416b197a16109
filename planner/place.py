"""Placement: from groups per kind of domain to slots on nodes, by construction in a fixed order.

First every piece gets a domain, biggest first: the run's other domains, then the domain that takes most of the run,
then the tightest fit (spec §4 stages 8 and 9). A domain accepts a piece while, for every pod size, what it has
accepted fits its capacity; for sizes that divide one another that is exact. Then, domain by domain, pods go to nodes,
biggest pods first, and groups without a pod size fill what is left.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.room import Chunk, Room
from policies.places import Kind, pod_units, usable
from policies.problem import Problem
from policies.shapes import Shape


@dataclass(frozen=True)
class Start:
    """A run that starts: candidate and steps above its least width."""

    candidate: int
    steps: int


@dataclass
class Piece:
    """One shape of one start. ``groups``: (index, Active GPUs) of the run's groups in it; ``domain``, ``chunks``: where."""

    candidate: int
    shape: Shape
    groups: tuple[tuple[int, int], ...]
    sites: frozenset[int]
    kind: int = -1
    domain: int = -1
    chunks: list[Chunk] = field(default_factory=list)


def pieces_of(problem: Problem, start: Start) -> list[Piece]:
    """The pieces of a start, groups numbered from 0."""
    kind = problem.types[problem.candidates[start.candidate].type]
    lowered = kind.lowered
    sizes = lowered.groups(start.steps)
    if lowered.together:
        shape = Shape(sum(sizes), lowered.pod, lowered.spares * len(sizes))
        return [Piece(start.candidate, shape, tuple(enumerate(sizes)), kind.sites)]
    return [
        Piece(start.candidate, Shape(size, lowered.pod, lowered.spares), ((group, size),), kind.sites)
        for group, size in enumerate(sizes)
    ]


class Domains:
    """What each domain has accepted, per part of its sites and pod size."""

    def __init__(self, room: Room, kinds: list[Kind], pieces: Iterable[Piece]) -> None:
        self._room = room
        self.kind_of = {domain: kind for kind in kinds for domain in kind.domains}
        keys: dict[int, set[tuple[frozenset[int], int]]] = {}
        for shape, sites in {(p.shape, p.sites) for p in pieces}:
            for kind in kinds:
                if part := usable(kind, sites):
                    keys.setdefault(kind.index, set()).add((part, max(1, shape.pod)))
        self._keys = {k: sorted(v, key=lambda key: (sorted(key[0]), key[1])) for k, v in keys.items()}
        self._left: dict[tuple[int, frozenset[int], int], int] = {}

    def left(self, domain: int, part: frozenset[int], pod: int) -> int:
        """GPUs that pods of this size can still use."""
        key = (domain, part, pod)
        if key not in self._left:
            self._left[key] = self._room.capacity(domain, part, pod)
        return self._left[key]

    def accepts(self, domain: int, piece: Piece) -> bool:
        """Does the piece fit beside what has been accepted?"""
        part = usable(self.kind_of[domain], piece.sites)
        return bool(part) and all(
            self.left(domain, other, pod) >= units for other, pod, units in self._taken(domain, part, piece.shape)
        )

    def accept(self, domain: int, piece: Piece) -> None:
        """Count it."""
        part = usable(self.kind_of[domain], piece.sites)
        for other, pod, units in list(self._taken(domain, part, piece.shape)):
            self._left[domain, other, pod] = self.left(domain, other, pod) - units
        piece.domain = domain

    def _taken(self, domain: int, part: frozenset[int], shape: Shape) -> Iterable[tuple[frozenset[int], int, int]]:
        for other, pod in self._keys.get(self.kind_of[domain].index, ()):
            if part <= other and (units := pod_units(shape, pod)):
                yield other, pod, units


def place(problem: Problem, room: Room, kinds: list[Kind], pieces: list[Piece]) -> list[Piece]:
    """Give every piece a domain of its kind and slots; returns those that found none (their runs must go)."""
    domains = Domains(room, kinds, pieces)
    by_run: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_run.setdefault(piece.candidate, []).append(piece)
    failed: list[Piece] = []
    order = sorted(by_run, key=lambda c: (-max(p.shape.size for p in by_run[c]), -_gpus(by_run[c]), c))
    for candidate in order:
        failed += _choose_domains(domains, kinds, by_run[candidate])
    lost = {piece.candidate for piece in failed}
    settled = [piece for piece in pieces if piece.candidate not in lost]
    for piece in sorted(settled, key=lambda p: (p.domain, -p.shape.pod, -p.shape.size, p.candidate, p.groups)):
        load = problem.types[problem.candidates[piece.candidate].type].load
        chunks = room.fit(piece.domain, piece.sites, piece.shape, load)
        if chunks is None:
            failed.append(piece)
            continue
        piece.chunks = chunks
        room.take(chunks, load)
    return failed


def _gpus(pieces: list[Piece]) -> int:
    return sum(piece.shape.size for piece in pieces)


def _choose_domains(domains: Domains, kinds: list[Kind], pieces: list[Piece]) -> list[Piece]:
    failed = []
    mine: set[int] = set()
    waiting = sorted(pieces, key=lambda p: (-p.shape.size, p.groups))
    for i, piece in enumerate(waiting):
        options = kinds[piece.kind].domains if piece.kind >= 0 else [d for kind in kinds for d in kind.domains]
        rest = sum(1 for other in waiting[i:] if other.shape == piece.shape and other.kind == piece.kind)
        open_to = [domain for domain in options if domains.accepts(domain, piece)]
        if not open_to:
            failed.append(piece)
            continue
        best = min(open_to, key=lambda d: (_preference(domains, d, piece, rest, mine), d))
        domains.accept(best, piece)
        mine.add(best)
    return failed


def _preference(domains: Domains, domain: int, piece: Piece, rest: int, mine: set[int]) -> tuple[bool, int, int]:
    """Least first: a domain that the run uses already, one that takes most of the rest, the tightest."""
    part = usable(domains.kind_of[domain], piece.sites)
    left = domains.left(domain, part, max(1, piece.shape.pod))
    return domain not in mine, -min(rest, left // max(1, piece.shape.size)), left
