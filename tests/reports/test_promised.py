"""Reports of what was promised and drawn, on the lake that cycles wrote: each sum by a second way."""

from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.reports.worlds import make
from tests.support.commands import jobtree
from tests.support.worlds import World


def rows(lake: Path, report: str, *columns: str) -> list[tuple[Any, ...]]:
    made = make(lake, report, None, None, {})
    assert [outcome.apart for outcome in made.outcomes] == [""] * len(made.outcomes)
    return [tuple(row[column] for column in columns) for row in made.rows.to_pylist()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draw among two owners, of which one has two runs; a start that comes early; a promise that is given up."""
    world = World(tmp_path_factory.mktemp("promised") / "cluster.yaml").domain("A", nodes=3).domain("B")
    for owner in "pqwx":
        world.budget(f"org:{owner}", 96)
    world.run("p", 8, owner="org:p").run("q0", 8, owner="org:q").run("q1", 8, owner="org:q")
    world.run("b", 8, owner="org:x", limit="27h", locality={"selector": {"fabric.domain": "B"}}).old()
    for name in ("soon", "never"):
        world.run(name, 8, owner="org:x", locality={"selector": {"fabric.domain": "B"}}, limit="1h")
    world.run("w", 8, owner="org:w", locality={"selector": {"fabric.domain": "A"}}).cycle()
    world.cycle("+15m")
    world.edit("Run", "b", spec={"state": "Cancelled"}).edit("Run", "never", spec={"state": "Cancelled"})
    world.cycle("+1h")
    world.cycle("+61m")
    return world.lake


def test_promises_are_held_against_starts(lake: Path) -> None:
    columns = ("owner", "ahead", "promises", "kept", "given_up", "late", "by_p90", "error_seconds")
    assert rows(lake, "promises", *columns) == [
        ("org:w", "an hour", 1, 1, 0, 0, 1, 0),
        ("org:x", "6 hours", 2, 1, 1, 0, 1, -2 * 3600),
    ]


def test_a_start_after_its_date_may_still_be_within_its_p90(tmp_path: Path) -> None:
    """What it waits for says 1 hour and has a limit of 2, which is the p90; it takes one and a half."""
    world = World(tmp_path / "cluster.yaml").node("n").budget("org:a", 8)
    world.run("first", 8, runtime={"expected": "1h", "timeLimit": "2h"}).cycle()
    world.run("next", 8, created="+30s").cycle("+1m")
    world.cycle("+1h")
    world.runs("complete", "first", at="+90m").ok()
    world.cycle("+90m")
    world.cycle("+91m")
    assert rows(world.lake, "promises", "kept", "late", "by_p90") == [(1, 1, 1)]


def test_draws_are_held_against_fair_ones(lake: Path) -> None:
    found = rows(lake, "lottery", "owner", "picks", "tokens", "drawn", "expected", "sigma")
    assert [row[:3] for row in found] == [("org:p", 1, 1), ("org:q", 1, 2)]
    assert sum(row[3] for row in found) == 1
    assert [row[4:] for row in found] == [(0.5, pytest.approx(sqrt(0.25)))] * 2


@pytest.mark.parametrize("report", ["promises", "lottery"])
def test_a_page_is_made_of_a_lake_without_any(report: str) -> None:
    world = World().node("n").budget("org:a", 8).run("r", 8)
    world.cycle()
    said = jobtree("report", report, "--lake", world.lake).ok().out
    assert said.startswith("No promise was settled in this period." if report == "promises" else "Nobody was drawn")


@pytest.mark.parametrize("report", ["promises", "lottery"])
def test_a_page_shows_them(lake: Path, report: str) -> None:
    page = jobtree("report", report, "--lake", lake, "-o", "html").ok().out
    assert all(text in page for text in ("<svg", "Reconciled", "org:"))
