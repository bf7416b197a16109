"""Promises that are due share what is there: none is late because one before it is wider than it must be (spec §4)."""

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.memory.lottery import Lot
from jobtree.world.plan import Plan
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell, Edit, edited, field
from planner.cutting.activation import Activation
from planner.cutting.trial import Trial
from planner.planning import Planning, plan
from planner.state.derive import state_of
from policies.cuts.order import Cut
from policies.promises.rules import held
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.drawing import Draw
from tests.support.effort import examples
from tests.support.times import moment, unix
from tests.support.worlds import World

WIDE: Final[dict[str, Any]] = {"by": 4, "malleable": {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}}
NODES: Final = 3
HOUR: Final = 3600
SECRET: Final = "5f" * 32


def promised() -> World:
    """3 nodes that free up in an hour: promised are 12 of 4 to 12 GPUs, then 8."""
    world = World().domain("A", nodes=NODES).budget("org:o", 99).budget("org:a", 99).budget("org:b", 99)
    for number in range(NODES):
        world.run(f"old{number}", 8, owner="org:o", limit="1h")
    world.cycle()
    world.run("wide", 12, created="+1m", **WIDE).run("next", 8, owner="org:b", created="+2m")
    world.cycle("+3m")
    return world


@pytest.mark.parametrize(("lost", "width"), [(0, 12), (1, 8)])
def test_the_first_is_as_wide_as_the_next_leaves_room_for(lost: int, width: int) -> None:
    world = promised()
    for number in range(lost):
        world.edit("Node", f"a{number + 1:02}", spec={"unschedulable": True})
    cycle = world.cycle("+1h")

    assert (cycle.running, cycle.status("wide")["width"]["allocated"]) == (["next", "wide"], width)


def test_nobody_is_cut_for_the_width_of_another() -> None:
    """8 GPUs are free, and 8 of `victim` could be drawn; two promises of 4 GPUs at least fit side by side."""
    world = World().domain("A", nodes=2).budget("org:v", 99).budget("org:a", 99).budget("org:b", 99)
    world.run("victim", 8, owner="org:v").run("other", 8, owner="org:o", funding={"opportunistic": True}).old()
    world.policy(opportunistic={"notice": "15m"})
    world.run("wide", 8, **WIDE | {"malleable": {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}})
    world.run("next", 4, owner="org:b")
    told = {name for each in world.cycle().all("Reservation") for name in named(each)}
    cycle = world.cycle("+15m")

    assert (told, cycle.running) == ({"default/other"}, ["next", "victim", "wide"])


def test_what_another_leaves_over_spares_ones_own_victims() -> None:
    """2 GPUs come free as two promises are due: with these, 2 of `small` make room for the first; 4 of `large` go for
    the second and leave over 2, so the first fits without `small`.
    """
    world = World().node("n").budget("org:v", 9).budget("org:a", 9).budget("org:b", 9)
    world.foreign_pod("p", "n", 2).run("small", 2, owner="org:v").run("large", 4, owner="org:v").old()
    world.run("first", 4, owner="org:a", created="+1m").run("second", 2, owner="org:b", created="+2m")
    world.cycle("+5m")
    cycle = world.delete("Pod", "p").cycle("+20m")

    assert (cycle.running, cycle.waiting) == (["first", "second", "small"], [])
    assert cycle.plan.lottery is not None
    assert [each.picks for each in cycle.plan.lottery.draws] == [("default/large#0",)]


def cordoned(world: World, node: str, *, on: bool = True) -> World:
    """A node that takes nothing new, or does so again."""
    return world.edit("Node", node, spec={"unschedulable": on})


def test_each_starts_where_it_is_promised_so_that_the_next_has_its_own_room() -> None:
    """`first` is promised b01; `second` would have to draw `old` for a02, but a01 has come free."""
    world = World().domain("A", nodes=2).domain("B").budget("org:v", 99).budget("org:a", 99).budget("org:b", 99)
    world.foreign_pod("p", "a01", 8).run("old", 8, owner="org:v")
    world.run("short", 8, owner="org:v", limit="25h", locality={"selector": {"fabric.domain": "B"}}).old()
    world.run("first", 8).cycle("+1m")
    world.run("second", 8, owner="org:b", locality={"selector": {"fabric.domain": "A"}}).cycle("+50m")
    cycle = world.delete("Pod", "p").cycle("+65m")

    assert (cycle.running, cycle.plan.lottery) == (["first", "old", "second"], None)
    assert [cycle.leases(name, open=True)[0].nodes for name in ("first", "second")] == [{"b01"}, {"a01"}]


def test_who_fits_beside_others_laid_anew_cuts_nobody() -> None:
    """The promised 14 GPUs are lost, and 6 and 8 come free elsewhere: 4, 6 and 4 fit in these as 6 and 4 + 4."""
    world = World().domain("A", gpus=6).domain("B", gpus=8).domain("C", gpus=14).domain("E", gpus=8)
    world.budget("org:v", 99).budget("org:a", 99).foreign_pod("p", "a01", 6).foreign_pod("q", "b01", 8)
    old: dict[str, Any] = {"malleable": {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}}
    world.run("short", 14, owner="org:v", limit="25h").run("old", 8, by=4, owner="org:v", **old).old()
    for name, gpus in (("r4", 4), ("r6", 6), ("s4", 4)):
        world.run(name, gpus)
    world.cycle()
    cycle = cordoned(world.delete("Pod", "p").delete("Pod", "q"), "c01").cycle("+1h")

    assert (cycle.running, cycle.status("old")["width"]["allocated"]) == (["old", "r4", "r6", "s4"], 8)


def test_the_first_has_room_before_one_that_is_promised_it_later() -> None:
    """`first` loses b01, and there is no other room than what `second` is promised; `third` draws `old` meanwhile."""
    world = World().domain("B").domain("C").domain("E", gpus=4)
    world.budget("org:v", 99).budget("org:a", 99).budget("org:b", 99)
    world.run("one", 8, owner="org:v", limit="25h").run("two", 8, owner="org:v", limit="25h1m")
    world.run("old", 4, owner="org:v").old()
    world.run("first", 8).run("second", 8, owner="org:b").cycle()
    world.run("third", 4, locality={"selector": {"fabric.domain": "E"}}).cycle("+50m")
    (lost,) = world.state().get("Reservation", promise_of(world, "first"))["status"]["intendedSlice"]["nodes"]
    cycle = cordoned(world, lost).cycle("+65m")

    assert (cycle.running, cycle.waiting) == (["first", "third"], ["second"])


def test_what_is_due_leaves_to_a_later_promise_what_is_its_own() -> None:
    """`late` is promised a01 when `short` is over; that `short` shrinks would be less harm than to lose `long`."""
    world = World().domain("A").domain("B")
    for owner in ("org:v", "org:a", "org:b"):
        world.budget(owner, 99)
    wide = {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}
    world.run("short", 8, owner="org:v", by=4, malleable=wide, limit="25h").old()
    world.run("long", 8, owner="org:v").cycle("-23h")
    world.run("late", 8, created="-2m").run("due", 4, owner="org:b", created="-1m").cycle()
    told = slices(world)
    cycle = world.cycle("+15m")

    assert told == {"late": (moment("+1h"), ["a01"]), "due": (moment("+15m"), ["b01"])}
    assert (cycle.running, slices(world)["late"]) == (["due", "short"], told["late"])
    assert world.cycle("+1h").running == ["due", "late"]


def test_the_first_plan_has_what_is_due_where_it_is_promised() -> None:
    """`first` was told b01 while a01 was cordoned, `second` a01; 3 of b01 is `later`'s after maintenance."""
    world = World().domain("A", gpus=2).domain("B", gpus=5).budget("org:v", 99).budget("org:a", 99)
    shut = {"selector": {"fabric.domain": "B"}, "start": moment("+80m"), "end": moment("+2h")}
    world.policy(maintenance=[shut])
    world.run("one", 5, owner="org:v", limit="25h").run("two", 2, owner="org:v", limit="25h").old()
    cordoned(world, "a01").run("first", 2, limit="10m").cycle()
    cordoned(world, "a01", on=False).cycle("+1m")
    world.run("second", 2, created="+1m", locality={"selector": {"fabric.domain": "A"}}).cycle("+2m")
    world.run("later", 3, limit="1h", created="+2m").cycle("+3m")
    told = slices(world)

    assert told == {
        "first": (moment("+1h"), ["b01"]),
        "second": (moment("+1h"), ["a01"]),
        "later": (moment("+2h"), ["b01"]),
    }
    planning = Planning(world.snapshot("+1h"), unix("+1h"))
    first = next(iter(planning.outcomes())).draft
    assert sorted(name for _, name in first.started(planning.problem)) == ["first", "second"]


def test_a_promise_that_is_weighed_again_stays_where_it_is_if_that_is_as_good() -> None:
    """`w` is promised the node of `v2` while that of `v1` is cordoned; once it is not, either may be drawn."""
    world = World().domain("A", nodes=2).budget("org:v", 99).budget("org:a", 99)
    world.run("v1", 8, owner="org:v").run("v2", 8, owner="org:v").old()
    first = cordoned(world, "a01").run("w", 8).cycle()
    again = cordoned(world, "a01", on=False).cycle("+1m")

    assert [named(each.all("Reservation")[0]) for each in (first, again)] == [
        ["default/v2"],
        ["default/v1", "default/v2"],
    ]
    assert [each.all("Reservation")[0]["status"]["intendedSlice"]["nodes"] for each in (first, again)] == [["a02"]] * 2


def slices(world: World) -> dict[str, tuple[str, list[str]]]:
    """When and where runs are promised to start."""
    found = {each["spec"]["runRef"]["name"]: each["status"] for each in world.state().all("Reservation")}
    return {run: (each["earliestStart"], each["intendedSlice"]["nodes"]) for run, each in found.items()}


def promise_of(world: World, run: str) -> str:
    """The name of a run's Reservation."""
    named = (each for each in world.state().all("Reservation") if each["spec"]["runRef"]["name"] == run)
    return str(next(named)["metadata"]["name"])


def named(reservation: dict[str, Any]) -> list[str]:
    """Whom a Reservation warns."""
    return [each["run"] for each in reservation["status"]["forecast"].get("conflictSet", [])]


@st.composite
def lost(draw: Draw) -> Snapshot:
    """A world in which promises are due, some of malleable runs, and some nodes have just been cordoned."""
    nodes = [doc.node(f"n{n}", 8, domain="A") for n in range(draw(st.integers(2, 4)))]
    budgets = [doc.budget(owner, [doc.envelope(draw(st.sampled_from([12, 99])))]) for owner in ("org:a", "org:b")]
    fleet = [*nodes, *budgets, doc.budget("org:o", [doc.envelope(99)])]
    old = [made(f"old{n}", 8, "org:o", runtime={"timeLimit": "1h"}) for n in range(len(nodes))]
    waiting = []
    for number in range(draw(st.integers(2, 5))):
        gpus, fields = draw(st.sampled_from([2, 4, 8, 8])), dict[str, Any]()
        if draw(st.booleans()):
            gpus = draw(st.sampled_from([8, 12, 16]))
            fields["malleable"] = {"minTotalGPUs": 4, "maxTotalGPUs": gpus, "stepGPUs": 4}
            fields["locality"] = {"groupGPUs": 4}
        fields["runtime"] = draw(st.sampled_from([{}, {"timeLimit": "2h"}]))
        waiting.append(made(f"r{number}", gpus, draw(st.sampled_from(["org:a", "org:b"])), **fields))
    policy = doc.policy(age={"cap": draw(st.sampled_from(["0h", "72h"]))})
    first = plan(now := snapshot([*fleet, policy, *old]), AT)
    whole = snapshot([*fleet, policy, *old, *waiting])
    now = replace(after(now, first), tables={**after(now, first).tables, "runs": whole.tables["runs"]})
    now = after(now, plan(now, AT + 60))
    cordoned = draw(st.sets(st.integers(0, len(nodes) - 1), max_size=len(nodes) - 1))
    return edited(now, [Cell("nodes", (f"n{n}",), "unschedulable", True) for n in sorted(cordoned)])


def made(name: str, gpus: int, owner: str, **spec: Any) -> doc.Document:
    """A Run with a life of its own."""
    identity = {"uid": f"uid-{name}", "creationTimestamp": moment("-1h")}
    return doc.merge(doc.run(name, gpus, owner), {"spec": spec, "metadata": identity})


def late(now: Snapshot, found: Plan) -> list[tuple[str, str]]:
    """Runs whose promise is due and that the plan does not start, in the order of their promises."""
    table = now.tables["reservations"].to_pylist()
    due = [each for each in table if each["state"] == "Pending" and each["start"] <= found.at]
    started = {(each.namespace, each.spec.run_ref.run_name) for each in found.leases}
    keys = [(each["namespace"], each["run"]) for each in due]
    return [key for key in keys if key not in started]


@pytest.mark.slow
@examples(60)
@given(lost())
def test_no_due_promise_is_late_for_the_width_of_another(now: Snapshot) -> None:
    """One that is late starts in no plan in which all that did start is as narrow as it can be."""
    at = AT + HOUR
    found = plan(now, at)
    started = {(each.namespace, each.spec.run_ref.run_name) for each in found.leases}
    narrow: list[Edit] = []
    for key in sorted(started):
        least = field(now, "runs", key, "min_total")
        if least is not None:
            narrow += [Cell("runs", key, column, least) for column in ("total", "max_total", "desired")]
    again = plan(edited(now, narrow), at)
    there = {(each.namespace, each.spec.run_ref.run_name) for each in again.leases}

    assert [key for key in late(now, found) if key in there and started <= there] == []


def test_whoever_lies_where_nobody_starts_is_spared() -> None:
    """Of two runs one is drawn; that the other goes too, as where a start has been laid elsewhere since, is undone."""
    world = World().domain("A", nodes=2).budget("org:v", 99).budget("org:w", 99)
    world.run("one", 8, owner="org:v").run("two", 8, owner="org:v").old()
    world.run("next", 8, owner="org:w").cycle()
    shot, at = snapshot(doc.read(world.path)), unix(moment("+15m"))
    state = state_of(shot, at)
    due = held(shot.tables["reservations"], {run.key: run for run in state.pending})
    activation = Activation(Trial.of(state), Lot(position=1, secret=SECRET), frozenset(each.run_key for each in due))
    activation.settle(due)
    ((key, cut),) = activation.cut.items()
    (spared,) = [lease for mine in state.held.values() for lease in mine if lease.key not in cut]
    more = {spared.key: Cut("Lottery", "default/next")}
    activation.trial.slots.free(more)
    activation.cut[key] = cut | more
    activation.settle(due)

    assert (activation.cut, activation.trial.cut) == ({key: cut}, cut)


@pytest.mark.parametrize(("own", "gone"), [(3, [1, 3]), (4, [2]), (5, [1, 3])])
def test_of_a_standby_that_two_payers_share_no_part_goes_alone(own: int, gone: list[int]) -> None:
    """The standbys are two pods of 2; with 3 or 5 GPUs of its own, their owner pays half a pod of them."""
    world = World().domain("A", gpus=[6]).policy(spares={"discount": 1}, reservations={"patience": "0s"})
    world.budget("org", 8).budget("org:a", own).budget("org:w", 8)
    world.run("s", 2, pods=2, spec={"spares": 2}).old()
    world.run("x", 2, owner="org:w").cycle()
    cycle = world.cycle("+15m")

    assert cycle.running == ["s", "x"]
    assert sorted(each.gpus for each in cycle.leases("s") if each.closure is not None) == gone
