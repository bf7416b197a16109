"""Leases that a hand deleted, doubled or edited: a gang that lacks some stops, anything else is named (spec §2, §9)."""

import copy
from typing import Any

import pytest

from tests.cycle.played import cycle
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment, unix
from tests.support.worlds import World

GONE = "a Lease that it needs is gone or says something else"
CHECKPOINT = {"checkpoint": "10m"}


def over_two_nodes(**fields: Any) -> World:
    """r runs on 4 GPUs of two nodes each, by two leases."""
    world = World().domain("A", nodes=2, gpus=4).budget("org:a", 8).run("r", 8, **fields)
    assert [row.gpus for row in world.cycle().leases("r")] == [4, 4]
    return world


def name(world: World, number: int = 0) -> str:
    """Of the n-th lease in the file."""
    return str(world.state().all("Lease")[number]["metadata"]["name"])


def of_role(world: World, role: str) -> Document:
    """The first lease of that role in the file."""
    return next(each for each in world.state().all("Lease") if each["spec"]["slice"].get("role", "Active") == role)


def test_a_run_that_lost_a_lease_waits_again_where_it_requeues() -> None:
    world = over_two_nodes(runtime=CHECKPOINT)
    found = world.delete("Lease", name(world)).cycle("+1h")
    assert (found.phases, [row.closure for row in found.leases("r")].count("Failed")) == ({"r": "Running"}, 1)
    assert [(row.gpus, row.start) for row in found.leases("r", open=True)] == [(4, moment("+1h"))] * 2
    words = f"It holds 4 of its 8 GPUs: {GONE}; what it holds closes, and it waits again"
    assert found.warnings["Run default/r"] == [words]
    assert "Run default/r" not in world.cycle("+2h").warnings


def test_it_has_failed_where_it_does_not() -> None:
    world = over_two_nodes()
    found = world.delete("Lease", name(world)).cycle("+1h")
    assert (found.phases, [row.closure for row in found.leases("r")]) == ({"r": "Failed"}, ["Failed"])
    condition = found.condition("r", "Failed")
    assert (condition["reason"], condition["message"]) == ("Failed", f"It holds 4 of its 8 GPUs: {GONE}.")


def test_its_charges_stay() -> None:
    world = over_two_nodes()
    world.delete("Lease", name(world)).cycle("+1h")
    assert world.usage("org-a", at="+2h")["gpuHoursConsumed"] == 4


def widths(least: int, most: int, step: int) -> Document:
    return {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": step}


def test_a_malleable_run_does_without_a_whole_group_and_not_without_a_part() -> None:
    world = World().domain("A", nodes=3, gpus=2).budget("org:a", 6).policy(stages=["starts", "opportunistic"])
    world.run("r", 6, malleable=widths(2, 6, 4), runtime=CHECKPOINT)
    assert [(row.group, row.gpus) for row in world.cycle().leases("r")] == [(0, 2), (1, 2), (1, 2)]
    leases = {row["spec"]["slice"]["nodes"][0]: row["metadata"]["name"] for row in world.state().all("Lease")}
    part, rest = (leases[row.slots[0]] for row in world.state().leases("r")[1:])

    found = world.delete("Lease", part).cycle("+1h")
    words = f"Its group 1 holds 2 of 4 GPUs: {GONE}; what it holds closes, and it waits again"
    assert (found.warnings["Run default/r"], found.running) == ([words], ["r"])

    again = [row["metadata"]["name"] for row in world.state().all("Lease") if row["spec"]["group"] == 1]
    for each in {*again, rest}:
        world.delete("Lease", each)
    found = world.cycle("+2h")
    assert (found.running, found.status("r")["width"]["allocated"], found.warnings.get("Run default/r")) == (
        ["r"],
        2,
        None,
    )


def test_a_run_keeps_what_it_holds_while_a_lease_of_its_cannot_be_read() -> None:
    world = over_two_nodes()
    found = cycle(world.edit("Lease", name(world), spec={"group": "first"}).save(), unix("+1h"))
    assert (found.violations, found.plan.closures) == ([], [])


@pytest.mark.parametrize("role", ["Active", "Spare"])
def test_slots_that_two_leases_hold_are_named(role: str) -> None:
    world = World().node("n").budget("org:a", 8).run("r", 2, by=2, spares=1)
    world.cycle()
    first = of_role(world, role)
    twin = doc.merge(first, {"metadata": {"name": "r-twin"}})
    found = cycle(world.add(twin).save(), unix("+1h"))
    slot, other = first["spec"]["slice"]["nodes"][0], first["metadata"]["name"]
    warnings = {each.object: each.message for each in found.plan.warnings}
    assert warnings["Lease default/r-twin"] == (
        f"its slot {slot} is held by Lease default/{other} too: both count; delete the one that is wrong"
    )
    said = "it holds 4 GPUs, more than its 2: a Lease of it is one too many"
    assert warnings.get("Run default/r") == (said if role == "Active" else None)
    assert (found.violations, found.plan.closures) == ([], [])


def test_a_run_with_odd_groups_goes_on_and_may_lose_a_spare() -> None:
    world = World().domain("A", nodes=2, gpus=2).budget("org:a", 8).run("r", 2, by=2, spares=1)
    world.cycle()
    spare = of_role(world, "Spare")
    for each in world.state().all("Lease"):
        world.edit("Lease", each["metadata"]["name"], spec={"group": 7})
    world.delete("Node", spare["spec"]["slice"]["nodes"][0].partition("#")[0])
    found = cycle(world.save(), unix("+1h"))
    assert (found.violations, [(each.name, each.reason) for each in found.plan.closures]) == (
        [], [(spare["metadata"]["name"], "NodeFailure")],
    )  # fmt: skip


@pytest.mark.parametrize("start", ["-9h", "+90m", "+900h"])
def test_a_start_that_cycle_and_ledger_contradict_refunds_and_charges_nothing(start: str) -> None:
    world = World().node("n").budget("org:a", 8).run("r", 4)
    world.cycle()
    world.edit("Lease", name(world), spec={"interval": {"start": moment(start)}})
    found = cycle(world.save(), unix("+1h"))
    words = f"spec.interval.start is {moment(start)}; allowed is {moment('+0s')}, when its ledger and the cycle that"
    assert (found.violations, found.charged) == ([], {("org-a", "gpus"): 4 * 3600})
    assert [each.message.startswith(words) for each in found.plan.warnings if each.object.startswith("Lease ")] == [
        True
    ]


def test_a_lease_that_would_begin_in_future_ends_as_it_begins() -> None:
    world = World().node("n").run("r", 4, owner="club", funding={"opportunistic": True})
    world.cycle()
    world.edit("Lease", name(world), spec={"cycle": None, "interval": {"start": moment("+900h")}})
    world.edit("Run", "r", spec={"state": "Cancelled"})
    found = cycle(world.save(), unix("+1h"))
    assert (found.violations, [each.ended for each in found.plan.closures]) == ([], [unix("+900h")])


def test_a_run_with_a_standby_too_many_takes_nothing_more() -> None:
    world = World().domain("A", nodes=3, gpus=4).budget("org:a", 24)
    world.run("r", 2, spares=1, malleable=widths(2, 6, 2)).cycle()
    documents = doc.read(world.path)
    spare = copy.deepcopy(of_role(world, "Spare"))
    spare["metadata"]["name"] += "-again"
    spare["spec"]["slice"]["nodes"] = ["a01#3"]
    (run,) = (each for each in documents if each["kind"] == "Run")
    run["spec"]["malleable"]["desiredTotalGPUs"] = 4
    world.path.write_text(doc.as_json([*documents, spare]), encoding="utf-8")

    found = cycle(world.path, unix(moment("+1h")))
    assert (found.violations, found.plan.leases) == ([], [])


def test_a_run_that_lacks_a_lease_does_not_outlive_a_node_that_fails_with_it() -> None:
    """Its group 2 could go for the node; its group 0 has a standby alone, and nothing mends that."""
    elastic = {"minTotalGPUs": 2, "maxTotalGPUs": 6, "stepGPUs": 2}
    world = World().domain("A", nodes=4, gpus=4).budget("org:a", 16)
    world.run("r", 6, by=2, pods=2, spares=1, malleable=elastic).cycle()
    last = next(row for row in world.state().leases("r") if (row.group, row.role) == (2, "Active"))
    found = world.delete("Lease", name(world)).delete("Node", *last.nodes).cycle("+1h")
    assert (found.phases, found.leases("r", open=True)) == ({"r": "Failed"}, [])
