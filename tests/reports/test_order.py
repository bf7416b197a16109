"""Rows of reports are in the order that people count in: 2 before 10, and January before April."""

from pathlib import Path
from typing import Any

import pytest

from reports.fleet.slots import fleet_slots
from reports.query import Asked, made
from reports.read.definition import Chart
from reports.told.charts import picture
from reports.told.told import Told
from tests.reports import worlds
from tests.reports.worlds import make
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment

NUMBERS = (10, 2)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Two owners, each with a budget and a run that waits; two domains of two nodes, a run with a GPU on each node.

    Nothing is named in the order of its numbers.
    """
    found = [doc.policy()]
    for number in NUMBERS:
        owner = f"org:{number}"
        stamp = {"uid": f"wait-{number}", "creationTimestamp": moment("-1h")}
        found += [doc.node(f"n{number}-{each}", domain=f"D{number}") for each in NUMBERS]
        found += [
            doc.budget(owner, [doc.envelope(8, maxGPUHours=16, start=moment("+0s"), end=moment("+2h"))]),
            doc.merge(doc.run(f"wait-{number}", 8, owner), {"metadata": stamp}),
        ]
    found.append(doc.run("r", 4, "org:2"))
    slots = [f"n{number}-{each}#0" for number in sorted(NUMBERS) for each in sorted(NUMBERS)]
    for group, slot in enumerate(slots, 8):
        made = worlds.lease(f"r-{group}", "r", [slot], "org-2/gpus", ("owned", moment("+0s"), None), owner="org:2")
        found.append(doc.merge(made, {"spec": {"group": group}}))
    return found


def test_reports(documents: list[Document], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for when in ("+0s", "+1h"):
        worlds.record(lake, when, documents)

    def rows(report: str, *columns: str) -> list[tuple[Any, ...]]:
        table = make(lake, report, None, None, {}).rows
        return list(dict.fromkeys(tuple(row[column] for column in columns) for row in table.to_pylist()))

    assert rows("leases", "group", "node") == [(8, "n2-2"), (9, "n2-10"), (10, "n10-2"), (11, "n10-10")]
    assert rows("utilisation", "domain") == [("us-west/c1/D2",), ("us-west/c1/D10",)]
    assert rows("usage", "budget") == rows("burndown", "budget") == [("org-2",), ("org-10",)]
    assert rows("waits", "owner") == [("org:2",), ("org:10",)]


@pytest.fixture(scope="module")
def four_months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake: who is charged most pays from February on, another owner from January on."""
    lake = tmp_path_factory.mktemp("months") / "lake"
    most, other = "org:most", "org:other"
    held = [
        worlds.lease("l1", "r1", ["a01#0", "a01#1"], "org-most/gpus", ("owned", "+40d", "+100d"), owner=most, rate=1.0),
        worlds.lease("l2", "r2", ["a01#2"], "org-other/gpus", ("owned", "+0s", "+100d"), owner=other, rate=1.0),
    ]
    budgets = [doc.budget(owner, [doc.envelope(8)]) for owner in (most, other)]
    worlds.record(lake, "+101d", [doc.node("a01"), *budgets, *held])
    return lake


def told(lake: Path, report: str) -> Told:
    settings = {"currency": "USD", "credit_price": "1"} if report == "focus" else {}
    found = made(lake, report, Asked(None, None, settings, None, tell=True)).told
    assert found is not None
    return found


@pytest.mark.parametrize("report", ["chargeback", "ownership", "focus"])
def test_months_are_rows_in_time(four_months: Path, report: str) -> None:
    rows = [str(line.cells[0]).split(" ")[0] for line in told(four_months, report).sheet.lines]
    assert rows == ["most", "Feb", "Mar", "Apr", "other", "Jan", "Feb", "Mar", "Apr"]


def test_months_are_series_in_time(four_months: Path) -> None:
    chart = told(four_months, "focus").chart
    assert chart is not None
    found = picture(Chart("across", "Cost", ""), chart)
    assert found is not None
    assert [series for series, _ in found.legend] == ["2026-01", "2026-02", "2026-03", "2026-04"]


def test_the_picture(documents: list[Document], tmp_path: Path) -> None:
    domains = fleet_slots(worlds.snapshot(tmp_path / "cluster.yaml", documents).tables)
    assert [(domain.name, [node.name for node in domain.nodes]) for domain in domains] == [
        ("D2", ["n2-2", "n2-10"]),
        ("D10", ["n10-2", "n10-10"]),
    ]
