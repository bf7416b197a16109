"""What commands say of promises: `plan`, `explain`, `watch` and `state` (spec §5, §10)."""

from tests.support.worlds import World


def busy() -> World:
    """Two nodes that are free after one and two hours; big is promised both, small the first moment after."""
    world = World().policy(reservations={"maxHeld": 1}).domain("A", nodes=2).budget("org:a", 64)
    world.run("one", 8, limit="1h").run("two", 8, limit="2h")
    world.run("big", 16, by=8, limit="1h").run("small", 8)
    world.cycle()
    return world


def test_plan_says_when_where_and_how_sure() -> None:
    assert busy().runs("plan", "big", at="+1m").ok().out.splitlines() == [
        "earliestStart: 2026-01-01T02:00:00Z on domain=A",
        "intendedSlice: domain=A (nodes a01-a02)",
        "deficit: 16 GPUs in domain=A",
        "confidence: fixed: it follows from exact ends or notice",
        "reason: CapacityShort: Asks for 16 GPUs in groups of 8: 16 GPUs would have to be freed in A.",
        "short: 16 GPUs of domain=A (capacity)",
    ]


def test_plan_says_an_estimate_where_nothing_is_held() -> None:
    lines = busy().runs("plan", "small", at="+1m").ok().out.splitlines()
    assert lines[0] == "eta: 2026-01-01T03:00:00Z (an estimate: no slot is held yet)"


def test_explain_tells_how_a_promise_moved() -> None:
    world = busy()
    world.runs("complete", "two", at="+10m").ok()
    world.cycle("+10m")
    lines = world.runs("explain", "big", at="+11m").ok().out.splitlines()
    start = lines.index("Reservation default/big-20260101t000000z")
    assert lines[start + 1 : start + 3] == [
        "  2026-01-01T00:00:00Z  first promised for 2026-01-01T02:00:00Z",
        "  2026-01-01T00:10:00Z  now 2026-01-01T01:00:00Z: Room or money comes free earlier.",
    ]


def test_watch_and_state_show_the_start() -> None:
    world = busy()
    watched = world.runs("watch", "big", "--once").ok().out.splitlines()
    assert watched[-1] == "earliestStart: 2026-01-01T02:00:00Z (reservation big-20260101t000000z)"
    assert world.runs("watch", "small", "--once").ok().out.splitlines()[-1] == "eta: 2026-01-01T03:00:00Z"
    listed = {line.split()[0]: line.split()[-1] for line in world.runs("state", at="+1m").ok().out.splitlines()[1:]}
    assert (listed["big"], listed["small"], listed["one"]) == ("2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z", "-")
