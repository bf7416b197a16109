# ruff: noqa: N802 -- test names are case ids
"""Cases with known answers on both backends: a state file and a live API server must come to the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kube.world import LiveWorld
from tests.support.worlds import World

Make = Callable[[], World]


@pytest.fixture(params=["file", "live"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes an empty world, of a file or live."""
    if request.param == "file":
        return World
    kube = request.getfixturevalue("thin_kube")
    return lambda: LiveWorld(kube, tmp_path)


def test_F1_one_lease_with_its_payer(cluster: Make) -> None:
    cycle = cluster().node("n", 4).budget("org:a", 8).run("r", 4).cycle()
    (lease,) = cycle.leases("r")
    assert (lease.slots, lease.payer is not None) == (("n#0", "n#1", "n#2", "n#3"), True)
    assert cycle.funding("r") == {"owned": 4}


def test_F2_a_sponsor_pays_the_rest(cluster: Make) -> None:
    world = cluster().budget("org:a:x", 96)
    world.budget("org:b", 64, lending={"allow": True, "to": ["org:a:*"], "maxConcurrency": 32})
    for domain in "ABCD":
        world.domain(domain, nodes=4)
    funding = {"allowBorrow": True, "maxBorrowGPUs": 64, "sponsors": ["org:b"]}
    cycle = world.run("r", 128, by=32, owner="org:a:x", funding=funding).cycle()
    assert cycle.funding("r") == {"owned": 96, "borrowed": 32, "lenders": ["org:b"]}


def test_F10_family_shares(cluster: Make) -> None:
    world = cluster().domain("A", nodes=2).budget("org:a", 8).budget("org:a:x", 2).run("r", 6, owner="org:a:x")
    assert world.cycle().funding("r") == {"owned": 2, "shared": 4}


def test_F19_no_lease_spans_two_nodes_or_payers(cluster: Make) -> None:
    world = cluster().domain("A", gpus=[2, 2]).budget("org:a", 8).budget("org:a:x", 3).run("r", 4, owner="org:a:x")
    assert sorted(lease.gpus for lease in world.cycle().leases("r")) == [1, 1, 2]


def test_F26_an_edited_cap_turns_classes_and_rewrites_nothing(cluster: Make) -> None:
    world = cluster().node("n").budget("org:a", 8, name="a").run("r", 8)
    world.cycle()
    spec = world.state().get("Budget", "a")["spec"]
    envelope = dict(spec["envelopes"][0])
    world.edit("Budget", "a", spec={"envelopes": [{**envelope, "concurrency": 4}]}).cycle("+1h")
    world.edit("Budget", "a", spec={"envelopes": [{**envelope, "concurrency": 8}]}).cycle("+2h")
    cycle = world.cycle("+3h")
    (segments,) = cycle.segments("r")
    assert [each[0] for each in segments] == ["owned", "unfunded", "owned"]


def test_P6_groups_fill_domains(cluster: Make) -> None:
    world = cluster().domain("A", nodes=6).domain("B", nodes=8).budget("org:a", 96).run("r", 96, by=32)
    cycle = world.cycle()
    groups = {lease.group: next(iter(lease.nodes))[0] for lease in cycle.leases("r")}
    assert sorted(groups.values()) == ["a", "b", "b"]


def test_P10_cordoned_and_not_ready_nodes_take_nothing(cluster: Make) -> None:
    dead = [{"type": "Ready", "status": "False", "lastTransitionTime": "2025-12-31T23:59:00Z"}]
    world = cluster().node("n1", spec={"unschedulable": True}).node("n2", status={"conditions": dead}).node("n3")
    cycle = world.budget("org:a", 24).run("r", 8).run("s", 8).cycle()
    assert (cycle.running, {node for lease in cycle.leases("r") for node in lease.nodes}) == (["r"], {"n3"})


def test_P11_foreign_pods_use_up_capacity(cluster: Make) -> None:
    cycle = cluster().node("n").foreign_pod("f", "n", 6).budget("org:a", 16).run("four", 4).run("two", 2).cycle()
    assert cycle.running == ["two"]


def test_P13_a_run_in_one_domain(cluster: Make) -> None:
    world = cluster().domain("A", nodes=3).domain("B", nodes=5).budget("org:a", 32)
    cycle = world.run("r", 32, by=8, locality={"groupGPUs": 8, "allowCrossGroupSpread": False}).cycle()
    assert {node[0] for lease in cycle.leases("r") for node in lease.nodes} == {"b"}


def test_L9_a_gang_starts_together(cluster: Make) -> None:
    world = cluster().domain("A", nodes=1).budget("org:a", 16)
    gang = {"name": "g", "size": 2}
    world.run("one", 8, gang=gang).run("two", 8, gang=gang)
    assert world.cycle().running == []
    assert world.domain("B", nodes=1).cycle("+1m").running == ["one", "two"]


def test_L11_a_time_limit_ends_a_run_exactly(cluster: Make) -> None:
    world = cluster().node("n").budget("org:a", 8).run("r", 8, limit="1h")
    world.cycle()
    (lease,) = world.cycle("+5h").leases("r")
    assert (lease.closure, lease.ended) == ("TimeLimit", "2026-01-01T01:00:00Z")


def test_L14_suspended_and_resumed(cluster: Make) -> None:
    world = cluster().node("n").budget("org:a", 8).run("r", 8)
    world.cycle()
    assert world.edit("Run", "r", spec={"state": "Suspended"}).cycle("+1m").phases == {"r": "Pending"}
    assert world.edit("Run", "r", spec={"state": "Active"}).cycle("+2m").phases == {"r": "Running"}


def test_N11_a_node_is_its_uid(cluster: Make) -> None:
    world = cluster().domain("A", nodes=1).budget("org:a", 8).run("r", 8, runtime={"checkpoint": "10m"})
    world.cycle()
    world.delete("Node", "a01").domain("A", nodes=1)
    assert [lease.closure for lease in world.cycle("+1m").leases("r")].count("NodeFailure") == 1
