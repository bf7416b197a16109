"""Who holds each GPU, and the picture of it."""

from pathlib import Path

import pytest

from jobtree.world.plan import Closure, Plan, Solver
from reports.fleet.picture import draw_fleet
from reports.fleet.slots import FOREIGN, FREE, DomainSlots, NodeSlots, Slot, fleet_slots
from tests.reference.worlds import snapshot
from tests.reports import worlds
from tests.support import documents as doc


@pytest.fixture
def domains(tmp_path: Path) -> list[DomainSlots]:
    return fleet_slots(worlds.snapshot(tmp_path / "cluster.yaml").tables)


RUNNING, POOR = Slot("running", "org:a"), Slot("running", "org:a:x")


def test_every_slot_says_who_holds_it(domains: list[DomainSlots]) -> None:
    a01 = NodeSlots("a01", True, (*[RUNNING] * 4, Slot("spare", "org:a"), *[FREE] * 3))
    a02 = NodeSlots("a02", True, (POOR, *[FREE] * 4, *[FOREIGN] * 3))
    b01 = NodeSlots("b01", False, (POOR, POOR, FREE, FREE))

    assert domains == [
        DomainSlots("us-west", "c1", "A", "H100-80GB", (a01, a02)),
        DomainSlots("us-west", "c1", "b01", "H100-80GB", (b01,)),
    ]


def test_domains_of_one_label_are_told_apart() -> None:
    east = doc.merge(doc.node("b01", 2), {"metadata": {"labels": {"region": "us-east"}}})
    found = fleet_slots(snapshot([doc.node("a01", 2), east, doc.node("d1", 2, domain=None)]).tables)

    assert [(domain.name, [node.name for node in domain.nodes]) for domain in found] == [
        ("us-east/c1/d1", ["b01"]), ("us-west/c1/d1", ["a01"]), ("us-west/c1/node:d1", ["d1"])
    ]  # fmt: skip


def test_a_plan_shows_what_ends(tmp_path: Path) -> None:
    tables = worlds.snapshot(tmp_path / "cluster.yaml").tables
    plan = Plan(
        jobtree="0",
        at=worlds.AT,
        cycle="c",
        snapshot="",
        policy="",
        solver=Solver(name="", version="", options={}),
        closures=[Closure(namespace="default", name="r-0", ended=worlds.AT, reason="Completed")],
    )

    after = fleet_slots(tables, plan)

    assert after[0].nodes[0].slots == (*[FREE] * 4, Slot("spare", "org:a"), *[FREE] * 3)


def test_pictures_are_drawn_and_always_the_same(domains: list[DomainSlots], tmp_path: Path) -> None:
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    draw_fleet(domains, [first, tmp_path / "fleet.png"], title="A fleet")
    draw_fleet(domains, [again], title="A fleet")

    assert first.read_bytes() == again.read_bytes()
    assert (tmp_path / "fleet.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_of_no_nodes_is_empty_but_there(tmp_path: Path) -> None:
    draw_fleet([], [tmp_path / "none.svg"], title="Nothing")

    assert "<svg" in (tmp_path / "none.svg").read_text(encoding="utf-8")
