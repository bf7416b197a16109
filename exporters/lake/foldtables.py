"""The tables of a fold (see `exporters.lake.fold`): the one place that names their columns.

Times are Unix seconds, GPUs whole GPUs, and columns of the snapshot's tables mean what `tables.schema` says.
``since`` and ``until`` are times of cycles: the first that saw the row so, and the first that did not any more (null:
it still stood so at the fold's last cycle). Texts are plain: the file format finds what repeats by itself.
"""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from jobtree.world.tables import schema

FOLD_VERSION: Final = 5
"""Raised whenever a column changes its name, type or meaning."""

_SPAN: Final = [("since", pa.int64()), ("until", pa.int64())]
_NODE: Final = (
    "name", "region", "cluster", "domain", "rack", "flavor", "gpus", "unschedulable", "ready", "out_of_service",
)  # fmt: skip
_RUN: Final = (
    "namespace", "name", "uid", "created", "owner", "state", "flavor", "total", "group", "time_limit", "min_total",
    "max_total", "opportunistic", "allow_borrow", "outcome", "outcome_reason", "completed_at",
)  # fmt: skip


def _plain(fields: Iterable[pa.Field]) -> list[pa.Field]:
    return [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in fields]


CYCLES: Final = pa.schema(
    [
        ("time", pa.int64()),  # Unix seconds
        ("cycle", pa.string()),  # the manifest's name
        ("snapshot", pa.string()),  # digests, SHA-256 in hex
        ("plan", pa.string()),
        ("leases", pa.string()),
        ("policy", pa.string()),
    ]
)
"""A row per cycle, by time."""

LEASES: Final = pa.schema([*_plain(schema.LEASES), ("seen", pa.int64())])
"""The last form of each lease; ``seen``: the last cycle that had it."""

OPENING: Final = pa.schema([*_plain(schema.BALANCES), ("time", pa.int64())])
"""What leases that had been pruned before the first cycle (``time``) were charged: no later cycle has them."""

DISCOUNTS: Final = pa.schema([*_plain(schema.SEEN_DISCOUNTS), ("time", pa.int64())])
"""What a spare GPU costs of a whole one, in thousandths, from when on, as the last cycle (``time``) knows it."""

RUNS: Final = pa.schema(
    [*_plain(schema.RUNS.field(name) for name in _RUN), ("first_seen", pa.int64()), ("last_seen", pa.int64())]
)
"""The last form of each run (namespace, name, uid), and the cycles that had it first and last."""

NODES: Final = pa.schema([*_plain(schema.NODES.field(name) for name in _NODE), *_SPAN])
BUDGETS: Final = pa.schema([*_plain(schema.BUDGETS), *_SPAN])
ENVELOPES: Final = pa.schema([*_plain(schema.ENVELOPES), *_SPAN])
AGGREGATES: Final = pa.schema([*_plain(schema.AGGREGATES), *_SPAN])
USE_CAPS: Final = pa.schema([*_plain(schema.USE_CAPS), *_SPAN])
QUARANTINE: Final = pa.schema([*_plain(schema.QUARANTINE), *_SPAN])

FOREIGN: Final = pa.schema([("node", pa.string()), ("gpus", pa.int64()), *_SPAN])
"""GPUs of a node that pods hold which are no run's."""

WAITS: Final = pa.schema(
    [
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("deficit_gpus", pa.int64()),
        ("never", pa.bool_()),
        (
            "shorts",  # what is missing, the largest shortage first
            pa.list_(
                pa.struct(
                    [("rule", pa.string()), ("subject", pa.string()), ("amount", pa.int64()), ("unit", pa.string())]
                )
            ),
        ),
        *_SPAN,
    ]
)
"""Why each waiting run waits, from the cycles' plans."""

PRICES: Final = pa.schema(
    [
        ("rule", pa.string()),
        ("subject", pa.string()),
        ("unit", pa.string()),
        ("centi_value", pa.int64()),  # hundredths of what a GPU of a run just created counts
        ("centi_gpus", pa.int64()),  # hundredths of a GPU that would start more
        *_SPAN,
    ]
)
"""What one more unit of a bound would be worth, from the cycles' plans, as `jobtree.world.plan.Price` has it.

Coarser than there, for as runs grow older it creeps. Of ``capacity`` a row per flavor, where it is dearest, and per
domain that some run waits for, as ``domain=NAME``; of caps of equal payers those that some run waits for.
"""

PROMISES: Final = pa.schema(
    [
        ("time", pa.int64()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("run", pa.string()),  # null: it was made before, and moves or ends
        ("state", pa.string()),
        ("start", pa.int64()),  # as promised from then on
        ("p90", pa.int64()),  # by when it is kept nine times of ten, as told from then on
    ]
)
"""A row whenever a plan (``time``) makes a promise, moves or ends it."""

DRAWS: Final = pa.schema(
    [
        ("time", pa.int64()),
        ("reservation", pa.string()),
        ("pick", pa.int64()),  # which one for that promise, from 0
        ("owner", pa.string()),  # of the pool before that pick
        ("tokens", pa.int64()),  # groups of that owner in it
        ("owners", pa.int64()),  # owners in it: each as likely as any other
        ("drawn", pa.bool_()),
    ]
)
"""Who could be drawn: a row per plan (``time``), promise, pick and owner in its pool, and whether it was that one."""

FOLDS: Final[dict[str, pa.Schema]] = {
    "cycles": CYCLES,
    "leases": LEASES,
    "opening": OPENING,
    "discounts": DISCOUNTS,
    "runs": RUNS,
    "nodes": NODES,
    "budgets": BUDGETS,
    "envelopes": ENVELOPES,
    "aggregates": AGGREGATES,
    "use_caps": USE_CAPS,
    "quarantine": QUARANTINE,
    "foreign": FOREIGN,
    "waits": WAITS,
    "prices": PRICES,
    "promises": PROMISES,
    "draws": DRAWS,
}

STANDING: Final[dict[str, tuple[str, ...]]] = {
    "nodes": ("name",),
    "budgets": ("name",),
    "envelopes": ("budget", "name"),
    "aggregates": ("budget", "name"),
    "use_caps": ("budget", "name"),
    "quarantine": ("kind", "namespace", "name"),
}
"""Tables of the snapshot whose rows are kept with the time that they stood, by their key."""
