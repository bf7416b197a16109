"""Places for pieces that found none: lighter work of the plan makes way, and lies elsewhere or stays away.

The master counts a kind's free GPUs by pod and group size, so where sizes do not divide one another, or a kind is full
to the last GPU, placement by construction strands some pieces, and with a piece its whole run. Run by run, the most
valuable first: a piece goes where it fits as things are, else into the domain of its kind where that costs least. There
the least valuable pieces are taken out until it fits, and put back in the same domain, or in another of their kind.
What finds no place then is lost with its run, which must be worth less than the run that gains. Other kinds come last:
who pays there may be somebody else.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from planner.effort import USUAL, Effort
from planner.placement.draft import Draft
from planner.placement.place import Piece, by_candidate
from planner.placement.room import Chunk, Room
from planner.placement.vacancy import Vacancies
from policies.inputs.places import Kind
from policies.model.problem import Problem

UNTOLD: Final = 1 << 62
"""More than anything is worth."""


class Repair:
    """``worth``: per candidate, what its start adds to the first stage; ``lost``: candidates that gave way for good."""

    def __init__(
        self,
        problem: Problem,
        room: Room,
        kinds: Sequence[Kind],
        draft: Draft,
        worth: Sequence[int],
        effort: Effort = USUAL,
    ) -> None:
        self.room = room
        self.limits = effort.placing
        self.worth = worth
        self.lost: set[int] = set()
        self._kinds = kinds
        self._vacancies = Vacancies(room)
        self._in: dict[int, list[Piece]] = {}
        self._of = by_candidate(draft.pieces)
        for piece in draft.pieces:
            if piece.chunks:
                self._in.setdefault(piece.domain, []).append(piece)
        self._tied = problem.tied

    def run(self, failed: Sequence[Piece]) -> None:
        """Find places for every piece of the failed pieces' runs; runs that get none are ``lost``."""
        for candidate in sorted({piece.candidate for piece in failed}, key=lambda c: (-self.worth[c], c)):
            if candidate not in self.lost:
                pieces = sorted(self._of[candidate], key=lambda p: (-p.shape.size, p.groups))
                if not all(piece.chunks or self._find(piece) for piece in pieces):
                    self._lose(candidate)

    def _find(self, piece: Piece) -> bool:
        return self._put(piece) or self._squeeze(piece) or self._put(piece, anywhere=True)

    def _put(self, piece: Piece, *, anywhere: bool = False) -> bool:
        """Slots for a piece as things are: in the domain of its kind, or of any, that it fits best."""
        left = self._vacancies.of(piece.sites, piece.shape.pod, piece.load)
        free = anywhere or piece.kind < 0
        here = np.asarray(range(len(left)) if free else self._kinds[piece.kind].domains, dtype=np.int64)
        here = here[left[here] >= piece.shape.size]
        return any(self._settle(piece, domain) for domain in here[np.lexsort((here, left[here]))].tolist())

    def _settle(self, piece: Piece, domain: int) -> bool:
        chunks = self.room.settle(domain, piece.sites, list(piece.groups), piece.load)
        if chunks is None:
            return False
        self._book(piece, domain, chunks)
        return True

    def _book(self, piece: Piece, domain: int, chunks: list[Chunk]) -> None:
        piece.domain, piece.chunks = domain, chunks
        self._in.setdefault(domain, []).append(piece)
        self._vacancies.changed(domain)

    def _take_out(self, piece: Piece) -> None:
        self.room.give_back(piece.chunks, piece.load)
        self._in[piece.domain].remove(piece)
        self._vacancies.changed(piece.domain)
        piece.chunks = []

    def _squeeze(self, piece: Piece) -> bool:
        """A place where others make way, in the domain where that costs least."""
        left = self._vacancies.of(piece.sites, piece.shape.pod, piece.load)
        options = self._kinds[piece.kind].domains if piece.kind >= 0 else range(len(left))
        best, least = -1, self.worth[piece.candidate]
        for domain in sorted(options, key=lambda d: (-int(left[d]), d))[: self.limits.domains]:
            before = [(other, other.chunks) for other in self._lightest(piece, domain)]
            stranded = self._make_way(piece, domain)
            if stranded is not None:
                cost = self._cost(stranded)
                best, least = (domain, cost) if cost < least else (best, least)
                self._take_out(piece)
            self._restore(domain, before)
            if best >= 0 and not least:
                break
        if best < 0:
            return False
        for candidate in sorted({other.candidate for other in self._make_way(piece, best) or ()}):
            self._lose(candidate)
        return True

    def _lightest(self, piece: Piece, domain: int) -> list[Piece]:
        """Pieces that may make way for one, the least valuable first."""
        others = [p for p in self._in.get(domain, ()) if p.candidate != piece.candidate and p.sites & piece.sites]
        return sorted(others, key=lambda p: (self.worth[p.candidate], p.candidate, p.groups))[: self.limits.moved]

    def _make_way(self, piece: Piece, domain: int) -> list[Piece] | None:
        """Settle the piece; what finds no place any more. None: it does not fit, whatever makes way."""
        out: list[Piece] = []
        for other in self._lightest(piece, domain):
            self._take_out(other)
            out.append(other)
            if self._settle(piece, domain):
                return [other for other in reversed(out) if not (self._settle(other, domain) or self._put(other))]
        return None

    def _cost(self, stranded: list[Piece]) -> int:
        """Worth of the runs of these; members of a gang are not given up."""
        runs = {piece.candidate for piece in stranded}
        return UNTOLD if runs & self._tied else sum(self.worth[candidate] for candidate in runs)

    def _restore(self, domain: int, before: list[tuple[Piece, list[Chunk]]]) -> None:
        """Put these pieces back where they were, in the domain."""
        for piece, chunks in before:
            if piece.chunks is not chunks and piece.chunks:
                self._take_out(piece)
        for piece, chunks in before:
            if piece.chunks is not chunks:
                self.room.take(chunks, piece.load)
                self._book(piece, domain, chunks)

    def _lose(self, candidate: int) -> None:
        self.lost.add(candidate)
        for piece in self._of[candidate]:
            if piece.chunks:
                self._take_out(piece)
