"""A Lease whose spec cannot be read: its slots are taken, its run is not started again, mended it is as it was (§2)."""

from typing import Any, Final

import pytest

from jobtree.world.reading.unread import UnreadLease, of
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import World

LEASE: Final = "r-20260101t000000z-g0-0"
FAULTS: Final[dict[str, Document]] = {
    "flavor": {"flavor": None},
    "owner": {"owner": None},
    "run": {"runRef": None},
    "slots, one of them": {"slice": {"nodes": [*(f"n#{n}" for n in range(4)), 7]}},
}


def world() -> World:
    """A run on half of a node, paid since the start."""
    found = World().node("n").budget("org:a", 16).run("r", 4)
    found.cycle()
    return found


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_nothing_is_booked_twice_and_mending_brings_all_back(fault: Document) -> None:
    there = world()
    (lease,) = there.state().all("Lease")
    status = there.state().status("r")
    told = there.edit("Lease", LEASE, spec=fault).run("s", 4).run("t", 4).try_cycle("+1h").ok()
    found = there.state()

    assert "mend it" in told.err
    assert (found.running, found.waiting) == (["r", "s"], ["t"])
    assert found.status("r") == status
    (other,) = (each for each in found.all("Lease") if each["metadata"]["name"] != LEASE)
    assert other["spec"]["slice"]["nodes"] == ["n#4", "n#5", "n#6", "n#7"]

    there.edit("Lease", LEASE, spec=lease["spec"]).cycle("+2h")
    assert there.usage("org-a", at="+2h")["gpuHoursConsumed"] == 12


def test_a_run_that_never_ran_is_told_what_keeps_it() -> None:
    there = world()
    (lease,) = there.state().all("Lease")
    other = {**lease, "metadata": {**lease["metadata"], "name": "s-by-hand"}}
    other["spec"] = {**lease["spec"], "runRef": 7, "slice": {"nodes": 7}}
    there.add(other).run("s", 4).try_cycle("+1h").ok()

    assert there.state().running == ["r"]
    said = "Lease default/s-by-hand may be its own and cannot be read; mend it, or delete it if nothing runs there."
    assert f"LeaseUnreadable: {said}\n" in there.runs("plan", "s", at="+1h").ok().out


def test_its_run_ends_when_it_is_cancelled() -> None:
    there = world()
    there.edit("Lease", LEASE, spec={"flavor": None}).edit("Run", "r", spec={"state": "Cancelled"})
    there.try_cycle("+1h").ok()

    assert there.state().phases == {"r": "Failed"}
    found = there.edit("Lease", LEASE, spec={"flavor": "H100-80GB"}).cycle("+2h")
    assert [(row.closure, row.ended) for row in found.leases("r")] == [("Cancelled", moment("+2h"))]


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("x", b"{", ((), ())),
        ("x", b'{"spec": 1}', ((), ())),
        ("r-20260101t000000z-g0-0", b"{}", (("r",), ())),
        ("x", b'{"spec": {"runRef": {"name": "r", "index": 3}}}', (("r-3",), ())),
        ("x", b'{"spec": {"slice": {"nodes": ["a#1", "a#1", "b", 7, "b#x", "c#0"]}}}', ((), (("a", 1), ("c", 0)))),
        ("x", b'{"status": {"closed": true}}', ((), ())),
        ("x", b'{"status": {"closed": true, "ended": "2026-01-01T00:00:00Z"}}', None),
    ],
)
def test_what_can_be_told(name: str, raw: bytes, told: Any) -> None:
    assert of("default", name, raw) == (told and UnreadLease("default", name, *told))
