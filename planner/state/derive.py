"""From a snapshot to the state that is planned on: what ends, what is funded now, what waits, and why not yet."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from msgspec import structs

from jobtree.api.kinds.lease import ClosureReason
from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.memory.cycles import Moment
from jobtree.world.plan import Closure
from jobtree.world.tables import values as col
from jobtree.world.tables.given import any_due, given_of
from jobtree.world.tables.snapshot import Snapshot
from planner.effort import USUAL, Effort
from planner.placement.room import Foreign, Room
from planner.state.lower import Waiting
from planner.state.marking import marked, pinned
from planner.state.past import past_of
from planner.state.replay import Fates, Past, Turn, replay, turned
from planner.state.running.mending import Failing, Mending, mended
from planner.state.running.paying import paid
from planner.state.running.shrinking import shrunk
from planner.state.uncovered import covering, foreign
from policies.caps.book import book_of
from policies.caps.cap import CapBook
from policies.cuts.order import NO_CUTS, Cuts
from policies.funding.classes import Funded, derive
from policies.funding.frozen import is_frozen, kept
from policies.funding.ledger import Spent, spent
from policies.inputs import pods
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey, open_claims, read_leases
from policies.inputs.fleet import Fleet
from policies.inputs.money import Money, read_money, selectors
from policies.inputs.runs import RunRow, read_runs
from policies.inputs.unread import Unread, unread_of
from policies.lifecycle import arrays, endings, failures, follow, tenancy, unweighed
from policies.lifecycle.arrays import ArrayRow
from policies.lifecycle.endings import Ending
from policies.model import gangs, trees
from policies.model.problem import Problem
from policies.model.recall import last_changed
from policies.promises import funds
from policies.promises.holds import NOTHING, Holds, Promised


@dataclass
class State:
    """Everything derived from a snapshot before a model is built.

    ``leases`` and ``held``, open leases after this cycle's endings, have their ledgers up to the second before ``at``:
    with ``turns``, how they turned since the last cycle. ``taken``: ``spent``, and what frozen work takes beside it;
    ``rooms``: what is free, once it has been counted. ``changed``: when a cycle last was given another world than the
    one before left, or saw leases or runs end. ``standing``: runs whose Leases cannot be read, which stand as before.
    ``holds``: what promises keep from all that is not promised. ``swaps``: of what is held, what this cycle opens in
    place of spares.
    """

    at: int
    policy: PolicySpec
    fleet: Fleet
    book: CapBook
    runs: dict[RunKey, RunRow]
    leases: list[LeaseRow]
    held: dict[RunKey, list[LeaseRow]]
    endings: dict[RunKey, Ending]
    closures: list[Closure]
    spent: Spent
    taken: Spent
    funded: Funded
    foreign: dict[str, Foreign]
    node_site: dict[str, int]
    pending: list[RunRow]
    standing: frozenset[RunKey]
    unread: Unread
    turns: dict[LeaseKey, list[Turn]]
    changed: int
    effort: Effort = USUAL
    holds: Holds = NOTHING
    swaps: frozenset[LeaseKey] = frozenset()
    doubt: str = ""
    lost: str = ""
    arrays: list[ArrayRow] = field(default_factory=list)
    blocked: dict[RunKey, tuple[str, str]] = field(default_factory=dict)
    deadlines: dict[RunKey, int] = field(default_factory=dict)
    rooms: list[Room] = field(default_factory=list, repr=False)

    @cached_property
    def lent(self) -> Mapping[tuple[str, int], frozenset[LeaseKey]]:
        """By slot that a standby and a tenant hold, their leases."""
        found: dict[tuple[str, int], set[LeaseKey]] = {}
        for lease in (lease for held in self.held.values() for lease in held):
            for slot in lease.ordinals:
                found.setdefault((lease.node, slot), set()).add(lease.key)
        return {slot: frozenset(keys) for slot, keys in found.items() if len(keys) > 1}

    @property
    def money(self) -> Money:
        """Budgets at the cycle's time."""
        return self.book.money

    @property
    def ends(self) -> dict[LeaseKey, int]:
        """(namespace, lease) → end of the leases that this cycle closes."""
        return ends_of(self.closures)

    def asking(self, pending: list[RunRow], runs: dict[RunKey, RunRow] | None = None) -> "State":
        """The state in which only ``pending`` wait, and all that is held is the same; ``runs``: with these runs."""
        return replace(self, pending=pending, runs=runs or self.runs, blocked=dict(self.blocked))

    def room(self) -> Room:
        """What is free before anything is started, to be filled."""
        if not self.rooms:
            room = Room(self.fleet)
            room.occupy((lease for held in self.held.values() for lease in held), self.runs, self.foreign)
            room.hold_back(self.holds.part)
            self.rooms.append(room)
        return self.rooms[0].copy()

    def problem(self, *, many: bool = False) -> Problem:
        """What waits and may start, lowered; with ``many`` as where many wait, however few do here."""
        return self.lowered(self.waiting(many=many))

    def waiting(self, *, many: bool = False) -> Waiting:
        """What waits and may start, before it is lowered."""
        there = self._started()
        ready = [run for run in self.pending if run.key not in self.blocked and run.key not in there]
        whole, waiting = gangs.gangs(ready, there.values(), partial(self._away, ready, there))
        for key, why in waiting.items():
            self.blocked[key] = (unweighed.GANG, why)
        ready = [run for run in ready if run.key not in self.blocked and not run.is_cpu]
        exact = self.effort.few(len(ready)) and not many
        ties = trees.Ties(whole, self.quotas(), self.holds.promised)
        left = funds.beside(self.holds.money, self.book, self.funded, self.taken)
        return Waiting.of(ready, self.fleet, self.book, left, ties, changed=self.changed, exact=exact)

    def lowered(self, waiting: Waiting, *, rises: bool = False) -> Problem:
        """What waits as a problem; with ``rises`` also what only a rise of some bound would let start."""
        at_work = np.unique(self.fleet.site[self.fleet.takes_work]).tolist() if rises else []
        return waiting.lowered(dict.fromkeys(at_work, 0) | self.room().free_by_site(), rises=rises)

    def _started(self) -> dict[RunKey, RunRow]:
        """Members of gangs that run on or have completed, be it now."""
        done = {key for key, ending in self.endings.items() if ending.outcome == "Completed"}
        members = {key: run for key, run in self.runs.items() if run.gang and key not in self.endings.keys() - done}
        there = self.held.keys() | self.standing | done
        return {
            key: run
            for key, run in members.items()
            if key in there or run.outcome == "Completed" or (run.is_cpu and run.started is not None)
        }

    def _away(self, ready: Iterable[RunRow], there: Container[RunKey]) -> dict[gangs.GangKey, dict[str, gangs.Away]]:
        """Members of gangs that are neither ``ready`` nor ``there``, by gang and name."""
        counted = {run.key for run in ready}
        found: dict[gangs.GangKey, dict[str, gangs.Away]] = {}
        for key, run in self.runs.items():
            if run.gang and key not in counted and key not in there:
                why = gangs.away(run, self.endings.get(key), self.blocked.get(key, ("",))[0])
                found.setdefault((run.namespace, run.gang), {})[run.name] = why
        return found

    def quotas(self) -> list[trees.Tree]:
        """Trees that have one."""
        return trees.trees(self.runs, self.leases, self.ends, self.at, int(self.policy.accounting_period))


def ends_of(closures: list[Closure]) -> dict[LeaseKey, int]:
    """Ends by (namespace, lease)."""
    return {(closure.namespace, closure.name): closure.ended for closure in closures}


def _any_is_over(ended: Mapping[RunKey, Ending]) -> bool:
    """Does any run end for good? One that goes and held nothing is told of in every cycle until it is gone."""
    return any(ending.outcome for ending in ended.values())


def _fates(closures: list[Closure], malleable: frozenset[RunKey]) -> Fates:
    limits = ends_of([closure for closure in closures if closure.reason == "TimeLimit"])
    return Fates(limits, ends_of([closure for closure in closures if closure.reason != "TimeLimit"]), malleable)


def state_of(
    snapshot: Snapshot, at: int, holds: Holds = NOTHING, cuts: Cuts = NO_CUTS, effort: Effort = USUAL
) -> State:
    """Derive the state at ``at`` (Unix seconds), where promises hold something; ``cuts``: what is cut then of it."""
    tables = {**snapshot.tables, "nodes": marked(snapshot.tables["nodes"], holds, cuts)}
    policy = holds.within(snapshot.policy.spec)
    runs = {run.key: pinned(run, cuts) for run in read_runs(tables["runs"], tables["arrays"])}
    fleet = _fleet(tables, runs, policy, at, holds.promised)
    book = book_of(read_money(tables, policy, fleet, at))
    uids = {key: run.uid for key, run in runs.items()}
    leases = [lease.of(uids) for lease in read_leases(tables["leases"], book.money)]
    held = _held(leases, {})
    unread = unread_of(tables["quarantine"], tables["unread"])
    found = pods.read_pods(tables["pods"])
    lives, serving = pods.serving(found, runs, held)
    places = {lease.place for mine in held.values() for lease in mine}
    lost, doubt = failures.failed(tables["nodes"], places, _quarantined_nodes(tables["quarantine"]), policy, at)
    ended = endings.endings(runs, held, _reports(lives, serving, runs, unread), lost, unread, snapshot.since, at)
    foreign_of = partial(foreign, found, serving, unread=unread)
    well = partial(_is_well, lives, serving, at=at)
    cycle = Moment(at, snapshot.number).name
    malleable = frozenset(key for key in held if (run := runs.get(key)) is not None and run.malleable)
    node_site = {name: int(fleet.site[i]) for i, name in enumerate(fleet.names)}
    past, lost_record = past_of(snapshot, fleet, book.money, leases)
    mending = Mending({}, [], ended)
    if lost:
        ends_now = _fates(_closures(leases, ended, lost, cuts, {}, at), malleable)
        now = _held(_replayed(past, leases, ends_now, node_site, at)[0], {})
        sites = partial(_sites, fleet, snapshot.policy.spec, now, at)
        mending = mended(Failing(runs, now, ended, lost, unread.runs, fleet, well, sites, at, cycle), foreign_of)
    shrinking = shrunk(runs, held, mending, unread)
    ended = {**mending.endings, **cuts.endings}
    found_arrays = arrays.read_arrays(tables["arrays"])
    ended |= arrays.endings(found_arrays, runs, ended, at)
    ended |= follow.endings(runs, ended, held, at)
    closures = _closures(leases, ended, lost, cuts, mending.closing | shrinking, at)
    ends = ends_of(closures)
    leases, turns = _replayed(past, leases, _fates(closures, malleable), node_site, at)
    staying = _held(leases, ends)
    charged = spent(book, leases, book.money.balances, node_site, ends)
    limits = endings.limit_ends(runs, staying)
    swaps = [swap for swap in mending.swaps if swap.run_key not in ended]
    still = [lease for mine in staying.values() for lease in mine if is_frozen(lease)]
    taken = kept(book, charged, [x for x in still if x.budget in book.money.quarantined], node_site, limits)
    if swaps:
        weigh = partial(_with, book, limits, staying, malleable, taken, node_site)
        swaps = paid(swaps, runs, staying, book, weigh, node_site)
        for swap in swaps:
            staying.setdefault(swap.run_key, []).append(swap)
        leases = sorted([*leases, *swaps], key=lambda lease: lease.key)
    given = given_of(snapshot, at)
    waiting = [run.waiting() for key, run in runs.items() if _waits(run, key in staying, ended.get(key))]
    standing = frozenset(run.key for run in waiting if run.key not in ended and unread.stands(run))
    state = State(
        at=at,
        policy=policy,
        fleet=fleet,
        book=book,
        runs=runs,
        leases=leases,
        held=staying,
        endings=ended,
        closures=closures,
        spent=charged,
        taken=taken,
        funded=_funded(book, limits, staying, malleable, taken, node_site),
        foreign=foreign_of(covering(staying, held, closures, swaps)),
        turns=turns,
        changed=last_changed(
            tables["seen_world"], given, bool(closures) or _any_is_over(ended) or any_due(snapshot, at), at
        ),
        doubt=doubt,
        lost=lost_record,
        node_site=node_site,
        pending=[run for run in waiting if run.key not in standing],
        standing=standing,
        unread=unread,
        effort=effort,
        holds=holds,
        swaps=frozenset(swap.key for swap in swaps),
        arrays=found_arrays,
    )
    _block(state)
    return state


def _replayed(
    past: Past | None, leases: list[LeaseRow], fates: Fates, node_site: dict[str, int], at: int
) -> tuple[list[LeaseRow], dict[LeaseKey, list[Turn]]]:
    """Leases with their classes as they turned since the last cycle, and these turns."""
    turns = {} if past is None else replay(past, leases, fates, node_site, at)
    return [turned(lease, turns[lease.key]) if lease.key in turns else lease for lease in leases], turns


def _held(leases: Iterable[LeaseRow], ends: Container[LeaseKey]) -> dict[RunKey, list[LeaseRow]]:
    """Open leases by run, without those that end."""
    held: dict[RunKey, list[LeaseRow]] = {}
    for lease in leases:
        if not lease.closed and lease.key not in ends:
            held.setdefault(lease.run_key, []).append(lease)
    return held


def _funded(
    book: CapBook,
    limits: Mapping[RunKey, int | None],
    held: Mapping[RunKey, list[LeaseRow]],
    malleable: frozenset[RunKey],
    taken: Spent,
    node_site: dict[str, int],
) -> Funded:
    """Present classes of what runs on."""
    open_leases = [lease for leases in held.values() for lease in leases]
    return derive(book, open_claims(open_leases, book.money, limits, malleable), open_leases, taken, node_site)


def _with(
    book: CapBook,
    limits: Mapping[RunKey, int | None],
    held: Mapping[RunKey, list[LeaseRow]],
    malleable: frozenset[RunKey],
    taken: Spent,
    node_site: dict[str, int],
    more: Sequence[LeaseRow],
) -> Funded:
    """The same with ``more`` leases."""
    both = {key: list(leases) for key, leases in held.items()}
    for lease in more:
        both.setdefault(lease.run_key, []).append(lease)
    return _funded(book, limits, both, malleable, taken, node_site)


def _sites(
    fleet: Fleet, policy: PolicySpec, held: Mapping[RunKey, list[LeaseRow]], at: int, run: RunRow
) -> frozenset[int]:
    """Where a run may lie on until its limit; what promises hold is not in the way of what it holds already."""
    end = endings.limit_end(endings.started(run, held[run.key]), run.limit)
    left = None if end is None else max(1, end - at)
    return fleet.sites_for(structs.replace(run, time_limit=left).access(policy.maintenance, at))


def _is_well(
    lives: Mapping[RunKey, pods.Life], serving: Mapping[RunKey, list[pods.PodRow]], run: RunRow, gone: set[str], at: int
) -> bool:
    """Do a run's pods on other nodes than those that are ``gone`` run on, as far as they tell?"""
    if run.key not in serving:
        return True
    return endings.runs_on(
        run, lives[run.key].report([p for p in serving[run.key] if p.node not in gone], whole=False), at
    )


def _closures(
    leases: list[LeaseRow],
    ended: Mapping[RunKey, Ending],
    lost: frozenset[tuple[str, str]],
    cuts: Cuts,
    closing: Mapping[LeaseKey, ClosureReason],
    at: int,
) -> list[Closure]:
    """Open leases of runs that end, spares on failed nodes, and what is cut, in (namespace, name) order.

    ``closing``: what ends of runs that live on, and why.
    """
    found = []
    for lease in leases:
        if lease.key in cuts.leases:
            found.append(cuts.leases[lease.key].closure(lease, at))
            continue
        if lease.key in closing:
            then, why = max(lease.start, at), closing[lease.key]
            found.append(Closure(namespace=lease.namespace, name=lease.name, ended=then, reason=why))
            continue
        ending = ended.get(lease.run_key)
        if lease.closed or (ending is None and (lease.active or lease.place not in lost)):
            continue
        end, reason = (at, "NodeFailure") if ending is None else (ending.ended, ending.reason)
        found.append(
            Closure(namespace=lease.namespace, name=lease.name, ended=max(lease.start, min(end, at)), reason=reason)
        )
    return found


def _quarantined_nodes(table: pa.Table) -> set[str]:
    """Nodes that cannot be read: they are not gone."""
    rows = zip(col.texts(table, "kind"), col.texts(table, "name"), strict=True)
    return {name for kind, name in rows if kind == "Node"}


def _waits(run: RunRow, holds: bool, ending: Ending | None) -> bool:
    """Live, holding nothing, wanting to start."""
    over = bool(run.outcome) or (ending is not None and bool(ending.outcome))
    return not (over or holds or run.deleting or run.array or run.state != "Active")


def _fleet(
    tables: Mapping[str, pa.Table],
    runs: Mapping[RunKey, RunRow],
    policy: PolicySpec,
    at: int,
    promised: Promised,
) -> Fleet:
    limits = bool(policy.maintenance)  # else access does not depend on them
    asking = {}
    for key, run in runs.items():
        if not run.outcome and not run.is_cpu:
            own = key if key in promised.all else None
            asking[run.flavor, run.selector, run.tolerations, run.time_limit if limits else None, own] = run
    accesses = sorted({run.access(policy.maintenance, at) for run in asking.values()}, key=repr)
    wanted = selectors(*(tables[name] for bound in ("envelopes", "use_caps") for name in (bound, f"seen_{bound}")))
    return Fleet.read(tables["nodes"], wanted, accesses)


def _reports(
    lives: Mapping[RunKey, pods.Life],
    serving: Mapping[RunKey, list[pods.PodRow]],
    runs: Mapping[RunKey, RunRow],
    unread: Unread,
) -> dict[RunKey, pods.Report]:
    """What their pods say of runs that have some."""
    return {key: lives[key].report(mine, whole=unread.lease_of(runs[key]) is None) for key, mine in serving.items()}


def _block(state: State) -> None:
    """Why a waiting run is not even weighed: (reason, sentence)."""
    outcomes = follow.after(state.runs, state.endings)
    refusals: dict[tuple[str, str], str] = {}
    for run in state.pending:
        whose = run.owner, run.namespace
        if whose not in refusals:
            refusals[whose] = tenancy.refusal(state.money, *whose)
        refusal = refusals[whose]
        waiting = follow.waiting(run, outcomes)
        if refusal:
            state.blocked[run.key] = (unweighed.OWNER, refusal)
        elif unreadable := state.unread.refusal(run):
            state.blocked[run.key] = (unweighed.LEASE, unreadable)
        elif waiting:
            state.blocked[run.key] = (unweighed.UPSTREAM, waiting)
            if follow.failed(run, outcomes) and not run.array_of:
                state.deadlines[run.key] = follow.deadline(run, state.at)
    _block_arrays(state)


def _block_arrays(state: State) -> None:
    """Indices beyond those that may run at once wait, the lowest first; blocked ones take nobody's turn."""
    waiting = {run.key: run for run in state.pending if run.array_of and run.key not in state.blocked}
    for array in state.arrays:
        busy = [key for key in array.members if key in state.held or key in state.standing]
        for key in arrays.beyond(array, waiting, len(busy), state.endings):
            state.blocked[key] = (unweighed.ARRAY, arrays.limit(array))
