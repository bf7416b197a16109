"""What `explain` tells a run of the promises that name it, and of what it would lose first (spec §6, §10)."""

from tests.cuts.test_activation import old_world
from tests.support.worlds import World


def cuts(world: World, run: str) -> list[str]:
    """The lines of `explain` under Cuts."""
    said = world.runs("explain", run, at="+1m").ok().out
    return [line.strip() for line in said.partition("\nCuts\n")[2].splitlines()]


def test_a_run_is_told_for_whom_until_when_what_and_what_its_owner_can_do() -> None:
    world = old_world({"A": 3}, "p", "q", "r")
    wide = {"minTotalGPUs": 8, "maxTotalGPUs": 16, "stepGPUs": 8}
    world.run("a", 8, owner="org:p").run("b", 16, by=8, owner="org:q", malleable=wide).old()
    world.run("c", 16, by=8, owner="org:r").cycle()
    named, chance, ways, first = cuts(world, "b")
    assert named.partition(", for ")[::2] == (
        "in the way of default/c-20260101t000000z",
        "run c at 2026-01-01T00:15:00Z, which takes 8 GPUs above its least width, all 16 GPUs if it is drawn",
    )
    assert chance == "loses all with a chance of 50.0%"
    assert ways == "until then: `kubectl runs shrink` it, let it save its work (runtime.checkpoint)"
    assert first.split("; ") == [
        "would lose first: 8 GPUs above its least width of 8, from group 1 down",
        "then all 16 GPUs, by the lottery, which may draw it now",
    ]
    assert cuts(world, "a")[1] == "loses all with a chance of 50.0%"


def test_spares_and_work_without_funding_are_first() -> None:
    world = World().domain("A", nodes=2).budget("org:s", 96)
    world.run("s", 8, pods=8, owner="org:s", spares=1).cycle()
    assert cuts(world, "s")[-1] == (
        "would lose first: 8 spare GPUs; then all 8 GPUs, by the lottery, which may draw it from "
        "2026-01-01T12:00:00Z on"
    )
    free = World().node("n")
    free.run("f", 4, owner="org:f", funding={"opportunistic": True}).cycle()
    assert cuts(free, "f") == ["would lose first: 4 GPUs without funding"]
