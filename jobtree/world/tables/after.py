"""The snapshot of a cluster once a plan is carried out, without a cluster: leases closed and opened, ledgers, statuses.

It is the snapshot that reading the cluster right after the plan's writes would give, where nothing else happens
meanwhile and kubelets obey at once, as in a state file (spec §10).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from jobtree.api import ObjectMeta, Reservation, Time
from jobtree.api.kinds.meta import RunRef
from jobtree.api.kinds.reservation import IntendedSlice, ReservationSpec
from jobtree.world.collector import collector_paused
from jobtree.world.memory import seen
from jobtree.world.memory.balances import accounts_of
from jobtree.world.plan import Plan
from jobtree.world.tables import rows, schema, values
from jobtree.world.tables.columns import canonical, replaced
from jobtree.world.tables.rows_runs import outcome_of, status_json
from jobtree.world.tables.snapshot import Snapshot, seen_tables

Name = tuple[str, str]
Ledger = list[tuple[Any, ...]]
"""A lease's segments: (class, from, to, rate in millicredits per GPU-hour)."""


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot with ``plan``, which was made from it, carried out."""
    with collector_paused():
        tables = {
            **snapshot.tables,
            "leases": leases(snapshot.tables["leases"], plan),
            "balances": _balances(snapshot.tables, plan),
            "reservations": _reservations(snapshot.tables["reservations"], plan),
            "runs": runs(snapshot.tables["runs"], plan),
            **_seen(snapshot, plan.at),
            "seen_world": rows.seen_world(seen.World(plan.given, plan.changed)),
        }
        return Snapshot(tables, snapshot.policy, plan.at)


def _seen(snapshot: Snapshot, at: int) -> dict[str, pa.Table]:
    tables, policy = snapshot.tables, snapshot.policy.spec
    told = tables["seen_discounts"]
    history = zip(values.optional_ints(told, "since"), values.ints(told, "milli").tolist(), strict=True)
    before = [seen.Discount(milli=milli, since=None if since is None else Time(since)) for since, milli in history]
    return seen_tables(tables, seen.rates_milli(policy), seen.discounts(before, policy, at))


def _balances(tables: Mapping[str, pa.Table], plan: Plan) -> pa.Table:
    """What was pruned is in the balances, to the second: where their record is coarser, caps count the same of it."""
    if not plan.pruned:
        return tables["balances"]
    both = (*rows.accounts(tables["balances"]), *plan.settled)
    return rows.balances(accounts_of((each.title, span) for each in both for span in each.spans))


def _places(table: pa.Table) -> dict[Name, int]:
    return {name: place for place, name in enumerate(values.keys(table))}


def leases(table: pa.Table, plan: Plan) -> pa.Table:
    """The table of leases once ``plan`` is carried out, which was made with it."""
    places = _places(table)
    closed = {places[closure.namespace, closure.name]: closure for closure in plan.closures}
    ledgers: dict[int, Ledger] = {}
    funding = values.column(table, "funding") if plan.segments or plan.closures else []
    for segment in plan.segments:
        place = places[segment.namespace, segment.name]
        ledger = ledgers.setdefault(place, list(funding[place]))
        _end_last(ledger, segment.since)
        ledger.append((segment.funding_class, segment.since, None, segment.rate_milli))
    for place, closure in closed.items():
        _end_last(ledgers.setdefault(place, list(funding[place])), closure.ended)
    for column, cells in (
        ("closed", dict.fromkeys(closed, True)),
        ("ended", {place: closure.ended for place, closure in closed.items()}),
        ("closure_reason", {place: closure.reason for place, closure in closed.items()}),
        ("funding", ledgers),
    ):
        table = replaced(table, column, cells)
    if plan.pruned:
        gone = {places[each.namespace, each.name] for each in plan.pruned}
        kept = pa.array([place for place in range(len(places)) if place not in gone], pa.int64())
        table = canonical(table.take(kept), schema.LEASES)
    return _merged(table, rows.leases(plan.leases)) if plan.leases else table


def _end_last(ledger: Ledger, at: int) -> None:
    if ledger and ledger[-1][2] is None:
        ledger[-1] = (*ledger[-1][:2], at, ledger[-1][3])


def _reservations(table: pa.Table, plan: Plan) -> pa.Table:
    gone = {(each.namespace, each.name) for each in plan.lapsed}
    moved = {(each.namespace, each.name): each.status for each in plan.promises}
    if not (gone or moved or plan.reservations):
        return table
    kept = [
        Reservation(
            metadata=ObjectMeta(name=row["name"], namespace=row["namespace"], uid=row["uid"]),
            spec=ReservationSpec(
                run_ref=RunRef(name=row["run"]),
                intended_slice=IntendedSlice(nodes=tuple(row["nodes"])),
                earliest_start=Time(row["first_start"]),
            ),
            status=moved.get((row["namespace"], row["name"])) or rows.reservation_status(row["status"]),
        )
        for row in table.to_pylist()
        if (row["namespace"], row["name"]) not in gone
    ]
    return rows.reservations(sorted([*kept, *plan.reservations], key=lambda each: (each.namespace, each.name)))


def _merged(old: pa.Table, new: pa.Table) -> pa.Table:
    """Both tables' leases, sorted by their key."""
    both = pa.concat_tables([old, new], promote_options="none").unify_dictionaries()
    key = values.keys(both)
    order: Sequence[int] = sorted(range(len(key)), key=key.__getitem__)
    return canonical(both.take(pa.array(order, pa.int64())), schema.LEASES)


def runs(table: pa.Table, plan: Plan) -> pa.Table:
    """That of runs, likewise."""
    places = _places(table)
    found = {places[update.namespace, update.name]: update.status for update in plan.runs}
    outcomes = {place: outcome_of(status) for place, status in found.items()}
    for column, cells in (
        ("outcome", {place: outcome for place, (outcome, _) in outcomes.items()}),
        ("outcome_reason", {place: reason for place, (_, reason) in outcomes.items()}),
        ("enforced_limit", {place: status.time_limit for place, status in found.items()}),
        ("status", {place: status_json(status) for place, status in found.items()}),
    ):
        table = replaced(table, column, cells)
    return table
