"""N6: a report is of the state that the last cycle left, not of the one that it found."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from exporters.lake.days import compact
from exporters.lake.lake import Lake
from reports.read.definition import names
from tests.reports.worlds import make
from tests.support.times import unix
from tests.support.worlds import World

SETTINGS = {"currency": "USD", "credit_price": "2"}


def rows(world: World, report: str, until: str | None = None) -> list[dict[str, Any]]:
    end = None if until is None else unix(until)
    made = make(world.lake, report, until=end, settings=SETTINGS if report == "focus" else {})
    assert [outcome.apart for outcome in made.outcomes] == [""] * len(made.outcomes)
    found: list[dict[str, Any]] = made.rows.to_pylist()
    return found


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the last cycle ended and started much."""
    path = tmp_path_factory.mktemp("n6") / "cluster.yaml"
    made = World(path).domain("A", nodes=1).budget("org:a", 8).policy().run("r", 8, runtime={"timeLimit": "1h"})
    made.cycle()
    made.run("s", 4, created="-1s").run("w", 16).cycle("+5h")
    return path.parent


@pytest.fixture
def world(left: Path, tmp_path: Path) -> World:
    shutil.copytree(left, tmp_path, dirs_exist_ok=True)
    return World(tmp_path / "cluster.yaml")


@pytest.mark.parametrize("report", names())
def test_n6_a_cycle_that_finds_what_the_last_one_left_changes_nothing_that_was_told(report: str, world: World) -> None:
    """Until the last cycle's second; the one after it changes nothing, so what it found is what was left."""
    told = rows(world, report, "+5h")
    left = world.state().leases()
    assert world.cycle("+301m").leases() == left
    assert rows(world, report, "+5h") == told


def test_n6_what_ended_since_the_last_cycle_has_ended_in_every_report(world: World) -> None:
    usage = world.usage("org-a", at="+5h")
    assert (usage["gpuHoursConsumed"], usage["ownedGPUs"]) == (8, 4)
    (used,) = rows(world, "usage")
    assert (used["gpu_hours"], used["owned_gpus"]) == (8, 4)
    assert sum(row["gpu_hours"] for row in rows(world, "chargeback")) == 8
    ends = {row["run"]: (row["ended"], row["reason"]) for row in rows(world, "leases")}
    assert ends == {"default/r": ("2026-01-01T01:00:00Z", "TimeLimit"), "default/s": (None, "Start")}
    assert sum(float(row["ConsumedQuantity"]) for row in rows(world, "focus")) == 8


def test_n6_so_it_is_once_the_day_is_packed_and_another_cycle_follows(world: World) -> None:
    before = rows(world, "leases")
    world.cycle("+30h")
    assert list(compact(Lake(world.lake))) == []
    after = {row["run"]: (row["ended"], row["reason"]) for row in rows(world, "leases")}
    assert after == {row["run"]: (row["ended"], row["reason"]) for row in before}
    (used,) = rows(world, "usage")
    assert used["gpu_hours"] == 8 + 4 * 25 == world.usage("org-a", at="+30h")["gpuHoursConsumed"]


def test_what_the_last_cycle_started_is_of_the_period_that_ends_with_it(world: World) -> None:
    assert [row["started"] for row in rows(world, "waits")] == [2]
    assert [row["started"] for row in rows(world, "waits", "+5h")] == [1]


def test_a_fleet_is_no_fuller_than_it_was_before_its_first_cycle_of_the_lake(world: World) -> None:
    shutil.rmtree(world.lake)
    world.cycle("+6h")
    world.cycle("+8h")

    made = make(world.lake, "utilisation")
    assert (made.terms.since, made.terms.until) == (unix("+6h"), unix("+8h"))
    assert {(row["gpus"], row["held"], row["utilisation_percent"]) for row in made.rows.to_pylist()} == {
        (8.0, 4.0, 50.0)
    }
