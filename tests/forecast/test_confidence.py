"""How sure a promise is: it is an estimate wherever it counts on one (spec §5)."""

import pytest

from tests.support.times import moment
from tests.support.worlds import World


def confidence(world: World, run: str, at: str) -> tuple[str, str]:
    """The time of a run's promise after a cycle, and how sure it is."""
    cycle = world.cycle(at)
    status = cycle.get("Reservation", cycle.status(run)["reservation"])["status"]
    return status["earliestStart"], status["forecast"]["confidence"]


@pytest.mark.parametrize(("gpus", "sure"), [(8, "estimated"), (5, "fixed")])
def test_a_start_at_an_exact_end_is_an_estimate_where_it_needs_what_ends_by_one(gpus: int, sure: str) -> None:
    """`guess` may last longer than it expects to; 5 GPUs are there whatever it does."""
    world = World().node("n").budget("org:a", 64)
    world.run("guess", 3, runtime={"expected": "40m"}).run("sure", 5, limit="1h").run("w", gpus)

    assert confidence(world, "w", "+0s") == (moment("+1h"), sure)


@pytest.mark.parametrize(("cap", "sure"), [(8, "estimated"), (11, "fixed")])
def test_as_is_one_that_needs_its_money(cap: int, sure: str) -> None:
    world = World().domain("A", 2).budget("org:a", cap)
    world.run("guess", 3, runtime={"expected": "40m"}).run("sure", 5, limit="1h").cycle("+0s")
    world.run("w", 8, created="+1m")

    assert confidence(world, "w", "+1m") == (moment("+1h"), sure)


def test_what_follows_a_start_that_is_an_estimate_is_one() -> None:
    world = World().node("n").budget("org:a", 64)
    world.run("guess", 8, runtime={"expected": "40m"}).run("next", 8, limit="1h").run("last", 8)

    assert confidence(world, "last", "+0s") == (moment("+1h40m"), "estimated")
