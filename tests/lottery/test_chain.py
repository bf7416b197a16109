"""The chain of secrets around cycles: what only observes reveals none, what replaces a chain is announced before."""

from typing import Any

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
