"""Productive standbys (spec §2): opportunistic work that found no room starts unfunded on slots that standbys hold.

Last of all, on what is left free and the slots of open Spare leases on which nobody works, heaviest (oldest) first. It
pays nothing and is promised nothing: a swap reclaims its slots (`planner.state.running.mending`).
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import msgspec

from jobtree.world.plan import Stage
from planner.filling import greedy
from planner.filling.filler import Filler
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.placement.tie_breaks import domains_used
from planner.plan.asking import asking
from planner.plan.leases import new_leases
from planner.state.state import State
from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.runs import RunRow

STAGE = "opportunistic"


@dataclass
class Lending:
    """``leases`` and ``runs``: that start so; ``value``: what they add to the stage, ``most``: what all could that
    would; ``domains``: per run, added up.
    """

    leases: list[LeaseRow] = field(default_factory=list)
    runs: dict[RunKey, RunRow] = field(default_factory=dict)
    value: int = 0
    most: int = 0
    domains: int = 0

    def stages(self, stages: Sequence[Stage]) -> list[Stage]:
        """The stages of the plan, with what starts here in that of opportunistic work."""
        if not self.leases:
            return list(stages)
        return [self._restated(stage) for stage in stages]

    def _restated(self, stage: Stage) -> Stage:
        if stage.name == "domains":
            value = stage.value + self.domains
            return msgspec.structs.replace(stage, value=value, bound=value)
        if stage.name != STAGE:
            return stage
        value, bound = stage.value + self.value, stage.bound + self.most
        return msgspec.structs.replace(stage, value=value, bound=bound, proven=stage.proven and value == bound)


def lend(
    state: State, room: Room, purses: Purses, started: Container[RunKey], leases: Sequence[LeaseRow], cycle: str
) -> Lending:
    """``room`` and ``purses``: what starts and growth leave; ``leases``: that open by them, of runs ``started``.

    A run with standbys of its own takes none of them: one standby never lies on another.
    """
    wanting = [
        run
        for run in state.pending
        if run.opportunistic
        and not (run.gang or run.spares)
        and run.key not in started
        and run.key not in state.blocked
    ]
    lending = Lending()
    if not wanting or STAGE not in state.policy.stages:
        return lending
    wide = _with_standbys(state, room, leases)
    if wide is None:
        return lending
    problem = asking(state, purses, wanting, wide.free_by_site())
    draft = Draft()
    own = [c for c, each in enumerate(problem.candidates) if problem.types[each.type].unfunded]
    filler = Filler(problem, wide, Purses.after(problem, draft))
    greedy.fill(filler, draft, sorted(own, key=lambda c: problem.candidates[c].order))
    lending.leases = new_leases(problem, wide, draft, cycle)
    lending.most = sum(run.weight(state.policy, state.at) * run.total for run in wanting)
    lending.domains = domains_used((piece.candidate, piece.domain) for piece in draft.pieces)
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        lending.runs[candidate.run.key] = candidate.run
        gpus = problem.types[candidate.type].gpus(start.steps)
        lending.value += gpus * candidate.run.weight(state.policy, state.at)
    return lending


def _with_standbys(state: State, room: Room, leases: Sequence[LeaseRow]) -> Room | None:
    """The room with the slots of standbys on which nobody works; None where there are none."""
    spare = {(lease.node, slot) for lease in state.open_leases if not lease.active for slot in lease.ordinals}
    busy = {(lease.node, slot) for lease in state.open_leases if lease.active for slot in lease.ordinals}
    for lease in leases:
        into = busy if lease.active else spare
        into.update((lease.node, slot) for slot in lease.ordinals)
    fresh = {(lease.node, slot) for lease in leases for slot in lease.ordinals}
    fleet, wide = room.fleet, room.copy()
    wide.slots = [*room.slots]
    found = False
    for name in sorted({node for node, _ in spare | fresh} & fleet.index.keys()):
        node = fleet.index[name]
        there = range(int(fleet.gpus[node]))
        unread = state.foreign[name].slots if name in state.foreign else set()
        mine = [slot for slot in there if (name, slot) in spare - busy and slot not in unread]
        free = [slot for slot in room.slots[node] if (name, slot) not in fresh]
        wide.slots[node] = [*free, *reversed(mine)]
        if fleet.takes_work[node] and not room.lost[node] and mine:
            wide.free[node] += len(mine)
            found = True
    return wide if found else None
