"""Schemas of the snapshot's tables: the one place that names a column, its type and its unit (spec §2, §11).

Rows are sorted by the table's key. Times are Unix seconds (UTC), durations seconds, GPUs whole GPUs unless the
column says ``milli`` (1/1000). A null means that the object does not say; defaults that need no other object are
already filled in. Strings that repeat are dictionary-coded. What only the clock or a write of ours changes
(heartbeats, resourceVersion, Budget status) is in no column, so an unchanged cluster has an unchanged digest.
"""

from typing import Final

import pyarrow as pa

SCHEMA_VERSION: Final = 7
"""Raised whenever a column changes its name, type or meaning; written into every table and manifest."""

_code = pa.dictionary(pa.int32(), pa.string())
_text = pa.string()
_time = pa.int64()
_span = pa.int64()
_count = pa.int64()
_labels = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
_texts = pa.list_(pa.string())

NODES: Final = pa.schema(
    [
        ("name", _text),
        ("uid", _text),  # another one under the same name is another node
        ("region", _code),  # through Policy topology.labels; null = no such label
        ("cluster", _code),
        ("domain", _code),  # the domain label; null = the node is a domain of its own
        ("rack", _code),
        ("flavor", _code),  # null = left out of planning and warned of
        ("gpus", _count),  # allocatable
        ("cpu_milli", _count),
        ("memory", _count),  # bytes
        ("max_pods", _count),
        ("unschedulable", pa.bool_()),  # a cordon
        ("ready", pa.bool_()),
        ("not_ready_since", _time),
        ("out_of_service", pa.bool_()),  # tainted node.kubernetes.io/out-of-service
        ("deleting", pa.bool_()),
        ("labels", _labels),  # every label, sorted by key
        ("taints", pa.list_(pa.struct([("key", _text), ("value", _text), ("effect", _text)]))),
    ]
)
"""Key: name."""

PODS: Final = pa.schema(
    [
        ("namespace", _code),
        ("name", _text),
        ("node", _text),  # null while unbound
        ("run", _text),  # label rq.davidlangworthy.io/run; null = a foreign pod
        ("controller", _text),  # uid in its controller reference; null = it has none
        ("begun", _time),  # status.startTime, else its creation
        ("phase", _code),
        ("deleting", pa.bool_()),
        ("stuck", _time),  # of a run's pod: since when kube-scheduler finds no node for it; null = it does not say so
        ("evicted", pa.bool_()),  # of a run's pod: something took it off its node (condition DisruptionTarget)
        ("said", _text),  # why, in the words of who says so
        ("gpus", _count),
        ("cpu_milli", _count),
        ("memory", _count),  # bytes
    ]
)
"""Key: namespace, name. Pods that are not Succeeded or Failed, and a run's own pods in any phase."""

BUDGETS: Final = pa.schema(
    [
        ("name", _text),
        ("uid", _text),
        ("created", _time),
        ("owner", _text),
        ("namespaces", _texts),  # null = inherits
        ("parents", _texts),  # null = by longest prefix; empty = a root
    ]
)
"""Key: name. Quarantined Budgets are absent here and named in ``quarantine``."""

ENVELOPES: Final = pa.schema(
    [
        ("budget", _text),
        ("name", _text),
        ("flavor", _code),
        ("selector", _labels),  # value "*" = any value or none
        ("concurrency", _count),
        ("max_gpu_milliseconds", _count),  # maxGPUHours x 3,600,000: milli-GPU-seconds
        ("max_millicredits", _count),
        ("start", _time),
        ("end", _time),
        ("scope", _code),  # own | subtree
        ("sharing", _code),  # family | none, the default resolved
        ("allow_reservations", pa.bool_()),
        ("allow_admission", pa.bool_()),
        ("per_run_gpus", _count),
        ("per_run_time", _span),
        ("per_run_default_time", _span),
        ("lending_allow", pa.bool_()),
        ("lending_to", _texts),
        ("lending_concurrency", _count),
        ("lending_gpu_milliseconds", _count),
        ("lending_duration", _span),
    ]
)
"""Key: budget, name."""

AGGREGATES: Final = pa.schema(
    [
        ("budget", _text),
        ("name", _text),
        ("flavor", _code),
        ("envelopes", _texts),
        ("concurrency", _count),
        ("max_gpu_milliseconds", _count),
        ("max_millicredits", _count),
    ]
)
"""Key: budget, name."""

USE_CAPS: Final = pa.schema(
    [
        ("budget", _text),
        ("name", _text),
        ("flavor", _code),  # null = every one
        ("selector", _labels),  # value "*" = any value or none; none = every node
        ("scope", _code),  # own | subtree
        ("concurrency", _count),
        ("max_gpu_milliseconds", _count),  # maxGPUHours x 3,600,000: milli-GPU-seconds
        ("max_millicredits", _count),
        ("per_run_gpus", _count),
        ("per_run_time", _span),
        ("start", _time),
        ("end", _time),
    ]
)
"""Key: budget, name."""

RUNS: Final = pa.schema(
    [
        ("namespace", _code),
        ("name", _text),
        ("uid", _text),
        ("created", _time),
        ("owner", _code),
        ("state", _code),  # Active | Suspended | Cancelled
        ("deleting", pa.bool_()),
        ("flavor", _code),  # resources.gpuType; null for a CPU run
        ("total", _count),  # totalGPUs; 0 for a CPU run
        ("pod", _count),  # gpusPerPod; 0 = a pod is one (group, node) chunk
        ("cpu_pods", _count),  # of a CPU run
        ("group", _count),  # groupGPUs; 0 = not given
        ("spread", pa.bool_()),  # allowCrossGroupSpread
        ("selector", _labels),  # locality.selector and the template's nodeSelector together
        (
            "tolerations",
            pa.list_(pa.struct([("key", _text), ("operator", _text), ("value", _text), ("effect", _text)])),
        ),
        ("pod_cpu_milli", _count),  # requests of one pod, from the template
        ("pod_memory", _count),  # bytes
        ("checkpoint", _span),
        ("expected", _span),
        ("time_limit", _span),
        ("requeue", pa.bool_()),  # the default resolved
        ("min_total", _count),  # malleable: all four set; fixed: all null
        ("max_total", _count),
        ("step", _count),
        ("desired", _count),
        ("spares", _count),  # per group
        ("allow_borrow", pa.bool_()),
        ("max_borrow", _count),
        ("sponsors", _texts),  # in the run's order
        ("opportunistic", pa.bool_()),
        ("follow", _texts),
        ("on_upstream_failure", _code),
        ("upstream_grace", _span),
        ("parent", _text),
        ("quota_gpus", _count),
        ("quota_gpu_milliseconds", _count),
        ("gang", _text),
        ("gang_size", _count),
        ("array", pa.bool_()),
        ("outcome", _code),  # Completed | Failed as the status has it, null while the run is live
        ("outcome_reason", _text),
        ("completed_at", _time),  # annotation rq.davidlangworthy.io/completed
        ("eta", _time),  # annotation rq.davidlangworthy.io/eta
        ("enforced_limit", _span),  # a payer's perRun.defaultTime, fixed at the start, from the status
        ("status", _text),  # the whole status as canonical JSON, for what must be carried over; null = none yet
    ]
)
"""Key: namespace, name."""

ARRAYS: Final = pa.schema(
    [
        ("namespace", _code),
        ("name", _text),
        ("size", _count),  # how many indices
        ("max_parallel", _count),  # null = as many as find room
        ("completed", _count),  # indices that are over, as its status has it
        ("failed", _count),
        ("shown", pa.list_(pa.int64())),  # indices that are rows of runs, named NAME-INDEX
    ]
)
"""Key: namespace, name. Runs with an array, which are rows of ``runs`` too."""

LEASES: Final = pa.schema(
    [
        ("namespace", _code),
        ("name", _text),
        ("run", _text),
        ("run_uid", _text),
        ("owner", _code),  # the payer's owner, or the run's where nobody pays
        ("run_owner", _code),
        ("flavor", _code),
        ("group", _count),
        ("node", _text),
        ("node_uid", _text),  # of the node as the lease began
        ("ordinals", pa.list_(pa.int32())),
        ("role", _code),  # Active | Spare
        ("start", _time),
        ("budget", _text),  # null = started unfunded
        ("envelope", _text),
        ("reason", _code),  # Start | Grow | Swap
        ("closed", pa.bool_()),
        ("ended", _time),
        ("closure_reason", _code),
        (
            "funding",
            pa.list_(pa.struct([("class", _text), ("from", _time), ("to", _time), ("rate_milli", pa.int64())])),
        ),
    ]
)
"""Key: namespace, name."""

RESERVATIONS: Final = pa.schema(
    [
        ("namespace", _code),
        ("name", _text),
        ("uid", _text),
        ("run", _text),
        ("first_start", _time),  # as first promised
        ("start", _time),  # as it stands
        ("nodes", _texts),  # the intended slice as it stands
        ("state", _code),
        ("status", _text),  # the whole status as canonical JSON, for what must be carried over
    ]
)
"""Key: namespace, name. Promises, also those that are over until their objects go."""

QUARANTINE: Final = pa.schema(
    [
        ("kind", _code),
        ("namespace", _text),
        ("name", _text),
        ("message", _text),
        ("told_by", _text),  # null = itself; else the object whose message, the same, is about this one too
    ]
)
"""Key: kind, namespace, name. Objects that could not be used, each with the sentence that says why (spec §2)."""

UNREAD: Final = pa.schema(
    [
        ("namespace", _text),
        ("name", _text),
        ("runs", _texts),  # names of the Runs whose it may be; none = any whose name it begins with
        ("slots", pa.list_(pa.struct([("node", _text), ("ordinal", _count)]))),  # those that can be read
    ]
)
"""Key: namespace, name. Leases in ``quarantine`` that may be open: what can be told of them all the same (spec §2)."""

WARNINGS: Final = QUARANTINE
"""Key: kind, namespace, name, message. Objects that are used, each with something that a person should know."""

SEEN_BUDGETS: Final = pa.schema([BUDGETS.field(name) for name in ("name", "owner", "namespaces", "parents")])
"""Key: name. Budgets as the last cycle saw them (spec §3.6); envelopes, aggregates and use caps have the
columns of today's."""

SEEN_RATES: Final = pa.schema([("flavor", _text), ("rate_milli", _count)])  # millicredits per GPU-hour
"""Key: flavor. Credit rates as the last cycle saw them; ``seen_discounts`` tells whether there is a record."""

SEEN_DISCOUNTS: Final = pa.schema([("since", _time), ("milli", _count)])  # since: null = from the beginning
"""Key: since. What a spare GPU cost of a whole one, from when on; no rows = what the last cycle saw is lost."""

SEEN_WORLD: Final = pa.schema([("given", _text), ("changed", _time)])
"""Key: given. Digest of what the last cycle was given, carried out or not (see `given`), and when the world last
changed by then; at most one row, none = there was no cycle, or its Plan is lost (spec §3.8)."""

LOTTERY: Final = pa.schema([("opens", _time)])
"""Key: opens. From when on a chain of secrets that is in place of another may be used; at most one row (spec §6)."""

BALANCES: Final = pa.schema(
    [
        ("budget", _text),
        ("envelope", _text),
        ("owner", _code),  # the payer's
        ("run_owner", _code),
        ("flavor", _code),
        ("funding_class", _code),
        ("role", _code),
        ("lent", pa.bool_()),  # called borrowed from its start
        ("place", _code),  # the node's labels that selectors asked for, as JSON; null = not known
        ("rate_milli", _count),  # millicredits per GPU-hour
        ("spans", pa.list_(pa.struct([("from", _time), ("to", _time), ("milli_gpus", _count)]))),
    ]
)
"""Key: all columns but the last. What leases that were pruned had been charged, over time (spec §3.6)."""

TABLES: Final[dict[str, pa.Schema]] = {
    "nodes": NODES,
    "pods": PODS,
    "budgets": BUDGETS,
    "envelopes": ENVELOPES,
    "aggregates": AGGREGATES,
    "use_caps": USE_CAPS,
    "runs": RUNS,
    "arrays": ARRAYS,
    "leases": LEASES,
    "reservations": RESERVATIONS,
    "quarantine": QUARANTINE,
    "unread": UNREAD,
    "warnings": WARNINGS,
    "seen_budgets": SEEN_BUDGETS,
    "seen_envelopes": ENVELOPES,
    "seen_aggregates": AGGREGATES,
    "seen_use_caps": USE_CAPS,
    "seen_rates": SEEN_RATES,
    "seen_discounts": SEEN_DISCOUNTS,
    "seen_world": SEEN_WORLD,
    "lottery": LOTTERY,
    "balances": BALANCES,
}

WHERE_ROWS: Final = frozenset({"arrays", "lottery"})
"""Tables that count in a snapshot's digest, and need be in a record, where they have rows: they came later."""

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "nodes": ("name",),
    "pods": ("namespace", "name"),
    "budgets": ("name",),
    "envelopes": ("budget", "name"),
    "aggregates": ("budget", "name"),
    "use_caps": ("budget", "name"),
    "runs": ("namespace", "name"),
    "arrays": ("namespace", "name"),
    "leases": ("namespace", "name"),
    "reservations": ("namespace", "name"),
    "quarantine": ("kind", "namespace", "name"),
    "unread": ("namespace", "name"),
    "warnings": ("kind", "namespace", "name", "message"),
    "seen_budgets": ("name",),
    "seen_envelopes": ("budget", "name"),
    "seen_aggregates": ("budget", "name"),
    "seen_use_caps": ("budget", "name"),
    "seen_rates": ("flavor",),
    "seen_discounts": ("since",),
    "seen_world": ("given",),
    "lottery": ("opens",),
    "balances": tuple(BALANCES.names[:-1]),
}
