"""The chain of secrets around cycles: what only observes reveals none, what replaces a chain is announced before."""

from typing import Any

from tests.support.times import moment
from tests.support.worlds import Cycle, World


def world() -> World:
    """Two old runs of 4 GPUs on a node, of two owners; a third one's waits for as many."""
    made = World().node("n").budget("org:u", 8).budget("org:v", 8).budget("org:w", 8)
    made.run("u", 4, owner="org:u").run("v", 4, owner="org:v").old()
    return made.run("w", 4, owner="org:w")


def chain(cycle: Cycle) -> dict[str, Any]:
    """What is published of it."""
    return dict(cycle.get("ConfigMap", "jobtree-lottery")["data"])


def test_a_cycle_that_only_observes_draws_nothing() -> None:
    """Its secret would be the next one's, who could be drawn then computed before."""
    made = world()
    made.cycle("+0s")
    observed = made.policy(mode="observe").cycle("+15m")
    drawn = made.edit("Policy", "default", spec={"mode": "enforce"}).cycle("+16m")

    assert (observed.plan.lottery, observed.plan.closures) == (None, [])
    assert drawn.plan.lottery is not None
    assert (drawn.plan.lottery.position, chain(drawn)["position"]) == (1, "1")


def test_a_chain_in_place_of_one_that_was_not_used_yet_is_announced_a_day_before() -> None:
    """Else whoever may delete the Secret could have another one until its draw suits."""
    made = world()
    made.cycle("+0s")
    replaced = made.delete("Secret", "jobtree-lottery").cycle("+5m")

    assert chain(replaced)["since"] == "2026-01-02T00:05:00Z"
    assert made.cycle("+15m").plan.lottery is None
    assert made.cycle("+24h5m").plan.lottery is None
    assert made.cycle("+24h6m").plan.lottery is not None


def test_what_is_to_be_drawn_for_is_promised_no_earlier_than_a_new_chain_may_be_used() -> None:
    """Told at once, and why; until then the promise stands where it is."""
    made = world()
    made.cycle("+0s")
    made.delete("Secret", "jobtree-lottery").cycle("+5m")
    first, second = made.cycle("+6m"), made.cycle("+15m")
    said = [
        line
        for run in ("u", "v")
        for line in made.runs("explain", run, at="+15m").ok().out.splitlines()
        if "would lose first" in line
    ]
    kept = made.cycle("+24h5m1s")

    (move,) = first.get("Reservation", "w-20260101t000000z")["status"]["history"]
    opens = "2026-01-02T00:05:01Z"
    assert move == {
        "at": moment("+6m"),
        "earliestStart": opens,
        "cause": f"Nobody is drawn before {opens}: the lottery has a new chain of secrets.",
    }
    assert second.get("Reservation", "w-20260101t000000z") == first.get("Reservation", "w-20260101t000000z")
    assert said == [f"  would lose first: all 4 GPUs, by the lottery, which may draw it from {opens} on"] * 2
    assert kept.phases["w"] == "Running"
