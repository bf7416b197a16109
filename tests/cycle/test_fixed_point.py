"""An unchanged world is planned to nothing: what a cycle left is what the next one would say, words and all (T9)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtree.world.after import after
from jobtree.world.snapshot import Snapshot
from planner.cycle import plan
from tests.reference import worlds
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.times import moment


def more_writes(now: Snapshot) -> list[Any]:
    """What a second cycle of the same second adds."""
    again = plan(after(now, plan(now, AT)), AT)
    return [*again.closures, *again.segments, *again.leases, *again.runs]


@pytest.mark.parametrize("kind", ["running", "all"])
@settings(max_examples=6)
@given(data=st.data())
def test_what_a_cycle_left_needs_no_more_writes(kind: str, data: st.DataObject) -> None:
    assert more_writes(data.draw(worlds.worlds(kind)).snapshot()) == []


members = st.tuples(st.integers(1, 4), st.sampled_from(["g", "h"]), st.integers(2, 3), st.sampled_from(["one", "two"]))


@settings(max_examples=25)
@given(runs=st.lists(members, min_size=4, max_size=8), gpus=st.integers(4, 12))
def test_nor_what_it_left_of_gangs_with_more_runs_than_their_size(
    runs: list[tuple[int, str, int, str]], gpus: int
) -> None:
    found = [doc.node("n", 8), doc.budget("org:a", [doc.envelope(gpus)])]
    for number, (width, gang, size, namespace) in enumerate(runs):
        meta = {"name": f"r{number}", "namespace": namespace, "creationTimestamp": moment(f"-{9 - number}s")}
        more = {"metadata": {**meta, "uid": f"uid-{number}"}, "spec": {"gang": {"name": gang, "size": size}}}
        found.append(doc.merge(doc.run("r", width), more))

    assert more_writes(snapshot(found)) == []
