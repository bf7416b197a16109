"""Payers, caps, classes and the ledger: every way to spoil them is caught under its own name (spec §3)."""

import pytest

from jobtree.api import OwnerPath
from jobtree.api.budget import BudgetStatus, EnvelopeUsage
from jobtree.world.plan import BudgetUpdate
from tests.check.scene import Scene, ago
from tests.check.spoils import Spoil, limit, payer, plan, unpaid
from tests.support.documents import envelope
from tests.support.times import moment

PAYERS = [
    Spoil(
        "simple", "a Budget that is not there", lambda s: s.respec(0, paid_by=payer("org-x/gpus")),
        "payer-exists lease-truthful class-derived classes-partition-width",
    ),
    Spoil(
        "simple", "an envelope that is not there", lambda s: s.respec(0, paid_by=payer("org-a/more")),
        "payer-exists class-derived classes-partition-width",
    ),
    Spoil("simple", "an envelope of another flavor", lambda s: s.envelope("org-a", {"flavor": "A100"}), "payer-flavor"),
    Spoil(
        "simple", "an envelope of another region",
        lambda s: s.envelope("org-a", {"selector": {"region": "us-east"}}), "payer-place",
    ),
    Spoil(
        "simple", "an envelope whose label no node has",
        lambda s: s.envelope("org-a", {"selector": {"regoin": "us-west"}}), "payer-place",
    ),
    Spoil(
        "simple", "a window that has just closed", lambda s: s.envelope("org-a", {"end": moment("+0s")}),
        "payer-window classes-partition-width",
    ),
    Spoil(
        "simple", "a window that opens in a second", lambda s: s.envelope("org-a", {"start": moment("+1s")}),
        "payer-window classes-partition-width",
    ),
    Spoil(
        "simple", "a limit one second past the window, refused",
        lambda s: s.envelope("org-a", {"end": moment("+1h")}).edit("Run", "r", limit("1h1s"))
        .policy(funding={"pastWindow": "refuse"}),
        "payer-window",
    ),
    Spoil(
        "simple", "no limit in a window that ends, refused",
        lambda s: s.envelope("org-a", {"end": moment("+1h")}).policy(funding={"pastWindow": "refuse"}), "payer-window",
    ),
    Spoil("simple", "more than perRun.maxGPUs", lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 3}}), "per-run-gpus"),
    Spoil(
        "gang", "spares beyond perRun.maxGPUs", lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 19}}),
        "per-run-gpus",
    ),
    Spoil(
        "malleable", "growth beyond perRun.maxGPUs", lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 15}}),
        "per-run-gpus",
    ),
    Spoil(
        "simple", "no limit where perRun.maxTime bounds it",
        lambda s: s.envelope("org-a", {"perRun": {"maxTime": "2h"}}), "per-run-time",
    ),
    Spoil(
        "hours", "a limit beyond perRun.maxTime",
        lambda s: s.envelope("org-a", {"perRun": {"maxTime": "18h59m59s"}}), "per-run-time",
    ),
    Spoil("family", "a parent that does not share", lambda s: s.envelope("org", {"sharing": "none"}), "payer-sharing"),
    Spoil(
        "family", "hours that are not shared unless said", lambda s: s.envelope("org", {"maxGPUHours": 1000}),
        "payer-sharing",
    ),
    Spoil(
        "family", "a stranger",
        lambda s: s.respec(2, paid_by=payer("corp/gpus"), owner=OwnerPath("corp"))
        .relabel(2, funding=(Scene.entry("borrowed", s.at),)),
        "payer-kin payer-lending",
    ),
    Spoil(
        "family", "a parent that the Budget denies", lambda s: s.edit("Budget", "org-a", {"spec": {"parents": []}}),
        "payer-kin payer-lending class-derived classes-partition-width status-agrees",
    ),
    Spoil(
        "loan", "a run that may not borrow",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"allowBorrow": False}}}), "payer-kin",
    ),
    Spoil(
        "loan", "a sponsor that is not listed",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"sponsors": ["org:z"]}}}), "payer-kin",
    ),
    Spoil(
        "loan", "a sponsor that does not lend", lambda s: s.envelope("org-l", {"lending": {"allow": False}}),
        "payer-lending",
    ),
    Spoil(
        "loan", "a borrower that no entry names",
        lambda s: s.envelope("org-l", {"lending": {"to": ["team:b", "team", "team:a:*"]}}), "payer-lending",
    ),
    Spoil(
        "loan", "a relative that neither shares nor lends",
        lambda s: s.edit("Budget", "org-l", {"spec": {"owner": "team"}})
        .edit("Budget", "team-a", {"spec": {"parents": ["team"]}})
        .edit("Run", "r", {"spec": {"funding": {"sponsors": ["team"]}}})
        .respec(1, owner=OwnerPath("team")).envelope("org-l", {"sharing": "none", "lending": {"allow": False}}),
        "payer-lending",
    ),
    Spoil(
        "loan", "one GPU beyond maxBorrowGPUs",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"maxBorrowGPUs": 3}}}), "borrow-limit",
    ),
    Spoil("simple", "a start that nobody pays", lambda s: unpaid(s, 0), "funded-start"),
    Spoil("family", "a start that is paid in part", lambda s: unpaid(s, 2), "funded-start"),
    Spoil(
        "family", "a start by choice unfunded in part",
        lambda s: unpaid(s.edit("Run", "r", {"spec": {"funding": {"opportunistic": True}}}), 2), "funded-start",
    ),
    Spoil(
        "simple", "a namespace that may not charge",
        lambda s: s.edit("Budget", "org-a", {"spec": {"namespaces": ["team-a"]}}), "owner-namespace",
    ),
    Spoil(
        "family", "a namespace that the nearest list leaves out",
        lambda s: s.edit("Budget", "org", {"spec": {"namespaces": ["default"]}})
        .edit("Budget", "org-a", {"spec": {"namespaces": ["team-a"]}}),
        "owner-namespace",
    ),
    Spoil(
        "family", "a namespace that an inherited list leaves out",
        lambda s: s.edit("Budget", "org", {"spec": {"namespaces": ["team-a"]}}), "owner-namespace",
    ),
    Spoil(
        "simple", "an owner bound nowhere where a binding is required",
        lambda s: s.policy(tenancy={"requireBinding": True}), "owner-namespace",
    ),
]  # fmt: skip

CAPS = [
    Spoil(
        "simple", "one GPU beyond the concurrency", lambda s: s.envelope("org-a", {"concurrency": 3}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "simple", "one GPU beyond it beside running work",
        lambda s: s.run("x", 5, created="-3h").holds("x", "b01#0-4"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "simple", "a half too much beside two running spares",
        lambda s: s.run("x", 4, spares=1, created="-3h").holds("x", "b01#0-3").holds("x", "b01#4", role="Spare"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "gang", "spares beyond the concurrency", lambda s: s.envelope("org-a", {"concurrency": 19}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "gang", "a thousandth by a dearer spare", lambda s: s.policy(spares={"discount": 0.501}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "family", "one GPU beyond a parent's concurrency",
        lambda s: s.run("x", 8, owner="org", created="-3h").holds("x", "b01#0-7", payer="org/gpus"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "caps", "one GPU beyond the aggregate",
        lambda s: s.edit(
            "Budget", "org-a-x",
            {"spec": {"aggregateCaps": [{"name": "both", "envelopes": ["one", "two"], "maxConcurrency": 9}]}},
        ),
        "no-overdraft-aggregate classes-partition-width",
    ),
    Spoil(
        "caps", "one GPU beyond the subtree", lambda s: s.envelope("org-a", {"concurrency": 11}),
        "no-overdraft-subtree classes-partition-width",
    ),
    Spoil(
        "loan", "one GPU beyond the lending cap", lambda s: s.envelope("org-l", {"lending": {"maxConcurrency": 4}}),
        "no-overdraft-lending classes-partition-width status-agrees",
    ),
    Spoil(
        "hours", "hours that are gone",
        lambda s: s.envelope("org-a", {"maxGPUHours": 46}).turns("v-0", "unfunded"),
        "no-overdraft-hours classes-partition-width",
    ),
    Spoil(
        "credits", "credits that are gone", lambda s: s.envelope("org-a", {"maxCredits": 0}),
        "no-overdraft-credits classes-partition-width",
    ),
    Spoil("hours", "a second too little ahead", lambda s: s.edit("Run", "r", limit("19h1s")), "look-ahead-hours"),
    Spoil("hours", "a second too little beside v", lambda s: s.edit("Run", "v", limit("5h1s")), "look-ahead-hours"),
    Spoil("hours", "no limit, so a whole period ahead", lambda s: s.edit("Run", "r", limit(None)), "look-ahead-hours"),
    Spoil(
        "hours", "one more second spent",
        lambda s: s.old.append(
            s.lease("done", "a02#4", start=ago("2h"), ended=ago("2h") + 1, closure="Completed", name="done-9")
        ),
        "look-ahead-hours",
    ),
    Spoil(
        "hours", "hours of an aggregate",
        lambda s: s.edit(
            "Budget", "org-a", {"spec": {"aggregateCaps": [{"name": "all", "envelopes": ["gpus"], "maxGPUHours": 99}]}}
        ),
        "look-ahead-hours",
    ),
    Spoil(
        "hours", "hours of a subtree",
        lambda s: s.budget("org", envelope(8, scope="subtree", maxGPUHours=99)), "look-ahead-hours",
    ),
    Spoil(
        "loan", "hours of loans", lambda s: s.envelope("org-l", {"lending": {"maxGPUHours": 120}}), "look-ahead-hours",
    ),
    Spoil(
        "credits", "a second of credits too little", lambda s: s.edit("Run", "r", limit("12h30m1s")),
        "look-ahead-credits",
    ),
    Spoil(
        "credits", "a dearer flavor", lambda s: s.policy(creditRates={"H100-80GB": 2.001}),
        "look-ahead-credits class-derived",
    ),
    Spoil(
        "bound", "one GPU beyond the tree's quota", lambda s: s.edit("Run", "root", {"spec": {"quota": {"maxGPUs": 5}}}),
        "tree-quota",
    ),
    Spoil(
        "bound", "a GPU-hour beyond the tree's quota",
        lambda s: s.edit("Run", "root", {"spec": {"quota": {"maxGPUHours": 145}}}), "tree-quota",
    ),
]  # fmt: skip

LEDGER = [
    Spoil(
        "classes", "a recalled claim that stays funded", lambda s: s.segments.clear(),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "classes", "a claim that loses its class for nothing", lambda s: s.turns("own-0", "unfunded"),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "classes", "a class that is another's", lambda s: s.turns("kid-0", "owned"),
        "class-derived classes-partition-width",
    ),
    Spoil("classes", "a segment that repeats the last", lambda s: s.turns("kid-0", "shared"), "segments-append-only"),
    Spoil(
        "classes", "a segment on top of the last",
        lambda s: (s.segments.clear(), s.turns("cousin-0", "unfunded", since=ago("3h"))), "segments-append-only",
    ),
    Spoil(
        "classes", "a segment in the future",
        lambda s: (s.segments.clear(), s.turns("cousin-0", "unfunded", since=s.at + 1)), "segments-append-only",
    ),
    Spoil("classes", "a segment of no lease", lambda s: s.turns("nobody-0", "unfunded"), "segments-append-only"),
    Spoil("hours", "a segment of a closed lease", lambda s: s.turns("done-0", "unfunded"), "segments-append-only"),
    Spoil(
        "classes", "a change of class of what a quarantined Budget pays",
        lambda s: (s.quarantine("Budget", "org-a"), s.new.clear()), "class-derived classes-partition-width",
    ),
    Spoil(
        "simple", "a start of another class", lambda s: s.relabel(0, funding=(Scene.entry("shared", s.at),)),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "simple", "a ledger older than its lease", lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at - 1),)),
        "class-derived",
    ),
    Spoil(
        "simple", "a ledger that has ended", lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at, s.at + 9),)),
        "class-derived",
    ),
    Spoil(
        "simple", "a start without a ledger", lambda s: s.relabel(0, funding=()),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "simple", "a credit rate that there is not",
        lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at, rate=1),)), "class-derived",
    ),
    Spoil(
        "credits", "a credit rate left out", lambda s: s.relabel(0, funding=(Scene.entry("owned", s.at),)),
        "class-derived",
    ),
    Spoil(
        "hours", "a credit rate that has come", lambda s: s.policy(creditRates={"H100-80GB": 2})
        .relabel(0, funding=(Scene.entry("owned", s.at, rate=2),)),
        "class-derived",
    ),
]  # fmt: skip


def usage(**changes: float) -> Scene:
    """The usage of org-a in the scene of hours: 46 GPU-hours consumed; 4 GPUs of v and 2 of r."""
    seconds = 46 * 3600
    true = {"owned_gpus": 6, "headroom_gpus": 2, "gpu_seconds_consumed": seconds, "gpu_hours_consumed": 46}
    record = EnvelopeUsage(name="gpus", **(true | changes))  # type: ignore[arg-type]
    update = BudgetUpdate(name="org-a", status=BudgetStatus(envelopes=(record,)))
    return Scene().then(plan(budgets=[update]))


USAGE = [
    Spoil("hours", "a GPU too many in the usage", lambda s: s.last.extend(usage(owned_gpus=7).last), "usage-agrees"),
    Spoil("hours", "a GPU of another class in it", lambda s: s.last.extend(usage(shared_gpus=1).last), "usage-agrees"),
    Spoil("hours", "a spare in it", lambda s: s.last.extend(usage(spare_gpus=1).last), "usage-agrees"),
    Spoil("hours", "more headroom than there is", lambda s: s.last.extend(usage(headroom_gpus=3).last), "usage-agrees"),
    Spoil(
        "hours", "a GPU-second too few in it",
        lambda s: s.last.extend(usage(gpu_seconds_consumed=46 * 3600 - 1).last), "charges-are-ledger",
    ),
    Spoil(
        "hours", "a hundredth of a GPU-hour in it",
        lambda s: s.last.extend(usage(gpu_hours_consumed=46.01).last), "charges-are-ledger",
    ),
    Spoil("hours", "credits in it that nothing cost", lambda s: s.last.extend(usage(credits_consumed=1).last), "charges-are-ledger"),
    Spoil(
        "hours", "the usage of no Budget",
        lambda s: s.then(plan(budgets=[BudgetUpdate(name="org-x", status=BudgetStatus(envelopes=(EnvelopeUsage(name="gpus"),)))])),
        "usage-agrees",
    ),
    Spoil(
        "hours", "usage that leaves an envelope out",
        lambda s: s.then(plan(budgets=[BudgetUpdate(name="org-a", status=BudgetStatus())])), "usage-agrees",
    ),
]  # fmt: skip


@pytest.mark.parametrize("spoil", [*PAYERS, *CAPS, *LEDGER, *USAGE], ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
