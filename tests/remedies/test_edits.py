"""Edits of a snapshot's tables are those of the documents."""

from collections.abc import Callable
from typing import Any

import pytest

from jobtree.api.values.errors import Refusal
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell, Copy, Drop, Edit, edited, field
from tests.reference.worlds import snapshot
from tests.support import documents as doc
from tests.support.documents import Document

TOGETHER = {"allowCrossGroupSpread": False}
STAMP = {"metadata": {"creationTimestamp": "2025-12-31T00:00:00Z", "uid": "u"}}


def documents() -> list[Document]:
    budget = doc.budget("org:a", [doc.envelope(8), doc.envelope(4, "more", maxGPUHours=10)])
    budget["spec"]["aggregateCaps"] = [{"name": "both", "envelopes": ["gpus", "more"], "maxConcurrency": 10}]
    runs = [doc.merge(doc.run(name, 4), STAMP) for name in ("r", "s")]
    return [doc.node("a"), doc.node("b", 4, domain="d2"), doc.merge(budget, STAMP), *runs]


def told(kind: str, name: str, change: Callable[[Document], Any]) -> Snapshot:
    """The snapshot of the documents, one of them changed."""
    found = documents()
    (meant,) = (each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))
    change(meant)
    return snapshot(found)


@pytest.mark.parametrize(
    ("edit", "kind", "name", "change"),
    [
        (
            Cell("envelopes", ("org-a", "more"), "concurrency", 40),
            "Budget", "org-a", lambda d: d["spec"]["envelopes"][1].update(concurrency=40),
        ),
        (
            Cell("envelopes", ("org-a", "more"), "max_gpu_milliseconds", 36_000_000 * 2),
            "Budget", "org-a", lambda d: d["spec"]["envelopes"][1].update(maxGPUHours=20),
        ),
        (
            Cell("aggregates", ("org-a", "both"), "concurrency", 12),
            "Budget", "org-a", lambda d: d["spec"]["aggregateCaps"][0].update(maxConcurrency=12),
        ),
        (Cell("runs", ("default", "s"), "total", 2), "Run", "s", lambda d: d["spec"]["resources"].update(totalGPUs=2)),
        (Cell("runs", ("default", "s"), "spread", False), "Run", "s", lambda d: d["spec"].update(locality=TOGETHER)),
        (Cell("nodes", ("b",), "unschedulable", True), "Node", "b", lambda d: d.update(spec={"unschedulable": True})),
    ],
)  # fmt: skip
def test_a_cell(edit: Edit, kind: str, name: str, change: Callable[[Document], Any]) -> None:
    assert edited(snapshot(documents()), [edit]).digest == told(kind, name, change).digest


def test_nodes_come_and_go() -> None:
    found = [doc.node("a"), *documents()[2:], doc.node("a2"), doc.node("c")]
    edits: list[Edit] = [Copy("a", "c"), Copy("a", "a2"), Drop("b")]

    assert edited(snapshot(documents()), edits).digest == snapshot(found).digest


def test_a_copied_node_works_though_its_model_does_not() -> None:
    def cordon(node: Document) -> None:
        node["spec"] = {"unschedulable": True}

    found = [*documents(), doc.node("c")]
    cordon(found[0])

    assert edited(told("Node", "a", cordon), [Copy("a", "c")]).digest == snapshot(found).digest


def test_a_field_is_read_as_it_is_written() -> None:
    world = snapshot(documents())
    assert field(world, "runs", ("default", "r"), "total") == 4
    assert field(edited(world, [Cell("runs", ("default", "r"), "total", 3)]), "runs", ("default", "r"), "total") == 3


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Cell("envelopes", ("org-a", "less"), "concurrency", 1), "there is no envelope org-a/less"),
        (Drop("z"), "there is no node z"),
        (Copy("a", "b"), "there is a node b already"),
    ],
)
def test_what_is_not_there_is_said(edit: Edit, words: str) -> None:
    with pytest.raises(Refusal) as refusal:
        edited(snapshot(documents()), [edit])
    assert str(refusal.value) == words
