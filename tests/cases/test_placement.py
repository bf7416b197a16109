"""Where work lies, and what is missing where it cannot: the placement cases (spec §2, §4, §5)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.worlds import Cycle, World


def by_domain(cycle: Cycle, run: str) -> dict[str, int]:
    """Open Active GPUs of a run per domain; nodes are named after theirs."""
    found: dict[str, int] = {}
    for row in cycle.leases(run, open=True):
        (node,) = row.nodes
        name = node.rstrip("0123456789").upper()
        found[name] = found.get(name, 0) + (row.gpus if row.role == "Active" else 0)
    return dict(sorted(found.items()))


def by_node(cycle: Cycle, run: str) -> dict[str, int]:
    """Open GPUs of a run per node."""
    found: dict[str, int] = {}
    for row in cycle.leases(run, open=True):
        (node,) = row.nodes
        found[node] = found.get(node, 0) + row.gpus
    return dict(sorted(found.items()))


def groups_by_domain(cycle: Cycle, run: str) -> list[str]:
    """The domain of each group, in the order of groups."""
    found: dict[int, set[str]] = {}
    for row in cycle.leases(run, open=True):
        found.setdefault(row.group, set()).update(node.rstrip("0123456789").upper() for node in row.nodes)
    assert all(len(domains) == 1 for domains in found.values())
    return [next(iter(found[group])) for group in sorted(found)]


def on(node: str) -> dict[str, Any]:
    """A run's locality that only this node meets (nodes get the label from `pinned`)."""
    return {"locality": {"selector": {"pin": node}}}


def pinned(world: World, *sizes: int, domain: str = "d1") -> World:
    """Nodes n1, n2, ... that a run can ask for with `on`."""
    for number, size in enumerate(sizes, start=1):
        world.node(f"n{number}", size, domain=domain, labels={"pin": f"n{number}"})
    return world


def test_P1_the_master_sees_what_greed_does_not() -> None:
    world = World().domain("A", gpus=[8, 8, 3]).domain("B", gpus=[8, 2]).domain("C", gpus=[8, 2]).budget("org:a", 39)
    cycle = world.run("r20", 20, by=1, pods=1).run("r19", 19, pods=1).cycle()

    assert cycle.phases == {"r20": "Running", "r19": "Running"}
    assert by_domain(cycle, "r20") == {"B": 10, "C": 10}
    assert by_domain(cycle, "r19") == {"A": 19}


def test_P1_with_groups_of_two_kinds() -> None:
    # A holds one group of 12, B and C hold 3 + 3 groups of 4; greed by age would put fours into A
    world = World().domain("A", gpus=[8, 4]).domain("B", gpus=[8, 4]).domain("C", gpus=[8, 4]).budget("org:a", 36)
    cycle = world.run("fours", 24, by=4, pods=4).run("twelve", 12, pods=4).cycle()

    assert cycle.running == ["fours", "twelve"]
    assert len(by_domain(cycle, "twelve")) == 1
    assert sum(by_domain(cycle, "fours").values()) == 24


def test_P1_malleable_work_gives_the_room_that_others_need() -> None:
    # one domain of 32: the malleable run at its least width of 8 and the fixed 24, or 32 of it alone: equal GPUs, and
    # the fixed run is older
    world = World().domain("A", nodes=4).budget("org:a", 64)
    world.run("fixed", 24)
    world.run("wide", 32, by=8, malleable={"minTotalGPUs": 8, "maxTotalGPUs": 32, "stepGPUs": 8})
    cycle = world.cycle()

    assert cycle.running == ["fixed", "wide"]
    assert (by_domain(cycle, "fixed"), by_domain(cycle, "wide")) == ({"A": 24}, {"A": 8})
    assert cycle.status("wide")["width"] == {"min": 8, "max": 32, "desired": 32, "allocated": 8, "pending": 24}


@pytest.mark.parametrize(
    ("nodes", "size", "gpus", "pod", "pods_short"),
    [(10, 6, 48, 4, 2), (3, 7, 12, 3, 0), (4, 7, 40, 4, 6), (2, 8, 24, 8, 1)],
)
def test_P2_fragments_are_not_capacity(nodes: int, size: int, gpus: int, pod: int, pods_short: int) -> None:
    world = World().domain("A", nodes=nodes, gpus=size).budget("org:a", 1000)
    cycle = world.run("r", gpus, by=pod, pods=pod).cycle()

    if not pods_short:
        assert cycle.running == ["r"]
        return
    assert (cycle.phases, cycle.leases()) == ({"r": "Pending"}, [])
    wait = cycle.waits["r"]
    assert [(short.rule, short.amount, short.unit) for short in wait.shorts] == [("capacity", pods_short * pod, "GPU")]
    assert wait.never
    assert f"{pods_short} pod" in wait.message
    assert f"{pods_short * pod} GPUs" in wait.message


def test_P2_pods_of_groups_that_are_short_are_counted_once() -> None:
    # 9 pods of 4 fit on 9 nodes of 6, and six groups of 8 ask for 12: 3 pods short, not 2 for each group that is
    world = World().domain("A", nodes=9, gpus=6).budget("org:a", 1000)
    cycle = world.run("r", 48, by=8, pods=4).cycle()

    assert [(rule, amount) for rule, _, amount, _ in cycle.shorts("r")] == [("capacity", 12)]
    assert "3 pods" in cycle.waits["r"].message


def full_domains(count: int, taken: int) -> World:
    """Domains of one node of 8, ``taken`` GPUs of each held by a run of its own."""
    world = World().budget("org:a", 1000)
    for number in range(1, count + 1):
        world.domain(f"D{number}x")
        world.run(f"u{number}", taken)
    cycle = world.old()
    assert len(cycle.running) == count
    assert {row.gpus for row in cycle.leases()} == {taken}
    return world


@pytest.mark.parametrize(("count", "taken", "gpus", "deficit"), [(8, 7, 8, 7), (3, 6, 4, 2), (2, 8, 3, 3)])
def test_P3_a_deficit_counts_fragmentation(count: int, taken: int, gpus: int, deficit: int) -> None:
    cycle = full_domains(count, taken).run("r", gpus).cycle()

    assert (cycle.phases["r"], cycle.leases("r")) == ("Pending", [])
    assert cycle.waits["r"].deficit_gpus == deficit
    assert cycle.status("r")["deficitGPUs"] == deficit
    assert [(rule, amount, unit) for rule, _, amount, unit in cycle.shorts("r")] == [("capacity", deficit, "GPU")]
    assert not cycle.waits["r"].never


def test_P3_two_groups_in_the_two_cheapest_domains() -> None:
    # free per domain: 4, 2, 1; two groups of 4: one stands free, the other lacks 2
    world = World().budget("org:a", 100)
    for name, taken in (("A", 4), ("B", 6), ("C", 7)):
        world.node(f"{name.lower()}01", domain=name, labels={"pin": name}).run(f"u{name.lower()}", taken, **on(name))
    assert len(world.old().running) == 3
    cycle = world.run("r", 8, by=4).cycle()

    assert cycle.waits["r"].deficit_gpus == 2


def test_P3_room_and_money_short_largest_first() -> None:
    # 2 of 8 GPUs are free and 3 of 9 paid for: a run of 7 lacks 5 GPUs of room and 4 of money
    world = World().node("n").budget("org:a", 9).run("busy", 6)
    world.old()
    cycle = world.run("r", 7).cycle()

    assert [(rule, amount) for rule, _, amount, _ in cycle.shorts("r")] == [("capacity", 5), ("concurrency", 4)]


def test_P4_a_gang_starts_whole_or_not_at_all() -> None:
    world = World().domain("A", nodes=100).budget("org:a", 1600)
    cycle = world.run("x", 800, by=8, pods=8, limit="2h").run("y", 800, by=8, pods=8, limit="3h").cycle()

    assert cycle.phases == {"x": "Running", "y": "Pending"}
    assert {(row.group, row.gpus) for row in cycle.leases("x")} == {(group, 8) for group in range(100)}
    assert cycle.leases("y") == []
    assert cycle.waits["y"].deficit_gpus == 800


def test_P4_room_for_all_but_one_pod() -> None:
    world = World().domain("A", nodes=99).node("small", 7).budget("org:a", 1600)
    cycle = world.run("x", 800, by=8, pods=8, limit="2h").cycle()

    assert (cycle.phases, cycle.leases()) == ({"x": "Pending"}, [])
    assert [(rule, amount) for rule, _, amount, _ in cycle.shorts("x")] == [("capacity", 8)]


def test_P5_a_full_flavor_holds_up_no_other() -> None:
    world = (
        World()
        .domain("H", nodes=1)
        .node("a100", 1, flavor="A100-40GB", domain="A")
        .budget("org:a", envelopes=[doc.envelope(64, "h"), {**doc.envelope(8, "a"), "flavor": "A100-40GB"}])
        .run("busy", 8)
    )
    world.old()
    for name in ("h1", "h2", "h3"):
        world.run(name, 4)
    cycle = world.run("small", 1, resources={"gpuType": "A100-40GB"}).cycle()

    assert cycle.running == ["busy", "small"]
    assert {name: cycle.waits[name].deficit_gpus for name in ("h1", "h2", "h3")} == {"h1": 4, "h2": 4, "h3": 4}


def test_P6_groups_go_where_they_fit() -> None:
    cycle = World().domain("A", nodes=6).domain("B", nodes=8).budget("org:a", 96).run("r", 96, by=32).cycle()

    assert by_domain(cycle, "r") == {"A": 32, "B": 64}
    assert sorted(groups_by_domain(cycle, "r")) == ["A", "B", "B"]


def test_P6_the_last_group_may_be_smaller() -> None:
    # 80 by 32 is 32, 32, 16: no domain of 40 holds two of them but 16 lies beside none either
    cycle = World().domain("A", nodes=4).domain("B", nodes=6).budget("org:a", 96).run("r", 80, by=32).cycle()

    sizes = [sum(row.gpus for row in cycle.leases("r") if row.group == group) for group in range(3)]
    assert sizes == [32, 32, 16]
    assert by_domain(cycle, "r") == {"A": 32, "B": 48}


@pytest.mark.parametrize(("gpus", "largest"), [(24, 16), (17, 16), (33, 32)])
def test_P7_one_group_lies_in_one_domain(gpus: int, largest: int) -> None:
    nodes = largest // 8
    cycle = World().domain("A", nodes=nodes).domain("B", nodes=nodes).budget("org:a", 64).run("r", gpus).cycle()

    wait = cycle.waits["r"]
    assert (cycle.phases, cycle.leases()) == ({"r": "Pending"}, [])
    assert wait.never
    assert "never fit" in wait.message
    assert f"largest domain has {largest}" in wait.message


def test_P7_equal_labels_in_two_clusters_are_two_domains() -> None:
    world = World().domain("A", nodes=2).domain("A2", nodes=2, labels={"fabric.domain": "A", "cluster": "c2"})
    cycle = world.budget("org:a", 64).run("r", 24).cycle()

    assert cycle.waits["r"].never


@pytest.mark.parametrize("nodes", [(8, 8), (8, 9), (4, 8)])
def test_P8_a_run_uses_few_domains(nodes: tuple[int, int]) -> None:
    world = World().domain("A", nodes=nodes[0]).domain("B", nodes=nodes[1]).budget("org:a", 64)
    cycle = world.run("r", 64, by=32).cycle()

    assert list(by_domain(cycle, "r").values()) == [64]


def half_used() -> World:
    """P9: two nodes of 8 in one domain, 4 used on each."""
    world = pinned(World(), 8, 8).budget("org:a", 64)
    cycle = world.run("u1", 4, **on("n1")).run("u2", 4, **on("n2")).old()
    assert (by_node(cycle, "u1"), by_node(cycle, "u2")) == ({"n1": 4}, {"n2": 4})
    return world


def test_P9_a_pod_lies_on_one_node() -> None:
    cycle = half_used().run("r", 8, pods=8).cycle()

    assert (cycle.phases["r"], cycle.leases("r")) == ("Pending", [])
    assert cycle.waits["r"].deficit_gpus == 4
    assert [(rule, amount, unit) for rule, _, amount, unit in cycle.shorts("r")] == [("capacity", 4, "GPU")]


def test_P9_without_a_pod_size_chunks_do() -> None:
    cycle = half_used().run("r", 8).cycle()

    assert by_node(cycle, "r") == {"n1": 4, "n2": 4}


@pytest.mark.parametrize(("pod", "deficit"), [(4, 0), (8, 4)])
def test_P9_pods_and_their_spare(pod: int, deficit: int) -> None:
    # 8 GPUs free as 4 + 4: a pod of 4 with a spare of 4 starts, a pod of 8 without one lacks 4
    spare: dict[str, Any] = {"spares": 1} if pod == 4 else {}
    cycle = half_used().run("r", pod, pods=pod, **spare).cycle()

    if deficit:
        assert cycle.waits["r"].deficit_gpus == deficit
    else:
        assert sorted((row.role, row.gpus) for row in cycle.leases("r")) == [("Active", 4), ("Spare", 4)]


def test_P10_nodes_that_take_nothing_new_keep_what_they_have() -> None:
    world = pinned(World(), 8, 8, 8).budget("org:a", 64)
    world.run("u1", 2, **on("n1")).run("u2", 2, **on("n2"))
    world.cycle("-1m")
    world.edit("Node", "n1", spec={"unschedulable": True})
    world.edit(
        "Node",
        "n2",
        status={"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2025-12-31T23:59:30Z"}]},
    )
    cycle = world.run("r", 8).run("more", 4).cycle()

    assert cycle.phases == {"u1": "Running", "u2": "Running", "r": "Running", "more": "Pending"}
    assert by_node(cycle, "r") == {"n3": 8}
    assert [(row.run, row.closure) for row in cycle.leases()] == [("r", None), ("u1", None), ("u2", None)]
    assert cycle.waits["more"].deficit_gpus == 4


def test_P10_a_taint_keeps_out_who_does_not_tolerate_it() -> None:
    taint = {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}
    world = World().node("n1", spec=taint).node("n2", 4).budget("org:a", 64)
    tolerant = {
        "spec": {
            "tolerations": [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
            "containers": [{"name": "main", "image": "train"}],
        }
    }
    cycle = world.run("plain", 6).run("tolerant", 6, template=tolerant).cycle()

    assert cycle.phases == {"plain": "Pending", "tolerant": "Running"}
    assert by_node(cycle, "tolerant") == {"n1": 6}
    assert cycle.waits["plain"].never


def tolerating() -> dict[str, Any]:
    """A template that tolerates the taint `t`."""
    toleration = {"key": "t", "operator": "Exists"}
    return {"spec": {"tolerations": [toleration], "containers": [{"name": "main", "image": "train"}]}}


def test_P10_who_tolerates_a_taint_leaves_the_others_their_room() -> None:
    tainted = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
    world = World().node("n1", 4, spec=tainted).node("n2", 3).budget("org:a", 64)
    cycle = world.run("t", 3, pods=1, template=tolerating()).run("r", 3, pods=1).cycle()

    assert (by_node(cycle, "t"), by_node(cycle, "r")) == ({"n1": 3}, {"n2": 3})


def test_P10_steps_go_where_only_they_may() -> None:
    # 11 GPUs, 3 of them tainted: six for pods of 3, one for r, and the malleable 4 take all that only they tolerate
    tainted = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
    world = World().node("n1", 3, spec=tainted).node("n2", 8).budget("org:a", 64)
    malleable = {"minTotalGPUs": 2, "maxTotalGPUs": 4, "stepGPUs": 1}
    world.run("m", 4, pods=1, malleable=malleable, template=tolerating()).run("r", 1, pods=1).run(
        "six", 6, by=3, pods=3
    )
    cycle = world.cycle()

    assert (by_node(cycle, "m"), by_node(cycle, "r")) == ({"n1": 3, "n2": 1}, {"n2": 1})
    assert by_node(cycle, "six") == {"n2": 6}


def test_P10_cpu_bounds_the_pods_of_a_node() -> None:
    # 8 GPUs and 16 CPUs: three pods of 1 GPU and 5 CPUs; the fourth lies on the next node
    pod = {"resources": {"requests": {"cpu": "5"}}, "name": "main", "image": "train"}
    world = pinned(World(), 8, 8).budget("org:a", 64)
    for name in ("n1", "n2"):
        world.edit("Node", name, status={"allocatable": {"cpu": "16"}})
    template = {"spec": {"containers": [pod]}}
    world.run("r", 4, pods=1, template=template).run("wide", 3, pods=1, template=template)
    cycle = world.cycle()

    assert by_node(cycle, "r") == {"n1": 3, "n2": 1}
    assert cycle.phases == {"r": "Running", "wide": "Pending"}


def test_P10_cpu_of_one_domain_sends_groups_to_the_next() -> None:
    # three groups of 3 with 9 CPUs each: A has 12 GPUs and CPU for two of them, B for one
    pod = {"resources": {"requests": {"cpu": "9"}}, "name": "main", "image": "train"}
    small = {"allocatable": {"cpu": "16"}}
    world = World().domain("A", gpus=[8, 4], status=small).domain("B", gpus=[8], status=small).budget("org:a", 64)
    cycle = world.run("r", 9, by=3, template={"spec": {"containers": [pod]}}).cycle()

    assert by_node(cycle, "r") == {"a01": 3, "a02": 3, "b01": 3}


def test_P10_the_cpu_of_one_domain_costs_no_run_its_width() -> None:
    # the lender's 8 GPUs pay for 8 of the wide run's 9, or for the older one and its spare and 3 GPUs less
    pod = {"resources": {"requests": {"cpu": "9"}}, "name": "main", "image": "train"}
    borrowing = {"allowBorrow": True, "sponsors": ["org:l"]}
    small = {"allocatable": {"cpu": "16"}}
    world = World().domain("A", gpus=[8, 4], status=small).domain("B", gpus=[8])
    world.budget("org:a", 1).budget("org:l", 16, lending={"allow": True, "maxConcurrency": 8})
    world.run("old", 1, pods=1, spares=1, owner="org:c", funding=borrowing)
    malleable = {"minTotalGPUs": 6, "maxTotalGPUs": 9, "stepGPUs": 3}
    world.run("wide", 9, by=3, malleable=malleable, template={"spec": {"containers": [pod]}}, funding=borrowing)
    cycle = world.cycle()

    assert cycle.phases == {"old": "Pending", "wide": "Running"}
    assert cycle.status("wide")["width"]["allocated"] == 9


@pytest.mark.parametrize(("foreign", "large", "small"), [(6, 4, 2), (1, 8, 7), (8, 1, 0)])
def test_P11_foreign_pods_use_up_capacity(foreign: int, large: int, small: int) -> None:
    world = World().node("n").foreign_pod("theirs", "n", foreign).budget("org:a", 64).run("large", large)
    if small:
        world.run("small", small)
    cycle = world.cycle()

    assert cycle.running == (["small"] if small else [])
    assert cycle.phases["large"] == "Pending"
    if small:
        assert by_node(cycle, "small") == {"n": small}


def test_P12_one_broken_object_stops_nothing() -> None:
    world = (
        World()
        .node("n")
        .node("bare", flavor=None)
        .budget("org:a", 8)
        .budget("org:p", 8, spec={"parents": ["org:q"]})
        .budget("org:q", 8, spec={"parents": ["org:p"]})
        .run("r", 4)
        .run("broken", 4, resources={"totalGPUs": "8x"})
    )
    cycle = world.cycle()

    assert cycle.phases["r"] == "Running"
    assert by_node(cycle, "r") == {"n": 4}
    named = set(cycle.warnings)
    assert {"Node bare", "Run default/broken"} <= named
    assert {"Budget org-p", "Budget org-q"} & named
    spelled = [message for name in ("Budget org-p", "Budget org-q") for message in cycle.warnings.get(name, [])]
    assert any("org:p" in message and "org:q" in message for message in spelled)
    assert [name for name in cycle.phases if cycle.phases[name] == "Running"] == ["r"]
    for name in ("bare", "broken"):
        assert any(name in line for line in cycle.output.err.splitlines() if line.startswith("warning: "))


def test_P12_a_quarantined_budget_keeps_what_it_pays() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("r", 8)
    world.cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [{**doc.envelope(16), "concurency": 16}]})
    cycle = world.run("late", 4, created="+1s").cycle("+1m")

    assert (cycle.phases, cycle.funding("r")) == ({"r": "Running", "late": "Pending"}, {"owned": 8})
    assert "Budget org-a" in cycle.warnings
    assert cycle.segments("r") == [[("owned", "2026-01-01T00:00:00Z", None)]]


@pytest.mark.parametrize("spares", [0, 2])
def test_P13_all_groups_in_one_domain(spares: int) -> None:
    together: dict[str, Any] = {"locality": {"groupGPUs": 8, "allowCrossGroupSpread": False}}
    world = World().domain("A", nodes=3).domain("B", nodes=5).budget("org:a", 64)
    cycle = world.run("r", 32, spares=spares, **together).cycle()

    assert by_domain(cycle, "r") == {"B": 32}
    assert groups_by_domain(cycle, "r") == ["B", "B", "B", "B"]
    for group in range(4):
        rows = [row for row in cycle.leases("r") if row.group == group]
        assert sum(row.gpus for row in rows if row.role == "Active") == 8
        assert sum(row.gpus for row in rows if row.role == "Spare") == spares


def test_P13_a_width_that_one_domain_holds() -> None:
    # malleable 16..64 by 8 in one domain: the largest has 40
    world = World().domain("A", nodes=3).domain("B", nodes=5).budget("org:a", 64)
    world.run(
        "r",
        64,
        locality={"groupGPUs": 8, "allowCrossGroupSpread": False},
        malleable={"minTotalGPUs": 16, "maxTotalGPUs": 64, "stepGPUs": 8},
    )
    cycle = world.cycle()

    assert by_domain(cycle, "r") == {"B": 40}
    assert groups_by_domain(cycle, "r") == ["B"] * 5


def test_P13_a_width_in_one_domain_leaves_the_other_to_others() -> None:
    # A (west) holds two pods of 2, B (east) three: the malleable run cannot be 10 wide, stays at 6 in B, and leaves the
    # west to r, which asks for 2 and 2 spares and is paid there only
    world = World().domain("A", gpus=[3, 3]).domain("B", gpus=[4, 2], labels={"region": "us-east"})
    world.budget("org:a", 64).budget("org:b", 64, selector={"region": "us-west"})
    world.run("r", 2, spares=2, owner="org:b")
    world.run(
        "m",
        10,
        pods=2,
        locality={"allowCrossGroupSpread": False},
        malleable={"minTotalGPUs": 6, "maxTotalGPUs": 10, "stepGPUs": 4},
    )
    cycle = world.cycle()

    assert (by_domain(cycle, "r"), by_domain(cycle, "m")) == ({"A": 2}, {"B": 6})
    (starts,) = (stage for stage in cycle.plan.stages if stage.name == "starts")
    assert starts.gap == 0


def test_P13_each_group_has_its_pod_on_a_node() -> None:
    # two groups of 1 with 9 CPUs each in one domain: 16 CPUs are not enough for both, a second node is
    pod = {"resources": {"requests": {"cpu": "9"}}, "name": "main", "image": "train"}
    small = {"allocatable": {"cpu": "16"}}
    world = World().node("n1", 4, status=small).node("n2", 4, status=small).budget("org:a", 64)
    together: dict[str, Any] = {"locality": {"groupGPUs": 1, "allowCrossGroupSpread": False}}
    cycle = world.run("r", 2, template={"spec": {"containers": [pod]}}, **together).cycle()

    assert by_node(cycle, "r") == {"n1": 1, "n2": 1}


def test_P13_nowhere_whole_it_waits() -> None:
    world = World().domain("A", nodes=3).domain("B", nodes=3).budget("org:a", 64)
    cycle = world.run("r", 32, locality={"groupGPUs": 8, "allowCrossGroupSpread": False}).cycle()

    assert (cycle.phases, cycle.leases()) == ({"r": "Pending"}, [])
    assert cycle.waits["r"].never
    assert "largest domain has 24" in cycle.waits["r"].message


def test_P13_without_groups_a_malleable_run_is_its_least_width_and_steps() -> None:
    # min 12 is one group, each step of 6 another; domains of 16: 12 | 6 + 6 and no third step of 4
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64)
    world.run("r", 36, malleable={"minTotalGPUs": 12, "maxTotalGPUs": 36, "stepGPUs": 6})
    cycle = world.cycle()

    assert cycle.status("r")["width"]["allocated"] == 24
    sizes = {group: sum(row.gpus for row in cycle.leases("r") if row.group == group) for group in range(3)}
    assert sizes == {0: 12, 1: 6, 2: 6}


def mixed() -> World:
    """A world with something of everything."""
    world = World().domain("A", gpus=[8, 8, 3]).domain("B", gpus=[8, 2]).node("alone", domain=None)
    world.domain("E", nodes=2, labels={"region": "us-east"}).foreign_pod("theirs", "e01", 3)
    world.budget("org:a", 12).budget("org:a:x", 9, maxGPUHours=100, sharing="family")
    world.budget("org:b", 16, lending={"allow": True, "maxConcurrency": 5}, selector={"region": "us-east"})
    borrow = {"allowBorrow": True, "sponsors": ["org:b"]}
    world.run("m", 12, by=2, owner="org:a:x", malleable={"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 2})
    world.run("s", 3, spares=1, pods=1).run("l", 5, owner="org:z", funding=borrow).run("o", 4, owner="org:q")
    world.run("free", 4, owner="org:q", funding={"opportunistic": True}).run("f", 2, follow={"after": ["s"]})
    return world.run("g1", 1, gang={"name": "g", "size": 2}).run("g2", 2, gang={"name": "g", "size": 2})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_P14_the_order_of_documents_changes_nothing(seed: int) -> None:
    plain, shuffled = mixed().cycle(), mixed().shuffle(seed).cycle()

    assert shuffled.plan_bytes == plain.plan_bytes
    assert shuffled.leases() == plain.leases()
    assert len(plain.running) > 3


def test_P14_nor_does_it_in_a_cycle_on_running_work() -> None:
    worlds = [mixed(), mixed()]
    for world in worlds:
        world.cycle()
        world.run("late", 4, created="+1s").edit("Run", "m", spec={"state": "Cancelled"})
    plain, shuffled = worlds[0].cycle("+1m"), worlds[1].shuffle(7).cycle("+1m")

    assert shuffled.plan_bytes == plain.plan_bytes


def test_P15_the_largest_hole_stays_whole() -> None:
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64)
    together = world.run("first", 8).run("second", 8).cycle()

    assert len(by_domain(together, "first")) == 1
    assert by_domain(together, "first") == by_domain(together, "second")


def test_P15_also_one_after_the_other() -> None:
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64).run("first", 8)
    first = world.cycle()
    second = world.run("second", 8, created="+1s").cycle("+1m")

    assert by_domain(first, "first") == by_domain(second, "second")


def test_P15_small_work_packs_onto_used_nodes() -> None:
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64)
    for number in range(1, 5):
        world.run(f"r{number}", 2)
    cycle = world.cycle()

    assert len({node for row in cycle.leases() for node in row.nodes}) == 1
