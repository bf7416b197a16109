"""The world of what is dated exactly: where many wait, those that are not are left out of it.

A moment is derived and lowered for what may start in it; of thousands that wait a few hundred are dated exactly. Who
holds something, leads an array or a tree, or is waited for stays.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from jobtree.world.tables import values as col
from jobtree.world.tables.columns import canonical
from jobtree.world.tables.schema import RUNS
from jobtree.world.tables.snapshot import Snapshot
from planner.state.derive import State
from policies.inputs.claims import RunKey


def narrowed(world: Snapshot, state: State, dated: Collection[RunKey]) -> Snapshot:
    """The world without the runs that wait and are not ``dated``, where many wait; ``state``: of the same world."""
    if state.effort.few(len(state.pending)):
        return world
    table = world.tables["runs"]
    gangs = {(key[0], state.runs[key].gang) for key in dated if state.runs[key].gang}
    needed = {(run.namespace, name) for run in state.runs.values() for name in (*run.follow, run.parent) if name}
    needed |= {run.key for run in state.pending if (run.namespace, run.gang) in gangs or run.array_of}
    left_out = {run.key for run in state.pending if run.key not in needed and run.key not in dated}
    keys = zip(col.texts(table, "namespace"), col.texts(table, "name"), strict=True)
    kept = np.flatnonzero([key not in left_out for key in keys])
    return Snapshot({**world.tables, "runs": canonical(table.take(pa.array(kept)), RUNS)}, world.policy, world.since)
