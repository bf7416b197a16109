"""Statuses of runs (spec §1, §9): every wrong word is caught under its own name."""

import pytest

from jobtree.api import Duration, Time
from jobtree.api.kinds.run import RunStatus
from jobtree.world.plan import RunUpdate
from tests.check.spoils import (
    Spoil,
    conditions,
    finishing,
    more,
    part,
    status,
    twice,
    without,
)

SPOILS = [
    Spoil(
        "simple", "a phase that the conditions deny", lambda s: s.then(status("w", phase="Waiting")), "phase-derived"
    ),
    Spoil("simple", "a failure that the phase hides", lambda s: s.then(conditions("w", "Failed")), "phase-derived"),
    Spoil(
        "simple", "a condition that is missing", lambda s: s.then(conditions("w", drop="Blocked")), "conditions-present"
    ),
    Spoil(
        "simple",
        "a condition that is there twice",
        lambda s: s.then(conditions("w", again="Failed")),
        "conditions-present",
    ),
    Spoil("simple", "a run without a status", lambda s: s.then(without("runs", "w")), "conditions-present"),
    Spoil(
        "simple",
        "the status of no run",
        lambda s: s.then(more("runs", RunUpdate(namespace="default", name="z", status=RunStatus()))),
        "status-agrees",
    ),
    Spoil("simple", "a status that is written twice", lambda s: s.then(twice("runs")), "unique-names"),
    Spoil(
        "simple",
        "a run that runs on nothing",
        lambda s: s.then(conditions("w", "Admitted", "Running")).then(status("w", phase="Running")),
        "running-has-width",
    ),
    Spoil(
        "simple",
        "a run that holds GPUs and waits",
        lambda s: s.then(conditions("r")).then(status("r", phase="Pending")),
        "status-agrees",
    ),
    Spoil(
        "simple",
        "a run that is over and holds GPUs",
        lambda s: s.then(conditions("r", "Failed")).then(status("r", phase="Failed")),
        "outcome-follows terminal-holds-nothing",
    ),
    *(
        Spoil(
            "simple",
            f"another width.{name}",
            finishing(part("width", "r", **{name: 9})),
            "status-agrees",
        )
        for name in ("allocated", "min", "max", "desired", "pending")
    ),
    Spoil("simple", "a width that is missing", lambda s: s.then(status("r", width=None)), "status-agrees"),
    Spoil(
        "simple", "a GPU of no class", lambda s: s.then(part("funding", "r", owned_gpus=3)), "classes-partition-width"
    ),
    Spoil(
        "simple",
        "a GPU of another class",
        lambda s: s.then(part("funding", "r", owned_gpus=3, shared_gpus=1)),
        "classes-partition-width",
    ),
    Spoil("simple", "classes that are missing", lambda s: s.then(status("r", funding=None)), "classes-partition-width"),
    Spoil("loan", "a lender that is left out", lambda s: s.then(part("funding", "r", lenders=())), "status-agrees"),
    Spoil("simple", "another start", lambda s: s.then(status("r", started=Time(s.at - 1))), "status-agrees"),
    Spoil("hours", "another time limit", lambda s: s.then(status("r", time_limit=Duration(3600))), "status-agrees"),
    Spoil(
        "simple",
        "a default limit that is not enforced",
        lambda s: s.envelope("org-a", {"perRun": {"defaultTime": "4h"}}).then(status("r", time_limit=None)),
        "status-agrees",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
