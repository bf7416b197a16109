"""Holders of the GPUs that a waiting run would need, in the place where it lacks least."""

from typing import NamedTuple

from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.reasons.explain import loads_of
from planner.reasons.lacking import Lacking
from planner.reasons.nowhere import Sight
from planner.reasons.shortage import Shortages
from planner.state.state import State
from policies.inputs.claims import RunKey


class Holder(NamedTuple):
    """A run with its GPUs there, standbys included."""

    run: RunKey
    owner: str
    gpus: int


def holders(state: State, key: RunKey) -> list[Holder]:
    """Runs that hold GPUs where the run ``key`` lacks least, most first; none where it lacks no room.

    ``state``: in which it waits, with nothing beside it that does.
    """
    problem = state.problem()
    candidate = problem.spoken_for(key)
    if candidate is None:
        return []
    kind, room = problem.types[candidate.type], state.room()
    sight = Sight.of(state, room, loads_of(state, Draft(), room))
    spaces = sight.spaces
    money = Shortages(problem, Purses.after(problem, Draft()), Draft(), state.effort.explaining)
    lack = Lacking(problem, money, spaces, sight.bare).of(candidate)
    if not lack.deficit:
        return []
    domains = spaces.of(kind, lack.sites).domains
    fleet = state.fleet
    there = {
        name
        for name, domain, site in zip(fleet.names, fleet.domain.tolist(), fleet.site.tolist(), strict=True)
        if domain in domains and site in lack.sites
    }
    found: dict[RunKey, Holder] = {}
    for run, leases in state.held.items():
        gpus = sum(lease.gpus for lease in leases if lease.node in there)
        if gpus:
            found[run] = Holder(run, state.runs[run].owner if run in state.runs else leases[0].owner, gpus)
    return sorted(found.values(), key=lambda holder: (-holder.gpus, holder.run))
