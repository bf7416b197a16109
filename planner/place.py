"""Placement: from groups per kind of domain to slots on nodes, by construction in a fixed order.

First every piece gets a domain, biggest first: the run's other domains, then the domain that takes most of the run,
then the tightest fit (spec §4 stages 8 and 9). A domain accepts a piece while, for every pod size, what it has
accepted fits its capacity; for sizes that divide one another that is exact. Then, domain by domain, pods go to nodes,
biggest pods first, and groups without a pod size fill what is left.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from planner.room import Chunk, Room
from policies.places import Kind, pod_units, usable
from policies.problem import Problem
from policies.shapes import NO_LOAD, PodLoad, Shape


@dataclass(frozen=True)
class Start:
    """A run that starts: candidate and steps above its least width."""

    candidate: int
    steps: int


@dataclass
class Piece:
    """What of one start must lie in one domain.

    ``groups``: its groups with their shapes; ``shape``: all of them together; ``domain``, ``chunks``: where.
    """

    candidate: int
    shape: Shape
    groups: tuple[tuple[int, Shape], ...]
    sites: frozenset[int]
    load: PodLoad
    kind: int = -1
    domain: int = -1
    chunks: list[Chunk] = field(default_factory=list)


def pieces_of(problem: Problem, start: Start) -> list[Piece]:
    """The pieces of a start, groups numbered from 0."""
    kind = problem.types[problem.candidates[start.candidate].type]
    lowered = kind.lowered
    groups = [Shape(size, lowered.pod, lowered.spares) for size in lowered.groups(start.steps)]
    if lowered.together:
        whole = Shape(sum(g.gpus for g in groups), lowered.pod, lowered.spares * len(groups))
        return [Piece(start.candidate, whole, tuple(enumerate(groups)), kind.sites, kind.load)]
    return [
        Piece(start.candidate, shape, ((group, shape),), kind.sites, kind.load) for group, shape in enumerate(groups)
    ]


class Domains:
    """What each domain has accepted, per part of its sites and pod size."""

    def __init__(self, room: Room, kinds: list[Kind], pieces: Iterable[Piece]) -> None:
        self._room = room
        self.kind_of = {domain: kind for kind in kinds for domain in kind.domains}
        keys: dict[int, set[tuple[frozenset[int], int, PodLoad]]] = {}
        for shape, sites, own in {(p.shape, p.sites, p.load) for p in pieces}:
            for kind in kinds:
                if part := usable(kind, sites):
                    keys.setdefault(kind.index, set()).update(
                        (part, max(1, shape.pod), load) for load in (NO_LOAD, own)
                    )
        self._keys = {k: sorted(v, key=lambda key: (sorted(key[0]), *key[1:])) for k, v in keys.items()}
        self._left: dict[tuple[int, frozenset[int], int, PodLoad], int] = {}

    def left(self, domain: int, part: frozenset[int], pod: int, load: PodLoad = NO_LOAD) -> int:
        """GPUs that pods of this size and load can still use."""
        key = (domain, part, pod, load)
        if key not in self._left:
            self._left[key] = self._room.capacity(domain, part, pod, load)
        return self._left[key]

    def accepts(self, domain: int, piece: Piece) -> bool:
        """Does the piece fit beside what has been accepted?"""
        part = usable(self.kind_of[domain], piece.sites)
        return bool(part) and all(
            self.left(domain, other, pod, load) >= units for other, pod, load, units in self._taken(domain, part, piece)
        )

    def accept(self, domain: int, piece: Piece) -> None:
        """Count it."""
        part = usable(self.kind_of[domain], piece.sites)
        for other, pod, load, units in list(self._taken(domain, part, piece)):
            self._left[domain, other, pod, load] = self.left(domain, other, pod, load) - units
        piece.domain = domain

    def _taken(
        self, domain: int, part: frozenset[int], piece: Piece
    ) -> Iterator[tuple[frozenset[int], int, PodLoad, int]]:
        for other, pod, load in self._keys.get(self.kind_of[domain].index, ()):
            if part <= other and load in (NO_LOAD, piece.load) and (units := pod_units(piece.shape, pod)):
                yield other, pod, load, units


def place(room: Room, kinds: list[Kind], pieces: list[Piece]) -> list[Piece]:
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
    stranded: list[Piece] = []
    for piece in sorted(settled, key=lambda p: (p.domain, -p.shape.pod, -p.shape.size, p.candidate, p.groups)):
        chunks = room.settle(piece.domain, piece.sites, list(piece.groups), piece.load)
        if chunks is None:
            stranded.append(piece)
        else:
            piece.chunks = chunks
    return failed + [piece for piece in stranded if not _rescue(room, piece)]


def _rescue(room: Room, piece: Piece) -> bool:
    """Any domain at all, tightest first, for a piece whose own one has the GPUs but not the nodes."""
    for _, domain in sorted((room.capacity(d, piece.sites, 1, NO_LOAD), d) for d in room.nodes_of):
        chunks = room.settle(domain, piece.sites, list(piece.groups), piece.load)
        if chunks is not None:
            piece.domain, piece.chunks = domain, chunks
            return True
    return False


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
