"""Every way in which a run ends, or stops (spec §7): what becomes of it, and how its lease closes, once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import World


class End(NamedTuple):
    """``happens``: between the first cycle and the one at +10m; ``closure``: reason and second of its lease's end."""

    name: str
    happens: Callable[[World], object]
    closure: tuple[str, str]
    phase: str | None
    condition: tuple[str, str] | None = None
    run: dict[str, Any] = {}

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def pod(phase: str) -> Callable[[World], object]:
    """Its pod is in that phase."""
    meta = {"name": "r-0", "namespace": "default", "labels": {"rq.davidlangworthy.io/run": "r"}}
    return lambda w: w.add(doc.merge(doc.foreign_pod("p", "a01", 8), {"metadata": meta, "status": {"phase": phase}}))


def said(*command: str) -> Callable[[World], object]:
    """Its owner says so at +5m."""
    return lambda world: world.runs(*command, "r", at="+5m").ok()


ENDS = [
    End("completed", said("complete"), ("Completed", "+5m"), "Completed", ("Completed", "Completed")),
    End("all pods succeeded", pod("Succeeded"), ("Completed", "+10m"), "Completed", ("Completed", "Completed")),
    End("a pod failed", pod("Failed"), ("Failed", "+10m"), "Failed", ("Failed", "Failed")),
    End("time limit", lambda w: w, ("TimeLimit", "+7m"), "Failed", ("Failed", "TimeLimit"), {"limit": "7m"}),
    End("cancelled", said("cancel"), ("Cancelled", "+10m"), "Failed", ("Failed", "Cancelled")),
    End("suspended", said("suspend"), ("Suspended", "+10m"), "Pending", ("Admitted", "Suspended")),
    End("deleted", lambda w: w.delete("Run", "r"), ("RunDeleted", "+10m"), None),
    End("node lost", lambda w: w.delete("Node", "a01"), ("NodeFailure", "+10m"), "Failed", ("Failed", "NodeFailure")),
    End(
        "node lost, with a checkpoint",
        lambda w: w.delete("Node", "a01"),
        ("NodeFailure", "+10m"),
        "Pending",
        ("Admitted", "NoMatchingNodes"),
        {"runtime": {"checkpoint": "5m"}},
    ),
    End(
        "funded need, of its own choice",
        lambda w: w.budget("org:p", 8).run("p", 8, owner="org:p", created="+5m"),
        ("ReclaimUnfunded", "+10m"),
        "Pending",
        ("Admitted", "CapacityShort"),
        {"owner": "org:o", "funding": {"opportunistic": True}},
    ),
]


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_it_ends_so_and_its_lease_closes_once(end: End) -> None:
    world = World().domain("A", nodes=1).budget("org:a", 8).run("r", 8, **end.run)
    assert world.cycle().running == ["r"]
    end.happens(world)
    cycle = world.cycle("+10m")

    reason, second = end.closure
    assert [(row.closure, row.ended) for row in cycle.leases("r")] == [(reason, moment(second))]
    assert cycle.phases.get("r") == end.phase
    if end.condition is not None:
        kind, why = end.condition
        assert cycle.condition("r", kind)["reason"] == why
    later = world.cycle("+20m")
    assert [(row.closure, row.ended) for row in later.leases("r")] == [(reason, moment(second))]
    assert [each for each in later.plan.closures if each.name.startswith("r-")] == []


def test_a_resumed_run_starts_again_with_its_age() -> None:
    world = World().domain("A", nodes=1).budget("org:a", 8).run("r", 8)
    created = world.cycle().get("Run", "r")["metadata"]["creationTimestamp"]
    world.runs("suspend", "r", at="+1m").ok()
    world.cycle("+2m")
    world.runs("resume", "r", at="+3m").ok()
    cycle = world.cycle("+4m")
    assert [(row.closure, row.start) for row in cycle.leases("r")] == [
        ("Suspended", moment("+0m")),
        (None, moment("+4m")),
    ]
    assert cycle.get("Run", "r")["metadata"]["creationTimestamp"] == created


def test_a_run_that_cannot_be_read_keeps_what_lies_on_a_failed_node_and_stops_no_cycle() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("r", 8).run("other", 8)
    (node,) = {name for row in world.cycle().leases("r") for name in row.nodes}
    world.edit("Run", "r", spec={"resources": {"gpusPerPod": 3}})
    cycle = world.delete("Node", node).cycle("+10m")
    assert (cycle.phases["other"], [row.closure for row in cycle.leases("r")]) == ("Running", [None])
