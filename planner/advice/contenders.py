"""Contenders: runs that could start if nothing else did; after a plan, which is maximal (spec §4), few that wait.

Questions about one run, where many wait, are asked of it and of these alone: the others would wait in any case.
"""

from collections.abc import Iterable

from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.vacancy import Vacancies
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.inputs.shapes import NO_LOAD, Lowered
from policies.model.problem import RunType


def weighed(state: State, keys: Iterable[RunKey]) -> State:
    """The state in which of many that wait only ``keys`` do, and what could start if nothing else did."""
    waiting = idle(state, keys, many=True)
    return state.asking([run for run in state.pending if run.key not in waiting])


def idle(state: State, keys: Iterable[RunKey] = (), *, many: bool = False) -> set[RunKey]:
    """Runs that wait, but for ``keys``, and could not start even if nothing else did."""
    return {run.key for run in state.pending} - contenders(state, many=many).union(keys)


def contenders(state: State, *, many: bool = False) -> set[RunKey]:
    """Runs that could start if nothing else did; of a gang, as many as it needs or none.

    With ``many`` as the planner has it where many wait, however few do in this part of the world.
    """
    vacancies = Vacancies(state.room())
    problem = state.asking(_fitting(state, vacancies)).problem(many=many)
    purses = Purses.after(problem, Draft())
    could = {kind.index for kind in problem.types if _fits(vacancies, kind.sites, kind.lowered) and _pays(purses, kind)}
    keys = {problem.candidates[c].run.key for kind in problem.types if kind.index in could for c in kind.members}
    return keys.difference(*(gang for gang in problem.gangs if len(keys.intersection(gang)) < gang.least))


def fits(state: State) -> bool:
    """Is there room for each of what waits, if nothing else started?"""
    return len(_fitting(state, Vacancies(state.room()))) == len(state.pending)


def _fitting(state: State, vacancies: Vacancies) -> list[RunRow]:
    """Runs that wait and fit, whoever pays; the rest need not be lowered."""
    policy = state.policy
    known: dict[object, bool] = {}
    found = []
    for run in state.pending:
        access = run.access(policy.maintenance, state.at)
        asked = (access, run.total, run.width_min, run.step, run.group, run.pod, run.spares, run.spread)
        if asked not in known:
            known[asked] = run.is_cpu or _fits(vacancies, state.fleet.sites_for(access), run.lowered())
        if known[asked]:
            found.append(run)
    return found


def _pays(purses: Purses, kind: RunType) -> bool:
    if kind.unfunded or purses.could_pay(kind, kind.base_gpus):
        return True
    members = [purses.problem.candidates[c] for c in kind.members]
    lists = {candidate.purse: candidate for candidate in members}
    return any(purses.could_recall(candidate, kind.sites, kind.base_gpus) for candidate in lists.values())


def _fits(vacancies: Vacancies, sites: frozenset[int], lowered: Lowered) -> bool:
    """No group is larger than what is free in one domain, nor all together than what is free in all."""
    sizes = [piece.size for piece in lowered.pieces()]
    free = vacancies.of(sites, lowered.pod, NO_LOAD)
    return int(free.max(initial=0)) >= max(sizes) and int(free.sum()) >= sum(sizes)
