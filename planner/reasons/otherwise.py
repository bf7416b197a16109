"""Words of runs as if something were otherwise: what they lack beside that too.

What a promise holds is kept from everybody else, so its own run never waits for want of it (spec §5). A run that payers
refuse for how long it may last is told what it would lack under a limit that they allow: all that binds is named
(spec §3.9).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from msgspec import structs

from jobtree.api.values.scalars import Duration
from jobtree.world.plan import Wait
from planner.filling.filler import Filler
from planner.filling.purses import Purses
from planner.filling.together import Together
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.reasons import explain
from planner.reasons.nowhere import asks
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle import unweighed
from policies.model.gangs import tied
from policies.model.problem import Problem
from policies.promises import funds

_OTHERS: Final = frozenset({"Contended", unweighed.GANG})
"""Reasons that say nothing of the run itself."""


def waits(state: State, problem: Problem, draft: Draft, room: Room, purses: Purses) -> list[Wait]:
    """Waits as `explain.waits` has them; a run whose promise stands is told what it lacks as if nothing were promised.

    Where that is nothing, others' promises keep it waiting, and it is told what those leave. A gang that could not
    start whole then is kept by nothing but what its members leave one another.
    """
    told = explain.waits(state, problem, draft, room, purses)
    waiting = {(wait.namespace, wait.name) for wait in told} - state.blocked.keys()
    mine = [run for run in state.pending if run.key in waiting]
    promised = [run for run in mine if run.key in state.holds.promised.all]
    if promised:
        bare = state.holds._replace(part={}, money=funds.NOTHING)
        asked = _Asked.of(replace(state, holds=bare, rooms=[]), promised, problem, draft, purses)
        own, split = asked.own(), asked.split()
        told = [own.get(key) or split.get(key, wait) for wait in told for key in [(wait.namespace, wait.name)]]
    shorter = {run.key: short for run in mine if (short := _shorter(run, problem)) is not None}
    if shorter:
        left = _Asked.of(state, shorter.values(), problem, draft, purses).own()
        told = [_both(wait, shorter.get(key), left.get(key)) for wait in told for key in [(wait.namespace, wait.name)]]
    return told


class _Asked(NamedTuple):
    """Runs in another state beside a draft: ``room`` and ``purses`` as it leaves them, and their ``waits``."""

    problem: Problem
    room: Room
    purses: Purses
    waits: dict[RunKey, Wait]

    @classmethod
    def of(cls, state: State, runs: Iterable[RunRow], problem: Problem, draft: Draft, purses: Purses) -> "_Asked":
        """Ask in a state of which ``problem`` is much alike."""
        alone = state.asking([*runs])
        asked = alone.problem(many=not problem.exact)
        free = alone.room()
        for piece in draft.pieces:
            free.take(piece.chunks, piece.load)
        left = Purses.after(asked, Draft())
        left.used = [
            now + after - before for now, after, before in zip(left.used, purses.used, problem.used, strict=True)
        ]
        left.trees = list(purses.trees)
        left.levels |= {cap: list(purses.levels[cap]) for cap in left.levels.keys() & purses.levels.keys()}
        waits = explain.waits(alone, asked, Draft(pieces=draft.pieces), free, left)
        return cls(asked, free, left, {(wait.namespace, wait.name): wait for wait in waits})

    def own(self) -> dict[RunKey, Wait]:
        """Waits of runs that lack something themselves."""
        return {key: wait for key, wait in self.waits.items() if wait.reason not in _OTHERS}

    def split(self) -> dict[RunKey, Wait]:
        """Waits of runs that lack nothing but room and money for all of their gang at once."""
        alone = {key: wait for key, wait in self.waits.items() if wait.reason == "Contended"}
        mine = tied(self.problem.gangs, ()) & alone.keys()
        if not mine:
            return {}
        filler = Filler(self.problem, self.room, self.purses)
        together = Together(self.problem, filler, range(len(self.problem.candidates)), ())
        for _, gang in together.places(mine):
            if found := together.try_start(gang):
                filler.take_back(found)
                filler.forget()
                mine -= frozenset(gang)
        return {key: alone[key] for key in mine}


def _shorter(run: RunRow, problem: Problem) -> RunRow | None:
    """The run with the longest limit that some payer allows, where all refuse it and some for how long it may last."""
    if problem.ways.get(run.key):
        return None
    allowed = [each.within for each in problem.refused.get(run.key, ()) if each.within is not None]
    return structs.replace(run, time_limit=max(allowed)) if allowed else None


def _both(told: Wait, shorter: RunRow | None, left: Wait | None) -> Wait:
    """Wait of a run, with what it would lack under a ``shorter`` limit, if anything."""
    if shorter is None or shorter.limit is None or left is None:
        return told
    lacks = left.message.removeprefix(f"{asks(shorter)}: ").removesuffix(".")
    still = f"; with a runtime.timeLimit of {Duration(shorter.limit)} still: {lacks}."
    return structs.replace(told, message=told.message.removesuffix(".") + still)
