"""Shortages carried out: what a wait says is short, added to the bounds that it names."""

from collections.abc import Iterable, Mapping
from typing import Final

from jobtree.world.plan import Short
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell, field
from policies.inputs.claims import RunKey

_COLUMNS: Final = {
    "concurrency": ("concurrency", 1),
    "hours": ("max_gpu_milliseconds", 3_600_000),
    "credits": ("max_millicredits", 1000),
    "lending-concurrency": ("lending_concurrency", 1),
    "lending-hours": ("lending_gpu_milliseconds", 3_600_000),
    "perRun": ("per_run_gpus", 1),
}
"""Rule → column of an envelope, or without what comes before the measure of an aggregate, and units of it in one."""
_NODE: Final = {"cpu": ("cpu_milli", 1000), "memory": ("memory", 1 << 30), "pods": ("max_pods", 1)}
NODES: Final = frozenset(_NODE)
"""Rules of what a node has beside GPUs."""
MEASURES: Final = ("concurrency", "hours", "credits")
POOLS: Final = ("aggregate", "subtree")
MONEY: Final = {*_COLUMNS, "borrow", "tree", *(f"{pool}-{name}" for pool in POOLS for name in MEASURES)}
"""Rules that bound money and quotas."""


def raised(world: Snapshot, key: RunKey, shorts: Iterable[Short], less: Mapping[Short, int]) -> list[Cell]:
    """What is short added to every bound, by ``less`` where that says so."""
    sums: dict[tuple[str, tuple[str, ...], str], int] = {}
    for short in shorts:
        table, row, column, unit = _place(key, short)
        sums[table, row, column] = sums.get((table, row, column), 0) + unit * (short.amount - less.get(short, 0))
    return [
        Cell(table, row, column, field(world, table, row, column) + rise) for (table, row, column), rise in sums.items()
    ]


def _place(key: RunKey, short: Short) -> tuple[str, tuple[str, ...], str, int]:
    """(table, row, column, units in one of the shortage's)."""
    if short.rule == "borrow":
        return "runs", key, "max_borrow", 1
    if short.rule in _NODE:
        return "nodes", (short.subject.removeprefix("node="),), *_NODE[short.rule]
    first, _, name = short.subject.partition("/")
    if short.rule == "tree":
        hours = short.unit == "GPU-hour"
        return "runs", (first, name), *(("quota_gpu_milliseconds", 3_600_000) if hours else ("quota_gpus", 1))
    rule = short.rule.removeprefix("subtree-")
    table = "aggregates" if rule.startswith("aggregate-") else "envelopes"
    return table, (first, name), *_COLUMNS[rule.removeprefix("aggregate-")]
