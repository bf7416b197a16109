"""In any small world every remedy does what it says: made on the tables or on the manifests, it starts the run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import edited
from planner.planning import plan
from planner.remedies import remedies
from tests.reference import worlds
from tests.reference.worlds import AT, World, snapshot
from tests.remedies.asking import carried_out
from tests.support.effort import examples


def started(found: Snapshot) -> set[str]:
    """Names of the runs that a plan starts."""
    return {lease.spec.run_ref.run_name for lease in plan(found, AT).leases}


@pytest.mark.parametrize("kind", worlds.KINDS)
@examples(4)
@given(data=st.data())
def test_every_remedy_starts_the_run(kind: str, data: st.DataObject) -> None:
    world: World = data.draw(worlds.worlds(kind, tiny=True))
    now = world.snapshot()
    current = plan(now, AT)
    for wait in current.waits[:1]:
        found = remedies(now, current, (wait.namespace, wait.name)).found
        costs = [remedy.cost for remedy in found]
        assert costs == sorted(costs)
        for remedy in found:
            if remedy.at is not None:
                continue  # its confirmation is the cycles themselves
            assert wait.name in started(edited(now, remedy.edits)), remedy
            assert wait.name in started(edited(after(now, current), remedy.edits)), remedy
            if remedy.changes and remedy.kind != "combination":
                written = snapshot(carried_out(world.current(), remedy))
                assert written.tables["quarantine"].num_rows == 0, remedy
                tables = {**written.tables, "seen_world": now.tables["seen_world"]}  # no document has it
                assert Snapshot(tables, written.policy).digest == edited(now, remedy.edits).digest, remedy
