"""What running work is charged, to the second, between cycles that come late (spec §3.5, §3.6)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import World

HOUR = 3600
RECORD = "ConfigMap jobtree-system/jobtree-budgets"


def lease(name: str, slots: str, start: str, ended: str | None = None, **status: Any) -> Document:
    """A lease that was written by hand: org:a's run ``r`` on ``slots``, owned since its start."""
    segment = {"class": "owned", "from": moment(start), **({"to": moment(ended)} if ended else {})}
    end = {"closed": True, "ended": moment(ended), "closureReason": "Shrink"} if ended else {}
    return {
        "apiVersion": doc.API,
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": moment(start)},
        "spec": {
            "owner": "org:a", "runRef": {"name": "r"}, "runUid": "u", "runOwner": "org:a", "flavor": doc.FLAVOR,
            "group": 0, "slice": {"nodes": slots.split()}, "interval": {"start": moment(start)}, "reason": "Start",
            "paidBy": {"budget": "org-a", "envelope": "gpus"},
        },
        "status": {"funding": [segment], **end, **status},
    }  # fmt: skip


@pytest.mark.parametrize("late", ["+24h", "+24h1s", "+25h", "+72h"])
def test_F6_hours_end_at_their_second_whenever_the_cycle_comes(late: str) -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=96).run("r", 4)
    world.cycle()
    cycle = world.cycle(late)

    assert (cycle.running, cycle.funding("r")) == (["r"], {"unfunded": 4})
    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+24h")), ("unfunded", moment("+24h"), None)]]
    usage = world.usage("org-a", at=late)
    assert (usage["gpuSecondsConsumed"], usage["gpuHoursConsumed"], usage["headroomGPUHours"]) == (96 * HOUR, 96, 0)


def test_F6_what_is_consumed_is_known_before_any_cycle_sees_it() -> None:
    world = World().node("n").budget("org:a", 8, maxGPUHours=96).run("r", 4)
    world.cycle()

    usage = world.usage("org-a", at="+25h")
    assert (usage["gpuSecondsConsumed"], usage["unfundedGPUs"]) == (96 * HOUR, 4)


def test_F6_in_the_second_of_crossing_claims_are_charged_in_order_whole_or_not() -> None:
    # 3 + 2 GPUs spend 15 of 18 GPU-seconds in 3 s; of the last 3 the first has its second whole, the other one not
    world = World().node("n").policy(accountingPeriod="1s").budget("org:a", 8, maxGPUHours=0.005)
    world.run("first", 3).run("second", 2)
    world.cycle()
    cycle = world.cycle("+1m")

    assert cycle.segments("first") == [[("owned", moment("+0s"), moment("+4s")), ("unfunded", moment("+4s"), None)]]
    assert cycle.segments("second") == [[("owned", moment("+0s"), moment("+3s")), ("unfunded", moment("+3s"), None)]]
    assert world.usage("org-a", at="+1m")["gpuSecondsConsumed"] == 18


def test_F6_what_the_first_leaves_goes_to_who_is_small_enough() -> None:
    # 4 + 1 GPUs of 18 GPU-seconds: 15 in 3 s, then 3 are too few for the first, and last the second for three
    world = World().node("n").policy(accountingPeriod="1s").budget("org:a", 8, maxGPUHours=0.005)
    world.run("first", 4).run("second", 1)
    world.cycle()
    cycle = world.cycle("+1m")

    assert cycle.segments("first") == [[("owned", moment("+0s"), moment("+3s")), ("unfunded", moment("+3s"), None)]]
    assert cycle.segments("second") == [[("owned", moment("+0s"), moment("+6s")), ("unfunded", moment("+6s"), None)]]


def test_F6_credits_end_at_their_second_too() -> None:
    # 4 GPUs at 2.5 credits an hour are 10 an hour
    world = World().node("n").policy(creditRates={doc.FLAVOR: 2.5}, accountingPeriod="1h")
    world.budget("org:a", 8, maxCredits=15).run("r", 4)
    world.cycle()
    cycle = world.cycle("+2h")

    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+90m")), ("unfunded", moment("+90m"), None)]]
    assert world.usage("org-a", at="+2h")["creditsConsumed"] == 15


def test_F6_a_rate_counts_from_the_cycle_that_sees_it() -> None:
    world = World().node("n").policy(creditRates={doc.FLAVOR: 2}).budget("org:a", 8, maxCredits=1000).run("r", 4)
    world.cycle()
    world.edit("Policy", "default", spec={"creditRates": {doc.FLAVOR: 10}})
    world.cycle("+1h")
    cycle = world.cycle("+2h")

    funding = cycle.all("Lease")[0]["status"]["funding"]
    assert funding == [
        {"class": "owned", "from": moment("+0s"), "to": moment("+1h"), "rate": 2},
        {"class": "owned", "from": moment("+1h"), "rate": 10},
    ]
    assert world.usage("org-a", at="+2h")["creditsConsumed"] == 4 * 2 + 4 * 10


def test_F6_a_discount_counts_from_the_cycle_that_sees_it() -> None:
    world = World().node("n").policy().budget("org:a", 8).run("r", 4, by=4, spares=2)
    world.cycle()
    world.edit("Policy", "default", spec={"spares": {"discount": 0.25}}).cycle("+1h")
    world.cycle("+2h")

    # 4 Active GPUs for 2 h; 2 spares for an hour at half and an hour at a quarter
    assert world.usage("org-a", at="+2h")["gpuSecondsConsumed"] == HOUR * (4 * 2 + 2 * 0.5 + 2 * 0.25)


def test_F9_a_window_closes_and_another_opens() -> None:
    start, end = moment("-1h"), moment("+2h")
    world = World().node("n").budget("org:a", 8, start=start, end=end).run("r", 8)
    world.cycle()
    cycle = world.cycle("+3h")
    assert (cycle.running, cycle.funding("r")) == (["r"], {"unfunded": 8})
    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+2h")), ("unfunded", moment("+2h"), None)]]
    assert world.usage("org-a", at="+3h")["gpuHoursConsumed"] == 16

    later = doc.envelope(8, start=moment("+3h"), end=moment("+6h"))
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [later]}).cycle("+4h")
    assert (cycle.running, cycle.funding("r")) == (["r"], {"owned": 8})
    assert cycle.segments("r")[0][-2:] == [
        ("unfunded", moment("+2h"), moment("+4h")),
        ("owned", moment("+4h"), None),
    ]
    # the charges of the old window are not in the new one
    assert world.usage("org-a", at="+5h")["gpuHoursConsumed"] == 8


def test_F9_a_window_that_opens_funds_from_its_second_on() -> None:
    shut, opened = doc.envelope(8, start=moment("+90m")), doc.envelope(8)
    world = World().node("n").budget("org:a", envelopes=[opened]).run("r", 8)
    world.cycle()
    assert world.edit("Budget", "org-a", spec={"envelopes": [shut]}).cycle("+1h").funding("r") == {"unfunded": 8}
    cycle = world.cycle("+2h")

    assert cycle.segments("r")[0][1:] == [
        ("unfunded", moment("+1h"), moment("+90m")),
        ("owned", moment("+90m"), None),
    ]


def test_F9_a_loan_that_has_aged_ranks_last_from_its_second_on() -> None:
    lending = {"allow": True, "maxDuration": "1h"}
    funding = {"allowBorrow": True, "sponsors": ["org:l"]}
    world = World().node("n").budget("org:l", 8, lending=lending).run("loan", 4, owner="org:g", funding=funding)
    world.cycle()
    world.run("own", 4, owner="org:l", created="+1s").cycle("+10m")
    cycle = world.edit("Budget", "org-l", spec={"envelopes": [doc.envelope(4, lending=lending)]}).cycle("+20m")
    assert (cycle.funding("loan"), cycle.funding("own")) == ({"borrowed": 4, "lenders": ["org:l"]}, {"unfunded": 4})

    cycle = world.cycle("+2h")
    assert cycle.segments("loan")[0][-1] == ("unfunded", moment("+1h"), None)
    assert cycle.segments("own")[0][-1] == ("owned", moment("+1h"), None)


def test_F9_a_limit_frees_quota_at_its_second() -> None:
    world = World().node("n").budget("org:a", 8).run("brief", 4, limit="1h").run("long", 4)
    world.cycle()
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(4)]}).cycle("+10m")
    assert (cycle.funding("brief"), cycle.funding("long")) == ({"owned": 4}, {"unfunded": 4})
    cycle = world.cycle("+2h")

    assert [(row.ended, row.closure) for row in cycle.leases("brief")] == [(moment("+1h"), "TimeLimit")]
    assert cycle.segments("long")[0][1:] == [
        ("unfunded", moment("+10m"), moment("+1h")),
        ("owned", moment("+1h"), None),
    ]


def test_F9_an_end_that_nobody_foresaw_frees_quota_at_the_cycle_that_sees_it() -> None:
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, maxGPUHours=8)
    world.run("brief", 4).run("long", 4)
    world.cycle()
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(4, maxGPUHours=8)]}).cycle("+30m")
    assert cycle.funding("long") == {"unfunded": 4}
    world.runs("complete", "brief", at="+1h").ok()
    cycle = world.cycle("+90m")

    # 2 + 2 GPU-hours in the first half hour, 2 in the second, none in the third: 2 are left for the last
    assert cycle.segments("brief") == [[("owned", moment("+0s"), moment("+1h"))]]
    assert cycle.segments("long")[0][-1] == ("owned", moment("+90m"), None)
    assert world.cycle("+3h").segments("long")[0][-1] == ("unfunded", moment("+2h"), None)


def test_F18_usage_is_the_sum_of_the_leases() -> None:
    world = World().node("n").budget("org:a", 8)
    world.run("r", 3, metadata={"uid": "u"}, created="-3h")
    world.add(lease("one", "n#0 n#1 n#2", "-2h"), lease("two", "n#3 n#4", "-2h", "-1h"))

    usage = world.usage("org-a")
    assert (usage["gpuSecondsConsumed"], usage["gpuHoursConsumed"]) == (28800, 8)
    cycle = world.cycle()
    assert cycle.get("Budget", "org-a")["status"]["envelopes"][0]["gpuSecondsConsumed"] == 28800
    assert RECORD not in cycle.warnings  # before a first cycle there were no other Budgets


def test_F26_edits_count_from_the_cycle_that_sees_them() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 8)
    world.cycle()
    for at, cap in (("+1h", 4), ("+2h", 8)):
        world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(cap)]}).cycle(at)
    cycle = world.cycle("+3h")

    assert world.usage("org-a", at="+3h")["gpuHoursConsumed"] == 16
    assert cycle.segments("r") == [
        [
            ("owned", moment("+0s"), moment("+1h")),
            ("unfunded", moment("+1h"), moment("+2h")),
            ("owned", moment("+2h"), None),
        ]
    ]
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(2)]})
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8)]})
    assert world.cycle("+4h").segments("r")[0][-1] == ("owned", moment("+2h"), None)
    assert world.usage("org-a", at="+4h")["gpuHoursConsumed"] == 24


def test_F26_hours_are_counted_under_the_cap_that_the_last_cycle_saw() -> None:
    # 4 GPUs reach 8 GPU-hours at +2h; raised at some time after that, seen at +3h
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, maxGPUHours=8).run("r", 4)
    world.cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, maxGPUHours=100)]})
    cycle = world.cycle("+3h")

    assert cycle.segments("r") == [
        [
            ("owned", moment("+0s"), moment("+2h")),
            ("unfunded", moment("+2h"), moment("+3h")),
            ("owned", moment("+3h"), None),
        ]
    ]


def test_F26_a_deleted_budget_pays_until_the_cycle_that_sees_it() -> None:
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, maxGPUHours=8).run("r", 4)
    world.cycle()
    cycle = world.delete("Budget", "org-a").cycle("+1h")
    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+1h")), ("unfunded", moment("+1h"), None)]]

    world.budget("org:a", 8, maxGPUHours=8).cycle("+2h")
    cycle = world.cycle("+9h")
    assert cycle.segments("r")[0][-2:] == [
        ("owned", moment("+2h"), moment("+3h")),
        ("unfunded", moment("+3h"), None),
    ]


def test_F26_sharing_that_ends_takes_nothing_from_what_was_shared() -> None:
    world = World().node("n").budget("org:a", 8).budget("org:a:x", 2).run("r", 6, owner="org:a:x")
    world.cycle()
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, sharing="none")]}).cycle("+1m")

    assert cycle.funding("r") == {"owned": 2, "shared": 4}


def test_F26_lending_that_ends_takes_nothing_from_what_was_lent_and_its_cap_stays() -> None:
    world = World().node("n").budget("org:l", 8, lending={"allow": True, "maxConcurrency": 4})
    world.run("loan", 4, owner="org:g", funding={"allowBorrow": True, "sponsors": ["org:l"]})
    world.cycle()
    no_more = doc.envelope(8, lending={"allow": False, "maxConcurrency": 4})
    cycle = world.edit("Budget", "org-l", spec={"envelopes": [no_more]}).cycle("+1m")
    assert cycle.funding("loan") == {"borrowed": 4, "lenders": ["org:l"]}

    too_many = doc.envelope(8, lending={"allow": False, "maxConcurrency": 3})
    cycle = world.edit("Budget", "org-l", spec={"envelopes": [too_many]}).cycle("+2m")
    assert cycle.funding("loan") == {"unfunded": 4}


def test_F26_a_broken_budget_pays_on_as_it_did() -> None:
    world = World().node("n").policy(creditRates={doc.FLAVOR: 3}).budget("org:a", 8, maxCredits=500).run("r", 4)
    world.cycle()
    world.edit("Budget", "org-a", spec={"limit": 500})
    for at in ("+1h", "+2h"):
        cycle = world.cycle(at)
        assert cycle.segments("r") == [[("owned", moment("+0s"), None)]]
        assert "Budget org-a" in cycle.warnings


@pytest.mark.parametrize("lost", ["Plan", "ConfigMap", "spoilt"])
def test_F26_a_lost_record_is_said_and_the_budgets_of_now_stand_for_it(lost: str) -> None:
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, maxGPUHours=8).run("r", 4)
    world.cycle()
    if lost == "spoilt":
        world.edit("ConfigMap", "jobtree-budgets", data={"budgets": "{}"})
    else:
        name = {"Plan": "20260101t000000z", "ConfigMap": "jobtree-budgets"}[lost]
        world.delete(lost, name)
    cycle = world.cycle("+3h")

    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+2h")), ("unfunded", moment("+2h"), None)]]
    why = {"Plan": "the Plan of its cycle is lost: what ran since"}.get(
        lost, "the record of the Budgets as the last cycle saw them is lost: what ran since then"
    )
    assert cycle.warnings[RECORD] == [f"{why} is charged under the Budgets as they are now"]
    assert RECORD not in world.cycle("+4h").warnings


def test_F26_what_the_cap_was_when_it_was_lowered_meanwhile_is_not_asked_of_a_lost_record() -> None:
    # lowered below what was spent, nobody knows when: it counts from this cycle on
    world = World().node("n").policy(accountingPeriod="1h").budget("org:a", 8, maxGPUHours=100).run("r", 4)
    world.cycle()
    world.cycle("+2h")
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, maxGPUHours=4)]})
    cycle = world.delete("ConfigMap", "jobtree-budgets").cycle("+3h")

    assert cycle.segments("r") == [[("owned", moment("+0s"), moment("+3h")), ("unfunded", moment("+3h"), None)]]


def test_T9_an_unchanged_world_writes_plans_and_seldom_usage() -> None:
    world = World().domain("A", nodes=2).policy().budget("org:a", 16, maxGPUHours=1000)
    world.run("r", 8).run("limited", 4, limit="10h").run("waits", 8)
    before = world.cycle()
    rewritten = []
    for minute in range(1, 21):
        cycle = world.cycle(f"+{minute}m")
        changed = [each for each in cycle.documents if each not in before.documents and each["kind"] != "Plan"]
        assert {each["kind"] for each in changed} <= {"Budget"}, minute
        assert all(
            {**each, "status": None} in [{**old, "status": None} for old in before.documents] for each in changed
        )
        rewritten += [minute] if changed else []
        before = cycle

    assert rewritten == [10, 20]


@pytest.mark.parametrize("limit", [None, "2h1s"])
def test_windows_may_refuse_what_could_outlast_them(limit: str | None) -> None:
    world = World().node("n").policy(funding={"pastWindow": "refuse"}).budget("org:a", 8, end=moment("+2h"))
    cycle = world.run("fits", 4, limit="2h").run("long", 4, limit=limit).cycle()

    assert cycle.phases == {"fits": "Running", "long": "Pending"}
    assert "window" in cycle.waits["long"].message
    # what runs is not asked again: the window moved, and it runs on, funded while it is open
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8, end=moment("+1h"))]})
    cycle = world.cycle("+90m")
    assert cycle.segments("fits") == [[("owned", moment("+0s"), moment("+90m")), ("unfunded", moment("+90m"), None)]]


def test_a_run_that_waits_and_is_marked_complete_is_complete() -> None:
    done = {"rq.davidlangworthy.io/completed": moment("-1m")}
    world = World().node("n").budget("org:a", 8).run("r", 4, metadata={"annotations": done})

    assert world.cycle().phases == {"r": "Completed"}
