"""Leases that a hand made say what is not so stand as they are, and the plan names them (spec §1, §2)."""

from typing import Final

from tests.support.worlds import World

LEASE: Final = "r-20260101t000000z-g0-0"
WARNED: Final = f"Lease default/{LEASE}"


def test_a_payer_that_lends_nothing_is_named_as_long_as_it_pays() -> None:
    world = World().node("n").budget("org:a", 8).budget("lab", 8).run("r", 4)
    assert WARNED not in world.cycle().warnings
    world.edit("Lease", LEASE, spec={"owner": "lab", "paidBy": {"budget": "lab", "envelope": "gpus"}})

    said = "its payer lab/gpus of lab, no relative of org:a, lends nothing to it: it counts as borrowed all the same"
    assert [world.cycle(at).warnings[WARNED] for at in ("+1h", "+2h")] == [[said], [said]]
    assert world.state().funding("r")["borrowed"] == 4


def test_a_lender_that_lends_no_more_is_not() -> None:
    world = World().node("n").budget("lab", 8, lending={"allow": True})
    world.run("r", 4, funding={"allowBorrow": True, "sponsors": ["lab"]})
    world.cycle()
    world.edit("Budget", "lab", spec={"envelopes": [{**_envelope(world), "lending": {"allow": False}}]})

    found = world.cycle("+1h")
    assert (found.funding("r")["borrowed"], found.warnings.get(WARNED)) == (4, None)


def _envelope(world: World) -> dict[str, object]:
    return dict(world.state().get("Budget", "lab")["spec"]["envelopes"][0])


def test_a_group_that_its_run_does_not_have_is_named() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 6, by=2)
    assert WARNED not in world.cycle().warnings
    told = world.edit("Lease", LEASE, spec={"group": 7}).try_cycle("+1h").ok()

    said = "its group is 7, and Run r has 3 groups, numbered from 0: both stand as they are"
    assert (world.state().running, f"{WARNED}: {said}" in told.err) == (["r"], True)
