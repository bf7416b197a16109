"""Words: for every run that waits, which bound it meets and what is missing (spec §3.9, §4)."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np

from jobtree.api.counted import counted
from jobtree.api.scalars import Memory
from jobtree.world.plan import Short, Wait
from jobtree.world.values import Ints
from planner.derive import State
from planner.draft import Draft
from planner.lacking import Lack, Lacking
from planner.loads import Loads, Tenant, pods_of
from planner.purses import Purses
from planner.room import Room
from planner.routes import Routes
from planner.shortage import Shortages, tree_shortages
from planner.space import Space, Spaces
from policies import gangs
from policies.caps import amount
from policies.claims import RunKey
from policies.payers import Refused
from policies.problem import Candidate, Problem
from policies.runs import RunRow
from policies.shapes import NO_LOAD, PodLoad


def waits(state: State, problem: Problem, draft: Draft, room: Room, purses: Purses) -> list[Wait]:
    """One Wait per run that stays pending, in (namespace, name) order.

    ``room``, ``purses``: what ``draft`` leaves. Runs that ask for the same are told the same.
    """
    started = draft.started(problem)
    fleet = state.fleet
    spaces = Spaces(fleet, np.asarray(room.free, dtype=np.int64), _movable(state), _loads(state, draft, room))
    ever = Spaces(fleet, fleet.gpus, fleet.gpus, Loads.empty(fleet))
    together = gangs.tied(problem.gangs, started)
    lacking = Lacking(problem, Shortages(problem, purses) if problem.exact else Routes(problem, purses), spaces)
    told: dict[object, Wait] = {}
    found = []
    for run in state.pending:
        if run.key in started or run.is_cpu:
            continue
        if run.key in state.blocked:
            reason, words = state.blocked[run.key]
            found.append(_wait(run, reason, sentence(words)))
            continue
        ways = problem.ways.get(run.key, [])
        if not ways:
            refused = problem.refused.get(run.key, [])
            case: object = (id(refused), run.owner, run.sponsors, run.flavor, run.width_min)
            if case not in told:
                told[case] = _unfundable(run, refused, state.money.quarantined)
        else:
            unfunded = [c for c in ways if problem.types[problem.candidates[c].type].unfunded]
            candidate = problem.candidates[(unfunded or ways)[0]]  # who needs no money lacks none
            quotas = tree_shortages(problem, purses, candidate)
            nowhere = not problem.types[candidate.type].sites
            asked = run.access(state.policy.maintenance, state.at) if nowhere else run.selector
            case = (candidate.type, candidate.purse, run.max_borrow, run.group, asked, *quotas)
            if run.key in together:
                case = (*case, run.gang, run.gang_size)
            if case not in told:
                lack = lacking.of(candidate)
                lack = replace(lack, missing=lack.missing + quotas)
                told[case] = _weighed(state, problem, candidate, lack, spaces, ever, tied=run.key in together)
        found.append(msgspec.structs.replace(told[case], namespace=run.namespace, name=run.name))
    return found


def _movable(state: State) -> Ints:
    """Per node that takes work: GPUs that are free or held by leases, so that they could be had one day."""
    movable = np.where(state.fleet.takes_work, state.fleet.gpus, 0)
    for name, other in state.foreign.items():
        if name in state.fleet.index:
            movable[state.fleet.index[name]] -= other.gpus + len(other.slots)
    return np.maximum(0, movable)


def _loads(state: State, draft: Draft, room: Room) -> Loads:
    """What is left on nodes beside GPUs, and the pods that hold the rest."""
    nodes = state.fleet.index
    held: dict[tuple[RunKey, int, int], int] = {}
    for key, leases in state.held.items():
        for lease in leases:
            if lease.active and lease.node in nodes:
                place = (key, lease.group, nodes[lease.node])
                held[place] = held.get(place, 0) + lease.gpus
    tenants: list[Tenant] = []
    for (key, _, node), gpus in held.items():
        run = state.runs.get(key)
        if run is not None:
            tenants += pods_of(node, gpus, run.pod, PodLoad(run.pod_cpu_milli, run.pod_memory))
    for piece in draft.pieces:
        for chunk in piece.chunks:
            if chunk.active:
                tenants += pods_of(chunk.node, chunk.count, piece.shape.pod, piece.load)
    return Loads(np.asarray([room.cpu, room.memory, room.pods], dtype=np.int64).T, tenants)


def sentence(words: str) -> str:
    """A clause as a sentence; owner paths and names keep their case."""
    first = words.split(" ", 1)[0]
    return f"{words}." if ":" in first or "/" in first else f"{words[0].upper()}{words[1:]}."


def _wait(
    run: RunRow, reason: str, message: str, shorts: Iterable[Short] = (), deficit: int = 0, *, never: bool = False
) -> Wait:
    return Wait(
        namespace=run.namespace,
        name=run.name,
        reason=reason,
        message=message,
        shorts=list(shorts),
        deficit_gpus=deficit,
        never=never,
    )


def _unfundable(run: RunRow, refused: list[Refused], set_aside: Iterable[str]) -> Wait:
    """Nobody may pay now: every near envelope with its reason.

    ``set_aside``: Budgets that cannot be read. Nor can their owners, so where nobody is near all of them are in doubt.
    """
    if not refused:
        owners = ", ".join(sorted({run.owner, *run.sponsors}))
        message = (
            f"No envelope of {owners} or its family pays for {run.flavor}: it can never be funded as things stand."
        )
        if doubted := sorted(f"Budget {name}" for name in set_aside):
            more = f" and {len(doubted) - 3} more" if len(doubted) > 3 else ""
            message += f" Set aside, and so not asked: {', '.join(doubted[:3])}{more}."
        return _wait(run, "NoFunding", message, never=True)
    reasons = "; ".join(r.words(run) for r in sorted(refused, key=lambda r: (r.rank, r.envelope))[:3])
    message = f"No envelope may pay for its {counted(run.width_min, 'GPU')}: {reasons}."
    return _wait(run, "NoFunding", message, never=not any(r.later for r in refused))


def _weighed(
    state: State, problem: Problem, candidate: Candidate, lack: Lack, spaces: Spaces, ever: Spaces, *, tied: bool
) -> Wait:
    """Why a run that was weighed waits.

    ``spaces``: among nodes that take work now; ``ever``: were all nodes of the fleet empty and at work.
    ``tied``: it waits for others of its gang to start with it.
    """
    return _nowhere(state, problem, candidate, spaces, ever) or _short(
        state, problem, candidate, lack, spaces, tied=tied
    )


def _nowhere(state: State, problem: Problem, candidate: Candidate, spaces: Spaces, ever: Spaces) -> Wait | None:
    """Of a run for which there is no place, or no paid one, whatever other runs do; None for any other."""
    run, kind = candidate.run, problem.types[candidate.type]
    access = run.access(state.policy.maintenance, state.at)
    if not state.fleet.sites_for(access):
        later = bool(state.fleet.sites_for(replace(access, shuns=())))
        return _wait(run, "NoMatchingNodes", f"{_no_nodes(state, run)}.", never=not later)
    if not kind.sites:
        later = any(refused.later for refused in problem.refused.get(run.key, []))
        return _wait(run, "NoFunding", f"{_no_paid_nodes(state, candidate)}.", never=not later)
    if not ever.fits(kind):
        most = ever.of(kind)
        words = _never_fits(run, most, ever.of(kind, load=NO_LOAD))
        return _wait(run, "NeverFits", words, _room_short(run.flavor, most.missing), 0, never=True)
    if not spaces.fits(kind):
        missing = spaces.of(kind).missing
        message = f"{_asks(run)}: {counted(missing, 'GPU')} short, whoever else may end"
        more = "nodes are cordoned or not Ready, or pods that are not Jobtree's hold them"
        more += ", or Leases that cannot be read" if state.unread.leases else ""
        return _wait(run, "CapacityShort", f"{message}: {more}.", _room_short(run.flavor, missing))
    return None


def _short(state: State, problem: Problem, candidate: Candidate, lack: Lack, spaces: Spaces, *, tied: bool) -> Wait:
    """What it is short of, of money and of room, in the place where both together lack least."""
    run, kind = candidate.run, problem.types[candidate.type]
    deficit = lack.deficit
    shorts = [m.short for m in lack.missing]
    clauses = [m.words for m in lack.missing]
    refused = problem.refused.get(run.key, []) if lack.missing else []
    if deficit:
        space = spaces.of(kind, lack.sites)
        where = ", ".join(state.fleet.domain_name(d) for d in space.domains)
        clauses.append(f"{counted(deficit, 'GPU')} would have to be freed in {where}")
        shorts += _room_short(_scope(state, run, space), deficit)
    shorts.sort(key=lambda s: (-s.amount, s.subject, s.rule))
    why = [r.words(run) for r in sorted(refused, key=lambda r: (r.rank, r.envelope))][:2]
    if deficit and kind.load != NO_LOAD and deficit > spaces.of(kind, load=NO_LOAD).deficit:
        why.append(f"nodes with free GPUs lack what each pod asks for, {_load(kind.load)}")
    reason = "BudgetShort" if lack.missing else "CapacityShort"
    if not clauses:
        clauses = [f"GPUs and money are there, but not for all of {'its gang' if tied else 'it'} at once"]
        reason = "Contended"
    if run.selector and deficit:
        why.append(f"only nodes with {_labels(run)} are looked at")
    if tied:
        clauses.append(f"gang {run.gang} of {run.gang_size} starts whole or not at all")
    text = "; ".join([*clauses, *why])
    return _wait(run, reason, f"{_asks(run)}: {text}.", shorts, deficit)


def _asks(run: RunRow) -> str:
    least = f"at least {run.width_min} of " if run.malleable and run.width_min < run.total else ""
    groups = f" in groups of {run.group}" if run.group and run.group < run.total else ""
    return f"Asks for {least}{counted(run.total, 'GPU')}{groups}"


def _labels(run: RunRow) -> str:
    return ", ".join(f"{key}={value}" for key, value in run.selector)


def _no_nodes(state: State, run: RunRow) -> str:
    if not any(flavor == run.flavor for flavor in state.fleet.flavor):
        return f"No node has flavor {run.flavor}"
    if run.selector and not state.fleet.sites_matching(run.flavor, run.selector):
        return f"No node of flavor {run.flavor} matches its selector {_labels(run)}"
    if state.policy.maintenance and run.access((), state.at) != run.access(state.policy.maintenance, state.at):
        return f"Every matching node of flavor {run.flavor} is tainted, or in maintenance before the run surely ends"
    return f"Every matching node of flavor {run.flavor} has a taint that the run does not tolerate"


def _no_paid_nodes(state: State, candidate: Candidate) -> str:
    payers = [state.money.envelopes[payer.envelope] for payer in candidate.payers]
    named = ", ".join(f"{e.label} ({', '.join(f'{k}={v}' for k, v in e.selector)})" for e in payers[:3])
    return f"No node that it may use is matched by an envelope that pays for it: {named}"


def _scope(state: State, run: RunRow, space: Space) -> str:
    """The one domain in which room would have to be made, or the flavor where it is several."""
    return f"domain={state.fleet.domain_name(space.domains[0])}" if len(space.domains) == 1 else run.flavor


def _room_short(subject: str, gpus: int) -> list[Short]:
    return [Short(rule="capacity", subject=subject, amount=gpus, unit="GPU")]


def _load(load: PodLoad) -> str:
    """``9 CPUs and 64Gi of memory``."""
    cpu = counted(amount(load.cpu_milli, 1000), "CPU") if load.cpu_milli else ""
    memory = f"{Memory(load.memory)} of memory" if load.memory else ""
    return " and ".join(filter(None, (cpu, memory)))


def _never_fits(run: RunRow, space: Space, gpus_alone: Space) -> str:
    """``gpus_alone``: the same if its pods asked for GPUs only."""
    kind = run.lowered()
    if space.missing > gpus_alone.missing:
        load = _load(PodLoad(run.pod_cpu_milli, run.pod_memory))
        return f"{_asks(run)}: too few nodes have what each pod asks for, {load}, so it can never fit."
    biggest = max(shape.size for shape in kind.pieces())
    if biggest > space.largest:
        spares = ", spares included," if run.spares else ""
        return f"{_asks(run)}: a group of {biggest} GPUs{spares} can never fit, the largest domain has {space.largest}."
    gpus = counted(space.missing, "GPU")
    pods = f"{counted(space.pods, 'pod')} of {run.pod} ({gpus})" if space.pods else gpus
    return f"{_asks(run)}: {pods} short even with all of the fleet free, so it can never fit."
