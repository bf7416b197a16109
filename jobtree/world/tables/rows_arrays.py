"""Indices of an array that a snapshot shows, each as a row of ``runs``, and the table ``arrays`` (spec §1).

    shown     what runs or is named (by a Lease, a Reservation, a follower), and of those that wait the first
              min(maxParallel, GPUs of the fleet / least width): no plan can start more of them

So an array costs what it may run at once, however many indices it has; all rules beneath see plain runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import pyarrow as pa

from jobtree.api import Run
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import OVER, IndexRun
from jobtree.world.naming import arrays, needs
from jobtree.world.naming.arrays import RunKey
from jobtree.world.reading.intake import Intake
from jobtree.world.tables import schema, values
from jobtree.world.tables.columns import table


def shown(intake: Intake, policy: PolicySpec) -> dict[RunKey, list[IndexRun]]:
    """By array the indices that are rows of ``runs``, in order."""
    runs = {(run.namespace, run.name): run for run in intake.runs if run.spec.array is not None}
    if not runs:
        return {}
    named: dict[RunKey, set[int]] = defaultdict(set)
    for key in _named(intake):
        if (found := arrays.array_of(runs, key)) is not None:
            named[found[0].namespace, found[0].name].add(found[1])
    gpus = sum(needs.of_node(node, policy.resource_names).gpus for node in intake.nodes)
    members = {key: arrays.Members(run) for key, run in sorted(runs.items())}
    return {key: [each.of(index) for index in _shown(runs[key], named[key], gpus)] for key, each in members.items()}


def _named(intake: Intake) -> Iterator[RunKey]:
    """Names of runs that other objects say."""
    yield from (lease.run_key for lease in intake.leases)
    yield from ((each.namespace, each.spec.run_ref.run_name) for each in intake.reservations)
    yield from ((each.namespace, name) for each in intake.unread for name in each.runs)
    for run in intake.runs:
        if run.spec.follow is not None:
            yield from ((run.namespace, name) for name in run.spec.follow.after)


def _shown(run: Run, named: Iterable[int], gpus: int) -> list[int]:
    array = run.spec.array
    assert array is not None
    said = {index: each.phase for index, each in arrays.known(run).items()}
    running = {index for index, phase in said.items() if phase == "Running"}
    if run.status.phase in OVER:
        return sorted(running.union(named))
    waiting = (index for index in array.all if index not in running and said.get(index) not in OVER)
    most = array.size if run.spec.resources.is_cpu else max(1, gpus // max(1, run.spec.min_gpus))
    return sorted(running.union(named, islice(waiting, min(most, array.max_parallel or most))))


def rows(intake: Intake, found: Mapping[RunKey, list[IndexRun]]) -> pa.Table:
    """One row an array."""
    runs = [run for run in intake.runs if run.spec.array is not None]
    phases = [[(each.phase, index) for index, each in arrays.known(run).items()] for run in runs]
    specs = [run.spec.array for run in runs]
    return table(
        schema.ARRAYS,
        {
            "namespace": [run.namespace for run in runs],
            "name": [run.name for run in runs],
            "size": [spec.size if spec else 0 for spec in specs],
            "max_parallel": [spec and spec.max_parallel for spec in specs],
            "completed": [sum(phase == "Completed" for phase, _ in each) for each in phases],
            "failed": [sum(phase == "Failed" for phase, _ in each) for each in phases],
            "shown": [[each.index for each in found[run.namespace, run.name]] for run in runs],
        },
    )


def indices_of(found: pa.Table) -> dict[RunKey, tuple[str, int]]:
    """The rows of ``runs`` that are indices: by their name the array's and the index."""
    columns = (values.column(found, name) for name in ("namespace", "name", "shown"))
    return {
        (namespace, arrays.index_name(name, index)): (name, index)
        for namespace, name, indices in zip(*columns, strict=True)
        for index in indices
    }
