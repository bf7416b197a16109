"""What is near a run is all that a change can decide by: the rest of the world makes no difference."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from jobtree.world.tables import values
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell
from planner.effort import USUAL, Effort
from planner.planning import plan
from planner.remedies.bench import Bench
from tests.reference import worlds
from tests.reference.worlds import AT, snapshot
from tests.remedies.asking import ask, documents
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.worlds import World

OTHER = "A100-80GB"


def two_flavors() -> World:
    """A node and a budget of each flavor, both held; a run of each waits."""
    world = World().node("a").node("b", flavor=OTHER, domain="d2").budget("org:a", 8)
    world.budget("org:b", envelopes=[doc.envelope(8, flavor=OTHER)])
    for kind in ("runs", "waits"):
        world.run(f"{kind}-a", 8)
        world.run(f"{kind}-b", 8, owner="org:b", spec={"resources": {"gpuType": OTHER, "totalGPUs": 8}})
    assert world.cycle().running == ["runs-a", "runs-b"]
    return world


def near(world: World, run: str) -> tuple[set[str], set[str]]:
    """Runs and runs with leases that are near a run."""
    found = snapshot(documents(world, "+1m"))
    bench = Bench.of(found, plan(found, AT + 60), ("default", run))
    near = bench.near.tables
    return set(values.texts(near["runs"], "name")), set(values.texts(near["leases"], "run"))


def joined_by_a_cap(world: World) -> None:
    both = [doc.envelope(8), doc.envelope(8, name="other", flavor=OTHER)]
    cap = {"name": "all", "envelopes": ["gpus", "other"], "maxConcurrency": 16}
    world.budget("org:c", envelopes=both, spec={"aggregateCaps": [cap]})


def joined_by_a_tree(world: World) -> None:
    world.edit("Run", "runs-a", spec={"quota": {"maxGPUs": 64}})
    world.edit("Run", "waits-b", spec={"parent": "runs-a"})


def joined_by_a_gang(world: World) -> None:
    for name in ("waits-a", "waits-b"):
        world.edit("Run", name, spec={"gang": {"name": "g", "size": 2}})


def joined_by_a_member_that_runs(world: World) -> None:
    for name in ("waits-a", "runs-b"):
        world.edit("Run", name, spec={"gang": {"name": "g", "size": 2}})


def joined_by_a_lease(world: World) -> None:
    label = {"metadata": {"labels": {"gpu.flavor": doc.FLAVOR}}}
    world.edit("Node", "b", **label)  # runs-b holds what waits-a could have


def test_another_flavor_is_far() -> None:
    assert near(two_flavors(), "waits-a") == ({"runs-a", "waits-a"}, {"runs-a"})


@pytest.mark.parametrize(
    "joined", [joined_by_a_cap, joined_by_a_tree, joined_by_a_gang, joined_by_a_member_that_runs, joined_by_a_lease]
)
def test_what_takes_flavors_together_makes_them_near(joined: Callable[[World], None]) -> None:
    world = two_flavors()
    joined(world)

    assert near(world, "waits-a") == ({"runs-a", "runs-b", "waits-a", "waits-b"}, {"runs-a", "runs-b"})


@st.composite
def mixed(draw: st.DrawFn, kind: str) -> Snapshot:
    """A world of the reference whose nodes, envelopes and runs have either of two flavors."""
    world = draw(worlds.worlds(kind))
    flavors: dict[tuple[str, ...], str] = {}

    def flavor(*name: str) -> str:
        if name not in flavors:
            flavors[name] = OTHER if draw(st.booleans()) else doc.FLAVOR
        return flavors[name]

    def painted(each: Document) -> Document:
        kind, name = each["kind"], each["metadata"]["name"]
        if kind == "Node":
            return doc.merge(each, {"metadata": {"labels": {"gpu.flavor": flavor(kind, name)}}})
        if kind == "Run":
            return doc.merge(each, {"spec": {"resources": {"gpuType": flavor(kind, name)}}})
        if kind == "Budget":
            envelopes = [{**one, "flavor": flavor(kind, name, one["name"])} for one in each["spec"]["envelopes"]]
            return doc.merge(each, {"spec": {"envelopes": envelopes}})
        return each

    earlier = None if world.earlier is None else [painted(each) for each in world.earlier]
    return worlds.World([painted(each) for each in world.documents], earlier).snapshot()


def of(flavors: set[str], world: Snapshot, table: str, *key: str) -> list[tuple[str, ...]]:
    """Keys of the rows of a table that have one of these flavors."""
    rows = zip(*(values.texts(world.tables[table], column) for column in ("flavor", *key)), strict=True)
    return [tuple(found) for flavor, *found in rows if flavor in flavors]


@pytest.mark.parametrize("kind", ["payers", "ties", "running", "all"])
@examples(6)
@given(data=st.data())
def test_the_rest_makes_no_difference(kind: str, data: st.DataObject) -> None:
    now = data.draw(mixed(kind))
    current = plan(now, AT)
    for wait in current.waits[:2]:
        bench = Bench.of(now, current, (wait.namespace, wait.name))
        everywhere = replace(bench, near=bench.kept)
        event("far runs" if bench.near.tables["runs"].num_rows < len(bench.state.runs) else "all near")
        flavors = set(values.texts(bench.near.tables["runs"], "flavor"))
        nodes = [[Cell("nodes", (name,), "gpus", 16)] for (name,) in of(flavors, now, "nodes", "name")]
        rises = [Cell("envelopes", key, "concurrency", 64) for key in of(flavors, now, "envelopes", "budget", "name")]
        for change in ([], *nodes[:2], rises, [*rises, *(cell for cells in nodes for cell in cells)]):
            assert bench.instead(change) == everywhere.instead(change)


def test_an_array_that_waits_beside_a_run_is_left_out_index_by_index() -> None:
    world = World().domain("A", nodes=1).budget("org:a", 8).budget("org:b", 8).run("big", 8, owner="org:b")
    assert world.cycle().running == ["big"]
    world.run("arr", 2, array={"count": 2}, owner="org:b", created="+1m").run("r", 8, created="+1m")
    world.cycle("+1m")

    assert {name: world.runs("explain", name, at="+2m").code for name in ("r", "arr", "arr-0", "arr-1")} == {
        "r": 0,
        "arr": 0,
        "arr-0": 0,
        "arr-1": 0,
    }


def test_where_many_wait_the_same_changes_are_found() -> None:
    def found(effort: Effort) -> list[str]:
        world = World().domain("A", nodes=2).budget("org:a", 16).run("first", 8, owner="org:a").run("second", 8)
        assert world.cycle().running == ["first", "second"]
        world.run("r", 8, created="+1m").run("penniless", 8, created="+1m", owner="org:b")
        answer = ask(documents(world, "+2m"), "r", AT + 120, effort=effort)
        return [remedy.words for remedy in answer.found if remedy.kind != "wait"]

    assert found(USUAL) == found(Effort(exact=1)) != []


def test_where_many_wait_enough_is_freed_for_those_before() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).budget("org:b", 64).run("b", 16, owner="org:b")
    assert world.cycle().running == ["b"]
    world.run("before", 4, created="+1m").run("r", 4, created="+2m").run("penniless", 8, owner="org:c")
    answer = ask(documents(world, "+3m"), "r", AT + 180, effort=Effort(exact=2))

    assert [(each.kind, each.gpus) for each in answer.found if each.kind in ("free", "end")] == [("end", 16)]
