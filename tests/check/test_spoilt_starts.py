"""Starts (spec §1, §7): every lease that must not be, or lies, is caught under its own name."""

from typing import Any, Final

import pytest

from jobtree.api import OwnerPath, Time
from jobtree.api.kinds.lease import Interval
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import RUN_CONDITIONS
from tests.check.spoils import (
    COMPLETED,
    FAILED,
    Spoil,
    status,
)
from tests.support.times import moment

CPU: Final = {
    "spec": {
        "resources": {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"},
    }
}
RUNNING: Final[dict[str, Any]] = {
    "phase": "Running",
    "conditions": tuple(
        Condition(type=each, status="True" if each in ("Admitted", "Scheduled", "Running") else "False", reason="Scene")
        for each in RUN_CONDITIONS
    ),
}
SPOILS = [
    Spoil("family", "two new leases of one name", lambda s: s.starts("r", "a03#0", name="r-0").drop(1), "unique-names"),
    Spoil(
        "simple",
        "a lease of a name that is there",
        lambda s: s.run("x", 1, created="-3h").holds("x", "b01#0", name="x-0").rename(0, "x-0"),
        "unique-names",
    ),
    Spoil("simple", "another run's uid", lambda s: s.respec(0, run_uid="uid-w"), "lease-truthful"),
    Spoil(
        "simple",
        "another run owner",
        lambda s: s.respec(0, run_owner=OwnerPath("org:a:x")),
        "lease-truthful class-derived classes-partition-width",
    ),
    Spoil(
        "family",
        "the run's owner for the payer's",
        lambda s: s.respec(2, owner=OwnerPath("org:a")),
        "lease-truthful payer-exists class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "a flavor that the run does not ask for",
        lambda s: s.respec(0, flavor="A100"),
        "lease-truthful payer-flavor class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "a start in the past",
        lambda s: s.respec(0, interval=Interval(start=Time(s.at - 1))),
        "lease-truthful status-agrees",
    ),
    Spoil(
        "simple",
        "a start in the future",
        lambda s: s.respec(0, interval=Interval(start=Time(s.at + 1))),
        "lease-truthful status-agrees",
    ),
    Spoil("simple", "another cycle's name", lambda s: s.respec(0, cycle="c0"), "lease-truthful"),
    Spoil(
        "simple",
        "a lease that is born closed",
        lambda s: s.relabel(0, closed=True),
        "lease-truthful",
    ),
    Spoil(
        "simple", "a start that is called growth", lambda s: s.respec(0, reason="Grow"), "lease-truthful stage-value"
    ),
    Spoil(
        "malleable",
        "growth that is called a start",
        lambda s: s.respec(3, reason="Start"),
        "lease-truthful stage-value",
    ),
    Spoil("failure", "a swap onto other slots", lambda s: s.move(0, "a03#0-3"), "lease-truthful closure-justified"),
    Spoil(
        "simple", "a start that is called a swap", lambda s: s.respec(0, reason="Swap"), "lease-truthful stage-value"
    ),
    Spoil(
        "simple",
        "a run that is not there",
        lambda s: s.remove("Run", "r"),
        "run-may-start",
    ),
    Spoil("simple", "a run whose Lease cannot be read", lambda s: s.unreadable("x", ["r"]), "run-may-start"),
    Spoil("simple", "a run of a Lease's name", lambda s: s.unreadable("r-by-hand"), "run-may-start"),
    Spoil("simple", "a suspended run", lambda s: s.edit("Run", "r", {"spec": {"state": "Suspended"}}), "run-may-start"),
    Spoil("simple", "a cancelled run", lambda s: s.edit("Run", "r", {"spec": {"state": "Cancelled"}}), "run-may-start"),
    Spoil(
        "simple",
        "a run that is being deleted",
        lambda s: s.edit("Run", "r", {"metadata": {"deletionTimestamp": moment("-1m")}}),
        "run-may-start",
    ),
    Spoil(
        "simple",
        "a run that has failed",
        lambda s: s.edit("Run", "r", FAILED),
        "run-may-start terminal-holds-nothing status-agrees",
    ),
    Spoil("simple", "a run that is marked complete", lambda s: s.edit("Run", "r", COMPLETED), "run-may-start"),
    Spoil(
        "simple",
        "a CPU run",
        lambda s: s.edit(
            "Run",
            "r",
            CPU,
        ),
        "run-may-start lease-truthful node-flavor",
    ),
    Spoil("bound", "an upstream that failed", lambda s: s.edit("Run", "first", FAILED), "follow"),
    Spoil("bound", "an upstream that is not there", lambda s: s.remove("Run", "first"), "follow"),
    Spoil(
        "bound",
        "an upstream that waits",
        lambda s: s.run("slow", 2).edit("Run", "one", {"spec": {"follow": {"after": ["slow"]}}}),
        "follow",
    ),
    Spoil("bound", "half a co-start gang", lambda s: s.drop(1), "co-start"),
    Spoil(
        "bound",
        "a member without GPUs that starts without its gang",
        lambda s: s.drop(0, 1).edit("Run", "two", CPU).then(status("two", **RUNNING)),
        "co-start",
    ),
    Spoil("bound", "a gang of which one is missing", lambda s: s.drop(1).remove("Run", "two"), "co-start"),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
