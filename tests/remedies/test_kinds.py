"""One world per kind of remedy, with all that is said of it: who acts, what it costs, what to type."""

import pytest

from tests.remedies.asking import ask, documents, said
from tests.support import documents as doc
from tests.support.times import moment, unix
from tests.support.worlds import World

Said = tuple[str, str, int, str, str]

UNFUNDED: Said = (
    "opportunistic", "AGAIN", 0, "run it unfunded, charged to nobody",
    "cancel Run default/r, and submit it under another name with spec.funding.opportunistic: true",
)  # fmt: skip
LENDS = {"allow": True, "to": ["org:*"], "maxConcurrency": 2}
BORROWS = {"allowBorrow": True, "sponsors": ["org:l"]}


def narrower(fewer: int, total: int) -> Said:
    """The run with ``total`` GPUs, ``fewer`` than it asks for."""
    gpus = "1 GPU" if fewer == 1 else f"{fewer} GPUs"
    how = f"cancel Run default/r, and submit it under another name with spec.resources.totalGPUs: {total}"
    return "narrower", "AGAIN", fewer, f"{gpus} fewer", how


def again(kind: str, words: str, fields: str, gpus: int = 0) -> Said:
    """The run submitted again with other fields."""
    return kind, "AGAIN", gpus, words, f"cancel Run default/r, and submit it under another name with {fields}"


def budget(kind: str, gpus: int, words: str, how: str) -> Said:
    """Something for the owners of Budgets."""
    return kind, "BUDGETS", gpus, words, how


def answer(world: World, at: str = "+0s") -> list[Said]:
    """Remedies of the run ``r``."""
    return [said(remedy) for remedy in ask(documents(world, at), "r", unix(at)).found]


def test_a_sponsor_is_added() -> None:
    world = World().node("n", 2).budget("org:l", 8, lending=LENDS).budget("org:g", 1)
    world.run("r", 2, owner="org:g", funding={"allowBorrow": True})

    assert answer(world) == [
        ("sponsor", "OWNER", 0, "borrow from org:l", "kubectl runs -n default sponsors add r org:l"),
        UNFUNDED,
        narrower(1, 1),
        budget("cap", 1, "1 GPU more at org-g/gpus", "Budget org-g: spec.envelopes[gpus].concurrency: 2"),
    ]


def test_a_run_that_does_not_borrow_is_submitted_again_as_one_that_does() -> None:
    world = World().node("n", 2).budget("org:l", 8, lending=LENDS).run("r", 2, owner="org:g")

    assert answer(world) == [
        UNFUNDED,
        again("sponsor", "borrow from org:l", "spec.funding.allowBorrow: true, spec.funding.sponsors: [org:l]"),
    ]


def test_where_no_lender_has_enough_several_are_asked() -> None:
    world = World().node("n", 6).run("r", 6, owner="org:g", funding={"allowBorrow": True})
    for name, gpus in (("org:k", 1), ("org:l", 3), ("org:m", 3), ("org:n", 2)):
        world.budget(name, gpus, lending={"allow": True})
    sponsor, *_ = answer(world)

    assert sponsor == (
        "sponsor", "OWNER", 0, "borrow from org:l, org:m",
        "kubectl runs -n default sponsors add r org:l && kubectl runs -n default sponsors add r org:m",
    )  # fmt: skip


def test_an_acl_that_does_not_match_is_widened() -> None:  # F13
    world = World().node("n", 2).budget("org:l", 8, lending={**LENDS, "to": ["org:l:*"]})
    world.run("r", 2, owner="org:g", funding=BORROWS)
    how = "Budget org-l: spec.envelopes[gpus].lending.to: [org:g, org:l:*]"

    assert answer(world) == [UNFUNDED, budget("terms", 0, "org-l/gpus of org:l on other terms", how)]


def test_a_relative_that_does_not_share_may_do_so() -> None:  # F11
    world = World().node("n").budget("org:a", 8, sharing="none").budget("org:a:x", 2).run("r", 6, owner="org:a:x")
    sharing = "Budget org-a: spec.envelopes[gpus].sharing: family"

    assert answer(world) == [
        UNFUNDED,
        narrower(4, 2),
        budget("terms", 0, "org-a/gpus of org:a on other terms", sharing),
        budget("cap", 4, "4 GPUs more at org-a-x/gpus", "Budget org-a-x: spec.envelopes[gpus].concurrency: 6"),
    ]


def test_a_namespace_is_bound() -> None:  # F25
    world = World().node("n").budget("org:a", 8, spec={"namespaces": ["team-a"]}).run("r", 4, owner="org:a:x")
    how = "Budget org-a: spec.namespaces: [default, team-a]"

    assert answer(world) == [budget("terms", 0, "namespace default bound to org:a:x", how)]


def test_the_borrow_limit_is_raised() -> None:  # F3
    world = World().domain("A", nodes=2).budget("org:a", 8).budget("org:b", 8, lending={"allow": True})
    world.run("r", 16, funding={"allowBorrow": True, "sponsors": ["org:b"], "maxBorrowGPUs": 3})

    assert answer(world) == [
        again("borrow", "5 GPUs more on loan", "spec.funding.maxBorrowGPUs: 8"),
        UNFUNDED,
        narrower(5, 11),
        budget("cap", 5, "5 GPUs more at org-a/gpus", "Budget org-a: spec.envelopes[gpus].concurrency: 13"),
    ]


def test_a_lending_cap_is_raised_or_the_other_loan_given_up() -> None:  # F12
    world = World().node("n").budget("org:l", 8, lending=LENDS)
    world.run("other", 2, owner="org:g", funding=BORROWS).run("r", 2, owner="org:g", funding=BORROWS)
    how = "Budget org-l: spec.envelopes[gpus].lending.maxConcurrency: 4"

    assert answer(world) == [
        ("end", "OWNER", 2, "run default/other suspended (2 GPUs)", "kubectl runs -n default suspend other"),
        UNFUNDED,
        budget("cap", 2, "2 GPUs more at the lending cap of org-l/gpus", how),
    ]


def test_an_aggregate_is_raised_by_what_is_short_there() -> None:  # F14
    west, east = ({**doc.envelope(8, name), "selector": {"region": f"us-{name}"}} for name in ("west", "east"))
    caps = [{"name": "both", "envelopes": ["west", "east"], "maxConcurrency": 10}]
    world = World().node("w").node("e", labels={"region": "us-east"}, domain="d2")
    world.budget("org:a", envelopes=[west, east], spec={"aggregateCaps": caps}).run("first", 8).run("r", 8)
    how = "Budget org-a: spec.aggregateCaps[both].maxConcurrency: 16"

    assert answer(world) == [
        ("end", "OWNER", 8, "run default/first suspended (8 GPUs)", "kubectl runs -n default suspend first"),
        UNFUNDED,
        narrower(6, 2),
        budget("cap", 6, "6 GPUs more at the aggregate cap org-a/both", how),
    ]


def test_where_no_single_cap_suffices_all_of_them_are_raised() -> None:  # F15
    world = World()
    for name in "ABCD":
        world.domain(name, nodes=5)
    world.budget("org:m", 100, scope="subtree", sharing="none")
    world.budget("org:m:a", 60, sharing="none").budget("org:m:b", 60, sharing="none")
    world.run("a", 60, by=4, owner="org:m:a").run("r", 60, by=4, owner="org:m:b").run("c", 40, by=4, owner="org:m:b")

    assert answer(world) == [
        UNFUNDED,
        budget(
            "combination", 100, "60 GPUs more at the subtree of org-m/gpus and 40 GPUs more at org-m-b/gpus",
            "Budget org-m: spec.envelopes[gpus].concurrency: 160; "
            "Budget org-m-b: spec.envelopes[gpus].concurrency: 100",
        ),
    ]  # fmt: skip


def test_hours_are_too_few_for_a_run_without_limit() -> None:  # F7, F8
    world = World().node("n").budget("org:a", 8, maxGPUHours=95).run("r", 4)

    assert answer(world) == [
        again("limit", "a time limit of 23h45m", "spec.runtime.timeLimit: 23h45m"),
        UNFUNDED,
        narrower(1, 3),
        budget("cap", 1, "1 GPU-hour more at org-a/gpus", "Budget org-a: spec.envelopes[gpus].maxGPUHours: 96"),
    ]


def test_credits_are_too_few() -> None:  # F22
    world = World().node("n").policy(creditRates={"H100-80GB": 2}).budget("org:a", 8, maxCredits=100)
    world.run("r", 4, limit="13h")

    assert answer(world) == [
        again("limit", "a time limit of 12h30m", "spec.runtime.timeLimit: 12h30m"),
        UNFUNDED,
        narrower(1, 3),
        budget("cap", 1, "4 credits more at org-a/gpus", "Budget org-a: spec.envelopes[gpus].maxCredits: 104"),
    ]


def test_an_envelope_without_hours_is_given_some() -> None:  # F5
    world = World().node("n").budget("org:a", 8, maxGPUHours=0).run("r", 4)
    how = "Budget org-a: spec.envelopes[gpus].maxGPUHours: 96"

    assert answer(world) == [UNFUNDED, budget("terms", 0, "org-a/gpus of org:a on other terms", how)]


def test_one_run_takes_no_more_than_its_part() -> None:  # F23
    world = World().node("n").budget("org:a", 8, perRun={"maxGPUs": 4}).run("r", 8)
    how = "Budget org-a: spec.envelopes[gpus].perRun.maxGPUs: 8"

    assert answer(world) == [UNFUNDED, narrower(4, 4), budget("cap", 4, "4 GPUs more of org-a/gpus for one run", how)]


def test_terms_and_a_cap_together() -> None:  # F23
    world = World().node("n").budget("org:a", 8, perRun={"maxGPUs": 4, "maxTime": "2h"}).run("r", 8)

    assert answer(world) == [
        UNFUNDED,
        budget(
            "combination", 4, "org-a/gpus of org:a on other terms and 4 GPUs more of org-a/gpus for one run",
            "Budget org-a: spec.envelopes[gpus].perRun.maxTime: (left out), spec.envelopes[gpus].perRun.maxGPUs: 8",
        ),
    ]  # fmt: skip


def test_the_quota_of_a_tree() -> None:  # L10
    world = World().domain("A", nodes=3).budget("org:a", 64).run("root", 8, quota={"maxGPUs": 16})
    world.run("child", 8, parent="root").run("r", 8, parent="root")

    assert answer(world) == [
        ("end", "OWNER", 8, "run default/child suspended (8 GPUs)", "kubectl runs -n default suspend child"),
        (
            "cap", "AGAIN", 8, "8 GPUs more in the quota of run root",
            "cancel Run default/root, and submit it under another name with spec.quota.maxGPUs: 24",
        ),
    ]  # fmt: skip


def test_fewer_spares() -> None:  # F21
    world = World().domain("A", nodes=2).budget("org:a", 6).run("r", 6, spares=2)

    assert answer(world) == [
        UNFUNDED,
        narrower(1, 5),
        again("spares", "0 spares per group", "spec.spares: 0", 2),
        budget("cap", 1, "1 GPU more at org-a/gpus", "Budget org-a: spec.envelopes[gpus].concurrency: 7"),
    ]


def test_a_selector_that_matches_no_free_node() -> None:  # F24
    world = World().node("n").budget("org:a", 8).run("r", 4, locality={"selector": {"region": "us-east"}})

    assert answer(world) == [
        again("selector", "also nodes without region=us-east", 'spec.locality.selector["region"]: (left out)')
    ]


def test_a_label_with_dots_is_one_key() -> None:
    world = World().domain("A").domain("B").budget("org:a", 8)
    world.run("r", 4, locality={"selector": {"fabric.domain": "C"}})

    assert again(
        "selector", "also nodes without fabric.domain=C", 'spec.locality.selector["fabric.domain"]: (left out)'
    ) in answer(world)


def test_another_flavor() -> None:
    flavors = [doc.envelope(8), *({**doc.envelope(8, name.lower()), "flavor": name} for name in ("A100", "L40S"))]
    world = World().policy(creditRates={"A100": 2, "L40S": 1}).node("h", 4).node("a", flavor="A100")
    world.node("l", flavor="L40S").budget("org:a", envelopes=flavors).run("r", 8)

    assert answer(world) == [
        again("flavor", "on L40S", "spec.resources.gpuType: L40S"),
        narrower(4, 4),
        ("node", "OPERATORS", 4, "1 node more like h, in d1", ""),
    ]


def test_smaller_groups() -> None:  # P7
    world = World().domain("A", nodes=2).domain("B", nodes=2).budget("org:a", 64).run("r", 24)

    assert answer(world) == [
        again("groups", "smaller groups, of 12 GPUs", "spec.locality.groupGPUs: 12"),
        narrower(8, 16),
        ("node", "OPERATORS", 8, "1 node more like a01, in A", ""),
    ]


def test_more_nodes_take_names_that_nobody_has() -> None:
    world = World().node("n", 4).node("n-more-1", 2).budget("org:a", 64).run("r", 8)

    assert answer(world)[-1] == ("node", "OPERATORS", 4, "1 node more like n, in d1", "")


def test_groups_in_several_domains() -> None:  # P13
    world = World().domain("A", nodes=3).domain("B", nodes=2).budget("org:a", 64)
    world.run("r", 32, locality={"groupGPUs": 8, "allowCrossGroupSpread": False})

    assert answer(world) == [
        again("spread", "groups in several domains", "spec.locality.allowCrossGroupSpread: true"),
        narrower(8, 24),
        ("node", "OPERATORS", 8, "1 node more like a01, in A", ""),
    ]


def test_smaller_pods_and_a_fragment_that_nobody_of_ours_holds() -> None:  # P9
    world = World().node("n1").node("n2").foreign_pod("f", "n1", 4).foreign_pod("g", "n2", 4)
    world.budget("org:a", 64).run("r", 8, pods=8)

    assert answer(world) == [
        again("pods", "smaller pods, of 4 GPUs", "spec.resources.gpusPerPod: 4"),
        ("node", "OPERATORS", 8, "1 node more like n1, in d1", ""),
    ]


def test_nodes_that_are_out_of_work() -> None:  # P10
    away = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": moment("-1m")}]}
    world = World().node("n1", spec={"unschedulable": True}).node("n2").node("n3", 4, status=away)
    world.budget("org:a", 64).run("r", 16)

    assert answer(world) == [
        narrower(8, 8),
        ("node", "OPERATORS", 8, "node n1 uncordoned", "kubectl uncordon n1"),
    ]


def test_a_node_that_is_not_ready() -> None:
    away = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": moment("-1m")}]}
    world = World().node("n1").node("n2", status=away).budget("org:a", 64).run("r", 16)
    how = "Node n2: status.conditions[Ready].status: true"

    assert answer(world)[-1] == ("node", "OPERATORS", 8, "node n2 Ready again", how)


def test_of_runs_equally_large_an_unfunded_one_is_suspended_first_however_old() -> None:
    world = World().domain("A", gpus=[8, 8]).budget("org:a", 8).budget("org:b", 64).budget("org:c", 8)
    world.run("free", 8, owner="org:c")
    world.cycle("-2h")
    world.edit("Budget", "org-c", spec={"envelopes": [doc.envelope(1)]})
    world.run("paid", 8, owner="org:b")
    world.cycle("-1h")
    world.run("r", 8)

    assert [each for each in answer(world) if each[0] == "end"] == [
        ("end", "OTHERS", 8, "run default/free suspended (8 GPUs)", "kubectl runs -n default suspend free")
    ]


def test_gpus_are_freed_and_by_whom() -> None:
    world = World().domain("A", gpus=[8, 8]).budget("org:a", 8).budget("org:b", 64)
    world.run("big", 8, owner="org:b").run("small", 4, owner="org:b", limit="3h")
    world.cycle("-1h")
    world.run("r", 8)

    assert answer(world) == [
        narrower(4, 4),
        ("end", "OTHERS", 4, "run default/small suspended (4 GPUs)", "kubectl runs -n default suspend small"),
        ("free", "OTHERS", 4, "4 GPUs freed in A", ""),
        ("wait", "TIME", 0, "waiting until 2026-01-01T02:00:00Z", ""),
    ]


def test_a_window_opens() -> None:  # F4
    world = World().node("n").budget("org:a", 8, start=moment("+2h")).run("r", 8)
    how = "Budget org-a: spec.envelopes[gpus].preActivation.allowAdmission: true"

    assert answer(world) == [
        UNFUNDED,
        budget("terms", 0, "org-a/gpus of org:a on other terms", how),
        ("wait", "TIME", 0, "waiting until 2026-01-01T02:00:00Z", ""),
    ]


def test_who_is_promised_a_start_waits_until_then_and_no_longer() -> None:
    """Its own promise stands while time passes: without it others, promised later starts, would take its place."""
    world = World().domain("A", 2).budget("org:a", 16).budget("org:b", 16).run("first", 8, limit="1h")
    world.cycle("+0s")
    world.run("big", 16, by=8, limit="2h", created="+30s").cycle("+1m")
    world.run("r", 8, created="+90s").run("short", 4, limit="2h", created="+91s")
    world.run("other", 8, owner="org:b", created="+92s").run("last", 4, owner="org:b", limit="61m", created="+93s")
    promised = world.cycle("+2m").status("r")["earliestStart"]

    assert promised == "2026-01-01T03:00:00Z"
    assert [each for each in answer(world, "+2m") if each[0] == "wait"] == [
        ("wait", "TIME", 0, f"waiting until {promised}", "")
    ]


def test_nothing_is_said_of_waiting_for_a_draw() -> None:
    world = World().node("n").budget("org:a", 8).budget("org:v", 8).run("victim", 8, limit="100h", owner="org:v")
    world.cycle("-24h")
    world.run("r", 8)
    world.cycle("+0s")

    assert [each[:4] for each in answer(world)] == [
        ("end", "OTHERS", 8, "run default/victim suspended (8 GPUs)"),
        ("free", "OTHERS", 8, "8 GPUs freed in d1"),
    ]


def test_money_and_room_are_both_short() -> None:
    world = World().domain("A", gpus=[8]).budget("org:a", 4).budget("org:b", 8).run("b", 4, owner="org:b")
    world.cycle("-1h")
    world.run("r", 8)

    assert answer(world) == [
        narrower(4, 4),
        (
            "combination", "OTHERS", 8, "4 GPUs more at org-a/gpus and 4 GPUs freed in A",
            "Budget org-a: spec.envelopes[gpus].concurrency: 8",
        ),
    ]  # fmt: skip


def test_a_gang_needs_room_for_all_of_it() -> None:  # L9
    gang = {"name": "g", "size": 2}
    world = World().node("n").budget("org:a", 64).run("other", 8, gang=gang).run("r", 8, gang=gang)

    assert answer(world) == [("node", "OPERATORS", 8, "1 node more like n, in d1", "")]


@pytest.mark.parametrize("gpus", [4, 8])
def test_a_rise_is_as_large_as_those_before_it_make_it(gpus: int) -> None:
    world = World().domain("A", nodes=3).budget("org:a", 8).run("first", 8).run("second", gpus).run("r", 4)
    found = ask(documents(world), "r")
    rise = 8 if gpus == 4 else 4  # an older one of 4 takes the first 4 GPUs; one of 8 does not fit into them
    how = f"Budget org-a: spec.envelopes[gpus].concurrency: {8 + rise}"

    assert [said(remedy) for remedy in found.found if remedy.kind == "cap"] == [
        budget("cap", rise, f"{rise} GPUs more at org-a/gpus", how)
    ]
    assert found.now


def test_what_others_would_take_is_said_and_is_no_remedy() -> None:
    world = World().node("n").budget("org:a", 64).budget("org:b", 64).run("b", 8, owner="org:b")
    world.cycle("-1h")
    world.run("first", 8).run("r", 8)
    found = ask(documents(world), "r")

    assert found.found == []
    assert found.taken == [
        "run default/b suspended (8 GPUs): run default/first would start instead",
        "8 GPUs freed in d1: run default/first would start instead",
        "1 node more like n, in d1: run default/first would start instead",
    ]


def test_a_run_that_starts_needs_no_remedy() -> None:
    found = ask(documents(World().node("n").budget("org:a", 8).run("r", 4)), "r")
    assert (found.found, found.taken) == ([], [])


def test_where_any_change_would_do_it_is_submitted_again_as_it_is() -> None:
    world = World().domain("A", nodes=2).budget("org:l", 8, lending={"allow": True}).budget("org:a", 8)
    world.run("child", 8, owner="org:a:x", created="-60h")
    world.run("r", 8, created="-3h", funding={"allowBorrow": True}).cycle("-2h")

    assert answer(world, "-110m") == [
        ("again", "AGAIN", 0, "submitting it again as it is, under another name", "kubectl runs -n default cancel r")
    ]
    world.runs("cancel", "r", at="-110m").ok()
    assert world.run("r2", 8, funding={"allowBorrow": True}).cycle("+1m").funding("child") == {"unfunded": 8}
