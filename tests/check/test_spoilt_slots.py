"""Slots: every way to spoil them is caught under its own name (spec §2, §9)."""

import pytest

from tests.check.spoils import (
    Spoil,
    own_pod,
    slots,
)
from tests.support.documents import foreign_pod

SPOILS = [
    Spoil(
        "simple", "a slot twice in a lease", lambda s: s.respec(0, slice=slots("a01#0-2", "a01#2")), "slot-exclusive"
    ),
    Spoil("simple", "a slot in two new leases", lambda s: s.run("x", 1).starts("x", "a01#3"), "slot-exclusive"),
    Spoil(
        "simple",
        "a slot of a Lease that cannot be read",
        lambda s: s.unreadable("x", ["x"], ("a01", 0)),
        "slot-exclusive",
    ),
    Spoil(
        "simple",
        "a slot of running work",
        lambda s: s.run("x", 1, created="-3h").holds("x", "a01#0"),
        "slot-exclusive",
    ),
    Spoil(
        "gang",
        "paid work on a new spare",
        lambda s: s.envelope("org-a", {"concurrency": 30}).run("x", 1).starts("x", "a03#0"),
        "slot-exclusive",
    ),
    Spoil("opportunistic", "paid work on a spare", lambda s: s.run("x", 1).starts("x", "a02#4"), "slot-exclusive"),
    Spoil(
        "opportunistic",
        "two unfunded tenants of one spare",
        lambda s: s.run("x", 1, funding={"opportunistic": True}).starts("x", "a02#4", payer=None),
        "slot-exclusive",
    ),
    Spoil("gang", "two spares on the same slots", lambda s: s.move(3, "a03#0-3"), "slot-exclusive"),
    Spoil("simple", "an ordinal beyond the node", lambda s: s.move(0, "a01#5-8"), "slot-exists"),
    Spoil("simple", "a node that is not there", lambda s: s.move(0, "z01#0-3"), "slot-exists"),
    Spoil(
        "simple",
        "a slot that is none",
        lambda s: s.respec(0, slice=slots("a01#0-2", "a01")),
        "slot-exists gang-complete running-has-width status-agrees classes-partition-width stage-value",
    ),
    Spoil("simple", "a lease on two nodes", lambda s: s.respec(0, slice=slots("a01#0-1", "a02#2-3")), "one-node"),
    Spoil("simple", "GPUs of a foreign pod", lambda s: s.add(foreign_pod("other", "a01", 5)), "slot-free"),
    Spoil("simple", "GPUs of a pod that still ends", lambda s: s.add(own_pod("w", "a01", 5)), "slot-free"),
    Spoil(
        "simple",
        "GPUs that vanished under running work",
        lambda s: (
            s.run("x", 2, created="-3h")
            .holds("x", "a01#6-7")
            .edit("Node", "a01", {"status": {"allocatable": {"nvidia.com/gpu": "5"}}})
        ),
        "slot-free",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
