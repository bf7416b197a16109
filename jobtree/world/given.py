"""What a cycle is given: all of a snapshot that no cycle writes, as one digest (spec §3.8, §4).

Nodes, Budgets, the Policy, what people wrote of Runs, pods of others or such as leave, and which windows are open at
the cycle's time. As long as that stays the same and no lease ends, the world is what the cycle before left. Leases,
balances, the words about runs and the records of what a cycle saw are its own writes; so are pods that it starts.
"""

import hashlib
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from jobtree.world import digest, values
from jobtree.world.schema import SCHEMA_VERSION
from jobtree.world.snapshot import Snapshot

WHOLE: Final = ("nodes", "budgets", "envelopes", "aggregates")
"""Tables of which no cycle writes anything."""
WRITTEN: Final = ("outcome", "outcome_reason", "enforced_limit", "status")
"""Columns of ``runs`` that cycles write."""


def given_of(snapshot: Snapshot, at: int) -> str:
    """SHA-256, hex, of what the cycle at Unix second ``at`` is given."""
    tables = snapshot.tables
    parts = {
        **{name: snapshot.table_digest(name) for name in WHOLE},
        "runs": digest.of_table(tables["runs"].drop_columns(list(WRITTEN)), SCHEMA_VERSION),
        "pods": digest.of_table(_others(tables["pods"]), SCHEMA_VERSION),
        "policy": snapshot.policy_digest,
        "windows": hashlib.sha256(bytes(_passed(snapshot, at))).hexdigest(),
    }
    return digest.of_tables(parts, SCHEMA_VERSION)


def _others(pods: pa.Table) -> pa.Table:
    """Pods that no run of ours has, or that are about to free what they hold; not how far each has come."""
    found = pods.filter(pc.or_(pc.is_null(pods.column("run")), pods.column("deleting")))
    return found.drop_columns(["phase"])


def _passed(snapshot: Snapshot, at: int) -> list[bool]:
    """Which starts and ends of windows, of envelopes and of maintenance, are past."""
    envelopes = snapshot.tables["envelopes"]
    times = [*values.optional_ints(envelopes, "start"), *values.optional_ints(envelopes, "end")]
    times += [int(time) for window in snapshot.policy.spec.maintenance for time in (window.start, window.end)]
    return [time is not None and time <= at for time in times]
