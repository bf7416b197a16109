"""Words: for every run that waits, which bound it meets and what is missing (spec §3.9, §4)."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np

from jobtree.api.values.counted import counted, named
from jobtree.world.plan import Wait
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room, holding
from planner.reasons import crowding
from planner.reasons.lacking import Lack, Lacking
from planner.reasons.loads import Loads, Tenant, pods_of
from planner.reasons.missing import Money
from planner.reasons.nowhere import (
    Sight,
    asks,
    in_order,
    kept_off,
    labels_of,
    load_words,
    nowhere,
    room_short,
    wait_of,
)
from planner.reasons.routes import Routes
from planner.reasons.shortage import Shortages, tree_shortages
from planner.reasons.space import Space
from planner.state.state import State
from policies.inputs.runs import RunRow
from policies.model import gangs
from policies.model.payers import Refused
from policies.model.problem import Candidate, Problem


def waits(state: State, problem: Problem, draft: Draft, room: Room, purses: Purses) -> list[Wait]:
    """One Wait per run that stays pending, in (namespace, name) order.

    ``room``, ``purses``: what ``draft`` leaves. Runs that ask for the same are told the same.
    """
    started = draft.started(problem)
    sight = Sight.of(state, room, loads_of(state, draft, room))
    together = gangs.tied(problem.gangs, started)
    risen = purses.once_changed(draft)
    money = _money(state, risen, draft)
    as_it_is = money if risen is purses else _money(state, purses, draft)
    lacking = Lacking(problem, money, sight.spaces, sight.bare, as_it_is)
    told: dict[object, Wait] = {}
    found = []
    for run in state.pending:
        if run.key in started or run.is_cpu:
            continue
        if run.key in state.blocked:
            reason, words = state.blocked[run.key]
            found.append(wait_of(run, reason, sentence(words)))
            continue
        candidate = problem.spoken_for(run.key)
        if candidate is None:
            refused = problem.refused.get(run.key, [])
            case: object = (id(refused), run.owner, run.sponsors, run.flavor, run.width_min)
            if case not in told:
                told[case] = _unfundable(run, refused, state.money.quarantined)
        else:
            quotas = tree_shortages(problem, purses, candidate)
            told_apart = not sight.spaces.fits(problem.types[candidate.type])
            asked = run.access(state.policy.maintenance, state.at) if told_apart else run.selector
            case = (candidate.type, candidate.purse, run.max_borrow, run.group, asked, *quotas)
            if run.key in together:
                case = (*case, run.gang, run.gang_size)
            if case not in told:
                lack = lacking.of(candidate)
                lack = replace(lack, missing=lack.missing + quotas)
                told[case] = _weighed(state, problem, candidate, lack, sight, tied=run.key in together)
        found.append(msgspec.structs.replace(told[case], namespace=run.namespace, name=run.name))
    return found


def _money(state: State, purses: Purses, draft: Draft) -> Money:
    problem = purses.problem
    return Shortages(problem, purses, draft, state.effort.explaining) if problem.exact else Routes(problem, purses)


def loads_of(state: State, draft: Draft, room: Room) -> Loads:
    """Room left on nodes beside GPUs, and the pods that hold the rest."""
    tenants: list[Tenant] = []
    for (key, _, node), gpus in holding(state.fleet, state.open_leases)[1].items():
        run = state.runs.get(key)
        if run is not None:
            tenants += pods_of(node, gpus, run.pod, run.load)
    for piece in draft.pieces:
        for chunk in piece.chunks:
            if chunk.active:
                tenants += pods_of(chunk.node, chunk.count, piece.shape.pod, piece.load)
    return Loads(np.asarray([room.cpu, room.memory, room.pods], dtype=np.int64).T, tenants)


def sentence(words: str) -> str:
    """A clause as a sentence; owner paths and names keep their case."""
    first = words.split(" ", 1)[0]
    return f"{words}." if ":" in first or "/" in first else f"{words[0].upper()}{words[1:]}."


def _unfundable(run: RunRow, refused: list[Refused], set_aside: Iterable[str]) -> Wait:
    """Nobody may pay now: every near envelope with its reason.

    ``set_aside``: Budgets that cannot be read. Nor can their owners, so where nobody is near all of them are in doubt.
    """
    if not refused:
        owners = named(sorted({run.owner, *run.sponsors}))
        message = (
            f"No envelope of {owners} or its family pays for {run.flavor}: it can never be funded as things stand."
        )
        if doubted := sorted(f"Budget {name}" for name in set_aside):
            more = f" and {len(doubted) - 3} more" if len(doubted) > 3 else ""
            message += f" Set aside, and so not asked: {', '.join(doubted[:3])}{more}."
        return wait_of(run, "NoFunding", message, never=True)
    reasons = "; ".join(r.words(run) for r in sorted(refused, key=lambda r: (r.rank, r.envelope))[:3])
    message = f"No envelope may pay for its {counted(run.width_min, 'GPU')}: {reasons}."
    return wait_of(run, "NoFunding", message, never=not any(r.later for r in refused))


def _weighed(state: State, problem: Problem, candidate: Candidate, lack: Lack, sight: Sight, *, tied: bool) -> Wait:
    """Wait of a run that was weighed. ``tied``: it waits for others of its gang to start with it."""
    return nowhere(state, problem, candidate, lack, sight) or _short(state, problem, candidate, lack, sight, tied=tied)


def _short(state: State, problem: Problem, candidate: Candidate, lack: Lack, sight: Sight, *, tied: bool) -> Wait:
    """Shortage of money and of room, in the place where both together lack least."""
    run, kind = candidate.run, problem.types[candidate.type]
    deficit = lack.deficit
    shorts = [m.short for m in lack.missing]
    clauses = [m.words for m in lack.missing]
    refused = problem.refused.get(run.key, []) if lack.missing else []
    why = [r.words(run) for r in sorted(refused, key=lambda r: (r.rank, r.envelope))][:2]
    why += kept_off(state, candidate)
    if deficit:
        space = sight.spaces.of(kind, lack.sites)
        where = named([state.fleet.domain_name(d) for d in space.domains])
        freed = f"{counted(deficit, 'GPU')} would have to be freed in {where}"
        bare = sight.bare.of(kind, lack.sites).deficit
        if not bare and (crowded := sight.crowding.of(kind, lack.sites)):
            clauses += [*crowding.clauses(crowded), f"else {freed}"]
            shorts += [each.short for each in crowded]
        else:
            clauses.append(freed)
            shorts += room_short(_scope(state, run, space), deficit)
            if deficit > bare:
                need = load_words(kind.load)
                why.append(f"nodes with free GPUs lack what each pod asks for, {need or 'a place for one more pod'}")
    reason = "BudgetShort" if lack.missing else "CapacityShort"
    if not clauses:
        clauses = [f"GPUs and money are there, but not for all of {'its gang' if tied else 'it'} at once"]
        reason = "Contended"
    if run.selector and deficit:
        why.append(f"only nodes with {labels_of(run)} are looked at")
    if tied:
        clauses.append(f"gang {run.gang} of {run.gang_size} starts whole or not at all")
    text = "; ".join([*clauses, *why])
    return wait_of(run, reason, f"{asks(run)}: {text}.", in_order(shorts), deficit)


def _scope(state: State, run: RunRow, space: Space) -> str:
    """The one domain in which room would have to be made, or the flavor where it is several."""
    return f"domain={state.fleet.domain_name(space.domains[0])}" if len(space.domains) == 1 else run.flavor
