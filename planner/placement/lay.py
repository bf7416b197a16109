"""Laying the starts of a solved master: by construction, and where that strands some, by small MIPs and exchange."""

from collections.abc import Sequence

from planner.effort import USUAL, Effort
from planner.placement import place
from planner.placement.allot import allot
from planner.placement.draft import Draft
from planner.placement.repair import Repair
from planner.placement.room import Room
from planner.solver.highs import Settings
from policies.inputs.places import Kind
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
    """Give the draft's pieces domains and slots. Returns candidates that end without, and where any do, the kinds (by
    index) in which some piece had no place at first.
    """
    failed = place.choose(room, kinds, draft.pieces)
    tight = {piece.kind for piece in failed}
    lost = [piece for piece in failed if piece.kind < 0]
    for kind in kinds:
        if kind.index in tight:
            mine = [piece for piece in draft.pieces if piece.kind == kind.index]
            rest = allot(room, kind, mine, worth, settings, effort)
            lost += [piece for piece in failed if piece.kind == kind.index] if rest is None else rest
    gone = {piece.candidate for piece in lost}
    stranded = place.settle(room, [piece for piece in draft.pieces if piece.candidate not in gone])
    repair = Repair(problem, room, kinds, draft, worth, effort)
    repair.run([*lost, *stranded])
    return repair.lost, tight | {piece.kind for piece in stranded} if repair.lost else set()
