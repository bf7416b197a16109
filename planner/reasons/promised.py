"""Words of runs that are promised: what they lack beside everything but the promises (spec §5).

What a promise holds is kept from everybody else, so its own run never waits for want of it.
"""

from dataclasses import replace
from typing import Final

from jobtree.world.plan import Wait
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.reasons import explain
from planner.state.state import State
from policies.lifecycle import unweighed
from policies.model.problem import Problem

_OTHERS: Final = frozenset({"Contended", unweighed.GANG})
"""Reasons that say nothing of the run itself."""


def waits(state: State, problem: Problem, draft: Draft, room: Room, purses: Purses) -> list[Wait]:
    """As `explain.waits`; a run whose promise stands is told what it lacks as if nothing were promised.

    Where that is nothing, others' promises keep it waiting, and it is told what those leave.
    """
    told = explain.waits(state, problem, draft, room, purses)
    promised = state.holds.promised.all
    mine = {(wait.namespace, wait.name) for wait in told} & promised - state.blocked.keys()
    if not mine:
        return told
    bare = replace(
        state.asking([run for run in state.pending if run.key in mine]),
        holds=state.holds._replace(part={}, money={}),
        rooms=[],
    )
    asked = bare.problem(many=not problem.exact)
    free = bare.room()
    for piece in draft.pieces:
        free.take(piece.chunks, piece.load)
    left = Purses.after(asked, Draft())
    left.used = [now + after - before for now, after, before in zip(left.used, purses.used, problem.used, strict=True)]
    left.trees = list(purses.trees)
    left.levels |= {cap: list(purses.levels[cap]) for cap in left.levels.keys() & purses.levels.keys()}
    found = explain.waits(bare, asked, Draft(pieces=draft.pieces), free, left)
    own = {(wait.namespace, wait.name): wait for wait in found if wait.reason not in _OTHERS}
    return [own.get((wait.namespace, wait.name), wait) for wait in told]
