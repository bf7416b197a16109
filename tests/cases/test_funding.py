"""Who pays, how much, and what is missing: the funding cases (spec §3)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.worlds import Cycle, LeaseRow, World

LENDING = {"allow": True, "to": ["org:*"], "maxConcurrency": 2}


def leased(cycle: Cycle, run: str) -> list[tuple[int, tuple[str, ...], str | None]]:
    """(group, slots, payer) of a run's open leases."""
    return [(row.group, row.slots, row.payer) for row in cycle.leases(run, open=True)]


def slots(node: str, *ordinals: int) -> tuple[str, ...]:
    """Slot names of a node."""
    return tuple(f"{node}#{ordinal}" for ordinal in ordinals)


def gpus_by_payer(rows: Sequence[LeaseRow]) -> dict[str | None, int]:
    """GPUs per payer."""
    found: dict[str | None, int] = {}
    for row in rows:
        found[row.payer] = found.get(row.payer, 0) + row.gpus
    return found


def waits_alone(cycle: Cycle, run: str) -> str:
    """The words of a run that is Pending and holds nothing."""
    assert cycle.phases[run] == "Pending"
    assert cycle.leases(run) == []
    admitted = cycle.condition(run, "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", cycle.waits[run].reason)
    assert admitted["message"] == cycle.waits[run].message
    return cycle.waits[run].message


def test_F1_an_envelope_pays_for_one_node() -> None:
    cycle = World().node("n", 4).budget("org:a", 8).run("r", 4).cycle()

    assert cycle.leases() == [
        LeaseRow("r", 0, slots("n", 0, 1, 2, 3), "Active", "org-a/gpus", "2026-01-01T00:00:00Z", "Start", None, None)
    ]
    assert (cycle.phases, cycle.funding("r")) == ({"r": "Running"}, {"owned": 4})
    assert cycle.segments("r") == [[("owned", "2026-01-01T00:00:00Z", None)]]
    assert cycle.waits == {}


def sponsored(borrow: int | None) -> World:
    """F2 and F3: 96 GPUs of one's own, 32 more on loan, for a run of 128 that borrows at most ``borrow``."""
    world = World()
    for name in "ABCD":
        world.domain(name, nodes=4)
    limit = {} if borrow is None else {"maxBorrowGPUs": borrow}
    return (
        world.budget("org:a:x", 96)
        .budget("org:b", 64, lending={"allow": True, "to": ["org:a:*"], "maxConcurrency": 32})
        .run("r", 128, by=32, owner="org:a:x", funding={"allowBorrow": True, "sponsors": ["org:b"], **limit})
    )


@pytest.mark.parametrize("borrow", [64, 32, None])
def test_F2_a_sponsor_pays_for_what_is_beyond(borrow: int | None) -> None:
    cycle = sponsored(borrow).cycle()

    assert cycle.phases == {"r": "Running"}
    assert cycle.funding("r") == {"owned": 96, "borrowed": 32, "lenders": ["org:b"]}
    assert gpus_by_payer(cycle.leases("r")) == {"org-a-x/gpus": 96, "org-b/gpus": 32}
    assert [(row.group, row.gpus) for row in cycle.leases("r")] == [(g, 8) for g in range(4) for _ in range(4)]
    assert {len({n[0] for row in cycle.leases("r") if row.group == g for n in row.nodes}) for g in range(4)} == {1}


@pytest.mark.parametrize(("borrow", "short"), [(16, 16), (31, 1), (0, 32)])
def test_F3_the_run_itself_limits_what_it_borrows(borrow: int, short: int) -> None:
    cycle = sponsored(borrow).cycle()

    words = waits_alone(cycle, "r")
    assert [(rule, amount, unit) for rule, _, amount, unit in cycle.shorts("r")] == [("borrow", short, "GPU")]
    assert "maxBorrowGPUs" in words
    assert f"{short} GPU" in words


def test_F3_the_cheapest_rises_are_named_together() -> None:
    # own 96, on loan at most 8 of the lender's and 16 of the run's: 16 more of one's own and 8 more lent are least
    lending = doc.envelope(64, lending={"allow": True, "maxConcurrency": 8})
    cycle = sponsored(16).edit("Budget", "org-b", spec={"envelopes": [lending]}).cycle()

    waits_alone(cycle, "r")
    assert cycle.shorts("r") == [
        ("concurrency", "org-a-x/gpus", 16, "GPU"),
        ("lending-concurrency", "org-b/gpus", 8, "GPU"),
    ]


def test_F5_hours_that_are_none_never_pay() -> None:
    cycle = World().node("n").budget("org:a", 8, maxGPUHours=0).run("r", 4).cycle()

    waits_alone(cycle, "r")
    assert cycle.all("Reservation") == []
    wait = cycle.waits["r"]
    assert (wait.reason, wait.never) == ("NoFunding", True)


@pytest.mark.parametrize(
    ("gpus", "hours", "limit", "short"),
    [(4, 95, None, 1), (8, 100, None, 92), (4, 95, "30h", 1), (2, 7, "4h", 1), (4, 9, "2h15m1s", 1)],
)
def test_F7_admission_looks_ahead(gpus: int, hours: int, limit: str | None, short: int) -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=hours).run("r", gpus, limit=limit)

    for at in ("+0s", "+20m"):
        cycle = world.cycle(at)
        waits_alone(cycle, "r")
        assert cycle.shorts("r") == [("hours", "org-a/gpus", short, "GPU-hour")]


@pytest.mark.parametrize(("hours", "limit"), [(95, "10h"), (40, "10h"), (96, None), (96, "100h")])
def test_F8_hours_that_cover_the_limit_admit(hours: int, limit: str | None) -> None:
    cycle = World().node("n").budget("org:a", 8, maxGPUHours=hours).run("r", 4, limit=limit).cycle()

    assert (cycle.phases, cycle.funding("r")) == ({"r": "Running"}, {"owned": 4})


@pytest.mark.parametrize(("own", "parent", "gpus", "shared"), [(2, 8, 6, 4), (2, 4, 6, 4), (5, 1, 6, 1)])
def test_F10_a_parent_pays_for_the_rest(own: int, parent: int, gpus: int, shared: int) -> None:
    world = World().node("n").budget("org:a", parent).budget("org:a:x", own).run("r", gpus, owner="org:a:x")
    cycle = world.cycle()

    assert leased(cycle, "r") == [
        (0, slots("n", *range(own)), "org-a-x/gpus"),
        (0, slots("n", *range(own, gpus)), "org-a/gpus"),
    ]
    assert cycle.funding("r") == {"owned": own, "shared": shared}
    usage = world.usage("org-a")
    assert (usage["owner"], usage["sharedGPUs"], usage["headroomGPUs"]) == ("org:a", shared, parent - shared)


def test_F10_the_nearest_of_the_family_pays_first() -> None:
    # own 1, parent 1, sibling 1, child 1, grandparent 1, cousin 1: a run of 5 leaves the cousin alone
    world = World().node("n")
    for owner in ("org", "org:a", "org:a:x", "org:a:y", "org:a:x:k", "org:b"):
        world.budget(owner, 1)
    cycle = world.run("r", 5, owner="org:a:x").cycle()

    assert gpus_by_payer(cycle.leases("r")) == {
        "org-a-x/gpus": 1,
        "org-a/gpus": 1,
        "org-a-y/gpus": 1,
        "org-a-x-k/gpus": 1,
        "org/gpus": 1,
    }
    assert cycle.funding("r") == {"owned": 1, "shared": 4}


@pytest.mark.parametrize(("own", "gpus"), [(2, 6), (5, 8), (1, 2)])
def test_F11_a_parent_that_does_not_share_does_not_pay(own: int, gpus: int) -> None:
    world = World().node("n").budget("org:a", 8, sharing="none").budget("org:a:x", own)
    cycle = world.run("r", gpus, owner="org:a:x").cycle()

    words = waits_alone(cycle, "r")
    assert cycle.shorts("r") == [("concurrency", "org-a-x/gpus", gpus - own, "GPU")]
    assert "org-a/gpus" in words
    assert "sharing" in words


def lent(to: str) -> World:
    """F12 and F13: two runs of 2 that nobody but a lender of 2 may pay for."""
    funding = {"allowBorrow": True, "sponsors": ["org:l"]}
    return (
        World()
        .node("n")
        .budget("org:l", 8, lending={**LENDING, "to": [to]})
        .run("first", 2, owner="org:g", funding=funding)
        .run("second", 2, owner="org:g", funding=funding)
    )


@pytest.mark.parametrize("to", ["org:*", "*", "org:g"])
def test_F12_a_lending_cap_holds(to: str) -> None:
    cycle = lent(to).cycle()

    assert leased(cycle, "first") == [(0, slots("n", 0, 1), "org-l/gpus")]
    assert cycle.funding("first") == {"borrowed": 2, "lenders": ["org:l"]}
    words = waits_alone(cycle, "second")
    assert cycle.shorts("second") == [("lending-concurrency", "org-l/gpus", 2, "GPU")]
    assert "lending" in words


@pytest.mark.parametrize("to", ["org:l:*", "org:g:*", "org:gg"])
def test_F13_who_is_not_on_the_list_is_lent_nothing(to: str) -> None:
    cycle = lent(to).cycle()

    assert cycle.leases() == []
    for run in ("first", "second"):
        words = waits_alone(cycle, run)
        assert cycle.waits[run].reason == "NoFunding"
        assert to in words
        assert "org:g" in words


def two_regions(aggregate: int) -> World:
    """F14: 8 GPUs and an envelope of 8 in each of two regions, with a cap over both envelopes."""
    return (
        World()
        .domain("E", labels={"region": "us-east"})
        .domain("W")
        .budget(
            "org:a",
            envelopes=[
                doc.envelope(8, "east", selector={"region": "us-east"}),
                doc.envelope(8, "west", selector={"region": "us-west"}),
            ],
            spec={"aggregateCaps": [{"name": "both", "envelopes": ["east", "west"], "maxConcurrency": aggregate}]},
        )
    )


def test_F12_lent_hours_are_looked_ahead_at() -> None:
    lending = {"allow": True, "maxGPUHours": 10}
    funding = {"allowBorrow": True, "sponsors": ["org:l"]}
    world = World().node("n").budget("org:l", 8, lending=lending)
    cycle = world.run("first", 2, owner="org:g", limit="6h", funding=funding).run("own", 4, owner="org:l").cycle()
    assert cycle.phases == {"first": "Pending", "own": "Running"}
    assert cycle.shorts("first") == [("lending-hours", "org-l/gpus", 2, "GPU-hour")]

    cycle = world.run("second", 2, owner="org:g", limit="5h", funding=funding, created="+1s").cycle("+1m")
    assert cycle.running == ["own", "second"]


@pytest.mark.parametrize(("aggregate", "short"), [(10, 6), (8, 8), (15, 1)])
def test_F14_an_aggregate_binds_over_its_envelopes(aggregate: int, short: int) -> None:
    cycle = two_regions(aggregate).run("first", 8).run("second", 8).cycle()

    assert cycle.phases == {"first": "Running", "second": "Pending"}
    assert cycle.funding("first") == {"owned": 8}
    words = waits_alone(cycle, "second")
    assert cycle.shorts("second") == [("aggregate-concurrency", "org-a/both", short, "GPU")]
    assert "org-a/both" in words


def subtree(cap: int) -> World:
    """F15: two children of 60 under a scope of ``cap``."""
    return (
        World()
        .domain("A", nodes=20)
        .budget("org:m", cap, scope="subtree", sharing="none")
        .budget("org:m:a", 60, sharing="none")
        .budget("org:m:b", 60, sharing="none")
    )


def test_F15_a_subtree_scope_binds_its_descendants() -> None:
    world = subtree(100).run("a60", 60, by=4, owner="org:m:a").run("b60", 60, by=4, owner="org:m:b")
    cycle = world.run("b40", 40, by=4, owner="org:m:b").cycle()

    assert cycle.phases == {"a60": "Running", "b60": "Pending", "b40": "Running"}
    assert (cycle.funding("a60"), cycle.funding("b40")) == ({"owned": 60}, {"owned": 40})
    assert cycle.shorts("b60") == [
        ("subtree-concurrency", "org-m/gpus", 60, "GPU"),
        ("concurrency", "org-m-b/gpus", 40, "GPU"),
    ]
    assert world.usage("org-m")["headroomGPUs"] == 0
    assert world.usage("org-m-b")["headroomGPUs"] == 0


def test_F15_one_that_runs_counts_for_one_that_comes() -> None:
    world = subtree(96).run("a60", 60, by=4, owner="org:m:a")
    world.cycle()
    cycle = world.run("b40", 40, by=4, owner="org:m:b", created="+10s").cycle("+1m")

    assert cycle.shorts("b40") == [("subtree-concurrency", "org-m/gpus", 4, "GPU")]
    assert cycle.running == ["a60"]


def test_F15_a_pool_of_ones_own_is_not_bound() -> None:
    world = World().domain("A", nodes=20).budget("org:m", 10).budget("org:m:a", 60, sharing="none")
    cycle = world.run("a60", 60, by=4, owner="org:m:a").cycle()

    assert cycle.funding("a60") == {"owned": 60}


def hours_spent() -> World:
    """F16: 70 of 100 GPU-hours consumed by closed leases, 16 more provided for by a run of 4 with 4 h left."""
    world = World().domain("A", nodes=4).budget("org:a", 32, maxGPUHours=100)
    world.run("old", 7, limit="10h", created="-25h").cycle("-24h")
    world.run("r1", 4, limit="4h")
    cycle = world.cycle()
    assert cycle.phases == {"old": "Failed", "r1": "Running"}
    assert cycle.leases("old")[0].ended == "2025-12-31T10:00:00Z"
    return world


@pytest.mark.parametrize(("gpus", "limit", "short"), [(8, "2h", 2), (8, "1h45m1s", 1), (4, "4h", 2), (15, "1h", 1)])
def test_F16_spent_and_provided_hours_bind(gpus: int, limit: str, short: int) -> None:
    cycle = hours_spent().run("r2", gpus, limit=limit, created="+1s").cycle("+1m")

    waits_alone(cycle, "r2")
    assert cycle.shorts("r2") == [("hours", "org-a/gpus", short, "GPU-hour")]


def test_F16_nothing_that_was_charged_is_forgotten() -> None:
    world = hours_spent()
    cycle = world.run("r3", 8, limit="90m", created="+1s").cycle("+1m")
    assert cycle.phases == {"old": "Failed", "r1": "Running", "r3": "Running"}

    lowered = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(32, maxGPUHours=80)]})
    cycle = lowered.cycle("+2m")
    assert (cycle.running, cycle.funding("r1"), cycle.funding("r3")) == (["r1", "r3"], {"owned": 4}, {"owned": 8})

    cycle = world.delete("Budget", "org-a").cycle("+3m")
    assert (cycle.running, cycle.funding("r1"), cycle.funding("r3")) == (["r1", "r3"], {"unfunded": 4}, {"unfunded": 8})

    cycle = world.budget("org:a", 32, maxGPUHours=100).cycle("+4m")
    assert (cycle.running, cycle.funding("r1"), cycle.funding("r3")) == (["r1", "r3"], {"owned": 4}, {"owned": 8})
    # 7 GPUs for 10 h, 4 GPUs for 3 min, 8 GPUs for 2 min; nothing while there was no Budget
    assert world.usage("org-a", at="+4m")["gpuSecondsConsumed"] == 7 * 36000 + 4 * 180 + 8 * 120


def test_F17_loans_count_against_envelope_lending_and_aggregate() -> None:
    borrowing: dict[str, Any] = {"owner": "org:z", "funding": {"allowBorrow": True, "sponsors": ["org:a"]}}
    west: dict[str, Any] = {"locality": {"selector": {"region": "us-west"}}}
    east: dict[str, Any] = {"locality": {"selector": {"region": "us-east"}}}
    world = (
        World()
        .domain("E", nodes=2, labels={"region": "us-east"})
        .domain("W", nodes=2)
        .budget(
            "org:a",
            envelopes=[
                doc.envelope(8, "e1", selector={"region": "us-east"}, lending={"allow": True, "maxConcurrency": 4}),
                doc.envelope(8, "e2", selector={"region": "us-west"}),
            ],
            spec={"aggregateCaps": [{"name": "both", "envelopes": ["e1", "e2"], "maxConcurrency": 12}]},
        )
    )
    assert world.run("own6", 6, **east).cycle().running == ["own6"]

    cycle = world.run("loan4", 4, created="+1s", **borrowing).cycle("+1m")
    assert cycle.shorts("loan4") == [("concurrency", "org-a/e1", 2, "GPU")]

    cycle = world.run("loan2", 2, created="+61s", **borrowing).cycle("+2m")
    assert cycle.funding("loan2") == {"borrowed": 2, "lenders": ["org:a"]}
    assert cycle.shorts("loan4") == [
        ("concurrency", "org-a/e1", 4, "GPU"),
        ("lending-concurrency", "org-a/e1", 2, "GPU"),
    ]

    cycle = world.run("west8", 8, created="+121s", **west).cycle("+3m")
    assert cycle.shorts("west8") == [("aggregate-concurrency", "org-a/both", 4, "GPU")]

    cycle = world.run("west4", 4, created="+181s", **west).cycle("+4m")
    assert cycle.funding("west4") == {"owned": 4}
    assert gpus_by_payer(cycle.leases(open=True)) == {"org-a/e1": 8, "org-a/e2": 4}
    assert cycle.running == ["loan2", "own6", "west4"]


def test_F19_a_lease_spans_neither_nodes_nor_payers() -> None:
    world = World().domain("A", nodes=2, gpus=2).budget("org:a", 8).budget("org:a:x", 3)
    cycle = world.run("r", 4, owner="org:a:x").cycle()

    assert leased(cycle, "r") == [
        (0, slots("a01", 0, 1), "org-a-x/gpus"),
        (0, slots("a02", 0), "org-a-x/gpus"),
        (0, slots("a02", 1), "org-a/gpus"),
    ]
    assert cycle.funding("r") == {"owned": 3, "shared": 1}


def test_F19_groups_are_cut_as_nodes_are() -> None:
    # 12 by 6 on nodes of 4: a group spans two nodes, a node may hold two groups
    world = World().domain("A", nodes=3, gpus=4).budget("org:a", 20).budget("org:a:x", 5)
    cycle = world.run("r", 12, by=6, owner="org:a:x").cycle()

    assert gpus_by_payer(cycle.leases("r")) == {"org-a-x/gpus": 5, "org-a/gpus": 7}
    assert [sum(row.gpus for row in cycle.leases("r") if row.group == group) for group in (0, 1)] == [6, 6]


def test_F20_a_misspelt_selector_is_named() -> None:
    bad = doc.envelope(8, "bad", selector={"regoin": "us-west"})
    cycle = World().node("n").budget("org:a", envelopes=[bad, doc.envelope(8, "good")]).run("r", 4).cycle()

    assert leased(cycle, "r") == [(0, slots("n", 0, 1, 2, 3), "org-a/good")]
    (message,) = cycle.warnings["Budget org-a"]
    assert all(word in message for word in ("bad", "regoin", "matches no node"))


def test_F20_alone_it_pays_for_nothing() -> None:
    cycle = World().node("n").budget("org:a", 8, selector={"regoin": "us-west"}).run("r", 4).cycle()

    words = waits_alone(cycle, "r")
    assert "org-a/gpus" in words
    assert cycle.waits["r"].reason == "NoFunding"


def partly_paid(*tiers: str) -> World:
    """One domain of nodes of 8 whose tiers differ, and an envelope for tier x only."""
    world = World().budget("org:a", 64, selector={"tier": "x"})
    for number, tier in enumerate(tiers, start=1):
        world.node(f"n{number}", labels={"tier": tier})
    return world


def test_F20_work_goes_where_its_payer_pays() -> None:
    cycle = partly_paid("y", "x").run("r", 4).cycle()

    assert leased(cycle, "r") == [(0, slots("n2", 0, 1, 2, 3), "org-a/gpus")]


def test_F20_each_to_the_part_of_the_domain_that_its_owner_pays() -> None:
    world = partly_paid("y", "x", "x", "y").budget("org:b", 64, selector={"tier": "y"})
    cycle = world.run("b", 16, by=8, pods=8, owner="org:b").run("a", 12, by=2, pods=2).run("more", 4, pods=4).cycle()

    assert cycle.running == ["a", "b", "more"]
    assert {node for row in cycle.leases("b") for node in row.nodes} == {"n1", "n4"}
    assert {node for row in [*cycle.leases("a"), *cycle.leases("more")] for node in row.nodes} == {"n2", "n3"}


def test_F20_a_group_of_which_each_payer_pays_its_part() -> None:
    # 12 GPUs in one group: the own envelope pays 8 on n2 and n3, the parent at most 4 on n1
    world = partly_paid("y", "x").budget("org", 4)
    cycle = world.run("r", 12).cycle()

    assert gpus_by_payer(cycle.leases("r")) == {"org-a/gpus": 8, "org/gpus": 4}
    assert {row.payer: row.nodes for row in cycle.leases("r")} == {"org-a/gpus": {"n2"}, "org/gpus": {"n1"}}


def test_F20_malleable_pods_within_the_part_that_is_paid() -> None:
    # pods of 3: two fit on n1 (8), none of tier y, two on n3 (6): 9 of 9..21 by 6
    world = World().budget("org:a", 17, selector={"tier": "x"})
    for number, (gpus, tier) in enumerate([(8, "x"), (4, "y"), (6, "x")], start=1):
        world.node(f"n{number}", gpus, labels={"tier": tier})
    world.run("r", 21, pods=3, malleable={"minTotalGPUs": 9, "maxTotalGPUs": 21, "stepGPUs": 6})
    cycle = world.cycle()

    assert cycle.status("r")["width"]["allocated"] == 9
    assert {node for row in cycle.leases("r") for node in row.nodes} == {"n1", "n3"}


@pytest.mark.parametrize(
    ("cap", "gpus", "spares", "discount"),
    [(8, 6, 2, 0.5), (7, 6, 2, 0.5), (4, 4, 4, 0), (8, 4, 4, 1), (5, 4, 1, 0.5)],
)
def test_F21_a_spare_is_charged_at_its_discount(cap: int, gpus: int, spares: int, discount: float) -> None:
    world = World().node("n").policy(spares={"discount": discount}).budget("org:a", cap)
    cycle = world.run("r", gpus, spares=spares).cycle()

    assert [(row.role, row.gpus, row.payer) for row in cycle.leases("r")] == [
        ("Active", gpus, "org-a/gpus"),
        ("Spare", spares, "org-a/gpus"),
    ]
    assert cycle.funding("r") == {"owned": gpus}
    usage = world.usage("org-a")
    assert (usage["ownedGPUs"], usage["spareGPUs"]) == (gpus, spares)
    assert usage["headroomGPUs"] == cap - gpus - spares * discount


@pytest.mark.parametrize(("cap", "gpus", "spares", "short"), [(6, 6, 2, 1), (5, 6, 2, 2), (6, 6, 1, 1), (3, 4, 2, 2)])
def test_F21_spares_are_part_of_what_must_be_paid(cap: int, gpus: int, spares: int, short: int) -> None:
    cycle = World().node("n").budget("org:a", cap).run("r", gpus, spares=spares).cycle()

    waits_alone(cycle, "r")
    assert cycle.shorts("r") == [("concurrency", "org-a/gpus", short, "GPU")]


def test_F21_a_lender_pays_for_spares_too() -> None:
    # own 4 for 4 GPUs, on loan 1 for two spares of half a GPU each
    funding = {"allowBorrow": True, "sponsors": ["org:l"], "maxBorrowGPUs": 0}
    world = World().node("n").budget("org:a", 4).budget("org:l", 8, lending={"allow": True, "maxConcurrency": 1})
    cycle = world.run("r", 4, spares=2, funding=funding).cycle()

    assert [(row.role, row.gpus, row.payer) for row in cycle.leases("r")] == [
        ("Active", 4, "org-a/gpus"),
        ("Spare", 2, "org-l/gpus"),
    ]
    assert world.usage("org-l")["headroomGPUs"] == 7


def test_F22_credits_pay_for_hours_at_the_flavors_rate() -> None:
    world = World().node("n").policy(creditRates={doc.FLAVOR: 2}).budget("org:a", 8, maxCredits=100)
    cycle = world.run("r", 4, limit="10h").cycle()

    assert cycle.funding("r") == {"owned": 4}
    assert cycle.status("r")["projectedCredits"] == 80
    assert cycle.status("r")["projectedGPUHours"] == 40
    usage = world.usage("org-a")
    assert (usage["creditsConsumed"], usage["creditsCommitted"], usage["headroomCredits"]) == (0, 80, 20)


@pytest.mark.parametrize(("rate", "gpus", "limit", "short"), [(2, 4, "13h", 4), (2.5, 8, "6h", 20), (0.5, 8, None, -4)])
def test_F22_credits_refuse(rate: float, gpus: int, limit: str | None, short: int) -> None:
    world = World().node("n").policy(creditRates={doc.FLAVOR: rate})
    cycle = world.budget("org:a", 8, maxCredits=100, maxGPUHours=1000).run("r", gpus, limit=limit).cycle()

    if short < 0:
        assert cycle.running == ["r"]
        return
    words = waits_alone(cycle, "r")
    assert cycle.shorts("r") == [("credits", "org-a/gpus", short, "credit")]
    assert "credit" in words
    assert "hour" not in words


def test_F23_limits_of_a_single_run() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16, perRun={"maxGPUs": 4, "maxTime": "2h"})
    cycle = world.run("wide", 8).run("long", 4).run("fits", 4, limit="1h").cycle()

    assert cycle.phases == {"wide": "Pending", "long": "Pending", "fits": "Running"}
    wide, long = waits_alone(cycle, "wide"), waits_alone(cycle, "long")
    assert all(word in wide for word in ("org-a/gpus", "perRun.maxGPUs", "perRun.maxTime", "2h"))
    assert all(word in long for word in ("org-a/gpus", "perRun.maxTime", "2h"))
    assert "perRun.maxGPUs" not in long


def test_F23_gpus_of_a_single_run_are_counted_over_its_payers() -> None:
    # 4 from one's own envelope of 16, at most 4 of one run; the parent pays the other 3 of 7, and of 9 nobody the last
    world = World().domain("A", nodes=2).budget("org:a", 4).budget("org:a:x", 16, perRun={"maxGPUs": 4})
    cycle = world.run("seven", 7, owner="org:a:x").run("nine", 9, owner="org:a:x").cycle()

    assert gpus_by_payer(cycle.leases("seven")) == {"org-a-x/gpus": 4, "org-a/gpus": 3}
    waits_alone(cycle, "nine")
    # the parent has 1 left: 9 - 4 - 1
    assert [(rule, amount) for rule, _, amount, _ in cycle.shorts("nine")] == [("perRun", 4)]


def test_F23_a_default_time_is_fixed_at_the_start() -> None:
    world = World().node("n").budget("org:a", 8, perRun={"maxTime": "2h", "defaultTime": "90m"}).run("r", 4)
    cycle = world.cycle()
    assert cycle.running == ["r"]
    assert cycle.status("r")["timeLimit"] == "1h30m"

    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, perRun={"defaultTime": "10m"})]})
    assert world.cycle("+1h").running == ["r"]
    cycle = world.cycle("+2h")
    assert [(row.ended, row.closure) for row in cycle.leases("r")] == [("2026-01-01T01:30:00Z", "TimeLimit")]


@pytest.mark.parametrize("key", ["region", "rack"])
def test_F24_a_selector_that_no_room_matches_is_named(key: str) -> None:
    selector = {key: "us-east"}
    cycle = World().node("n").budget("org:a", 8).run("r", 4, locality={"selector": selector}).cycle()

    words = waits_alone(cycle, "r")
    assert f"{key}=us-east" in words


def test_F24_room_that_matches_but_is_taken() -> None:
    world = World().node("e", labels={"region": "us-east"}).domain("W", nodes=2).budget("org:a", 32)
    east: dict[str, Any] = {"locality": {"selector": {"region": "us-east"}}}
    cycle = world.run("first", 6, **east).run("second", 4, **east).cycle()

    assert cycle.phases == {"first": "Running", "second": "Pending"}
    words = waits_alone(cycle, "second")
    assert cycle.waits["second"].deficit_gpus == 2
    assert "region=us-east" in words


def test_F25_an_owner_is_charged_from_its_namespaces_only() -> None:
    world = World().node("n").budget("org:a", 8, spec={"namespaces": ["team-a"]})
    cycle = (
        world.run("good", 2, owner="org:a:x", namespace="team-a").run("r", 2, owner="org:a:x", namespace="evil").cycle()
    )

    assert cycle.running == ["good"]
    assert cycle.funding("good") == {"shared": 2}
    words = waits_alone(cycle, "r")
    assert cycle.waits["r"].reason == "OwnerNotAllowed"
    assert "team-a" in words
    assert "evil" in words


def test_F25_submit_refuses_it() -> None:
    world = World().node("n").budget("org:a", 8, spec={"namespaces": ["team-a"]})
    before = world.save().read_bytes()
    evil = doc.dump([doc.run("r", 2, "org:a:x", "evil")])

    refusal = world.runs("submit", "-f", "-", at="+0s", stdin=evil).refused()
    assert all(word in refusal for word in ("org:a:x", "team-a", "evil"))
    assert world.path.read_bytes() == before


def test_F25_an_own_list_replaces_the_inherited_one() -> None:
    world = (
        World()
        .node("n")
        .budget("org:a", 8, spec={"namespaces": ["team-a"]})
        .budget("org:a:x", 4, spec={"namespaces": ["team-x"]})
        .run("old", 2, owner="org:a:x", namespace="team-a")
        .run("new", 2, owner="org:a:x", namespace="team-x")
        .run("deep", 2, owner="org:a:x:deep", namespace="team-x")
    )
    cycle = world.cycle()

    assert cycle.running == ["deep", "new"]
    assert cycle.waits["old"].reason == "OwnerNotAllowed"


def test_F27_hours_are_not_shared_unless_said() -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=80).run("r", 4, limit="10h", owner="org:a:x")
    cycle = world.cycle()

    words = waits_alone(cycle, "r")
    assert cycle.waits["r"].reason == "NoFunding"
    assert "org-a/gpus" in words
    assert "sharing" in words

    envelope = doc.envelope(8, maxGPUHours=80, sharing="family")
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [envelope]}).cycle("+1m")
    assert cycle.funding("r") == {"shared": 4}


def test_F27_credits_are_not_shared_either_and_ones_own_are() -> None:
    world = World().node("n").policy(creditRates={doc.FLAVOR: 1}).budget("org:a", 8, maxCredits=80)
    cycle = world.run("child", 4, limit="10h", owner="org:a:x").run("own", 4, limit="10h").cycle()

    assert cycle.phases == {"child": "Pending", "own": "Running"}
