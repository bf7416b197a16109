"""From a snapshot to the state that is planned on: what ends, what is funded now, what waits, and why not yet."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from msgspec import structs

from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.memory.cycles import Moment
from jobtree.world.plan import Closure
from jobtree.world.tables.given import any_due, given_of
from jobtree.world.tables.rows import set_aside
from jobtree.world.tables.snapshot import Snapshot
from planner.effort import USUAL, Effort
from planner.placement.room import Foreign
from planner.state.blocking import block
from planner.state.closing import closures_of, ends_of, fates_of
from planner.state.lower import Asked
from planner.state.marking import marked, pinned
from planner.state.past import past_of
from planner.state.replay import Fates, Past, Turn, replay, turned
from planner.state.running.failing import Failing, Mending
from planner.state.running.mending import mended
from planner.state.running.paying import paid
from planner.state.running.shrinking import shrunk
from planner.state.state import State
from planner.state.uncovered import covering, foreign
from policies.caps.book import book_of
from policies.caps.cap import CapBook
from policies.cuts.order import NO_CUTS, Cuts
from policies.cuts.protection import Protection, draws_from
from policies.funding.classes import Funded, derive
from policies.funding.frozen import is_frozen, kept
from policies.funding.ledger import Spent, spent
from policies.inputs import pods
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey, open_claims, read_leases
from policies.inputs.fleet import Fleet
from policies.inputs.money import read_money, selectors
from policies.inputs.runs import RunRow, read_runs
from policies.inputs.unread import Unread, unread_of
from policies.lifecycle import arrays, endings, failures, follow
from policies.lifecycle.endings import Ending
from policies.model.recall import last_changed
from policies.promises.holds import NOTHING, Holds, Promised


def _any_is_over(ended: Mapping[RunKey, Ending]) -> bool:
    """Does any run end for good? One that goes and held nothing is told of in every cycle until it is gone."""
    return any(ending.outcome for ending in ended.values())


def state_of(
    snapshot: Snapshot,
    at: int,
    holds: Holds = NOTHING,
    cuts: Cuts = NO_CUTS,
    effort: Effort = USUAL,
    told: int | None = None,
) -> State:
    """Derive the state at ``at`` (Unix seconds), where promises hold something; ``cuts``: what is cut then of it.

    ``told``: the time of the cycle that asks, where ``at`` is one to come.
    """
    world = _world(snapshot, at, holds, cuts, told)
    runs, book, node_site = world.runs, world.seen.book, world.seen.fleet.node_site
    over = _over(world, snapshot, cuts, effort)
    ends = ends_of(over.closures)
    fates = fates_of(over.closures, _malleable(runs, world.held))
    leases, turns = _replayed(over.past, world.leases, fates, node_site, at)
    staying = _held(leases, ends)
    charged, taken, funded_of = paid_now(book, runs, leases, staying, ends, node_site)
    still = [lease for mine in staying.values() for lease in mine]
    swaps = over.swaps
    if swaps:
        swaps = paid(swaps, runs, staying, book, lambda more: funded_of([*still, *more]), node_site)
        for swap in swaps:
            staying.setdefault(swap.run_key, []).append(swap)
        leases = sorted([*leases, *swaps], key=lambda lease: lease.key)
    news = bool(over.closures) or _any_is_over(over.endings) or any_due(snapshot, at)
    waiting = [run.waiting() for key, run in runs.items() if _waits(run, key in staying, over.endings.get(key))]
    standing = frozenset(run.key for run in waiting if run.key not in over.endings and world.unread.stands(run))
    state = State(
        at=at,
        policy=world.seen.policy,
        fleet=world.seen.fleet,
        book=book,
        runs=runs,
        leases=leases,
        held=staying,
        endings=over.endings,
        closures=over.closures,
        spent=charged,
        taken=taken,
        funded=funded_of([*still, *swaps]),
        foreign=world.foreign_of(covering(staying, world.held, over.closures, swaps)),
        turns=turns,
        protection=Protection(int(world.seen.policy.lottery.term), draws_from(world.seen.tables["lottery"])),
        changed=last_changed(world.seen.tables["seen_world"], given_of(snapshot, at), news, at),
        doubt=over.doubt,
        lost=over.record_lost,
        node_site=node_site,
        pending=[run for run in waiting if run.key not in standing],
        standing=standing,
        unread=world.unread,
        effort=effort,
        holds=holds,
        swaps=frozenset(swap.key for swap in swaps),
        arrays=over.arrays,
    )
    block(state, over.gone)
    return state


@dataclass(frozen=True)
class _World:
    """Contents of a snapshot at ``at``, before anything ends. ``held``: open leases by run; ``found``: pods,
    ``lives`` of runs that have had some, and by run those ``serving`` it.
    """

    at: int
    seen: "_Seen"
    runs: dict[RunKey, RunRow]
    leases: list[LeaseRow]
    held: dict[RunKey, list[LeaseRow]]
    unread: Unread
    found: list[pods.PodRow]
    lives: Mapping[RunKey, pods.Life]
    serving: Mapping[RunKey, list[pods.PodRow]]

    def foreign_of(self, held: Mapping[RunKey, list[LeaseRow]]) -> dict[str, Foreign]:
        """Use of nodes beside these leases."""
        return foreign(self.found, self.serving, held, unread=self.unread)


def _world(snapshot: Snapshot, at: int, holds: Holds, cuts: Cuts, told: int | None) -> _World:
    rows = read_runs(snapshot.tables["runs"], snapshot.tables["arrays"])
    runs = {run.key: pinned(run, cuts) for run in rows}
    seen = _seen(snapshot, runs, at, holds, cuts, told)
    uids = {key: run.uid for key, run in runs.items()}
    leases = [lease.of(uids) for lease in read_leases(seen.tables["leases"], seen.book.money)]
    held = _held(leases, {})
    found = pods.read_pods(seen.tables["pods"])
    lives, serving = pods.serving(found, runs, held)
    unread = unread_of(seen.tables["quarantine"], seen.tables["unread"])
    return _World(at, seen, runs, leases, held, unread, found, lives, serving)


class _Over(NamedTuple):
    """Endings at the cycle's time, and why: runs, Leases, and in whose place ``swaps`` open; ``doubt``: a warning on
    nodes, ``record_lost`` one on the last cycle's Budgets; ``gone``: outcomes of upstreams that are there no more.
    """

    endings: dict[RunKey, Ending]
    closures: list[Closure]
    swaps: list[LeaseRow]
    past: Past | None
    arrays: list[arrays.ArrayRow]
    gone: Mapping[RunKey, str]
    doubt: str
    record_lost: str


def _over(world: _World, snapshot: Snapshot, cuts: Cuts, effort: Effort) -> _Over:
    at, runs, held, tables = world.at, world.runs, world.held, world.seen.tables
    places = {lease.place for mine in held.values() for lease in mine}
    unreadable = {name for _, name in set_aside(tables["quarantine"], "Node")}  # they are not gone
    lost, doubt = failures.failed(tables["nodes"], places, unreadable, world.seen.policy, at)
    reports = _reports(world.lives, world.serving, runs, world.unread)
    ended = endings.endings(runs, held, reports, lost, world.unread, snapshot.since, at)
    past, record_lost = past_of(snapshot, world.seen.fleet, world.seen.book.money, world.leases)
    mending = _mended(world, snapshot, cuts, ended, lost, past, effort.nodes) if lost else Mending({}, [], ended)
    shrinking = shrunk(runs, held, mending, world.unread, at)
    ended = {**mending.endings, **cuts.endings}
    found_arrays = arrays.read_arrays(tables["arrays"])
    ended |= arrays.endings(found_arrays, runs, ended, at)
    gone = follow.gone(tables["leases"], runs, world.unread.runs)
    ended |= follow.endings(runs, ended, gone, held, at)
    closures = closures_of(world.leases, ended, lost, cuts, mending.closing | shrinking, at)
    swaps = [swap for swap in mending.swaps if swap.run_key not in ended]
    return _Over(ended, closures, swaps, past, found_arrays, gone, doubt, record_lost)


def _mended(
    world: _World,
    snapshot: Snapshot,
    cuts: Cuts,
    ended: Mapping[RunKey, Ending],
    lost: frozenset[failures.Place],
    past: Past | None,
    nodes: int,
) -> Mending:
    """Mend what the ``lost`` nodes broke, by ``nodes`` of branch and bound at most."""
    at, runs, fleet = world.at, world.runs, world.seen.fleet
    fates = fates_of(closures_of(world.leases, ended, lost, cuts, {}, at), _malleable(runs, world.held))
    now = _held(_replayed(past, world.leases, fates, fleet.node_site, at)[0], {})
    sites = partial(_sites, fleet, snapshot.policy.spec, now, at)
    well = partial(_is_well, world.lives, world.serving, at=at)
    cycle = Moment(at, snapshot.number).name
    failing = Failing(runs, now, ended, lost, world.unread.runs, fleet, well, sites, at, cycle, nodes)
    return mended(failing, world.foreign_of)


def _malleable(runs: Mapping[RunKey, RunRow], held: Iterable[RunKey]) -> frozenset[RunKey]:
    return frozenset(key for key in held if (run := runs.get(key)) is not None and run.malleable)


def beside(snapshot: Snapshot, state: State, holds: Holds) -> State:
    """Derive as `state_of` with ``holds``, from the ``state`` without: nodes and money alone differ.

    What a swap is paid by hangs on both: where there is one, all is derived again.
    """
    if state.swaps:
        return state_of(snapshot, state.at, holds, effort=state.effort)
    tables, policy, fleet, book = _seen(snapshot, state.runs, state.at, holds, NO_CUTS)
    leases, held, node_site = state.leases, state.held, fleet.node_site
    charged, taken, funded_of = paid_now(book, state.runs, leases, held, state.ends, node_site)
    funded = funded_of(state.open_leases)
    found = replace(
        state, policy=policy, fleet=fleet, book=book, node_site=node_site, spent=charged, taken=taken, funded=funded,
        holds=holds, blocked={}, deadlines={}, rooms=[], asked=Asked(),
    )  # fmt: skip
    block(found, follow.gone(tables["leases"], state.runs, state.unread.runs))
    return found


class _Seen(NamedTuple):
    """``tables`` with nodes as promises and cuts mark them, ``policy`` as promises bound it, and what follows."""

    tables: Mapping[str, pa.Table]
    policy: PolicySpec
    fleet: Fleet
    book: CapBook


def _seen(
    snapshot: Snapshot, runs: Mapping[RunKey, RunRow], at: int, holds: Holds, cuts: Cuts, told: int | None = None
) -> _Seen:
    """Nodes and money at ``at`` (Unix seconds), where promises hold and cuts free something; ``told``: `state_of`."""
    tables = {**snapshot.tables, "nodes": marked(snapshot.tables["nodes"], holds, cuts)}
    policy = holds.within(snapshot.policy.spec)
    fleet = _fleet(tables, runs, policy, at, holds.promised)
    return _Seen(tables, policy, fleet, book_of(read_money(tables, policy, fleet, at, told)))


def paid_now(
    book: CapBook,
    runs: Mapping[RunKey, RunRow],
    leases: list[LeaseRow],
    held: Mapping[RunKey, list[LeaseRow]],
    ends: Mapping[LeaseKey, int],
    node_site: dict[str, int],
) -> tuple[Spent, Spent, Callable[[list[LeaseRow]], Funded]]:
    """Charges of caps, the same with what frozen work takes, and how to ask who is funded of open leases.

    At the time of ``book``; ``leases``: all of them, ``held``: those that run on, ``ends``: when the others end.
    """
    charged, limits = spent(book, leases, book.money.balances, node_site, ends), endings.limit_ends(runs, held)
    still = (lease for mine in held.values() for lease in mine)
    frozen = [lease for lease in still if is_frozen(lease) and lease.budget in book.money.quarantined]
    taken = kept(book, charged, frozen, node_site, limits)
    return charged, taken, partial(_funded, book, limits, _malleable(runs, held), taken, node_site)


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
    malleable: frozenset[RunKey],
    taken: Spent,
    node_site: dict[str, int],
    leases: list[LeaseRow],
) -> Funded:
    """Present classes of what runs on: ``leases``."""
    return derive(book, open_claims(leases, book.money, limits, malleable), leases, taken, node_site)


def _sites(
    fleet: Fleet, policy: PolicySpec, held: Mapping[RunKey, list[LeaseRow]], at: int, run: RunRow
) -> frozenset[int]:
    """Sites where a run may lie on until its limit; what promises hold is not in the way of what it holds already."""
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
    """Reports of their pods on runs that have some."""
    return {key: lives[key].report(mine, whole=unread.lease_of(runs[key]) is None) for key, mine in serving.items()}
