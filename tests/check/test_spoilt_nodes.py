"""Nodes that a run may not lie on (spec §2): each is caught under its own name."""

import pytest

from tests.check.spoils import (
    Spoil,
    limit,
    requests,
    taint,
    template,
)
from tests.support.times import moment

SPOILS = [
    Spoil(
        "simple",
        "a node of another flavor",
        lambda s: s.edit("Node", "a01", {"metadata": {"labels": {"gpu.flavor": "A100"}}}),
        "node-flavor payer-place",
    ),
    Spoil(
        "simple",
        "a node without flavor",
        lambda s: s.edit("Node", "a01", {"metadata": {"labels": {"gpu.flavor": None}}}),
        "node-flavor payer-place",
    ),
    Spoil(
        "simple",
        "a node outside the selector",
        lambda s: s.edit("Run", "r", {"spec": {"locality": {"selector": {"region": "us-east"}}}}),
        "node-selector",
    ),
    Spoil(
        "simple",
        "a node outside the template's selector",
        lambda s: s.edit("Run", "r", template(nodeSelector={"disk": "ssd"})),
        "node-selector",
    ),
    Spoil("simple", "a taint", lambda s: s.edit("Node", "a01", taint("NoSchedule")), "node-taint"),
    Spoil("simple", "a taint that evicts", lambda s: s.edit("Node", "a01", taint("NoExecute")), "node-taint"),
    Spoil(
        "simple",
        "a taint of which another value is tolerated",
        lambda s: s.edit("Node", "a01", taint("NoSchedule")).edit(
            "Run", "r", template(tolerations=[{"key": "team", "value": "c"}])
        ),
        "node-taint",
    ),
    Spoil(
        "simple",
        "a taint of which another effect is tolerated",
        lambda s: s.edit("Node", "a01", taint("NoSchedule")).edit(
            "Run", "r", template(tolerations=[{"operator": "Exists", "effect": "NoExecute"}])
        ),
        "node-taint",
    ),
    Spoil("simple", "a cordoned node", lambda s: s.edit("Node", "a01", {"spec": {"unschedulable": True}}), "node-open"),
    Spoil(
        "simple",
        "a NotReady node",
        lambda s: s.edit("Node", "a01", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
        "node-open",
    ),
    Spoil(
        "simple",
        "an out-of-service node",
        lambda s: s.edit("Node", "a01", taint("NoExecute", "node.kubernetes.io/out-of-service")),
        "node-open node-taint",
    ),
    Spoil(
        "simple",
        "a node that is being deleted",
        lambda s: s.edit("Node", "a01", {"metadata": {"deletionTimestamp": moment("-1m")}}),
        "node-open",
    ),
    Spoil(
        "simple",
        "more pods than a node takes",
        lambda s: s.edit("Node", "a01", {"status": {"allocatable": {"pods": "0"}}}),
        "node-load",
    ),
    Spoil("simple", "more CPU than a node has", lambda s: s.edit("Run", "r", requests(cpu="128001m")), "node-load"),
    Spoil(
        "simple", "more memory than a node has", lambda s: s.edit("Run", "r", requests(memory="2049Gi")), "node-load"
    ),
    Spoil("gang", "CPU of two pods on a node", lambda s: s.edit("Run", "r", requests(cpu="65")), "node-load"),
    Spoil(
        "simple",
        "CPU beside running work",
        lambda s: (
            s.run("x", 1, created="-3h")
            .holds("x", "a01#7")
            .edit("Run", "x", requests(cpu="65"))
            .edit("Run", "r", requests(cpu="64"))
        ),
        "node-load",
    ),
    Spoil(
        "family",
        "CPU of a pod that two payers share",
        lambda s: s.edit("Run", "r", requests(cpu="65")).edit(
            "Node", "a02", {"status": {"allocatable": {"cpu": "64"}}}
        ),
        "node-load",
    ),
    Spoil(
        "simple",
        "a node in maintenance",
        lambda s: s.policy(
            maintenance=[{"selector": {"fabric.domain": "A"}, "start": moment("-1h"), "end": moment("+1h")}]
        ),
        "maintenance",
    ),
    Spoil(
        "simple",
        "maintenance one second before the run's end",
        lambda s: s.edit("Run", "r", limit("2h1s")).policy(
            maintenance=[{"selector": {"fabric.domain": "A"}, "start": moment("+2h"), "end": moment("+4h")}]
        ),
        "maintenance",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
