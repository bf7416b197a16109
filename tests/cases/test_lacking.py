"""What a waiting run lacks is room and money of one and the same place, and pods need more than GPUs."""

from typing import Any

import pytest

from jobtree.api import LABEL_RUN
from tests.support import documents as doc
from tests.support.times import moment
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
    words = "4 CPUs short on node n (8 needed, 4 free); else 4 GPUs would have to be freed in A"

    assert waiting(world, count, 2, template=pod(cpu="8")) == {("CapacityShort", f"Asks for 2 GPUs: {words}.")}


def test_the_pods_that_must_go_for_cpu_are_those_that_hold_most_of_it() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"cpu": "64", "memory": "64Gi"}}).budget("org:a", 99)
    world.run("big", 4, template=pod(cpu="20")).run("small", 2, template=pod(cpu="40"))
    world.cycle()
    ((_, said),) = waiting(world, 1, 2, template=pod(cpu="32", memory="1Gi"))

    assert said == (
        "Asks for 2 GPUs: 28 CPUs short on node n (32 needed, 4 free); else 2 GPUs would have to be freed in A."
    )


def test_a_node_without_a_pod_to_spare_has_no_room() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"pods": "1"}}).budget("org:a", 99).run("old", 4)
    world.cycle()

    words = "1 pod short on node n (1 needed, 0 free); else 4 GPUs would have to be freed in A"

    assert waiting(world, 1, 2) == {("CapacityShort", f"Asks for 2 GPUs: {words}.")}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("asked", [{"cpu": "200"}, {"memory": "4Ti"}])
def test_pods_that_no_node_could_hold_never_fit(count: int, asked: dict[str, str]) -> None:
    ((reason, said),) = waiting(World().domain("A").budget("org:a", 999), count, 2, template=pod(**asked))
    need = "200 CPUs" if "cpu" in asked else "4Ti of memory"

    assert (reason, said) == (
        "NeverFits",
        f"Asks for 2 GPUs: too few nodes have what each pod asks for, {need}, so it can never fit.",
    )


def daemon(name: str, **requests: str) -> dict[str, Any]:
    """A pod of somebody else's, without GPUs, on node n."""
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return doc.merge(doc.foreign_pod(name, "n", 0), {"spec": {"containers": containers}})


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("allocatable", "daemons", "asked", "words", "short"),
    [
        ({"pods": "3"}, [{}] * 3, {}, "1 pod short on node n (1 needed, 0 free)", ("pods", 1, "pod")),
        ({"pods": "2"}, [{}] * 3, {}, "2 pods short on node n (1 needed, 0 free)", ("pods", 2, "pod")),
        ({"cpu": "8"}, [{"cpu": "6"}], {"cpu": "4"}, "2 CPUs short on node n (4 needed, 2 free)", ("cpu", 2, "CPU")),
        (
            {"memory": "8Gi"}, [{"memory": "6656Mi"}], {"memory": "4Gi"},
            "2560Mi of memory short on node n (4Gi needed, 1536Mi free)", ("memory", 3, "GiB"),
        ),
    ],
)  # fmt: skip
def test_n8_words_name_what_the_node_lacks(
    count: int,
    allocatable: dict[str, str],
    daemons: list[dict[str, str]],
    asked: dict[str, str],
    words: str,
    short: tuple[str, int, str],
) -> None:
    world = World().node("n", status={"allocatable": allocatable}).budget("org:a", 99)
    world.add(*(daemon(f"d{number}", **requests) for number, requests in enumerate(daemons)))
    assert waiting(world, count, 1, template=pod(**asked)) == {("CapacityShort", f"Asks for 1 GPU: {words}.")}

    rule, amount, unit = short
    told = world.runs("plan", "w000", at="+2m").ok().out
    assert f"short: {amount} {unit}{'s' if amount > 1 and unit != 'GiB' else ''} of node=n ({rule})\n" in told
    assert "deficit" not in told


def test_n8_gpus_may_be_held_and_cpu_be_another_s() -> None:
    world = World().node("n", status={"allocatable": {"cpu": "8"}}).budget("org:a", 99).run("old", 8)
    world.cycle()
    words = "8 GPUs would have to be freed, and even then 3 CPUs short on node n (4 needed, 1 free)"
    world.add(daemon("d", cpu="7"))

    assert waiting(world, 1, 8, template=pod(cpu="4")) == {("CapacityShort", f"Asks for 8 GPUs: {words}.")}


@pytest.mark.parametrize("count", COUNTS)
def test_n8_money_is_said_beside_what_the_node_lacks(count: int) -> None:
    world = World().node("n", status={"allocatable": {"pods": "1"}}).budget("org:a", 3).add(daemon("d"))
    said = "1 GPU short at org-a/gpus (0 of 3 in use); 1 pod short on node n (1 needed, 0 free)"

    assert waiting(world, count, 4) == {("BudgetShort", f"Asks for 4 GPUs: {said}.")}


def test_each_group_on_a_node_needs_a_place_for_a_pod_of_its_own() -> None:
    world = World().node("n", status={"allocatable": {"pods": "2"}}).budget("org:a", 99).run("old", 2)
    world.cycle()
    words = "1 pod short on node n (2 needed, 1 free); else 2 GPUs would have to be freed in d1"

    assert waiting(world, 1, 4, by=2) == {("CapacityShort", f"Asks for 4 GPUs in groups of 2: {words}.")}


def test_cordoned_and_held_by_others_are_said_only_where_it_is_so() -> None:
    world = World().node("n").node("m").budget("org:a", 99).foreign_pod("theirs", "n", 4)
    short = "Asks for 16 GPUs: 4 GPUs short, whoever else may end: pods that are not Jobtree's hold them."
    assert waiting(world, 1, 16) == {("CapacityShort", short)}

    world.edit("Node", "m", spec={"unschedulable": True})
    said = world.cycle("+2m").waits["w000"].message
    assert said == (
        "Asks for 16 GPUs: 12 GPUs short, whoever else may end: nodes are cordoned or not Ready, or pods that are not "
        "Jobtree's hold them."
    )


def test_pods_of_a_run_whose_leases_were_reclaimed_are_not_called_somebody_else_s() -> None:
    world = World().node("n").budget("org:a", 8).run("v", 8, owner="org:b", spec={"funding": {"opportunistic": True}})
    world.cycle()
    body = doc.foreign_pod("v-0", "n", 8)
    metadata = {"name": "v-0", "namespace": "default", "labels": {LABEL_RUN: "v"}, "creationTimestamp": moment("+0s")}
    world.add(body | {"metadata": metadata}).run("w", 8, created="+1m")
    words = "Asks for 8 GPUs: 8 GPUs short, whoever else may end: pods of runs that hold them no more are still there."

    assert [world.cycle(at).waits["w"].message for at in ("+1m", "+2m")] == [words, words]


@pytest.mark.parametrize("count", COUNTS)
def test_n7_gpus_that_vanished_under_leases_have_to_be_freed_too(count: int) -> None:
    world = World().node("n").budget("org:a", 999)
    for number in range(8):
        world.run(f"old{number}", 1)
    world.cycle()
    world.edit("Node", "n", status={"allocatable": {"nvidia.com/gpu": "5"}})

    assert waiting(world, count, 1) == {("CapacityShort", "Asks for 1 GPU: 4 GPUs would have to be freed in d1.")}
    if count == 1:
        assert "4 GPUs freed in d1: 4 on n\n" in world.runs("explain", "w000", at="+1m").ok().out


@pytest.mark.parametrize("count", COUNTS)
def test_n10_the_largest_domain_is_the_largest_that_is_paid_for(count: int) -> None:
    world = World().domain("W", nodes=2).domain("E", gpus=4, labels={"region": "us-east"})
    world.budget("org:a", 16, selector={"region": "us-east"})
    words = (
        "a group of 8 GPUs can never fit, the largest domain has 4 where its envelopes pay, "
        "org-a/gpus (region=us-east); it would fit in W"
    )

    assert waiting(world, count, 8) == {("NeverFits", f"Asks for 8 GPUs: {words}.")}
    if count == 1:
        remedy = 'org-a/gpus of org:a on other terms: Budget org-a: spec.envelopes[gpus].selector["region"]: *'
        assert remedy in world.runs("explain", "w000", at="+1m").ok().out


@pytest.mark.parametrize(
    ("fields", "those"),
    [
        ({"locality": {"selector": {"region": "us-east"}}}, " with region=us-east"),
        ({}, " without taints that it does not tolerate"),
    ],
)
def test_n10_the_largest_domain_is_the_largest_that_the_run_may_use(fields: dict[str, Any], those: str) -> None:
    taints = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
    world = World().domain("W", nodes=2, spec=taints).domain("E", gpus=4, labels={"region": "us-east"})
    world.budget("org:a", 16)
    said = f"a group of 8 GPUs can never fit, the largest domain{those} has 4"

    assert waiting(world, 1, 8, **fields) == {("NeverFits", f"Asks for 8 GPUs: {said}.")}


def test_a_run_as_wide_as_several_domains_is_told_of_groups() -> None:
    world = World().domain("A", nodes=2).domain("B").budget("org:a", 99)
    way = "; with groupGPUs of 16 or less it could lie in several"
    said = "a group of 24 GPUs can never fit, the largest domain has 16"
    assert waiting(world, 1, 24) == {("NeverFits", f"Asks for 24 GPUs: {said}{way}.")}
    assert world.cycle("+2m").shorts("w000") == [("capacity", "domain=A", 8, "GPU")]
    world.run("two", 40, by=20)
    assert world.cycle("+3m").shorts("two") == [("capacity", "domain=B", 12, "GPU"), ("capacity", "domain=A", 4, "GPU")]

    world = World().domain("A", nodes=2).domain("B").budget("org:a", 99)
    said = "a group of 25 GPUs can never fit, the largest domain has 16"
    assert waiting(world, 1, 25) == {("NeverFits", f"Asks for 25 GPUs: {said}.")}


def test_u9_explain_names_who_holds_the_gpus() -> None:
    world = World().domain("A", nodes=2).domain("B").budget("org:a", 99).budget("org:b", 99)
    world.run("far", 8).run("wide", 4).run("big", 8, owner="org:b")
    world.cycle()
    assert world.state().leases("far")[0].nodes == {"b01"}
    world.run("r", 16)
    world.cycle("+1m")
    (line,) = [each for each in world.runs("explain", "r", at="+1m").ok().out.splitlines() if "heldBy" in each]

    assert line == "  heldBy: run/default/big of org:b (8), run/default/wide of org:a (4)"


def test_u9_names_are_at_most_ten() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 99)
    for number in range(12):
        world.run(f"o{number:02}", 1)
    world.cycle()
    world.run("r", 16)
    said = world.runs("explain", "r", at="+1m").ok().out

    assert "run/default/o09 of org:a (1) and 2 more runs\n" in said


def test_foreign_pods_are_not_made_to_go_for_their_cpu() -> None:
    world = World().node("n", domain="A", status={"allocatable": {"cpu": "64"}}).budget("org:a", 99)
    foreign = doc.merge(
        doc.foreign_pod("theirs", "n", 0),
        {"spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "60"}}}]}},
    )
    ((reason, _),) = waiting(world.add(foreign), 1, 2, template=pod(cpu="8"))

    assert reason == "CapacityShort"
