"""How sure a promise is: p50 and p90 differ where it hangs on ends that are only expected (spec §1, §5)."""

from typing import Any

import pytest

from tests.support.worlds import World

HELD = "waits-20260101t000000z"


def told(world: World, gpus: int) -> dict[str, Any]:
    """What a run of so many GPUs in groups of 8, that waits behind what runs, is promised."""
    world.run("waits", gpus, by=8, owner="org:w", limit="2d")
    world.cycle("+0s")
    forecast = world.state().get("Reservation", HELD)["status"]["forecast"]
    eta = world.state().status("waits")["eta"]
    assert {key: forecast[key] for key in ("p50", "p90")} == eta
    return {key: forecast[key] for key in ("confidence", "p50", "p90")}


def two_nodes(**runs: dict[str, Any]) -> World:
    """A run of a node each, of the one that waits' own owner: they are never cut for it."""
    world = World().domain("d", 2).budget("org:w", 64)
    for name, fields in runs.items():
        world.run(name, 8, owner="org:w", **fields)
    world.cycle("-1h")
    return world


EXPECTS = {"limit": "7h", "runtime": {"expected": "3h"}}
"""Expects to end at +2h, and is ended at +6h."""


@pytest.mark.parametrize(
    ("runs", "gpus", "expected"),
    [
        ({"a": EXPECTS, "b": {"limit": "11h"}}, 8, ("estimated", "2026-01-01T02:00:00Z", "2026-01-01T06:00:00Z")),
        ({"a": EXPECTS, "b": {"limit": "4h"}}, 16, ("estimated", "2026-01-01T03:00:00Z", "2026-01-01T06:00:00Z")),
        ({"a": EXPECTS, "b": {"limit": "2h"}}, 8, ("fixed", "2026-01-01T01:00:00Z", "2026-01-01T01:00:00Z")),
        ({"a": EXPECTS, "b": {"limit": "9h"}}, 16, ("fixed", "2026-01-01T08:00:00Z", "2026-01-01T08:00:00Z")),
    ],
    ids=["the time itself is an estimate", "another end makes the time", "needs no estimate", "the limit is before"],
)
def test_a_promise_tells_by_when_it_is_kept_nine_times_of_ten(
    runs: dict[str, dict[str, Any]], gpus: int, expected: tuple[str, str, str]
) -> None:
    assert told(two_nodes(**runs), gpus) == dict(zip(("confidence", "p50", "p90"), expected, strict=True))


def test_plan_says_by_when() -> None:
    world = two_nodes(a=EXPECTS, b={"limit": "11h"})
    told(world, 8)

    assert world.runs("plan", "waits", at="+1m").ok().out.splitlines()[3] == (
        "confidence: estimated: it hangs on ends that are only expected; nine times of ten by 2026-01-01T06:00:00Z"
    )
