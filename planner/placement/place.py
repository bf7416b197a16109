"""Placement: from groups per kind of domain to slots on nodes, by construction in a fixed order.

First every piece gets a domain, biggest first: the run's other domains, then the domain that takes most of the run,
then the tightest fit (spec §4 stages 8 and 9). A domain accepts a piece while, for every pod size, what it has
accepted fits its capacity; for sizes that divide one another that is exact. Then, domain by domain, pods go to nodes,
biggest pods first, and groups without a pod size fill what is left.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from jobtree.world.tables.values import Bools, Ints
from planner.placement.room import Chunk, Room
from planner.placement.vacancy import Need, Vacancies
from policies.inputs.places import Kind, pod_units, usable
from policies.inputs.shapes import NO_LOAD, PodLoad, Shape
from policies.model.problem import Problem


@dataclass(frozen=True)
class Start:
    """A run that starts: candidate, -1 where nobody pays for it, and steps above its least width."""

    candidate: int
    steps: int


@dataclass
class Piece:
    """Part of a start that must lie in one domain.

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
    kind = problem.type_of(start.candidate)
    lowered = kind.lowered
    groups = [Shape(size, lowered.pod, lowered.spares) for size in lowered.groups(start.steps)]
    if lowered.together:
        whole = Shape(sum(g.gpus for g in groups), lowered.pod, lowered.spares * len(groups))
        return [Piece(start.candidate, whole, tuple(enumerate(groups)), kind.sites, kind.load)]
    return [
        Piece(start.candidate, shape, ((group, shape),), kind.sites, kind.load) for group, shape in enumerate(groups)
    ]


class Domains:
    """Room of each domain of each kind beside what it has accepted, by sites, pod size and load."""

    def __init__(self, vacancies: Vacancies, kinds: list[Kind], pieces: Iterable[Piece]) -> None:
        self.kinds = kinds
        needs: dict[int, set[Need]] = {}
        for pod, sites, load in {(p.shape.pod, p.sites, p.load) for p in pieces}:
            for kind in kinds:
                if part := usable(kind, sites):
                    mine = needs.setdefault(kind.index, set())
                    mine.update((part, max(1, pod), weight) for weight in (NO_LOAD, load))
        self._left: dict[int, dict[Need, Ints]] = {
            index: {
                need: vacancies.of(*need)[list(kinds[index].domains)]
                for need in sorted(mine, key=lambda n: (sorted(n[0]), *n[1:]))
            }
            for index, mine in needs.items()
        }

    def left(self, kind: Kind, piece: Piece) -> Ints:
        """GPUs that the piece's pods can still use, per domain of the kind."""
        return self._left[kind.index][usable(kind, piece.sites), max(1, piece.shape.pod), NO_LOAD]

    def open_to(self, kind: Kind, piece: Piece) -> Bools:
        """Domains of the kind that can take the piece."""
        fits = np.ones(len(kind.domains), dtype=np.bool_)
        part = usable(kind, piece.sites)
        if not part:
            return ~fits
        for left, units in self._touched(kind, part, piece):
            fits &= left >= units
        return fits

    def loss(self, kind: Kind, piece: Piece) -> Ints:
        """GPUs that bigger pods could use and no longer could beside the piece, per domain of the kind."""
        part = usable(kind, piece.sites)
        own = self._left[kind.index].get((part, 1, NO_LOAD))
        total = np.zeros(len(kind.domains), dtype=np.int64)
        if own is None:
            return total
        after = own - piece.shape.size
        for (other, pod, load), left in self._left[kind.index].items():
            if pod > max(1, piece.shape.pod) and load == NO_LOAD and other == part:
                total += np.minimum(left, own // pod * pod) - np.minimum(left, after // pod * pod)
        return total

    def accept(self, kind: Kind, position: int, piece: Piece) -> None:
        """Count the piece in the kind's domain at ``position``."""
        for left, units in self._touched(kind, usable(kind, piece.sites), piece):
            left[position] -= units
        piece.domain = kind.domains[position]

    def _touched(self, kind: Kind, part: frozenset[int], piece: Piece) -> Iterator[tuple[Ints, int]]:
        for (other, pod, load), left in self._left.get(kind.index, {}).items():
            if part <= other and load in (NO_LOAD, piece.load) and (units := pod_units(piece.shape, pod, load)):
                yield left, units


def by_candidate(pieces: Iterable[Piece]) -> dict[int, list[Piece]]:
    """Pieces of each candidate, in their order."""
    found: dict[int, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(piece.candidate, []).append(piece)
    return found


def choose(room: Room, kinds: list[Kind], pieces: list[Piece]) -> list[Piece]:
    """Give every piece a domain of its kind; returns those for which there is none."""
    domains = Domains(Vacancies(room), kinds, pieces)
    by_run = by_candidate(pieces)
    failed: list[Piece] = []
    order = sorted(by_run, key=lambda c: (-max(p.shape.size for p in by_run[c]), -_gpus(by_run[c]), c))
    for candidate in order:
        failed += _choose_domains(domains, by_run[candidate])
    return failed


def settle(room: Room, pieces: list[Piece]) -> list[Piece]:
    """Give pieces slots in their domains; returns those that find none."""
    stranded: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: (p.domain, -p.shape.pod, -p.shape.size, p.candidate, p.groups)):
        chunks = room.settle(piece.domain, piece.sites, list(piece.groups), piece.load)
        if chunks is None:
            stranded.append(piece)
        else:
            piece.chunks = chunks
    return stranded


def _gpus(pieces: list[Piece]) -> int:
    return sum(piece.shape.size for piece in pieces)


def _choose_domains(domains: Domains, pieces: list[Piece]) -> list[Piece]:
    """Biggest pieces first, each where bigger pods lose least; of those the run's own domains first, then one that
    takes most of its rest, then the tightest.
    """
    failed = []
    mine: set[int] = set()
    waiting = sorted(pieces, key=lambda p: (-p.shape.size, p.groups))
    for i, piece in enumerate(waiting):
        rest = sum(1 for other in waiting[i:] if other.shape == piece.shape and other.kind == piece.kind)
        options = [domains.kinds[piece.kind]] if piece.kind >= 0 else domains.kinds
        best = min((option for kind in options for option in _best(domains, kind, piece, rest, mine)), default=None)
        if best is None:
            failed.append(piece)
            continue
        *_, index, position = best
        domains.accept(domains.kinds[index], position, piece)
        mine.add(piece.domain)
    return failed


def _best(
    domains: Domains, kind: Kind, piece: Piece, rest: int, mine: set[int]
) -> Iterator[tuple[int, bool, int, int, int, int, int]]:
    """The best domain of a kind, least first, if there is one: (…, kind, position)."""
    options = np.flatnonzero(domains.open_to(kind, piece))
    if not len(options):
        return
    left = domains.left(kind, piece)[options]
    most = -np.minimum(rest, left // max(1, piece.shape.size))
    others = np.asarray([kind.domains[position] not in mine for position in options.tolist()], dtype=np.bool_)
    loss = domains.loss(kind, piece)[options]
    first = np.lexsort((options, left, most, others, loss))[0]
    position = int(options[first])
    ranked = int(loss[first]), bool(others[first]), int(most[first]), int(left[first])
    yield *ranked, kind.domains[position], kind.index, position
