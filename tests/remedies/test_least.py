"""The cap that is raised is raised by no more than it must be: no single smaller rise of any concurrency does it."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables import values
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell
from planner.planning import plan
from planner.remedies import remedies
from planner.remedies.bench import Bench
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support.effort import examples


def raised(world: Snapshot, rise: int) -> Iterator[Cell]:
    """Each single concurrency of an envelope or aggregate raised by so many GPUs."""
    for table in ("envelopes", "aggregates"):
        found = world.tables[table]
        keys = zip(values.texts(found, "budget"), values.texts(found, "name"), strict=True)
        for key, limit in zip(keys, values.optional_ints(found, "concurrency"), strict=True):
            if limit is not None:
                yield Cell(table, key, "concurrency", limit + rise)


@pytest.mark.parametrize("kind", ["payers", "ties"])
@examples(6)
@given(data=st.data())
def test_no_smaller_rise_of_one_cap_starts_the_run(kind: str, data: st.DataObject) -> None:
    world: World = data.draw(worlds.worlds(kind, tiny=True))
    now = world.snapshot()
    current = plan(now, AT)
    for wait in current.waits[:1]:
        key = (wait.namespace, wait.name)
        found = remedies(now, current, key)
        rises = [remedy.gpus for remedy in found.found if remedy.kind == "cap"]
        if found.taken and not rises:
            continue  # others take what this run needs, however much it is
        less = rises[0] - 1 if rises else sum(run.total for run in Bench.of(now, current, key).state.pending)
        bench = Bench.of(now, current, key)

        assert [cell for cell in raised(now, less) if less and bench.instead([cell]) is None] == []
