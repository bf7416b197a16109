"""The night's work on a lake: days that are over are packed, the month's reports lie beside them."""

from pathlib import Path

import pytest

from tests.support.commands import jobtree
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two days of a run that is charged."""
    world = World(tmp_path / "cluster.yaml").domain("d1", 1).budget("org:a", 8).run("r", 8, limit="30h")
    world.cycle()
    world.cycle("+24h")
    return world


def reports(world: World) -> list[str]:
    return sorted(each.relative_to(world.lake).as_posix() for each in (world.lake / "reports").rglob("*.*"))


def test_days_are_packed_and_reports_written(world: World) -> None:
    said = jobtree("nightly", "--lake", world.lake, "--at", "2026-01-02T02:17:00Z", "chargeback", "waits").ok().out

    assert said.splitlines() == [
        "2026-01-01: 1 cycle",
        f"{world.lake}/reports/2026-01/chargeback.html and .csv",
        f"{world.lake}/reports/2026-01/waits.html and .csv",
    ]
    assert reports(world) == [
        f"reports/2026-01/{name}.{kind}" for name in ("chargeback", "waits") for kind in ("csv", "html")
    ]
    assert "org:a" in (world.lake / "reports" / "2026-01" / "chargeback.csv").read_text()


def test_the_first_night_of_a_month_is_the_whole_month_before(world: World) -> None:
    jobtree("nightly", "--lake", world.lake, "--at", "2026-02-01T02:17:00Z", "chargeback").ok()
    assert reports(world) == ["reports/2026-01/chargeback.csv", "reports/2026-01/chargeback.html"]


def test_the_same_night_twice_is_the_same(world: World) -> None:
    night = ("nightly", "--lake", world.lake, "--at", "2026-01-02T02:17:00Z", "chargeback")
    jobtree(*night).ok()
    first = (world.lake / "reports" / "2026-01" / "chargeback.csv").read_text()
    again = jobtree(*night).ok().out
    assert again.splitlines()[0] == f"Nothing to compact before 2026-01-02, the last day of {world.lake}"
    assert (world.lake / "reports" / "2026-01" / "chargeback.csv").read_text() == first


def test_a_report_that_there_is_not_is_refused_before_any_is_made(world: World) -> None:
    said = jobtree("nightly", "--lake", world.lake, "--at", "2026-01-02T02:17:00Z", "chargeback", "wiats")
    assert said.code == 1
    assert said.err.startswith("error: 'wiats' is not a report; allowed are ")
    assert reports(world) == []


def test_an_empty_lake_is_said(tmp_path: Path) -> None:
    said = jobtree("nightly", "--lake", tmp_path)
    assert said.code == 1
    assert said.err.count("error: ") == 1
