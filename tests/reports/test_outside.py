"""Periods that the lake knows nothing of: said in the warning and in the header, never as a period without use."""

import pytest

from tests.support.commands import jobtree
from tests.support.worlds import World


@pytest.fixture(scope="module")
def world() -> World:
    """Two cycles on one day, and a lease from the first on."""
    made = World().node("n").budget("org:a", 8).run("r", 8)
    made.cycle("+1h")
    made.cycle("+2h")
    return made


@pytest.mark.parametrize(
    ("asked", "warned", "edge"),
    [
        (
            ["--since", "2026-02-01"],
            "from 2026-02-01T00:00:00Z, and the lake ends at 2026-01-01T02:00:00Z",
            "ends at 1 Jan 2026, 02:00",
        ),
        (
            ["--since", "2025-01-01", "--until", "2025-02-01"],
            "until 2025-02-01T00:00:00Z, and the lake begins at 2026-01-01T01:00:00Z",
            "begins at 1 Jan 2026, 01:00",
        ),
        (
            ["--until", "2025-02-01"],
            "until 2025-02-01T00:00:00Z, and the lake begins at 2026-01-01T01:00:00Z",
            "begins at 1 Jan 2026, 01:00",
        ),
    ],
)
def test_a_period_outside_the_lakes_is_said_to_be(world: World, asked: list[str], warned: str, edge: str) -> None:
    output = jobtree("report", "chargeback", "--lake", world.lake, *asked).ok()
    said = f"The lake knows nothing of this period: it {edge} (UTC)."
    assert said in output.out.splitlines(), output.out
    assert output.err == f"warning: The period: it was asked for {warned}\n"


@pytest.mark.parametrize(
    ("asked", "cycles"),
    [
        ([], "2 cycles"),
        (["--until", "2026-01-01T02:00Z"], "1 cycle"),
        (["--until", "2026-01-01T02:01Z"], "2 cycles"),
        (["--since", "2026-01-01T01:00Z", "--until", "2026-01-01T02:00Z"], "1 cycle"),
        (["--since", "2026-01-01T02:00Z"], "1 cycle"),
    ],
)
def test_a_cycle_is_of_one_of_two_periods_that_touch(world: World, asked: list[str], cycles: str) -> None:
    output = jobtree("report", "chargeback", "--lake", world.lake, *asked).ok()
    assert f"(UTC), {cycles}." in output.out, output.out


def test_a_period_between_two_cycles_is_known(world: World) -> None:
    asked = ["--since", "2026-01-01T01:10Z", "--until", "2026-01-01T01:20Z"]
    output = jobtree("report", "chargeback", "--lake", world.lake, *asked).ok()
    assert "From 1 Jan 2026, 01:10 until 1 Jan 2026, 01:20 (UTC), 0 cycles." in output.out.splitlines()
