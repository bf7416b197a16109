"""Laying the starts of a solved master: by construction, and where that strands some, by small MIPs and exchange."""

from collections.abc import Iterator, Sequence

from planner.effort import USUAL, Effort
from planner.placement import place
from planner.placement.allot import allot
from planner.placement.draft import Draft
from planner.placement.place import Piece
from planner.placement.repair import Repair
from planner.placement.room import Room
from planner.solver.highs import Settings
from planner.solver.parts import together
from policies.inputs.places import Kind, usable
from policies.model.problem import Problem


def lay(
    problem: Problem,
    room: Room,
    kinds: list[Kind],
    draft: Draft,
    worth: Sequence[int],
    settings: Settings,
    effort: Effort = USUAL,
) -> tuple[set[int], set[int]]:
    """Give the draft's pieces domains and slots. Returns candidates that end without, and where any do, or lie in other
    kinds than theirs, the kinds (by index) in which some piece had no place at first.
    """
    failed = place.choose(room, kinds, draft.pieces)
    tight, told = {piece.kind for piece in failed}, [piece.kind for piece in draft.pieces]
    lost = [piece for piece in failed if piece.kind < 0]
    for linked in [[kind] for kind in kinds] if problem.exact else _linked(kinds, draft.pieces):
        lost += _chosen(room, linked, draft.pieces, [p for p in failed if p.kind >= 0], worth, settings, effort)
    gone = {piece.candidate for piece in lost}
    stranded = place.settle(room, [piece for piece in draft.pieces if piece.candidate not in gone])
    repair = Repair(problem, room, kinds, draft, worth, effort)
    repair.run([*lost, *stranded])
    if repair.lost or told != [piece.kind for piece in draft.pieces]:
        return repair.lost, tight | {piece.kind for piece in stranded}
    return set(), set()


def _linked(kinds: Sequence[Kind], pieces: Sequence[Piece]) -> Iterator[list[Kind]]:
    """Kinds that some piece may choose between, directly or by way of others."""
    sites = sorted({piece.sites for piece in pieces}, key=sorted)
    rows = ((number for number, kind in enumerate(kinds) if usable(kind, mine)) for mine in sites)
    return ([kinds[number] for number in linked] for linked in together(rows, len(kinds)))


def _chosen(
    room: Room,
    kinds: Sequence[Kind],
    pieces: Sequence[Piece],
    failed: Sequence[Piece],
    worth: Sequence[int],
    settings: Settings,
    effort: Effort,
) -> list[Piece]:
    """Choose domains anew where some of these kinds' pieces ``failed``: together, or kind by kind; what gets none."""
    numbers = {kind.index for kind in kinds}
    mine = [piece for piece in failed if piece.kind in numbers]
    rest = allot(room, kinds, [p for p in pieces if p.kind in numbers], worth, settings, effort) if mine else []
    if rest is None and len(kinds) > 1:
        return [piece for kind in kinds for piece in _chosen(room, [kind], pieces, mine, worth, settings, effort)]
    return mine if rest is None else rest
