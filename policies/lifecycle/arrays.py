"""Arrays of runs: how many indices run at once, and when the whole is over (spec §1 Run.array).

    indices that run                 ≤ maxParallel
    an array is Completed            ⇔ all its indices are
    it is Failed                     ⇔ all are over, and some Failed; or it was cancelled

Each index is a run as any other; the array itself holds nothing and is never weighed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa

from jobtree.world.naming.arrays import index_name
from jobtree.world.tables.records import read
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending


class ArrayRow(msgspec.Struct, frozen=True, gc=False):
    """A row of ``arrays``. ``completed``, ``failed``: how many its status says; ``shown``: indices that are runs."""

    namespace: str
    name: str
    size: int
    max_parallel: int | None
    completed: int
    failed: int
    shown: tuple[int, ...]

    @property
    def key(self) -> RunKey:
        """(namespace, name)."""
        return self.namespace, self.name

    @property
    def members(self) -> list[RunKey]:
        """The indices that are runs, in order."""
        return [(self.namespace, index_name(self.name, index)) for index in self.shown]


class Count(NamedTuple):
    """Numbers of an array: its indices, and those that are over or run."""

    all: int
    completed: int
    failed: int
    running: int

    @property
    def over(self) -> int:
        """Those that have ended."""
        return self.completed + self.failed

    def sentence(self) -> str:
        """Sentence for people."""
        waiting = self.all - self.over - self.running
        return (
            f"{self.running} of {self.all} indices running, {self.completed} completed, {self.failed} failed, "
            f"{waiting} waiting."
        )


def read_arrays(found: pa.Table) -> list[ArrayRow]:
    """All arrays, in (namespace, name) order."""
    return read(found, ArrayRow)


def counted(
    array: ArrayRow,
    runs: Mapping[RunKey, RunRow],
    ended: Mapping[RunKey, Ending],
    runs_on: Callable[[RunRow], bool],
) -> Count:
    """Count its indices after this cycle's endings. ``runs_on``: does an index that is not over run?"""
    now = {"Completed": 0, "Failed": 0}
    running = 0
    for key in array.members:
        run, ending = runs[key], ended.get(key)
        if run.outcome:
            continue
        if ending is not None and ending.outcome:
            now[ending.outcome] += 1
        elif runs_on(run):
            running += 1
    return Count(array.size, array.completed + now["Completed"], array.failed + now["Failed"], running)


def endings(
    found: list[ArrayRow], runs: Mapping[RunKey, RunRow], ended: Mapping[RunKey, Ending], at: int
) -> Iterator[tuple[RunKey, Ending]]:
    """Arrays that end now."""
    for array in found:
        run = runs[array.key]
        if run.outcome:
            continue
        count = counted(array, runs, ended, lambda _: False)
        if run.state == "Cancelled":
            yield array.key, Ending("Failed", "Cancelled", at, f"Cancelled by its owner: {_said(count)}")
        elif count.over == array.size:
            outcome = "Failed" if count.failed else "Completed"
            yield array.key, Ending(outcome, "IndicesFailed" if count.failed else "Completed", at, _said(count))


def _said(count: Count) -> str:
    return f"{count.completed} of {count.all} indices completed, {count.failed} failed."


def beyond(
    array: ArrayRow, waiting: Mapping[RunKey, RunRow], busy: int, ended: Mapping[RunKey, Ending]
) -> Iterator[RunKey]:
    """Waiting indices that may not start beside the ``busy`` ones; CPU runs wait among the others while they run."""
    if array.max_parallel is None:
        return
    mine = [waiting[key] for key in array.members if key in waiting]
    on = [run.key for run in mine if run.is_cpu and run.started is not None and run.key not in ended]
    room = array.max_parallel - busy - len(on)
    for run in mine:
        if run.key not in on:
            room -= 1
            if room < 0:
                yield run.key


def limit(array: ArrayRow) -> str:
    """Say why they wait."""
    before = (
        "1 index of {} runs or starts"
        if array.max_parallel == 1
        else f"{array.max_parallel} indices of {{}} run or start"
    )
    return f"{before.format(array.name)} before it, as many as maxParallel allows"
