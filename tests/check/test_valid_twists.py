"""What only looks like a breach: every limit may be reached, every exception used (spec §2, §3)."""

import pytest

from tests.check.scene import Scene, ago
from tests.check.spoils import (
    Spoil,
    capped,
    failing,
    follows,
    going,
    limit,
    own_pod,
    past,
    pruned,
    relative_that_lends,
    requests,
    silent,
    spent_below,
    taint,
    template,
    unreadable,
    usage,
    used,
)
from tests.support.documents import envelope, foreign_pod
from tests.support.times import moment

MAINTENANCE = [{"selector": {"fabric.domain": "A"}, "start": moment("+2h"), "end": moment("+4h")}]
LENDS = {"lending": {"allow": True, "to": ["team:z", "team:a"], "maxConcurrency": 5}}


TWISTS = [
    Spoil(
        "caps",
        "room in the subtree beside what a Budget pays that cannot be read",
        lambda s: unreadable(s).envelope("org-a", {"concurrency": 13}),
        "",
    ),
    Spoil("caps", "a use cap that just holds", lambda s: used(s, maxConcurrency=10, perRun={"maxGPUs": 10}), ""),
    Spoil("caps", "a use cap of another flavor", lambda s: used(s, flavor="A100", maxConcurrency=0), ""),
    Spoil("caps", "a use cap of other nodes", lambda s: used(s, selector={"tier": "x"}, maxConcurrency=0), ""),
    Spoil("caps", "a use cap that is over", lambda s: used(s, end=moment("+0s"), maxConcurrency=0), ""),
    Spoil("caps", "a use cap of an owner above alone", lambda s: used(s, "org:a", scope="own", maxConcurrency=2), ""),
    Spoil("hours", "hours of a subtree beside those of a Budget that is gone", lambda s: spent_below(s, hours=106), ""),
    Spoil("hours", "a Budget's whole usage", lambda s: capped(s).then(usage(aggregate=2)), ""),
    Spoil("hours", "a lease that goes when its time is over", lambda s: pruned(s, "done-0", retention="30m"), ""),
    Spoil(
        "hours",
        "a lease that goes, of a run that is gone",
        lambda s: pruned(s, "done-0").remove("Run", "done").run("next", 1, follow={"after": ["v"]}),
        "",
    ),
    Spoil(
        "simple",
        "hours that were overspent by what has ended, beside others that run on",
        lambda s: (
            s.budget("team:over", envelope(1, maxGPUHours=1))
            .run("x", 1, owner="team:over", created="-9h")
            .had("x", "a01#7", ago("8h"), ago("2h"), payer="team-over/gpus")
            .remove("Run", "x")
            .run("y", 1, created="-3h")
            .holds("y", "a01#6", start=ago("2h"))
        ),
        "",
    ),
    Spoil("simple", "a foreign pod beside it", lambda s: s.add(foreign_pod("other", "a01", 4)), ""),
    Spoil(
        "simple",
        "a foreign pod that has ended",
        lambda s: s.add(foreign_pod("other", "a01", 8) | {"status": {"phase": "Succeeded"}}),
        "",
    ),
    Spoil(
        "simple",
        "a pod of ours under its lease",
        lambda s: s.run("x", 4, created="-3h").holds("x", "a01#4-7").add(own_pod("x", "a01", 4)),
        "",
    ),
    Spoil(
        "simple",
        "a tolerated taint",
        lambda s: s.edit("Node", "a01", taint("NoSchedule")).edit(
            "Run", "r", template(tolerations=[{"key": "team", "value": "b", "effect": "NoSchedule"}])
        ),
        "",
    ),
    Spoil(
        "simple",
        "a taint tolerated whatever it is",
        lambda s: s.edit("Node", "a01", taint("NoExecute")).edit(
            "Run", "r", template(tolerations=[{"operator": "Exists"}])
        ),
        "",
    ),
    Spoil("simple", "a taint that only advises", lambda s: s.edit("Node", "a01", taint("PreferNoSchedule")), ""),
    Spoil("simple", "all the CPU of a node", lambda s: s.edit("Run", "r", requests(cpu="128")), ""),
    Spoil("gang", "all the CPU of two pods", lambda s: s.edit("Run", "r", requests(cpu="64")), ""),
    Spoil(
        "simple",
        "a node whose load was too high before",
        lambda s: s.run("x", 1, created="-3h").holds("x", "a01#7").edit("Run", "x", requests(cpu="129")),
        "",
    ),
    Spoil(
        "simple",
        "maintenance that begins as it ends",
        lambda s: s.edit("Run", "r", limit("2h")).policy(maintenance=MAINTENANCE),
        "",
    ),
    Spoil(
        "simple",
        "maintenance of other nodes",
        lambda s: s.policy(maintenance=[MAINTENANCE[0] | {"selector": {"fabric.domain": "B"}}]),
        "",
    ),
    Spoil(
        "simple",
        "maintenance that is over",
        lambda s: s.policy(maintenance=[MAINTENANCE[0] | {"start": moment("-2h"), "end": moment("+0s")}]),
        "",
    ),
    Spoil(
        "simple",
        "a cordon under running work",
        lambda s: (
            s.run("x", 1, created="-3h").holds("x", "b01#0").edit("Node", "b01", {"spec": {"unschedulable": True}})
        ),
        "",
    ),
    Spoil(
        "hours",
        "a blip under running work",
        lambda s: s.edit(
            "Node",
            "a01",
            {"status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": moment("-5m")}]}},
        ),
        "",
    ),
    Spoil(
        "simple",
        "more silent nodes at once than may fail",
        lambda s: (
            s.run("x", 1, created="-3h")
            .holds("x", "b01#0")
            .edit("Node", "a02", silent("-6m"))
            .edit("Node", "b01", silent("-6m"))
        ),
        "",
    ),
    Spoil("hours", "a node that cannot be read", lambda s: s.quarantine("Node", "a01"), ""),
    Spoil(
        "simple",
        "another's Lease that cannot be read",
        lambda s: s.unreadable("r-1", ["x"], ("a03", 9), ("z", 0)),
        "",
    ),
    Spoil("opportunistic", "a run that cannot be read", lambda s: s.quarantine("Run", "p"), ""),
    Spoil("simple", "a window that has just opened", lambda s: s.envelope("org-a", {"start": moment("+0s")}), ""),
    Spoil("simple", "a window that closes in a second", lambda s: s.envelope("org-a", {"end": moment("+1s")}), ""),
    Spoil(
        "simple",
        "a window to come that admits early",
        lambda s: s.envelope("org-a", {"start": moment("+1h"), "preActivation": {"allowAdmission": True}}),
        "",
    ),
    Spoil(
        "simple",
        "a limit that ends with the window",
        lambda s: (
            s.envelope("org-a", {"end": moment("+1h")})
            .edit("Run", "r", limit("1h"))
            .policy(funding={"pastWindow": "refuse"})
        ),
        "",
    ),
    Spoil(
        "simple",
        "an envelope of another place where that is only preferred",
        lambda s: s.envelope("org-a", {"selector": {"region": "us-east"}}).policy(funding={"crossLocation": "allow"}),
        "",
    ),
    Spoil(
        "simple",
        "a default limit within perRun.maxTime",
        lambda s: s.envelope("org-a", {"perRun": {"maxTime": "2h", "defaultTime": "2h"}}),
        "",
    ),
    Spoil("gang", "a run at perRun.maxGPUs", lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 20}}), ""),
    Spoil(
        "family",
        "a parent that shares its hours",
        lambda s: s.envelope("org", {"maxGPUHours": 1000, "sharing": "family"}),
        "",
    ),
    Spoil("loan", "a borrower whose name is listed", lambda s: s.envelope("org-l", LENDS), ""),
    Spoil("loan", "a lender that names nobody", lambda s: s.envelope("org-l", {"lending": {"to": []}}), ""),
    Spoil("loan", "a relative that does not share and lends", relative_that_lends, ""),
    Spoil(
        "loan",
        "spares beyond maxBorrowGPUs",
        lambda s: (
            s.envelope("org-l", {"concurrency": 7, "lending": {"maxConcurrency": 7}})
            .edit("Run", "r", {"spec": {"spares": 1}})
            .starts("r", "a02#1", role="Spare", payer="org-l/gpus", funding="borrowed")
        ),
        "",
    ),
    Spoil(
        "caps",
        "a closed window above",
        lambda s: s.envelope("org-a", {"concurrency": 1, "end": moment("-1s")}).turns("own-0", "unfunded", ago("1s")),
        "",
    ),
    Spoil(
        "caps",
        "other nodes above",
        lambda s: s.envelope("org-a", {"concurrency": 2, "selector": {"region": "us-east"}}),
        "",
    ),
    Spoil(
        "hours",
        "hours that an older window spent",
        lambda s: s.edit("Run", "r", limit(None)).envelope("org-a", {"maxGPUHours": 100, "start": moment("-30m")}),
        "",
    ),
    Spoil(
        "hours",
        "hours that unfunded time did not spend",
        lambda s: (
            s.edit("Run", "r", limit("20h"))
            .unheld("done-0")
            .had(
                "done",
                "a02#0-3",
                ago("11h"),
                ago("30m"),
                entries=[Scene.entry("owned", ago("11h"), ago("1h")), Scene.entry("unfunded", ago("1h"), ago("30m"))],
            )
        ),
        "",
    ),
    Spoil(
        "simple",
        "a namespace that is listed",
        lambda s: s.edit("Budget", "org-a", {"spec": {"namespaces": ["default"]}}).policy(
            tenancy={"requireBinding": True}
        ),
        "",
    ),
    Spoil(
        "endings",
        "a run that fails with its upstream",
        lambda s: failing(follows(s, "limited", onUpstreamFailure="fail")),
        "",
    ),
    Spoil(
        "endings",
        "a run that fails with an upstream that is gone",
        lambda s: failing(follows(s, "gone", onUpstreamFailure="fail")),
        "",
    ),
    Spoil(
        "endings",
        "a run that fails with an upstream that is going",
        lambda s: failing(follows(going(s), "suspended", onUpstreamFailure="fail")),
        "",
    ),
    Spoil(
        "endings",
        "a run that fails with its upstream, without any grace",
        lambda s: failing(follows(s, "limited", upstreamFailureGrace="0s")),
        "",
    ),
    Spoil("endings", "a run that waits for one in its upstream's place", lambda s: follows(s, "limited"), ""),
    Spoil(
        "endings",
        "a run that waits on beside an upstream that completed and is gone",
        lambda s: follows(past(s), "past", "r", onUpstreamFailure="fail"),
        "",
    ),
    Spoil(
        "endings",
        "a run that waits on while it is suspended",
        lambda s: follows(s, "limited", onUpstreamFailure="fail").edit("Run", "x", {"spec": {"state": "Suspended"}}),
        "",
    ),
    Spoil(
        "bound",
        "an upstream that was pruned",
        lambda s: s.had("first", "a02#0-1", ago("11h"), ago("10h"), name="first-0").remove("Run", "first"),
        "",
    ),
    Spoil(
        "bound",
        "a gang of which one is running already",
        lambda s: (
            s.edit("Run", "root", {"spec": {"quota": {"maxGPUHours": 148}}})
            .drop(1)
            .holds("two", "a01#4-5", name="two-0")
        ),
        "",
    ),
    Spoil("opportunistic", "an unfunded start without a ledger", lambda s: s.relabel(1, funding=()), ""),
    Spoil(
        "opportunistic",
        "a run of choice that is funded at its start",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"opportunistic": True}}}),
        "",
    ),
    Spoil(
        "classes",
        "a quarantined Budget's claims as they were",
        lambda s: s.quarantine("Budget", "org-a").drop().unturned(),
        "",
    ),
    Spoil("malleable", "a start at its least width", lambda s: s.drop(2), ""),
    Spoil(
        "malleable",
        "growth without a group below",
        lambda s: (
            s.drop(3)
            .domain("C", 8)
            .holds("g", "b02#0-7", name="g-1", group=1)
            .starts("g", "c01#0-7", group=2, reason="Grow", name="g-9")
            .envelope("org-a", {"concurrency": 48})
        ),
        "",
    ),
]


@pytest.mark.parametrize("twist", TWISTS, ids=str)
def test_it_is_no_breach(twist: Spoil) -> None:
    assert twist.found() == set()
