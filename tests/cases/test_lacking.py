"""What a waiting run lacks is room and money of one and the same place, and pods need more than GPUs."""

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.worlds import World

COUNTS = (1, 120)
"""Waiting runs that are alike: few are weighed by a model, many by the nearest route."""


def waiting(world: World, count: int, gpus: int, **fields: Any) -> set[tuple[str, str]]:
    """Reasons and sentences of so many equal runs beside what the world holds already."""
    for number in range(count):
        world.run(f"w{number:03}", gpus, **fields)
    return {(wait.reason, wait.message) for wait in world.cycle("+1m").waits.values()}


def two_regions() -> World:
    """Two GPUs of money and a free node in the west; money, and a node that is held, in the east."""
    world = World().domain("A").domain("B", labels={"region": "us-east"})
    world.budget(
        "org:a",
        envelopes=[
            doc.envelope(2, "west", selector={"region": "us-west"}),
            doc.envelope(32, "east", selector={"region": "us-east"}),
        ],
    ).run("east", 8)
    world.cycle()
    return world


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (4, ("BudgetShort", "Asks for 4 GPUs: 2 GPUs short at org-a/west (0 of 2 in use).")),
        (8, ("BudgetShort", "Asks for 8 GPUs: 6 GPUs short at org-a/west (0 of 2 in use).")),
    ],
)
def test_money_counts_where_there_is_room(count: int, gpus: int, said: tuple[str, str]) -> None:
    assert waiting(two_regions(), count, gpus) == {said}


@pytest.mark.parametrize("count", COUNTS)
def test_room_counts_where_there_is_money(count: int) -> None:
    world = two_regions()
    world.edit("Node", "b01", status={"allocatable": {"nvidia.com/gpu": "11"}})

    assert waiting(world, count, 4) == {("CapacityShort", "Asks for 4 GPUs: 1 GPU would have to be freed in B.")}


@pytest.mark.parametrize("count", COUNTS)
def test_room_of_domains_with_one_label_is_named_with_the_region(count: int) -> None:
    east = {"selector": {"region": "us-east"}}
    world = World().node("a").node("b", labels={"region": "us-east"}).budget("org:a", 999).run("r", 8, locality=east)
    world.cycle()
    said = "4 GPUs would have to be freed in us-east/c1/d1; only nodes with region=us-east are looked at"

    assert waiting(world, count, 4, locality=east) == {("CapacityShort", f"Asks for 4 GPUs: {said}.")}
    assert "short: 4 GPUs of domain=us-east/c1/d1 (capacity)" in world.runs("explain", "w000").ok().out


@pytest.mark.parametrize("count", COUNTS)
def test_groups_may_lack_in_several_regions(count: int) -> None:
    world = World().domain("A").domain("B", labels={"region": "us-east"})
    west, east = (doc.envelope(6, region, selector={"region": f"us-{region}"}) for region in ("west", "east"))
    world.budget("org:a", envelopes=[west, east])
    shorts = "2 GPUs short at org-a/east (0 of 6 in use); 2 GPUs short at org-a/west (0 of 6 in use)"

    assert waiting(world, count, 16, by=8) == {("BudgetShort", f"Asks for 16 GPUs in groups of 8: {shorts}.")}


def pod(**requests: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "train", "resources": {"requests": requests}}]}}


@pytest.mark.parametrize("count", COUNTS)
def test_gpus_whose_node_has_no_cpu_left_are_not_free(count: int) -> None:
    world = World().node("n", domain="A", status={"allocatable": {"cpu": "64"}}).budget("org:a", 999)
    world.run("old", 4, template=pod(cpu="60"))
    world.cycle()
    words = "4 GPUs would have to be freed in A; nodes with free GPUs lack what each pod asks for, 8 CPUs"

    assert waiting(world, count, 2, template=pod(cpu="8")) == {("CapacityShort", f"Asks for 2 GPUs: {words}.")}


def test_the_pods_that_must_go_for_cpu_are_those_that_hold_most_of_it() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"cpu": "64", "memory": "64Gi"}}).budget("org:a", 99)
    world.run("big", 4, template=pod(cpu="20")).run("small", 2, template=pod(cpu="40"))
    world.cycle()
    ((_, said),) = waiting(world, 1, 2, template=pod(cpu="32", memory="1Gi"))

    assert said == (
        "Asks for 2 GPUs: 2 GPUs would have to be freed in A; "
        "nodes with free GPUs lack what each pod asks for, 32 CPUs and 1Gi of memory."
    )


def test_a_node_without_a_pod_to_spare_has_no_room() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"pods": "1"}}).budget("org:a", 99).run("old", 4)
    world.cycle()

    assert waiting(world, 1, 2) == {("CapacityShort", "Asks for 2 GPUs: 4 GPUs would have to be freed in A.")}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("asked", [{"cpu": "200"}, {"memory": "4Ti"}])
def test_pods_that_no_node_could_hold_never_fit(count: int, asked: dict[str, str]) -> None:
    ((reason, said),) = waiting(World().domain("A").budget("org:a", 999), count, 2, template=pod(**asked))
    need = "200 CPUs" if "cpu" in asked else "4Ti of memory"

    assert (reason, said) == (
        "NeverFits",
        f"Asks for 2 GPUs: too few nodes have what each pod asks for, {need}, so it can never fit.",
    )


def test_foreign_pods_are_not_made_to_go_for_their_cpu() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"cpu": "64"}}).budget("org:a", 99)
    foreign = doc.merge(
        doc.foreign_pod("theirs", "n", 0),
        {"spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "60"}}}]}},
    )
    ((reason, _),) = waiting(world.add(foreign), 1, 2, template=pod(cpu="8"))

    assert reason == "CapacityShort"
