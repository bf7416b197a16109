"""Where the starts of a solved master lie: by construction, and where that strands some, by small MIPs and exchange."""

from collections.abc import Sequence

from planner.placement import place
from planner.placement.allot import allot
from planner.placement.draft import Draft
from planner.placement.place import Piece
from planner.placement.repair import Repair
from planner.placement.room import Room
from planner.solver.highs import Settings
from policies.inputs.places import Kind
from policies.model.problem import Problem


def lay(
    problem: Problem, room: Room, kinds: list[Kind], draft: Draft, worth: Sequence[int], settings: Settings
) -> tuple[list[Piece], set[int]]:
    """Give the draft's pieces domains and slots. Returns candidates that end without, and where any do the pieces that
    had none in their domains at first.
    """
    failed = place.choose(room, kinds, draft.pieces)
    lost: list[Piece] = []
    for number in sorted({piece.kind for piece in failed}):
        mine = [piece for piece in draft.pieces if piece.kind == number]
        rest = allot(room, kinds[number], mine, worth, settings) if number >= 0 else None
        lost += [piece for piece in failed if piece.kind == number] if rest is None else rest
    gone = {piece.candidate for piece in lost}
    stranded = place.settle(room, [piece for piece in draft.pieces if piece.candidate not in gone])
    repair = Repair(problem, room, kinds, draft, worth)
    repair.run([*lost, *stranded])
    return [*failed, *stranded] if repair.lost else [], repair.lost
