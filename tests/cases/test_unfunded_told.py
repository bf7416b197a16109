"""Everyone who loses a payer is told: before it happens, and wherever the run is shown."""

from tests.support import documents as doc
from tests.support.worlds import World


def paid_by_b() -> World:
    """Run r of org:a, 8 GPUs on loan from org:b's pool."""
    world = World().domain("A").budget("org:b", envelopes=[doc.envelope(8, "pool", lending={"allow": True})], name="b")
    return world.run("r", 8, funding={"allowBorrow": True, "sponsors": ["org:b"]})


def lowered(gpus: int) -> str:
    return doc.dump([doc.budget("org:b", [doc.envelope(gpus, "pool", lending={"allow": True})], "b")])


def test_u1_whatif_says_who_loses_the_payer() -> None:
    world = paid_by_b()
    world.cycle()
    told = world.runs("whatif", "--cap", "b/pool=4", at="+1m").ok().out

    assert (
        "\nWould lose their payers\n  RUN         GPUS BY CLASS   THEN\n  default/r   borrowed (8)    unfunded (8)\n"
        in told
    )
    assert "default/r   8      b/pool (8)   8      nobody (8)" in told
    assert "Every run would fare as it does now" not in told


def test_u1_submit_says_who_loses_the_payer() -> None:
    world = paid_by_b()
    world.cycle()
    told = world.runs("submit", "-f", "-", at="+1m", stdin=lowered(4)).ok().out

    said = "run/default/r of org:a: 8 GPUs borrowed from b/pool, then unfunded"
    assert f"Next cycle, runs that nobody would pay any more:\n  {said}\n" in told
    assert "nobody would pay" not in world.runs("submit", "-f", "-", at="+1m", stdin=lowered(8)).ok().out


def test_u2_every_command_says_that_it_is_unfunded() -> None:
    world = paid_by_b()
    world.cycle()
    world.runs("submit", "-f", "-", at="+1m", stdin=lowered(4)).ok()
    world.cycle("+1m")

    def told(*args: str) -> str:
        return world.runs(*args, at="+2m").ok().out

    assert told("state").splitlines()[1].split()[-2:] == ["unfunded", "-"]
    assert "unfunded: 8 of 8 GPUs\n" in told("watch", "r")
    assert "b/pool (unfunded)" in told("leases")
    assert "payingEnvelopes: nobody (8)\nunfunded: 8 of 8 GPUs\n" in told("plan", "r")
    assert "unfunded: 8 of 8 GPUs\n" in told("explain", "r")
    assert "b/pool (unfunded)" in told("explain", "r")
    assert world.usage("b", "pool", at="+2m")["unfundedGPUs"] == 8


def test_what_is_paid_is_nowhere_called_unfunded() -> None:
    world = paid_by_b()
    world.cycle()

    for command in (["state"], ["watch", "r"], ["leases"], ["plan", "r"]):
        assert "unfunded" not in world.runs(*command, at="+1m").ok().out
