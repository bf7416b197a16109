"""Runs that have no place, or no paid one, whatever other runs do: why, and what nodes would have to have."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import Memory, Time
from jobtree.world.plan import Short, Wait
from jobtree.world.tables.values import Ints
from planner.placement.room import Room
from planner.reasons import crowding
from planner.reasons.crowding import Crowding
from planner.reasons.lacking import Lack
from planner.reasons.loads import Loads
from planner.reasons.space import Space, Spaces
from planner.state.state import State
from policies.caps import uses
from policies.caps.cap import amount
from policies.inputs.fleet import Selector
from policies.inputs.maintenance import is_hold
from policies.inputs.runs import RunRow
from policies.inputs.shapes import NO_LOAD, PodLoad
from policies.model.problem import Candidate, Problem, RunType


@dataclass(frozen=True)
class Sight:
    """Room as a wait sees it.

    ``spaces``: among nodes that take work now; ``bare``: the same if they lacked nothing but GPUs; ``ever``: were all
    nodes of the fleet empty and at work. ``crowding``: of free GPUs; ``emptied``: of all that could be had one day.
    """

    spaces: Spaces
    bare: Spaces
    ever: Spaces
    crowding: Crowding
    emptied: Crowding

    @classmethod
    def of(cls, state: State, room: Room, loads: Loads) -> "Sight":
        """Free GPUs in ``room``."""
        fleet, movable = state.fleet, _movable(state)
        free = np.asarray(room.free, dtype=np.int64) - np.asarray(room.lost, dtype=np.int64)
        return cls(
            Spaces(fleet, free, movable, loads),
            Spaces(fleet, free, movable, Loads.plenty(fleet)),
            Spaces(fleet, fleet.gpus, fleet.gpus, Loads.empty(fleet)),
            Crowding(fleet, free, loads.left),
            Crowding(fleet, movable, loads.emptied),
        )


def _movable(state: State) -> Ints:
    """Per node that takes work: GPUs that are free or held by leases, so that they could be had one day."""
    movable = np.where(state.fleet.takes_work, state.fleet.gpus, 0)
    for name, other in state.foreign.items():
        if name in state.fleet.index:
            movable[state.fleet.index[name]] -= other.gpus + len(other.slots)
    return np.maximum(0, movable)


def nowhere(state: State, problem: Problem, candidate: Candidate, lack: Lack, sight: Sight) -> Wait | None:
    """Wait of a run for which there is no place, or no paid one, whatever other runs do; None of any other.

    What the fleet could never hold is told from what maintenance and promises to others keep from it for a time.
    """
    run, kind, fleet = candidate.run, problem.types[candidate.type], state.fleet
    access = run.access(state.policy.maintenance, state.at)
    everywhere = fleet.sites_for(replace(access, shuns=()))
    if not fleet.sites_for(replace(access, shuns=tuple(each for each in access.shuns if not is_hold(each)))):
        return wait_of(run, "NoMatchingNodes", f"{_no_nodes(state, run)}.", never=not everywhere)
    later = any(refused.later for refused in problem.refused.get(run.key, []))
    paid = everywhere
    if not kind.unfunded:
        paid &= frozenset[int]().union(*map(problem.pays_on, candidate.payers))
    if not paid:
        return wait_of(run, "NoFunding", f"{_no_paid_nodes(state, candidate)}.", never=not later)
    ever, spaces = sight.ever, sight.spaces
    if not ever.fits(kind) and ever.deficit(kind, paid) is None:
        most = ever.of(kind, paid)
        unpaid = None if paid >= everywhere else ever.of(kind, everywhere)
        if unpaid is not None and not unpaid.missing:
            words = _never_paid(state, candidate, most, unpaid)
            return wait_of(run, "NeverFits", words, _too_wide(state, run, most), 0, never=not later)
        alone = ever.of(kind, paid, load=NO_LOAD)
        words = _never_fits(run, most, alone, _those(state, run, everywhere), _sum(state, paid))
        return wait_of(run, "NeverFits", words, _too_wide(state, run, most), 0, never=True)
    return None if spaces.fits(kind) else _held_up(state, run, kind, paid, lack, sight)


def _held_up(state: State, run: RunRow, kind: RunType, paid: frozenset[int], lack: Lack, sight: Sight) -> Wait:
    """Wait of a run for which there would be room on an empty fleet, but not were all of Jobtree's runs to end now.

    ``paid``: where it might lie were nothing promised, nor in maintenance.
    """
    shorts = [each.short for each in lack.missing]
    clauses = [each.words for each in lack.missing]
    reason = "BudgetShort" if lack.missing else "CapacityShort"
    if crowded := sight.crowding.of(kind, lack.sites):
        shorts += [each.short for each in crowded]
        clauses += crowding.clauses(crowded)
        return wait_of(run, reason, f"{asks(run)}: {'; '.join(clauses)}.", in_order(shorts))
    if sight.bare.fits(kind) and lack.deficit and (crowded := sight.emptied.of(kind, lack.sites)):
        shorts += [*room_short(run.flavor, lack.deficit), *(each.short for each in crowded)]
        freed = f"{counted(lack.deficit, 'GPU')} would have to be freed, and even then"
        clauses.append(f"{freed} {'; '.join(crowding.clauses(crowded))}")
        return wait_of(run, reason, f"{asks(run)}: {'; '.join(clauses)}.", in_order(shorts))
    missing = sight.spaces.of(kind).missing
    here = [node for node, site in enumerate(state.fleet.site.tolist()) if site in kind.sites]
    names = {state.fleet.names[node] for node in here}
    others = [state.foreign[name] for name in sorted(names & state.foreign.keys())]
    why = [
        "nodes are cordoned or not Ready" if not state.fleet.takes_work[here].all() else "",
        "pods that are not Jobtree's hold them" if any(each.gpus > each.own for each in others) else "",
        "pods of runs that hold them no more are still there" if any(each.own for each in others) else "",
        "Leases that cannot be read hold them" if state.unread.leases else "",
        *_shunned(state, run, paid - kind.sites),
    ]
    message = f"{asks(run)}: {counted(missing, 'GPU')} short, whoever else may end"
    said = ", or ".join(filter(None, why))
    return wait_of(run, "CapacityShort", f"{message}{': ' if said else ''}{said}.", room_short(run.flavor, missing))


def _shunned(state: State, run: RunRow, sites: frozenset[int]) -> Iterator[str]:
    """Words on what is to come there, with which a run that starts now would meet."""
    shuns = run.access(state.policy.maintenance, state.at).shuns
    met = [each for each in shuns if not sites.isdisjoint(state.fleet.sites_matching(run.flavor, each))]
    holds = [hold for hold in {*state.holds.whole.values()} if hold.selector in met]
    if not all(map(is_hold, met)):
        yield "nodes are in maintenance before it surely ends"
    if holds:
        names = named(sorted({"/".join(key) for hold in holds for key in hold.by}))
        first = Time(min(hold.start for hold in holds))
        only = "only runs whose timeLimit ends by then may use them"
        yield f"nodes are promised to {names} from {first} on, and {only}"


def _too_wide(state: State, run: RunRow, most: Space) -> list[Short]:
    """Shortage on an empty fleet: of its largest domains where a group is wider than those, else of the flavor."""
    if max(shape.size for shape in run.lowered().pieces()) <= most.largest:
        return room_short(run.flavor, most.missing)
    lacks = ((f"domain={state.fleet.domain_name(domain)}", gpus) for domain, gpus in most.lacks)
    return in_order(short for where, gpus in lacks for short in room_short(where, gpus))


def _no_nodes(state: State, run: RunRow) -> str:
    if not any(flavor == run.flavor for flavor in state.fleet.flavor):
        return f"No node has flavor {run.flavor}{_left_out(state)}"
    if run.selector and not state.fleet.sites_matching(run.flavor, run.selector):
        return f"No node of flavor {run.flavor} matches its selector {labels_of(run)}"
    if state.policy.maintenance and run.access((), state.at) != run.access(state.policy.maintenance, state.at):
        return f"Every matching node of flavor {run.flavor} is tainted, or in maintenance before the run surely ends"
    return f"Every matching node of flavor {run.flavor} has a taint that the run does not tolerate"


def _left_out(state: State) -> str:
    """Nodes with GPUs whose flavor no label says, so that no cycle plans with them; empty where there are none."""
    count = sum(not flavor and bool(gpus) for flavor, gpus in zip(state.fleet.flavor, state.fleet.gpus, strict=True))
    label, are = state.policy.topology.labels.flavor, "is" if count == 1 else "are"
    return f"; {counted(count, 'node')} {are} left out for want of a {label} label" if count else ""


def _no_paid_nodes(state: State, candidate: Candidate) -> str:
    return f"No node that it may use is matched by an envelope that pays for it: {_payers(state, candidate)}"


def _never_paid(state: State, candidate: Candidate, paid: Space, everywhere: Space) -> str:
    """Wait of a run that would fit, but not where its payers pay."""
    run = candidate.run
    where = ", ".join(state.fleet.domain_name(d) for d in everywhere.domains[: crowding.SAID])
    biggest = max(shape.size for shape in run.lowered().pieces())
    lacking = f"{counted(paid.missing, 'GPU')} short"
    if biggest > paid.largest:
        lacking = f"a group of {counted(biggest, 'GPU')} can never fit, the largest domain has {paid.largest}"
    return f"{asks(run)}: {lacking} where its envelopes pay, {_payers(state, candidate)}; it would fit in {where}."


def _payers(state: State, candidate: Candidate) -> str:
    """Envelopes that may pay, with the nodes that they pay for, nearest first; what keeps them from others."""
    payers = [state.money.envelopes[payer.envelope] for payer in candidate.payers]
    who = ", ".join(f"{each.label} ({_asked(each.selector)})" for each in payers[: crowding.SAID])
    who = f"{who} and {len(payers) - crowding.SAID} more" if len(payers) > crowding.SAID else who
    return "; ".join([who, *kept_off(state, candidate)])


def kept_off(state: State, candidate: Candidate) -> list[str]:
    """Reasons why its payers do not pay for it on nodes where a use cap admits shorter or promised runs alone."""
    money, run = state.money, candidate.run
    for payer in candidate.payers:
        if payer.watch.shut:
            limit = money.envelopes[payer.envelope].lasts(run.limit)
            return [f"on other nodes {uses.too_long(money, payer.watch.shut, limit, run.limit)}"]
        if payer.watch.promised:
            return [f"on other nodes {uses.promised(money, payer.watch.promised)}"]
    return []


def _those(state: State, run: RunRow, sites: frozenset[int]) -> str:
    """Which domains are looked at, where it is not all of the flavor."""
    if run.selector and state.fleet.sites_matching(run.flavor, ()) > state.fleet.sites_matching(
        run.flavor, run.selector
    ):
        return f" with {labels_of(run)}"
    if state.fleet.sites_matching(run.flavor, run.selector) > sites:
        return " without taints that it does not tolerate"
    return ""


def _sum(state: State, sites: frozenset[int]) -> int:
    """GPUs of all domains there."""
    return int(state.fleet.gpus[state.fleet.is_on(sites)].sum())


def _never_fits(run: RunRow, space: Space, gpus_alone: Space, those: str, total: int) -> str:
    """``gpus_alone``: the same if its pods asked for GPUs only. ``those``: which domains are looked at, of ``total``
    GPUs.
    """
    kind = run.lowered()
    if space.missing > gpus_alone.missing:
        load = load_words(run.load)
        return f"{asks(run)}: too few nodes have what each pod asks for, {load}, so it can never fit."
    biggest = max(shape.size for shape in kind.pieces())
    if biggest > space.largest:
        spares = ", spares included," if run.spares else ""
        most = f"the largest domain{those} has {space.largest}"
        apart = not run.group and not run.malleable and space.largest and biggest <= total
        way = f"; with groupGPUs of {space.largest} or less it could lie in several" if apart else ""
        return f"{asks(run)}: a group of {counted(biggest, 'GPU')}{spares} can never fit, {most}{way}."
    gpus = counted(space.missing, "GPU")
    pods = f"{counted(space.pods, 'pod')} of {run.pod} ({gpus})" if space.pods else gpus
    fleet = f"all of the fleet{those}" if those else "all of the fleet"
    return f"{asks(run)}: {pods} short even with {fleet} free, so it can never fit."


def wait_of(
    run: RunRow, reason: str, message: str, shorts: Iterable[Short] = (), deficit: int = 0, *, never: bool = False
) -> Wait:
    """A run's wait."""
    return Wait(
        namespace=run.namespace,
        name=run.name,
        reason=reason,
        message=message,
        shorts=list(shorts),
        deficit_gpus=deficit,
        never=never,
    )


def asks(run: RunRow) -> str:
    """Beginning of a sentence about what it lacks."""
    least = f"at least {run.width_min} of " if run.malleable and run.width_min < run.total else ""
    groups = f" in groups of {run.group}" if run.group and run.group < run.total else ""
    return f"Asks for {least}{counted(run.total, 'GPU')}{groups}"


def labels_of(run: RunRow) -> str:
    """Labels that its nodes must have."""
    return _asked(run.selector)


def _asked(selector: Selector) -> str:
    return named([f"{key}={value}" for key, value in selector])


def load_words(load: PodLoad) -> str:
    """``9 CPUs and 64Gi of memory``."""
    cpu = counted(amount(load.cpu_milli, 1000), "CPU") if load.cpu_milli else ""
    memory = f"{Memory(load.memory)} of memory" if load.memory else ""
    return " and ".join(filter(None, (cpu, memory)))


def room_short(subject: str, gpus: int) -> list[Short]:
    """Shortage of so many GPUs, in a domain or of a flavor."""
    return [Short(rule="capacity", subject=subject, amount=gpus, unit="GPU")]


def in_order(shorts: Iterable[Short]) -> list[Short]:
    """Largest first, then by what is short."""
    return sorted(shorts, key=lambda s: (-s.amount, s.subject, s.rule))
