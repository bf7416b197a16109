"""A field of a Lease that others tell of: the lease holds, and is charged, as before (spec §1 Lease, §2)."""

from typing import Final

import pytest

from tests.support.documents import Document
from tests.support.worlds import World

LEASE: Final = "r-20260101t000000z-g1-0"
FAULTS: Final[dict[str, tuple[Document, str]]] = {
    "reason": ({"reason": "Bogus"}, "it is read as Start"),
    "runUid": ({"runUid": None}, "it is passed over"),
    "group": ({"group": "0"}, "it is read as 1"),
    "start": ({"interval": {"start": "soon"}}, "it is read as 2026-01-01T00:00:00Z"),
    "interval": ({"interval": None}, "it is read as 2026-01-01T00:00:00Z"),
    "role": ({"slice": {"role": "ACTIVE"}}, "it is read as Active"),
    "two": ({"reason": 7, "group": -1}, "it is read as 1"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_nothing_is_booked_twice_or_refunded(fault: Document, said: str) -> None:
    world = World().node("n").budget("org:a", 16).run("r", 8, by=4)
    world.cycle()
    told = world.edit("Lease", LEASE, spec=fault).run("s", 8).try_cycle("+1h").ok()

    assert (world.state().running, world.state().waiting) == (["r"], ["s"])
    assert len(world.state().all("Lease")) == 2
    assert f": {said}\n" in told.err
    assert world.usage("org-a", at="+1h")["gpuHoursConsumed"] == 8

    world.edit("Run", "r", spec={"state": "Cancelled"}).try_cycle("+2h").ok()
    assert (world.state().running, world.usage("org-a", at="+2h")["gpuHoursConsumed"]) == (["s"], 16)
