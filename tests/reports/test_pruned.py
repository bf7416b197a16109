"""Leases that were pruned and discounts that changed: reports charge what the ledger does, wherever the lake begins."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from exporters.lake.days import compact
from exporters.lake.lake import Lake
from reports.query import query
from tests.reports.worlds import make
from tests.support.documents import FLAVOR
from tests.support.times import unix
from tests.support.worlds import World

H = 3600
SETTINGS = {"currency": "USD", "credit_price": "2"}


def played(kept: str) -> World:
    """Five cycles over New Year: r ends and its leases go (if kept for an hour), s goes on; spares become cheaper."""
    world = (
        World()
        .node("n")
        .policy(creditRates={FLAVOR: 1.5}, retention={"leases": kept})
        .budget("org:a", 8, maxGPUHours=500, sharing="family")
        .run("r", 4, by=4, spares=1, owner="org:a:x")
        .run("s", 1, by=1, spares=1)
    )
    world.cycle("-5h")
    world.edit("Policy", "default", spec={"spares": {"discount": 0.25}})
    world.cycle("-4h")
    world.runs("complete", "r", at="+1h").ok()
    world.cycle("+1h")
    world.cycle("+3h")
    world.cycle("+4h")
    return world


@pytest.fixture(scope="module")
def pruned() -> World:
    return played("1h")


@pytest.fixture(scope="module")
def unpruned() -> World:
    return played("7d")


@cache
def rows(lake: Path, report: str, **period: Any) -> list[dict[str, Any]]:
    made = make(lake, report, settings=SETTINGS if report == "focus" else {}, **period)
    assert [outcome.apart for outcome in made.outcomes] == [""] * len(made.outcomes)
    found: list[dict[str, Any]] = made.rows.to_pylist()
    return found


def part_of(world: World, to: Path, cycles: int) -> Path:
    """A lake that begins as many cycles before the last one."""
    shutil.copytree(world.lake, to)
    for manifest in sorted(to.glob("cycles/*/*.json"))[:-cycles]:
        manifest.unlink()
        shutil.rmtree(manifest.with_suffix(""))
    return to


def test_r_is_gone_and_was_charged(pruned: World) -> None:
    assert {lease.run for lease in pruned.state().leases()} == {"s"}
    spares = H // 2 + 5 * H // 4  # of r
    assert pruned.usage("org-a", at="+4h")["gpuSecondsConsumed"] == (6 * 4 * H + spares + 9 * H + H // 2 + 8 * H // 4)


@pytest.mark.parametrize("report", ["chargeback", "usage", "burndown", "focus", "ownership", "leases"])
def test_reports_of_a_whole_lake_are_the_same_with_and_without_pruning(
    pruned: World, unpruned: World, report: str
) -> None:
    assert rows(pruned.lake, report) == rows(unpruned.lake, report)


@pytest.mark.parametrize("cycles", [1, 2, 3, 4])
@pytest.mark.parametrize("report", ["chargeback", "usage"])
def test_reports_of_a_lake_that_begins_late_have_every_charge(
    pruned: World, tmp_path: Path, report: str, cycles: int
) -> None:
    assert rows(part_of(pruned, tmp_path / "lake", cycles), report) == rows(pruned.lake, report)


def test_the_bill_names_pruned_leases_by_who_ran_them(pruned: World, tmp_path: Path) -> None:
    late = rows(part_of(pruned, tmp_path / "lake", 1), "focus")
    told = {(each["ResourceName"], each["ChargeDescription"]) for each in late if each["SubAccountId"] == "org:a:x"}
    assert told == {
        (None, f"{role} GPUs of pruned runs of org:a:x, shared, from org-a/gpus") for role in ("active", "spare")
    }
    whole = rows(pruned.lake, "focus")
    for column in ("x_MilliGpuSeconds", "BilledCost"):
        assert sum(each[column] for each in late) == pytest.approx(sum(each[column] for each in whole))


def test_one_cycle_alone_says_what_the_budget_does(pruned: World) -> None:
    (used,) = query(pruned.lake, "usage")["gpu_seconds"]
    assert used == pruned.usage("org-a", at="+4h")["gpuSecondsConsumed"]


def test_compacted_days_say_the_same(pruned: World, tmp_path: Path) -> None:
    whole = {report: rows(pruned.lake, report) for report in ("chargeback", "usage", "leases")}
    shutil.copytree(pruned.lake, tmp_path / "lake")
    assert list(compact(Lake(tmp_path / "lake"))) == []
    assert {report: rows(tmp_path / "lake", report) for report in whole} == whole


def test_a_period_is_charged_the_same(pruned: World, unpruned: World) -> None:
    period = {"since": unix("-3h30m"), "until": unix("+30m")}
    assert rows(pruned.lake, "chargeback", **period) == rows(unpruned.lake, "chargeback", **period)
