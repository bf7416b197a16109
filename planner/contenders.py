"""Who could start if nothing else did: after a plan, which is maximal (spec §4), few of those that wait.

Questions about one run, where many wait, are asked of it and of these alone: the others would wait in any case.
"""

from collections.abc import Iterable
from dataclasses import replace

from planner.derive import State
from planner.draft import Draft
from planner.lower import few
from planner.purses import Purses
from planner.vacancy import Vacancies
from policies.claims import RunKey
from policies.problem import RunType
from policies.shapes import NO_LOAD


def weighed(state: State, keys: Iterable[RunKey]) -> State:
    """The state in which only ``keys``, and what could start if nothing else did, wait; where few wait, all do."""
    if few(len(state.pending)):
        return state
    waiting = idle(state, keys)
    return replace(state, pending=[run for run in state.pending if run.key not in waiting], blocked=dict(state.blocked))


def idle(state: State, keys: Iterable[RunKey] = ()) -> set[RunKey]:
    """What waits but for ``keys`` and could not start even if nothing else did."""
    return {run.key for run in state.pending} - contenders(state).union(keys)


def contenders(state: State) -> set[RunKey]:
    """Runs that could start if nothing else did; of a gang, all of them or none."""
    problem = state.problem()
    purses = Purses.after(problem, Draft())
    vacancies = Vacancies(state.room())
    could = {kind.index for kind in problem.types if _fits(kind, vacancies) and _pays(purses, kind)}
    keys = {problem.candidates[c].run.key for kind in problem.types if kind.index in could for c in kind.members}
    gangs = [set(gang) for gang in problem.gangs if not set(gang) <= keys]
    return keys.difference(*gangs)


def _pays(purses: Purses, kind: RunType) -> bool:
    if kind.unfunded or purses.could_pay(kind, kind.base_gpus):
        return True
    members = [purses.problem.candidates[c] for c in kind.members]
    lists = {candidate.purse: candidate for candidate in members}
    return any(purses.could_recall(candidate, kind.sites, kind.base_gpus) for candidate in lists.values())


def _fits(kind: RunType, vacancies: Vacancies) -> bool:
    """No group is larger than what is free in one domain, nor all together than what is free in all."""
    sizes = [piece.size for piece in kind.lowered.pieces()]
    free = vacancies.of(kind.sites, kind.lowered.pod, NO_LOAD)
    return int(free.max(initial=0)) >= max(sizes) and int(free.sum()) >= sum(sizes)
