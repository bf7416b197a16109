"""Kubernetes Events: one for every change of a run's fate, none where nothing changes, under names that repeat."""

from pathlib import Path

from exporters.writes.events import events
from jobtree.cluster.protocol import Write
from jobtree.cluster.statefile import StateFile
from tests.support import documents as doc
from tests.support.times import T0, unix
from tests.support.worlds import World


def told(world: World, at: str = T0) -> list[Write]:
    """The Events of the next cycle, which is then carried out."""
    before = StateFile(world.save(at), unix(at)).read()
    return list(events(before, world.cycle(at).plan))


def short(writes: list[Write]) -> list[tuple[str, str, str]]:
    return [(each.body["involvedObject"]["name"], each.body["reason"], each.body["type"]) for each in writes]


def test_starts_waits_and_ends_are_told_once() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).budget("org:b", 8)
    world.run("first", 8, limit="1h").run("poor", 8).run("next", 8, owner="org:b")

    assert short(told(world)) == [
        ("first", "Started", "Normal"), ("next", "CapacityShort", "Warning"), ("poor", "BudgetShort", "Warning"),
    ]  # fmt: skip
    assert [each for each in short(told(world, "+30s")) if each[0] == "first"] == []
    assert ("first", "TimeLimit", "Warning") in short(told(world, "+1h"))


def test_a_run_in_the_way_of_a_promise_is_told_once() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).budget("org:b", 8)
    world.run("first", 8, limit="2d").run(
        "next", 8, owner="org:b"
    )  # it is protected for 12 hours, then it may be drawn

    assert ("first", "MayBeCut", "Warning") in short(told(world))
    assert short(told(world, "+30s")) == []


def test_an_event_names_its_run_its_cycle_and_its_reason() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).run("r", 8)
    (write,) = told(world)

    assert (write.verb, write.ref.kind, write.ref.namespace, write.ref.name) == (
        "create", "Event", "default", "r.20260101t000000z.started",
    )  # fmt: skip
    uid = world.state().get("Run", "r")["metadata"]["uid"]
    assert write.body["involvedObject"] == {
        "apiVersion": "rq.davidlangworthy.io/v1", "kind": "Run", "namespace": "default", "name": "r", "uid": uid,
    }  # fmt: skip
    assert (write.body["firstTimestamp"], write.body["lastTimestamp"], write.body["count"]) == (
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 1,
    )  # fmt: skip
    assert write.body["message"] == "8 GPUs: 8 owned. 8 GPUs in 1 group on 1 node."


def test_a_run_that_starts_elsewhere_in_the_same_cycle_is_told_why() -> None:
    world = World().domain("d1", 2).budget("org:a", 8).run("r", 8, spec={"runtime": {"checkpoint": "10m"}})
    world.cycle()
    (node,) = world.state().leases("r")[0].nodes
    broken = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}
    world.edit("Node", node, spec={"taints": [broken]})
    (write,) = told(world, "+1m")
    assert (write.body["reason"], write.body["type"]) == ("Restarted", "Warning")
    assert write.body["message"].startswith("NodeFailure ended what ran; it starts again. 8 GPUs: 8 owned.")


def test_a_file_gets_none(tmp_path: Path) -> None:
    world = World(tmp_path / "cluster.yaml").domain("d1", 1).budget("org:a", 8).run("r", 8)
    world.cycle()
    assert world.state().all("Event") == []


def test_a_run_in_the_way_of_a_promise_is_warned_once() -> None:
    world = World().domain("d1", 1).budget("org:v", 8).budget("org:w", 8).run("v", 8, owner="org:v")
    world.old()
    world.run("w", 8, owner="org:w")
    (warning,) = [each for each in told(world) if each.body["involvedObject"]["name"] == "v"]
    (reservation,) = world.state().all("Reservation")
    name = f"default/{reservation['metadata']['name']}"

    assert (warning.body["reason"], warning.body["type"]) == ("MayBeCut", "Warning")
    assert warning.body["message"] == (
        f"It is in the way of {name} (due 2026-01-01T00:15:00Z): it loses all with a chance of 100.0%."
    )
    assert [each for each in told(world, "+1m") if each.body["involvedObject"]["name"] == "v"] == []


def test_a_payer_that_stops_and_comes_back_is_told_once_each() -> None:
    world = World().domain("d1", 1).budget("org:a", 8).run("r", 8)
    world.cycle()
    (lost,) = told(world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(4)]}), "+1h")
    assert (lost.body["reason"], lost.body["type"]) == ("Unfunded", "Warning")
    assert lost.body["message"] == world.state().condition("r", "Admitted")["message"].partition(". ")[2]
    assert told(world, "+2h") == []
    (back,) = told(world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8)]}), "+3h")
    assert (back.body["reason"], back.body["type"]) == ("Funded", "Normal")
    assert back.body["message"] == "org-a/gpus pays for 8 GPUs again, from 2026-01-01T03:00:00Z on."
