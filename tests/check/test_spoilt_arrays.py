"""Arrays of runs: every way to spoil what becomes of their indices is caught under its own name."""

import pytest

from jobtree.api.kinds.meta import RunRef
from tests.check.spoils import Spoil, finishing, status

SPOILS = [
    Spoil(
        "array",
        "one index more than maxParallel starts",
        lambda s: s.edit("Run", "sweep", {"spec": {"array": {"maxParallel": 1}}}),
        "array-parallel",
    ),
    Spoil("array", "an index runs twice", lambda s: s.starts("sweep-2", "a02#0-3"), "running-has-width gang-complete"),
    Spoil(
        "array", "an index that has Completed starts", lambda s: s.drop().starts("sweep-4", "a01#4-7"), "run-may-start"
    ),
    Spoil(
        "array", "an index that there is not starts", lambda s: s.drop().starts("sweep-5", "a01#4-7"), "run-may-start"
    ),
    Spoil(
        "array",
        "the array itself starts",
        lambda s: s.drop().starts("sweep", "a01#4-7"),
        "run-may-start",
    ),
    Spoil(
        "array",
        "a lease that names its index as a run",
        lambda s: s.respec(0, run_ref=RunRef(name="sweep-2", namespace="default")),
        "lease-truthful",
    ),
    Spoil("array", "an array that is said to wait", finishing(status("sweep", phase="Pending")), "array-agrees"),
    Spoil("array", "an array that is said to be over", finishing(status("sweep", phase="Completed")), "array-agrees"),
    Spoil(
        "array",
        "an array whose indices all are over, and that goes on",
        lambda s: (
            s.edit("Run", "sweep", {"status": {"indices": [{"indices": "0-4", "phase": "Completed"}]}})
            .drop()
            .unheld("sweep-1-0")
        ),
        "array-agrees",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
