"""Estimates of what holds no promise, where many wait (spec §5): one queue beside what is known and promised."""

from tests.support.times import moment, unix
from tests.support.worlds import Cycle, World

T0 = unix("+0s")


def queue(waiting: int) -> World:
    """Two nodes that one run fills for an hour, and runs of a node and an hour each behind it; four hold promises."""
    world = World().policy(reservations={"maxHeld": 4, "patience": "14d"}).domain("d1", 2).budget("org:a", 16)
    world.run("first", 16, limit="1h", created="-2h")
    for number in range(waiting):
        world.run(f"next-{number:03}", 8, limit="1h", created=moment(f"-{waiting - number}s"))
    return world


def told(cycle: Cycle) -> list[tuple[int, int]]:
    """The estimates of what waits, p50 and p90, minutes from the first cycle, in order."""
    etas = [cycle.status(name)["eta"] for name in cycle.waiting]
    return [((unix(eta["p50"]) - T0) // 60, (unix(eta["p90"]) - T0) // 60) for eta in etas]


def test_a_queue_is_estimated_side_by_side_and_stays_as_told() -> None:
    world = queue(110)
    first, second = world.cycle("+0s"), world.cycle("+1m")

    starts = [60 * (1 + number // 2) for number in range(110)]
    assert told(first) == [(start, start) for start in starts]
    assert (second.plan.runs, second.plan.promises, second.plan.reservations) == ([], [], [])
