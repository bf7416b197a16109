"""Who pays, as `plan` and `explain` name them: nobody for what is unfunded, whoever its lease names (spec §3.5)."""

from tests.support.worlds import World


def test_nobody_pays_for_what_is_unfunded_now() -> None:
    world = World().node("n").budget("org:a", 4).run("r", 4)
    world.cycle("-2h")
    assert "payingEnvelopes: org-a/gpus (4)\n" in world.runs("plan", "r", at="-1h").ok().out

    world.edit(
        "Budget", "org-a", spec={"owner": "org:b"}
    )  # the next cycle turns it, as `plan` sees before it is written
    assert "payingEnvelopes: nobody (4)\n" in world.runs("plan", "r", at="-1h").ok().out

    world.cycle("-1h")
    assert "payingEnvelopes: nobody (4)\n" in world.runs("explain", "r", at="+0s").ok().out
