"""Laying starts anew, in domains in which a weighing has room for all of them, each where it is promised if it can.

A weighing says how many groups of each shape lie in each domain; runs take their shares of that one after another,
those with the largest groups first.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from planner.cutting.least import Option, Weighing
from planner.cutting.trial import Trial
from planner.filling.filler import Settled
from planner.placement.place import Piece, Start


def lay(trial: Trial, weighing: Weighing, chosen: Collection[Option], candidates: Sequence[int]) -> list[Settled]:
    """Start candidates at their least width, where just ``chosen`` is cut, and keep room and money taken.

    An empty list, with nothing taken, where one finds no slots or nobody pays.
    """
    laying = _Laying(trial, weighing, {each: trial.pieces(each) for each in candidates})
    laying.choose(chosen)
    found: list[Settled] = []
    for candidate in sorted(candidates, key=laying.largest, reverse=True):
        start = Start(candidate, 0)
        one = trial.filler.pay(start, laying.place(candidate)) if trial.filler.purses.trees_allow(start) else None
        if one is None:
            trial.take_back(found)
            return []
        found.append(one)
    trial.begin(found)
    return found


class _Laying:
    """``left``: groups of each need of the weighing that are still to lie in a domain."""

    def __init__(self, trial: Trial, weighing: Weighing, pieces: dict[int, list[Piece]]) -> None:
        self.trial, self.weighing, self.pieces = trial, weighing, pieces
        self.numbers = {(each.shape, each.sites, each.load): number for number, each in enumerate(weighing.needs)}
        self.domain = trial.filler.room.fleet.domain
        self.left: Counter[tuple[int, int]] = Counter()

    def choose(self, chosen: Collection[Option]) -> None:
        """Ask the weighing in which domains they lie: where they are promised, as many of them as can be."""
        places = ((self._number(piece), self._told(each)) for each, mine in self.pieces.items() for piece in mine)
        wanted = Counter((number, there) for number, told in places for there in sorted(told))
        self.left = self.weighing.layout(chosen, wanted)

    def largest(self, candidate: int) -> int:
        """GPUs of the largest piece."""
        return max(piece.shape.size for piece in self.pieces[candidate])

    def place(self, candidate: int) -> list[Piece]:
        """Slots for all of its pieces, on promised nodes first; empty, with nothing taken, where one has none."""
        filler, placed, told = self.trial.filler, list[Piece](), self._told(candidate)
        for piece in self.pieces[candidate]:
            number = self._number(piece)
            there = sorted(domain for (need, domain), count in self.left.items() if need == number and count)
            ways = [(domain, told[domain]) for domain in there if domain in told] + [(domain, None) for domain in there]
            domain = next((domain for domain, nodes in ways if filler.place(piece, domain, nodes)), None)
            if domain is None:
                filler.give_back(placed)
                return []
            self.left[number, domain] -= 1
            placed.append(piece)
        return placed

    def _number(self, piece: Piece) -> int:
        return self.numbers[piece.shape, piece.sites, piece.load]

    def _told(self, candidate: int) -> dict[int, set[int]]:
        """Promised nodes by domain."""
        found: dict[int, set[int]] = {}
        for node in self.trial.promised.get(self.trial.key([candidate]), ()):
            found.setdefault(int(self.domain[node]), set()).add(node)
        return found
