"""An unchanged world is planned to nothing: what a cycle left is what the next one would say, words and all (T9)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.check import check
from jobtree.world.plan import Plan
from jobtree.world.tables.after import after
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot
from jobtree.world.tables.values import texts
from planner.advice.edits import Cell, Edit, edited
from planner.planning import plan
from tests.reference import worlds
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.worlds import World

MANY = 8
"""Most cycles until one recalls, lends and closes nothing."""


def next_cycle(now: Snapshot, at: int) -> tuple[Plan, Plan]:
    """A cycle that recalled, lent and closed nothing, as soon as there is one, and the one of the same second after it.

    What a recall leaves may start in the next cycle (spec §3.8).
    """
    for _ in range(MANY):
        found = plan(now, at)
        now = after(now, found)
        lent = any(part.class_ == "borrowed" for lease in found.leases for part in lease.status.funding)
        if not (lent or found.segments or found.closures):
            return found, plan(now, at)
    raise AssertionError(f"{MANY} cycles do not come to rest")


def more_writes(now: Snapshot, at: int = AT) -> list[Any]:
    """What a cycle adds after one that recalled, lent and closed nothing."""
    _, again = next_cycle(now, at)
    promised = [*again.reservations, *again.promises, *again.lapsed]
    return [*again.closures, *again.segments, *again.leases, *again.runs, *promised]


@pytest.mark.parametrize("kind", ["running", "all"])
@examples(6)
@given(data=st.data())
def test_what_a_cycle_left_needs_no_more_writes(kind: str, data: st.DataObject) -> None:
    assert more_writes(data.draw(worlds.worlds(kind)).snapshot()) == []


def changes(left: Snapshot) -> list[Edit]:
    """What people may do between two cycles: of each kind one thing for each object."""
    tables = left.tables
    runs = list(zip(texts(tables["runs"], "namespace"), texts(tables["runs"], "name"), strict=True))
    nodes = texts(tables["nodes"], "name")
    envelopes = list(zip(texts(tables["envelopes"], "budget"), texts(tables["envelopes"], "name"), strict=True))
    return [
        *(Cell("runs", key, "completed_at", AT + 30) for key in runs),
        *(Cell("runs", key, "state", state) for key in runs for state in ("Active", "Suspended")),
        *(Cell("runs", key, "created", AT) for key in runs),
        *(Cell("envelopes", key, "concurrency", gpus) for key in envelopes for gpus in (1, 24)),
        *(Cell("nodes", (name,), "unschedulable", on) for name in nodes for on in (False, True)),
    ]


@pytest.mark.parametrize("kind", ["recall", "all"])
@examples(8)
@given(data=st.data())
def test_nor_does_what_the_next_one_left_once_something_has_changed(kind: str, data: st.DataObject) -> None:
    now = data.draw(worlds.worlds(kind)).snapshot()
    left = after(now, plan(now, AT))
    changed = edited(left, data.draw(st.lists(st.sampled_from(changes(left)), min_size=1, max_size=3)))
    found = plan(changed, AT + 60)

    assert [str(each) for each in check(changed, found)] == []
    if given_of(changed, AT + 60) != given_of(left, AT):
        assert found.changed == AT + 60
    assert plan(after(changed, found), AT + 60).changed == found.changed
    assert more_writes(changed, AT + 60) == []


members = st.tuples(st.integers(1, 4), st.sampled_from(["g", "h"]), st.integers(2, 3), st.sampled_from(["one", "two"]))


@examples(25)
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


def test_a_promise_that_is_over_goes_with_the_next_change_of_the_world() -> None:
    world = World().node("n").budget("org:v", 8).budget("org:w", 8).run("v", 8, owner="org:v")
    world.old()
    world.run("w", 8, owner="org:w").cycle()
    world.runs("cancel", "w", at="+1m").ok()

    def over(at: str) -> tuple[list[str], list[str]]:
        """The promises that there are after a cycle, and those that went with it."""
        cycle = world.cycle(at)
        return [each["status"]["state"] for each in cycle.all("Reservation")], [each.name for each in cycle.plan.lapsed]

    assert [over("+2m"), over("+3m")] == [(["Failed"], []), (["Failed"], [])]
    world.run("x", 9, owner="org:w")
    assert over("+4m") == ([], ["w-20260101t000000z"])
