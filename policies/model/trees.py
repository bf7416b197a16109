"""Trees of runs and their quotas (spec §1 Run.parent, quota).

Σ Active GPUs, funded or not, of a run and everything below it        ≤ quota.maxGPUs
Σ GPU-seconds used + Active GPUs × min(P, time limit left), likewise  ≤ quota.maxGPUHours
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.caps.cap import HOUR_MILLI
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import limit_end, started
from policies.model.gangs import Gang
from policies.model.linear import INF, Model
from policies.promises.holds import Promised


@dataclass(frozen=True)
class Tree:
    """A run with a quota: the runs below it (itself included), and what the quota still leaves.

    ``left``: GPUs (``hours`` False) or milli-GPU-seconds.
    """

    root: RunKey
    members: frozenset[RunKey]
    hours: bool
    limit: int
    left: int

    def weight(self, run: RunRow, period: int) -> int:
        """Weight of one Active GPU of ``run``."""
        return 1000 * min(period, period if run.limit is None else run.limit) if self.hours else 1


class Width(NamedTuple):
    """A term of a run's width: ``gpus`` Active GPUs for each unit of ``column``."""

    run: RunRow
    column: int
    gpus: int


class Ties(NamedTuple):
    """Ties that set runs apart that ask the same: ``gangs`` that are complete, ``trees`` with a quota, promises."""

    gangs: list[Gang]
    trees: list[Tree]
    promised: Promised

    @property
    def members(self) -> frozenset[RunKey]:
        """All runs of these."""
        return frozenset().union(*self.gangs, *(tree.members for tree in self.trees))


def trees(
    runs: Mapping[RunKey, RunRow], leases: list[LeaseRow], ends: Mapping[LeaseKey, int], at: int, period: int
) -> list[Tree]:
    """Every quota, in the order of its run. ``ends``: (namespace, lease) → end of leases that this cycle closes."""
    roots = sorted(key for key, run in runs.items() if run.has_quota)
    if not roots:
        return []
    below: dict[RunKey, list[RunKey]] = {}
    for key, run in runs.items():
        if run.parent:
            below.setdefault((run.namespace, run.parent), []).append(key)
    by_run: dict[RunKey, list[LeaseRow]] = {}
    for lease in leases:
        if lease.active:
            by_run.setdefault(lease.run_key, []).append(lease)
    found: list[Tree] = []
    for key in roots:
        run = runs[key]
        members = _subtree(key, below)
        held = [lease for member in sorted(members) for lease in by_run.get(member, ())]
        if run.quota_gpus is not None:
            now = sum(lease.gpus for lease in held if not lease.closed and lease.key not in ends)
            found.append(Tree(key, members, False, run.quota_gpus, run.quota_gpus - now))
        if run.quota_gpu_milliseconds is not None:
            used = sum(_seconds(runs[key], by_run.get(key, []), ends, at, period) for key in members)
            found.append(Tree(key, members, True, run.quota_gpu_milliseconds, run.quota_gpu_milliseconds - used))
    return found


def _seconds(run: RunRow, leases: list[LeaseRow], ends: Mapping[LeaseKey, int], at: int, period: int) -> int:
    """Milli-GPU-seconds that a run's Active leases have used and, while they are open, are provided for ahead."""
    still = [lease for lease in leases if not lease.closed and lease.key not in ends]
    end = limit_end(started(run, still), run.limit)
    until = at + (period if end is None else max(0, min(period, end - at)))
    over = ((lease, lease.ended if lease.closed else ends.get(lease.key)) for lease in leases)
    return sum(1000 * lease.gpus * ((until if ended is None else ended) - lease.start) for lease, ended in over)


def _subtree(root: RunKey, below: Mapping[RunKey, list[RunKey]]) -> frozenset[RunKey]:
    seen = {root}
    edge = [root]
    while edge:
        edge = [child for key in edge for child in below.get(key, ()) if child not in seen]
        seen.update(edge)
    return frozenset(seen)


def rows(model: Model, trees: Iterable[Tree], gpus: Mapping[RunKey, Sequence[Width]], period: int) -> None:
    """Add a row for the rest of every quota; ``gpus``: run → its widths, funded or not; ``period``: seconds ahead."""
    for tree in trees:
        terms = [
            (width.column, float(tree.weight(width.run, period)) * width.gpus)
            for key in sorted(tree.members)
            for width in gpus.get(key, ())
        ]
        scale = HOUR_MILLI if tree.hours else 1.0
        left = max(0, tree.left) / scale
        model.row(("tree", *tree.root, tree.hours), [(c, w / scale) for c, w in terms], -INF, left)
