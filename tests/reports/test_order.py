"""Rows of reports are in the order that people count in: 2 before 10."""

from pathlib import Path
from typing import Any

import pytest

from reports.fleet.slots import fleet_slots
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


def test_the_picture(documents: list[Document], tmp_path: Path) -> None:
    domains = fleet_slots(worlds.snapshot(tmp_path / "cluster.yaml", documents).tables)
    assert [(domain.name, [node.name for node in domain.nodes]) for domain in domains] == [
        ("D2", ["n2-2", "n2-10"]),
        ("D10", ["n10-2", "n10-10"]),
    ]
