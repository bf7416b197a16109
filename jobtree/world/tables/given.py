"""Digest of what a cycle is given: all of a snapshot that no cycle writes (spec §3.8, §4).

Nodes, Budgets, the Policy, what people wrote of Runs, pods of others or such as leave, and what comes with the clock:
which windows are open, and which loans are old; and which leases are open, for what a hand closes or takes away no
cycle did. As long as that stays the same and nothing ends, the world is what the cycle before left. All else of leases,
balances, the words about runs and the records of what a cycle saw are its own writes; so are pods that it starts.
"""

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api.kinds.reservation import ReservationStatus
from jobtree.api.values.scalars import dec_hook
from jobtree.world.tables import digest, values
from jobtree.world.tables.rows_arrays import indices_of
from jobtree.world.tables.schema import SCHEMA_VERSION
from jobtree.world.tables.snapshot import Snapshot

LeaseName = tuple[str, str]
"""(namespace, name)."""
Claim = tuple[tuple[str, str], tuple[str, str]]
"""((namespace, run), (Budget, envelope))."""
WHOLE: Final = ("nodes", "budgets", "envelopes", "aggregates", "use_caps")
"""Tables of which no cycle writes anything."""
WRITTEN: Final = ("outcome", "outcome_reason", "enforced_limit", "status")
"""Columns of ``runs`` that cycles write."""


def given_of(
    snapshot: Snapshot, at: int, closing: Collection[LeaseName] = (), opening: Collection[LeaseName] = ()
) -> str:
    """SHA-256, hex, of what the cycle at Unix second ``at`` is given.

    Without the leases that it is ``closing``, and with those that it is ``opening``, it is what the next one is given
    if nothing changes. Under ``mode: observe`` it does neither.
    """
    tables = snapshot.tables
    if snapshot.policy.spec.mode == "observe":
        closing = opening = ()
    parts = {
        **{name: snapshot.table_digest(name) for name in WHOLE},
        "runs": snapshot.digest_of("runs by people", lambda: _written_by_people(snapshot).drop_columns(list(WRITTEN))),
        "pods": snapshot.digest_of("pods of others", lambda: _others(tables["pods"], tables["runs"])),
        "policy": snapshot.policy_digest,
        "windows": hashlib.sha256(bytes(_passed(snapshot, at))).hexdigest(),
        "loans": hashlib.sha256(msgspec.json.encode(_old_loans(snapshot, at, closing))).hexdigest(),
        "open": hashlib.sha256(msgspec.json.encode(_open(tables["leases"], closing, opening))).hexdigest(),
    }
    return digest.of_tables(parts, SCHEMA_VERSION)


def _written_by_people(snapshot: Snapshot) -> pa.Table:
    """The runs without indices of arrays: which of these are shown follows from what cycles wrote."""
    runs, arrays = snapshot.tables["runs"], snapshot.tables["arrays"]
    if not len(arrays):
        return runs
    shown = indices_of(arrays)
    return runs.filter(pa.array([key not in shown for key in values.keys(runs)], pa.bool_()))


def any_due(snapshot: Snapshot, at: int) -> bool:
    """Does a promise that stands fall due by ``at``? That changes the world, as an opening window does (spec §3.8)."""
    promises = snapshot.tables["reservations"]
    if not len(promises):
        return False
    starts = values.ints(promises, "start").tolist()
    due = [told for told, start in zip(values.texts(promises, "status"), starts, strict=True) if start <= at]
    return any(msgspec.json.decode(told, type=ReservationStatus, dec_hook=dec_hook).stands for told in due)


def is_own(controller: str, uid: str) -> bool:
    """Is a pod that names a run of ``uid`` its own? A controller reference that it has is believed (spec §10)."""
    return controller in ("", uid)


def _open(leases: pa.Table, closing: Collection[LeaseName], opening: Collection[LeaseName]) -> list[LeaseName]:
    return sorted({name for name in _names(leases) if name not in closing}.union(opening))


@values.remembering
def _names(leases: pa.Table) -> list[LeaseName]:
    """Open leases."""
    found = leases.filter(pc.invert(leases.column("closed")))
    return values.keys(found)


def _others(pods: pa.Table, runs: pa.Table) -> pa.Table:
    """Pods that no run of ours has, or that are about to free what they hold; not how far each has come."""
    uids = dict(zip(values.keys(runs), values.texts(runs, "uid"), strict=True))
    named = zip(*(values.texts(pods, name) for name in ("namespace", "run", "controller")), strict=True)
    own = [
        (uid := uids.get((namespace, run))) is not None and is_own(controller, uid)
        for namespace, run, controller in named
    ]
    found = pods.filter(pc.or_(pc.invert(pa.array(own, pa.bool_())), pods.column("deleting")))
    return found.drop_columns(["phase", "begun"])


def _passed(snapshot: Snapshot, at: int) -> list[bool]:
    """Which starts and ends of windows, of envelopes, use caps and maintenance, are past."""
    edges = ((snapshot.tables[name], edge) for name in ("envelopes", "use_caps") for edge in ("start", "end"))
    times = [time for table, edge in edges for time in values.optional_ints(table, edge)]
    times += [int(time) for window in snapshot.policy.spec.maintenance for time in (window.start, window.end)]
    return [time is not None and time <= at for time in times]


def _old_loans(snapshot: Snapshot, at: int, closing: Collection[LeaseName]) -> list[Claim]:
    """Open loans past ``lending.maxDuration``: from then on they may be recalled.

    Only these, so that a new loan changes nothing; nor does one of no duration, which is old as it begins. A loan is
    what was called borrowed when it was first paid for: no later cycle writes that.
    """
    envelopes = snapshot.tables["envelopes"]
    admitted: dict[Claim, int] = {}
    for name, claim, start in _loans(snapshot.tables["leases"]):
        if name not in closing:
            admitted[claim] = min(start, admitted.get(claim, start))
    payers = zip(values.texts(envelopes, "budget"), values.texts(envelopes, "name"), strict=True)
    lasting = dict(zip(payers, values.ints(envelopes, "lending_duration").tolist(), strict=True))
    return sorted(claim for claim, start in admitted.items() if 0 < lasting.get(claim[1], 0) <= at - start)


@values.remembering
def _loans(leases: pa.Table) -> list[tuple[LeaseName, Claim, int]]:
    """Open leases that were called borrowed when they were first paid for, with their starts, Unix seconds."""
    strangers = pc.not_equal(leases.column("owner").cast(pa.string()), leases.column("run_owner").cast(pa.string()))
    found = leases.filter(pc.and_(pc.invert(leases.column("closed")), strangers))
    lenders = zip(values.texts(found, "budget"), values.texts(found, "envelope"), strict=True)
    starts, ledgers = values.ints(found, "start").tolist(), values.column(found, "funding")
    rows = zip(values.keys(found), zip(values.keys(found, "run"), lenders, strict=True), starts, ledgers, strict=True)
    return [(name, claim, start) for name, claim, start, ledger in rows if _was_borrowed(ledger)]


def _was_borrowed(ledger: Iterable[tuple[Any, ...]]) -> bool:
    return next((entry[0] for entry in ledger if entry[0] != "unfunded"), "") == "borrowed"
