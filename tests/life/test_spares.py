# ruff: noqa: N802 -- test names are case ids
"""Standbys and failed nodes (spec §7): what is swapped, what is reclaimed for it, what ends."""

import json
from typing import Any

import pytest

from planner.effort import USUAL
from planner.state.running.standbys import Standby, Tenant, Want, reclaimed
from tests.support import documents as doc
from tests.support.times import moment
from tests.support.worlds import Cycle, LeaseRow, World

Row = tuple[Any, ...]


def rows(cycle: Cycle, run: str) -> list[Row]:
    """A run's leases: group, role, node, reason, closure."""
    found = sorted(cycle.leases(run), key=lambda row: (row.start, row.group, row.role, row.slots))
    return [(row.group, row.role, *sorted(row.nodes), row.reason, row.closure) for row in found]


def silent(world: World, node: str, since: str = "+0m") -> World:
    """The kubelet of a node says nothing more."""
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": moment(since)}
    return world.edit("Node", node, status={"conditions": [condition]})


def on_two_nodes(**run: Any) -> World:
    """L4: a run of 8 on a01 with a standby on a02."""
    world = World().domain("A", nodes=2).budget("org:a", 16).run("r", 8, pods=8, spares=1, **run)
    cycle = world.cycle()
    assert rows(cycle, "r") == [(0, "Active", "a01", "Start", None), (0, "Spare", "a02", "Start", None)]
    return world


def test_L4_a_standby_takes_the_place_of_a_lost_pod() -> None:
    world = on_two_nodes().delete("Node", "a01")
    cycle = world.cycle("+1h")

    assert cycle.phases == {"r": "Running"}
    assert rows(cycle, "r") == [
        (0, "Active", "a01", "Start", "NodeFailure"),
        (0, "Spare", "a02", "Start", "Swap"),
        (0, "Active", "a02", "Swap", None),
    ]
    assert cycle.funding("r") == {"owned": 8}
    assert cycle.status("r")["started"] == moment("+0m")
    assert [row.slots for row in cycle.leases("r", open=True)] == [tuple(f"a02#{slot}" for slot in range(8))]
    again = world.cycle("+2h")
    assert (again.plan.closures, again.plan.leases, again.plan.runs) == ([], [], [])


def test_L4_a_run_whose_pod_failed_with_its_node_is_swapped_too() -> None:
    world = on_two_nodes()
    meta = {"name": "r-0", "namespace": "default", "labels": {"rq.davidlangworthy.io/run": "r"}}
    pod = doc.merge(doc.foreign_pod("p", "a01", 8), {"metadata": meta, "status": {"phase": "Failed"}})
    cycle = world.add(pod).delete("Node", "a01").cycle("+1h")

    assert cycle.phases == {"r": "Running"}
    assert world.cycle("+2h").phases == {"r": "Running"}


@pytest.mark.parametrize("since", ["cordoned", "-60s"])
def test_L6_a_cordon_or_a_blip_is_no_failure(since: str) -> None:
    world = on_two_nodes()
    if since == "cordoned":
        world.edit("Node", "a01", spec={"unschedulable": True})
    else:
        silent(world, "a01", "+0m")
    cycle = world.cycle("+60s")
    assert (cycle.plan.closures, cycle.plan.leases, cycle.phases) == ([], [], {"r": "Running"})


def test_L6_a_node_that_is_silent_for_long_has_failed() -> None:
    cycle = silent(on_two_nodes(), "a01").cycle("+6m")
    assert rows(cycle, "r")[-1] == (0, "Active", "a02", "Swap", None)


def told(world: World, run: str) -> list[str]:
    """The sentences of `events` of a run."""
    return [each["message"] for each in json.loads(world.runs("events", run, "-o", "json", at="+1h").ok().out)]


def squatter(world: World, gpus: int = 8, *, paid: str = "", **run: Any) -> World:
    """A run that lies on the standby's slots, unfunded, or paid by a Budget."""
    spec = {"funding": {"opportunistic": True}, **run}
    lease = next(each for each in world.state().all("Lease") if each["spec"]["slice"].get("role") == "Spare")
    name = "guest-20260101t000000z-g0-0"
    slots = lease["spec"]["slice"]["nodes"][:gpus]
    since = moment("+0m")
    made = doc.merge(lease, {
        "metadata": {"name": name, "uid": name},
        "spec": {
            "owner": "org:g", "runOwner": "org:g", "runRef": {"name": "guest"}, "runUid": "guest", "group": 0,
            "slice": {"nodes": slots, "role": "Active"},
            "paidBy": {"budget": paid, "envelope": "gpus"} if paid else None,
        },
        "status": {"funding": [{"class": "owned" if paid else "unfunded", "from": since}]},
    })  # fmt: skip
    return world.run("guest", gpus, owner="org:g", metadata={"uid": "guest"}, created="-1m", spec=spec).add(made)


def test_L5_an_unfunded_tenant_makes_way_for_a_swap() -> None:
    world = squatter(on_two_nodes())
    assert world.cycle("+1m").phases == {"r": "Running", "guest": "Running"}
    cycle = world.delete("Node", "a01").cycle("+1h")

    assert rows(cycle, "guest") == [(0, "Active", "a02", "Start", "ReclaimedBySpare")]
    assert rows(cycle, "r")[-2:] == [(0, "Spare", "a02", "Start", "Swap"), (0, "Active", "a02", "Swap", None)]
    assert cycle.phases == {"r": "Running", "guest": "Pending"}
    assert [each for each in told(world, "guest") if "closed" in each] == [
        "8 GPUs on a02 closed, to make room for a standby of default/r"
    ]


def test_funded_work_on_a_standby_declines_the_swap() -> None:
    world = squatter(on_two_nodes(runtime={"requeue": True}).budget("org:g", 8, name="org-g"), paid="org-g")
    world.save()
    cycle = world.delete("Node", "a01").cycle("+1h")

    assert cycle.phases == {"r": "Pending", "guest": "Running"}
    assert rows(cycle, "r") == [
        (0, "Active", "a01", "Start", "NodeFailure"),
        (0, "Spare", "a02", "Start", "SwapDeclined"),
    ]
    assert [each for each in told(world, "r") if "closed" in each] == [
        "8 GPUs on a01 closed",
        "8 spare GPUs on a02 closed, as funded work of default/guest lies there",
    ]


def test_a_swap_renews_no_protection_from_the_lottery() -> None:
    world = on_two_nodes().delete("Node", "a01")
    world.cycle("+1h")
    (said,) = [line for line in world.runs("explain", "r", at="+1h").ok().out.splitlines() if "would lose" in line]
    assert said.endswith("by the lottery, which may draw it from 2026-01-01T12:00:00Z on")


def test_a_part_of_a_standby_is_none() -> None:
    world = on_two_nodes(runtime={"requeue": True}).edit("Node", "a02", status={"allocatable": {"nvidia.com/gpu": "7"}})
    cycle = world.delete("Node", "a01").cycle("+1h")

    assert cycle.phases == {"r": "Pending"}
    assert [row[-1] for row in rows(cycle, "r")] == ["NodeFailure", "NodeFailure"]


def test_several_failures_are_repaired_together() -> None:
    # two groups of 8 with two standbys each, of which guests lie on some: one guest on one of either, one on the other
    world = World().domain("A", nodes=6).budget("org:a", 64).run("r", 16, by=8, pods=8, spares=2)
    cycle = world.cycle()
    active = {row.group: sorted(row.nodes)[0] for row in cycle.leases("r") if row.role == "Active"}
    for node in active.values():
        world.delete("Node", node)
    cycle = world.cycle("+1h")

    assert cycle.phases == {"r": "Running"}
    assert sorted(row.reason for row in cycle.leases("r", open=True)) == ["Start", "Start", "Swap", "Swap"]
    assert (
        sorted(row.closure for row in cycle.leases("r", open=False) if row.closure)
        == ["NodeFailure"] * 2 + ["Swap"] * 2
    )


def lease_count(found: list[LeaseRow]) -> int:
    return sum(row.gpus for row in found)


def test_a_run_falls_whole_where_one_of_two_lost_groups_has_no_standby() -> None:
    world = (
        World().domain("A", nodes=4).budget("org:a", 64).run("r", 16, by=8, pods=8, spares=1, runtime={"requeue": True})
    )
    cycle = world.cycle()
    lost = {sorted(row.nodes)[0] for row in cycle.leases("r") if row.role == "Active" or row.group == 1}
    for node in lost:
        world.delete("Node", node)
    cycle = world.cycle("+1h")

    assert cycle.phases == {"r": "Pending"}
    assert {row.closure for row in cycle.leases("r")} == {"NodeFailure"}


def test_runs_without_a_pod_size_have_a_standby_for_each_gpu() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("r", 2, spares=3)
    cycle = world.cycle()
    (where,) = {node for row in cycle.leases("r") for node in row.nodes}
    assert lease_count(cycle.leases("r", open=True)) == 5
    assert world.delete("Node", where).cycle("+1h").phases == {"r": "Failed"}


def cordoned(cycle: Cycle) -> dict[str, bool]:
    """Which nodes take nothing new."""
    return {node["metadata"]["name"]: bool(node["spec"].get("unschedulable")) for node in cycle.all("Node")}


def healthy(world: World, node: str) -> World:
    """The kubelet of a node is back."""
    return world.edit("Node", node, status={"conditions": [{"type": "Ready", "status": "True"}]})


def test_L16_a_failed_node_is_cordoned_until_it_is_healthy_again() -> None:
    world = on_two_nodes().node("b", domain="B").edit("Node", "b", spec={"unschedulable": True})
    cycle = silent(world, "a01").cycle("+6m")
    assert cordoned(cycle) == {"a01": True, "a02": False, "b": True}
    cycle = world.cycle("+7m")
    assert (cordoned(cycle), cycle.plan.closures) == ({"a01": True, "a02": False, "b": True}, [])

    cycle = healthy(world, "a01").cycle("+8m")
    assert cordoned(cycle) == {"a01": False, "a02": False, "b": True}
    assert cycle.get("Node", "a01")["metadata"].get("annotations", {}) == {}


def test_L16_too_many_silent_nodes_are_not_cordoned() -> None:
    world = World().domain("A", nodes=10).budget("org:a", 80)
    world.cycle()
    for number in (1, 2, 3):
        silent(world, f"a{number:02}")
    assert set(cordoned(world.cycle("+6m")).values()) == {False}


def test_L16_nodes_out_of_service_are_cordoned_however_many_they_are() -> None:
    world = World().domain("A", nodes=10).budget("org:a", 80)
    world.cycle()
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    out = {f"a{number:02}" for number in (1, 2, 3)}
    for name in sorted(out):
        world.edit("Node", name, spec={"taints": [taint]})
    found = cordoned(silent(world, "a04").cycle("+6m"))
    assert {name for name, is_shut in found.items() if is_shut} == {*out, "a04"}


def test_L16_silent_nodes_that_a_person_cordoned_keep_no_other_from_it() -> None:
    world = World().domain("A", nodes=10).budget("org:a", 80)
    world.cycle()
    for number in (1, 2, 3):
        silent(world, f"a{number:02}").edit("Node", f"a{number:02}", spec={"unschedulable": True})
    cycle = silent(world, "a04").cycle("+6m")
    assert cordoned(cycle)["a04"]
    assert "annotations" not in cycle.get("Node", "a01")["metadata"]


def test_fewer_gpus_go_though_many_tenants_hold_them() -> None:
    big, many = Tenant(("g", "a"), -1), [Tenant(("g", f"b{number:03}"), -1) for number in range(200)]
    standbys = [Standby("x", (number,), frozenset({big}), ()) for number in range(200)]
    standbys += [Standby("y", (number,), frozenset({each}), ()) for number, each in enumerate(many)]
    gpus = {big: 201, **dict.fromkeys(many, 1)}
    assert reclaimed([Want(("g", "r"), 0, 200, standbys)], gpus, USUAL.nodes) == frozenset(many)


def test_a_swap_leaves_gpus_out_that_vanished_from_its_node() -> None:
    world = World().domain("A", gpus=[4, 8]).budget("org:a", 16).run("r", 4, pods=4, spares=2)
    world.cycle()
    world.edit("Node", "a02", status={"allocatable": {"nvidia.com/gpu": "7"}})
    cycle = world.delete("Node", "a01").cycle("+1h")

    assert cycle.phases == {"r": "Running"}
    assert [(row.role, row.slots) for row in cycle.leases("r", open=True)] == [
        ("Active", tuple(f"a02#{slot}" for slot in range(4)))
    ]


def test_maintenance_after_its_limit_is_not_in_the_way_of_a_swap() -> None:
    window = {"selector": {"region": "*"}, "start": moment("+6h"), "end": moment("+8h")}
    world = World().policy(maintenance=[window]).domain("A", nodes=2).budget("org:a", 16)
    world.run("r", 8, pods=8, spares=1, limit="5h").cycle()
    cycle = world.delete("Node", "a01").cycle("+4h")

    assert cycle.phases == {"r": "Running"}


def test_a_tenant_that_is_funded_since_the_last_cycle_declines_the_swap() -> None:
    # the guest was unfunded until its owner's other run reached its limit, between two cycles
    world = World().domain("A", nodes=2).domain("B", nodes=1).budget("org:a", 16).budget("org:g", 8, name="org-g")
    world.run("r", 8, pods=8, spares=1, runtime={"requeue": True})
    world.run("first", 8, owner="org:g", limit="30m").cycle()
    squatter(world, paid="org-g", runtime={"checkpoint": "10m"})
    lease = next(each for each in world.state().all("Lease") if each["spec"]["runRef"]["name"] == "guest")
    unfunded = {"closed": False, "funding": [{"class": "unfunded", "from": moment("+0m")}]}
    world.edit("Lease", lease["metadata"]["name"], status=unfunded)
    assert world.cycle("+1m").funding("guest") == {"unfunded": 8}
    (node,) = {name for row in world.state().leases("r") if row.role == "Active" for name in row.nodes}
    cycle = world.delete("Node", node).cycle("+1h")

    assert cycle.phases == {"r": "Pending", "first": "Failed", "guest": "Running"}
    assert "SwapDeclined" in {row.closure for row in cycle.leases("r")}


def test_a_quota_of_hours_that_is_used_up_stands_in_the_way_of_no_swap_and_no_standby() -> None:
    """What runs in a tree runs on: 8 GPUs are provided 192 hours at the start, and have used 8 more an hour later."""
    world = World().domain("A", nodes=3).budget("org:a", 16)
    world.run("r", 8, pods=8, spares=1, quota={"maxGPUHours": 192}).cycle()
    cycle = world.delete("Node", "a01").cycle("+1h")
    assert rows(cycle, "r")[1:] == [
        (0, "Spare", "a02", "Start", "Swap"),
        (0, "Active", "a02", "Swap", None),
        (0, "Spare", "a03", "Grow", None),
    ]


def test_who_pays_for_a_swap_gives_a_run_no_limit() -> None:
    """A relative that pays for short runs alone takes the place of the standby's payer for no run without a limit."""
    world = World().domain("A", nodes=2).budget("org:a", 16)
    world.budget("org", 16, perRun={"defaultTime": "30m", "maxTime": "1h"})
    world.run("r", 8, pods=8, spares=1).cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(6)]}).delete("Node", "a01")
    cycle = world.cycle("+1h")
    assert (cycle.phases, cycle.funding("r")) == ({"r": "Running"}, {"unfunded": 8})


def test_a_nearer_start_may_recall_what_a_swap_has_just_carried_on() -> None:
    """The swap is a part of the claim of what runs: it is overdrawn by 3 + 2 of 4, and the farthest group goes."""
    world = World().policy(spares={"discount": 0}).domain("A", gpus=[1, 1, 1, 1, 1, 1, 3])
    world.budget("org", 4).budget("org:a", 1, sharing="none")
    elastic = {"minTotalGPUs": 1, "maxTotalGPUs": 3, "stepGPUs": 1}
    world.run("far", 3, by=1, owner="org:a:x", spares=1, malleable=elastic)
    (last,) = (row for row in world.cycle().leases("far") if (row.group, row.role) == (2, "Active"))
    world.delete("Node", *last.nodes).run("near", 3)
    cycle = world.cycle("+1h")
    assert (cycle.funding("near"), cycle.funding("far")) == ({"owned": 1, "shared": 2}, {"shared": 2, "unfunded": 1})
    assert [stage.value for stage in cycle.plan.stages if stage.name == "overdraw"] == [1000]


@pytest.mark.parametrize(
    ("foreign", "after"),
    [
        (0, [("Active", 2), ("Spare", 6)]),
        (1, [("Active", 2), ("Spare", 4)]),
        (4, [("Active", 2), ("Spare", 2)]),
        (6, [("Active", 2)]),
        (7, []),
    ],
)
def test_a_standby_whose_gpus_others_use_is_none(foreign: int, after: list[tuple[str, int]]) -> None:
    """Pods without a lease use up capacity: what is left beside them is standbys, as far as they are whole."""
    world = World().domain("A", gpus=[2, 8]).budget("org:a", 16).run("r", 2, pods=2, spares=4)
    assert {(row.role, *row.nodes) for row in world.cycle().leases()} == {("Active", "a01"), ("Spare", "a02")}
    if foreign:
        world.foreign_pod("other", "a02", foreign)
    cycle = world.delete("Node", "a01").cycle("+1h")
    assert sorted((row.role, row.gpus) for row in cycle.leases(open=True)) == after
    assert cycle.phases == {"r": "Running" if after else "Failed"}


def test_nobody_pays_for_a_swap_whose_payer_is_gone_nor_for_the_rest_of_its_standbys() -> None:
    world = World().domain("A", gpus=[2, 4]).budget("org:a", 8).run("r", 2, pods=2, spares=2)
    world.cycle()
    cycle = world.delete("Budget", "org-a").delete("Node", "a01").cycle("+1h")
    assert [(row.role, row.gpus, row.payer) for row in cycle.leases(open=True)] == [
        ("Active", 2, None),
        ("Spare", 2, None),
    ]
    assert (cycle.phases, cycle.funding("r")) == ({"r": "Running"}, {"unfunded": 2})


@pytest.mark.parametrize(
    "edit",
    [
        {"selector": {"region": "elsewhere"}},
        {"end": moment("+30m")},
        {"start": moment("+5h")},
        {"sharing": "none"},
        {"perRun": {"maxTime": "1h"}},
        {"perRun": {"maxGPUs": 1}},
    ],
)
def test_what_is_left_of_a_standby_is_paid_on_whatever_its_payer_pays_for_by_now(edit: dict[str, Any]) -> None:
    world = World().domain("A", gpus=[2, 8]).budget("org:a", 8).run("r", 2, owner="org:a:x", pods=2, spares=4)
    world.cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, **edit)]}).delete("Node", "a01")
    cycle = world.cycle("+1h")
    assert [(row.role, row.gpus, row.payer) for row in cycle.leases(open=True)] == [
        ("Active", 2, None),
        ("Spare", 6, "org-a/gpus"),
    ]
    assert cycle.phases == {"r": "Running"}


def test_what_is_left_of_a_standby_is_lent_on_after_its_sponsor_lends_no_more() -> None:
    world = World().domain("A", gpus=[2, 8]).budget("org:a", 8, lending={"allow": True})
    world.run("r", 2, owner="corp", pods=2, spares=4, funding={"allowBorrow": True, "sponsors": ["org:a"]}).cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8)]}).delete("Node", "a01")
    rows = world.cycle("+1h").leases(open=True)
    assert [(row.role, row.gpus, row.payer) for row in rows] == [("Active", 2, None), ("Spare", 6, "org-a/gpus")]


def test_a_start_recalls_a_farther_claim_beside_a_swap() -> None:
    """What a swap carries on runs: it is no start, beside which nothing could be recalled."""
    world = World().domain("A", gpus=[2, 2, 4, 4]).budget("org", 8).run("swapped", 2, owner="org", pods=2, spares=1)
    world.run("far", 4, owner="org:x")
    (lost,) = (row for row in world.cycle().leases("swapped") if row.role == "Active")
    world.delete("Node", *lost.nodes).run("near", 4, owner="org")
    cycle = world.cycle("+1h")
    classes = {name: cycle.funding(name) for name in ("far", "near", "swapped")}
    assert classes == {"far": {"unfunded": 4}, "near": {"owned": 4}, "swapped": {"owned": 2}}
