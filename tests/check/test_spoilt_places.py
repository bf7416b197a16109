"""Slots, nodes and gangs: every way to spoil them is caught under its own name (spec §2, §9)."""

import pytest

from tests.check.spoils import Spoil, limit, own_pod, requests, slots, taint, template
from tests.support.documents import foreign_pod
from tests.support.times import moment

SLOTS = [
    Spoil("simple", "a slot twice in a lease", lambda s: s.respec(0, slice=slots("a01#0-2", "a01#2")), "slot-exclusive"),
    Spoil("simple", "a slot in two new leases", lambda s: s.run("x", 1).starts("x", "a01#3"), "slot-exclusive"),
    Spoil(
        "simple", "a slot of running work",
        lambda s: s.run("x", 1, created="-3h").holds("x", "a01#0"), "slot-exclusive",
    ),
    Spoil(
        "gang", "paid work on a new spare",
        lambda s: s.envelope("org-a", {"concurrency": 30}).run("x", 1).starts("x", "a03#0"), "slot-exclusive",
    ),
    Spoil("opportunistic", "paid work on a spare", lambda s: s.run("x", 1).starts("x", "a02#4"), "slot-exclusive"),
    Spoil(
        "opportunistic", "two unfunded tenants of one spare",
        lambda s: s.run("x", 1, funding={"opportunistic": True}).starts("x", "a02#4", payer=None), "slot-exclusive",
    ),
    Spoil("gang", "two spares on the same slots", lambda s: s.move(3, "a03#0-3"), "slot-exclusive"),
    Spoil("simple", "an ordinal beyond the node", lambda s: s.move(0, "a01#5-8"), "slot-exists"),
    Spoil("simple", "a node that is not there", lambda s: s.move(0, "z01#0-3"), "slot-exists"),
    Spoil(
        "simple", "a slot that is none", lambda s: s.respec(0, slice=slots("a01#0-2", "a01")),
        "slot-exists gang-complete running-has-width status-agrees classes-partition-width stage-value",
    ),
    Spoil("simple", "a lease on two nodes", lambda s: s.respec(0, slice=slots("a01#0-1", "a02#2-3")), "one-node"),
    Spoil("simple", "GPUs of a foreign pod", lambda s: s.add(foreign_pod("other", "a01", 5)), "slot-free"),
    Spoil("simple", "GPUs of a pod that still ends", lambda s: s.add(own_pod("w", "a01", 5)), "slot-free"),
    Spoil(
        "simple", "GPUs that vanished under running work",
        lambda s: s.run("x", 2, created="-3h").holds("x", "a01#6-7")
        .edit("Node", "a01", {"status": {"allocatable": {"nvidia.com/gpu": "5"}}}),
        "slot-free",
    ),
]  # fmt: skip

NODES = [
    Spoil(
        "simple", "a node of another flavor",
        lambda s: s.edit("Node", "a01", {"metadata": {"labels": {"gpu.flavor": "A100"}}}), "node-flavor payer-place",
    ),
    Spoil(
        "simple", "a node without flavor",
        lambda s: s.edit("Node", "a01", {"metadata": {"labels": {"gpu.flavor": None}}}), "node-flavor payer-place",
    ),
    Spoil(
        "simple", "a node outside the selector",
        lambda s: s.edit("Run", "r", {"spec": {"locality": {"selector": {"region": "us-east"}}}}), "node-selector",
    ),
    Spoil(
        "simple", "a node outside the template's selector",
        lambda s: s.edit("Run", "r", template(nodeSelector={"disk": "ssd"})), "node-selector",
    ),
    Spoil("simple", "a taint", lambda s: s.edit("Node", "a01", taint("NoSchedule")), "node-taint"),
    Spoil("simple", "a taint that evicts", lambda s: s.edit("Node", "a01", taint("NoExecute")), "node-taint"),
    Spoil(
        "simple", "a taint of which another value is tolerated",
        lambda s: s.edit("Node", "a01", taint("NoSchedule"))
        .edit("Run", "r", template(tolerations=[{"key": "team", "value": "c"}])),
        "node-taint",
    ),
    Spoil(
        "simple", "a taint of which another effect is tolerated",
        lambda s: s.edit("Node", "a01", taint("NoSchedule"))
        .edit("Run", "r", template(tolerations=[{"operator": "Exists", "effect": "NoExecute"}])),
        "node-taint",
    ),
    Spoil("simple", "a cordoned node", lambda s: s.edit("Node", "a01", {"spec": {"unschedulable": True}}), "node-open"),
    Spoil(
        "simple", "a NotReady node",
        lambda s: s.edit("Node", "a01", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
        "node-open",
    ),
    Spoil(
        "simple", "an out-of-service node",
        lambda s: s.edit("Node", "a01", taint("NoExecute", "node.kubernetes.io/out-of-service")),
        "node-open node-taint",
    ),
    Spoil(
        "simple", "a node that is being deleted",
        lambda s: s.edit("Node", "a01", {"metadata": {"deletionTimestamp": moment("-1m")}}), "node-open",
    ),
    Spoil(
        "simple", "more pods than a node takes",
        lambda s: s.edit("Node", "a01", {"status": {"allocatable": {"pods": "0"}}}), "node-load",
    ),
    Spoil("simple", "more CPU than a node has", lambda s: s.edit("Run", "r", requests(cpu="128001m")), "node-load"),
    Spoil("simple", "more memory than a node has", lambda s: s.edit("Run", "r", requests(memory="2049Gi")), "node-load"),
    Spoil("gang", "CPU of two pods on a node", lambda s: s.edit("Run", "r", requests(cpu="65")), "node-load"),
    Spoil(
        "simple", "CPU beside running work",
        lambda s: s.run("x", 1, created="-3h").holds("x", "a01#7")
        .edit("Run", "x", requests(cpu="65")).edit("Run", "r", requests(cpu="64")),
        "node-load",
    ),
    Spoil(
        "family", "CPU of a pod that two payers share",
        lambda s: s.edit("Run", "r", requests(cpu="65")).edit("Node", "a02", {"status": {"allocatable": {"cpu": "64"}}}),
        "node-load",
    ),
    Spoil(
        "simple", "a node in maintenance",
        lambda s: s.policy(
            maintenance=[{"selector": {"fabric.domain": "A"}, "start": moment("-1h"), "end": moment("+1h")}]
        ),
        "maintenance",
    ),
    Spoil(
        "simple", "maintenance one second before the run's end",
        lambda s: s.edit("Run", "r", limit("2h1s")).policy(
            maintenance=[{"selector": {"fabric.domain": "A"}, "start": moment("+2h"), "end": moment("+4h")}]
        ),
        "maintenance",
    ),
]  # fmt: skip

GANGS = [
    Spoil("gang", "a group that lacks a pod", lambda s: s.move(2, "a02#0-3"), "gang-complete running-has-width"),
    Spoil(
        "gang", "a group too many", lambda s: s.envelope("org-a", {"concurrency": 30}).starts("r", "b01#0-3", group=2),
        "gang-complete running-has-width spares-complete groups-together",
    ),
    Spoil(
        "gang", "a group that is missing", lambda s: (s.new.pop(2), s.new.pop(2)), "running-has-width",
    ),
    Spoil(
        "gang", "groups that do not count from 0", lambda s: (s.respec(2, group=2), s.respec(3, group=2)),
        "gang-complete",
    ),
    Spoil(
        "gang", "a spare in another domain than its group",
        lambda s: s.edit("Run", "r", {"spec": {"locality": {"allowCrossGroupSpread": True}}}).move(1, "b01#0-3"),
        "group-in-domain",
    ),
    Spoil(
        "family", "a group in two domains", lambda s: s.move(2, "b01#1"),
        "group-in-domain",
    ),
    Spoil(
        "family", "a group in two clusters with equal labels",
        lambda s: s.edit("Node", "a02", {"metadata": {"labels": {"cluster": "c2"}}}), "group-in-domain",
    ),
    Spoil(
        "family", "a group on nodes that are domains of their own",
        lambda s: [s.edit("Node", n, {"metadata": {"labels": {"fabric.domain": None}}}) for n in ("a01", "a02")],
        "group-in-domain",
    ),
    Spoil(
        "gang", "groups that must lie together in two domains",
        lambda s: s.move(2, "b01#0-7").move(3, "b02#4-7"), "groups-together",
    ),
    Spoil(
        "gang", "a pod across two nodes",
        lambda s: (s.edit("Run", "r", {"spec": {"spares": 0}}), s.new.pop(3), s.new.pop(1))
        and s.move(0, "a01#0-5").starts("r", "a03#0-1", name="r-9"),
        "pod-on-one-node",
    ),
    Spoil("gang", "a start without a spare", lambda s: s.new.pop(), "spares-complete"),
    Spoil("gang", "half a spare", lambda s: s.move(3, "a03#4-5"), "spares-complete pod-on-one-node"),
    Spoil("simple", "a spare that was not asked for", lambda s: s.starts("r", "a02#0", role="Spare"), "spares-complete"),
    Spoil("simple", "less than it asked for", lambda s: s.move(0, "a01#0-2"), "running-has-width gang-complete"),
    Spoil("simple", "more than it asked for", lambda s: s.move(0, "a01#0-4"), "running-has-width gang-complete"),
    Spoil("malleable", "less than the least width", lambda s: (s.new.pop(1), s.new.pop(1)), "running-has-width"),
    Spoil("malleable", "a width between steps", lambda s: s.move(2, "a03#0-3"), "width-on-step gang-complete"),
    Spoil(
        "malleable", "a start beyond totalGPUs",
        lambda s: s.edit("Run", "m", {"spec": {"resources": {"totalGPUs": 16}}}), "width-on-step",
    ),
    Spoil(
        "malleable", "growth beyond what is wanted",
        lambda s: s.edit("Run", "g", {"spec": {"malleable": {"desiredTotalGPUs": 8}}}), "width-on-step",
    ),
    Spoil(
        "malleable", "growth by two steps in a cycle",
        lambda s: s.domain("C", 8).starts("g", "c01#0-7", group=2, reason="Grow"),
        "width-on-step no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "malleable", "growth of a fixed run", lambda s: s.edit("Run", "g", {"spec": {"malleable": None}}),
        "lease-truthful running-has-width gang-complete",
    ),
]  # fmt: skip


@pytest.mark.parametrize("spoil", [*SLOTS, *NODES, *GANGS], ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
