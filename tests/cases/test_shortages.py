"""An amount short is what would have to be added: where something is overdrawn, the overdraft too (spec §3.9)."""

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.worlds import Cycle, World

COUNTS = (1, 120)
"""Waiting runs that are alike: few are weighed by a model, many by the nearest route."""
HOURS = {"maxGPUHours": 100}
OWN = "org-a/gpus"


def overdrawn(edit: dict[str, Any], **envelope: Any) -> World:
    """48 GPU-hours of 100 are spent, then the Budget says otherwise."""
    world = World().domain("A", nodes=2).policy(creditRates={doc.FLAVOR: 1})
    world.budget("org:a", 8, **envelope).run("old", 8, limit="6h")
    world.cycle("-24h")
    world.cycle("-18h")
    return world.edit("Budget", "org-a", spec=edit)


def envelope(**fields: Any) -> dict[str, Any]:
    return {"envelopes": [doc.envelope(8, **fields)]}


def waiting(world: World, count: int, **fields: Any) -> Cycle:
    for number in range(count):
        world.run(f"w{number:03}", 1, limit="1h", **fields)
    return world.cycle()


@pytest.mark.parametrize(
    ("count", "world", "rule", "subject", "unit", "place"),
    [
        (1, lambda: overdrawn(envelope(maxGPUHours=10), **HOURS), "hours", OWN, "GPU-hour", OWN),
        (120, lambda: overdrawn(envelope(maxGPUHours=10), **HOURS), "hours", OWN, "GPU-hour", OWN),
        (1, lambda: overdrawn(envelope(maxCredits=10), maxCredits=100), "credits", OWN, "credit", OWN),
        (
            1, lambda: overdrawn(envelope(maxGPUHours=10, scope="subtree"), scope="subtree", **HOURS),
            "subtree-hours", OWN, "GPU-hour", "the subtree of org-a/gpus",
        ),
        (
            1, lambda: overdrawn({"aggregateCaps": [{"name": "all", "envelopes": ["gpus"], "maxGPUHours": 10}]}),
            "aggregate-hours", "org-a/all", "GPU-hour", "the aggregate cap org-a/all",
        ),
    ],
)  # fmt: skip
def test_n5_what_is_overdrawn_is_short_too(
    count: int, world: Any, rule: str, subject: str, unit: str, place: str
) -> None:
    made = world()
    cycle = waiting(made, count)
    said = f"39 {unit}s short at {place} (overdrawn: more than its 10 is spent or provided for)"

    assert cycle.shorts("w000") == [(rule, subject, 39, unit)]
    assert cycle.condition("w000", "Admitted")["message"] == f"Asks for 1 GPU: {said}."
    told = made.runs("explain", "w000", at="+0s").ok().out
    assert f"short: 39 {unit}s of {subject} ({rule})" in told
    if count == 1:
        assert f"39 {unit}s more at {place}: Budget org-a" in told


@pytest.mark.parametrize("count", COUNTS)
def test_n5_what_is_lent_beyond_its_cap_is_short_too(count: int) -> None:
    lending = {"allow": True, "maxGPUHours": 100}
    world = World().domain("A", nodes=2).budget("org:l", 8, lending=lending)
    loan: dict[str, Any] = {"owner": "org:g", "funding": {"allowBorrow": True, "sponsors": ["org:l"]}}
    world.run("old", 8, limit="6h", **loan)
    world.cycle("-24h")
    world.cycle("-18h")
    world.edit("Budget", "org-l", spec=envelope(lending={**lending, "maxGPUHours": 10}))

    assert waiting(world, count, **loan).shorts("w000") == [("lending-hours", "org-l/gpus", 39, "GPU-hour")]


def test_n5_a_quota_that_is_overdrawn_is_short_of_its_overdraft_too() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("root", 4, quota={"maxGPUHours": 100})
    world.cycle("-12h")  # 48 of 100 are used, and 96 more are provided for
    cycle = waiting(world, 1, parent="root")

    assert cycle.shorts("w000") == [("tree", "default/root", 45, "GPU-hour")]
    assert "45 GPU-hours more in the quota of run root" in world.runs("explain", "w000", at="+0s").ok().out


@pytest.mark.parametrize("count", COUNTS)
def test_n5_an_overdraft_counts_when_the_cheapest_payer_is_chosen(count: int) -> None:
    """One GPU-hour more at the parent's is less than 39 at its own."""
    world = overdrawn(envelope(maxGPUHours=10), **HOURS)
    world.budget("org:a:x", 8, maxGPUHours=0.5, sharing="family")
    cycle = waiting(world, count, owner="org:a:x", spec={"resources": {"totalGPUs": 1}})

    assert cycle.shorts("w000") == [("hours", "org-a-x/gpus", 1, "GPU-hour")]


def test_who_may_run_unfunded_is_not_short_of_money() -> None:
    world = World().domain("A").budget("org:a", 1).run("old", 8, owner="org:z", funding={"opportunistic": True})
    world.cycle("-24h")
    world.run("r", 2, owner="org:z", funding={"opportunistic": True})

    assert world.cycle().shorts("r") == [("capacity", "domain=A", 2, "GPU")]
