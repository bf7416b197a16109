"""Payers (spec §3.1–§3.4): everyone who must not pay is caught under its own name."""

import pytest

from jobtree.api import OwnerPath
from tests.check.scene import Scene
from tests.check.spoils import (
    Spoil,
    limit,
    payer,
    unpaid,
)
from tests.support.times import moment

SPOILS = [
    Spoil(
        "simple",
        "a Budget that is not there",
        lambda s: s.respec(0, paid_by=payer("org-x/gpus")),
        "payer-exists lease-truthful class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "an envelope that is not there",
        lambda s: s.respec(0, paid_by=payer("org-a/more")),
        "payer-exists class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "an envelope of another flavor",
        lambda s: s.envelope("org-a", {"flavor": "A100"}),
        "payer-flavor class-derived classes-partition-width",
    ),
    Spoil(
        "simple",
        "an envelope of another region",
        lambda s: s.envelope("org-a", {"selector": {"region": "us-east"}}),
        "payer-place",
    ),
    Spoil(
        "simple",
        "an envelope whose label no node has",
        lambda s: s.envelope("org-a", {"selector": {"regoin": "us-west"}}),
        "payer-place",
    ),
    Spoil(
        "simple",
        "a window that has just closed",
        lambda s: s.envelope("org-a", {"end": moment("+0s")}),
        "payer-window classes-partition-width",
    ),
    Spoil(
        "simple",
        "a window that opens in a second",
        lambda s: s.envelope("org-a", {"start": moment("+1s")}),
        "payer-window classes-partition-width",
    ),
    Spoil(
        "simple",
        "a limit one second past the window, refused",
        lambda s: (
            s.envelope("org-a", {"end": moment("+1h")})
            .edit("Run", "r", limit("1h1s"))
            .policy(funding={"pastWindow": "refuse"})
        ),
        "payer-window",
    ),
    Spoil(
        "simple",
        "no limit in a window that ends, refused",
        lambda s: s.envelope("org-a", {"end": moment("+1h")}).policy(funding={"pastWindow": "refuse"}),
        "payer-window",
    ),
    Spoil(
        "simple", "more than perRun.maxGPUs", lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 3}}), "per-run-gpus"
    ),
    Spoil(
        "gang",
        "spares beyond perRun.maxGPUs",
        lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 19}}),
        "per-run-gpus",
    ),
    Spoil(
        "malleable",
        "growth beyond perRun.maxGPUs",
        lambda s: s.envelope("org-a", {"perRun": {"maxGPUs": 15}}),
        "per-run-gpus",
    ),
    Spoil(
        "simple",
        "no limit where perRun.maxTime bounds it",
        lambda s: s.envelope("org-a", {"perRun": {"maxTime": "2h"}}),
        "per-run-time",
    ),
    Spoil(
        "hours",
        "a limit beyond perRun.maxTime",
        lambda s: s.envelope("org-a", {"perRun": {"maxTime": "18h59m59s"}}),
        "per-run-time",
    ),
    Spoil("family", "a parent that does not share", lambda s: s.envelope("org", {"sharing": "none"}), "payer-sharing"),
    Spoil(
        "family",
        "hours that are not shared unless said",
        lambda s: s.envelope("org", {"maxGPUHours": 1000}),
        "payer-sharing",
    ),
    Spoil(
        "family",
        "a stranger",
        lambda s: s.respec(2, paid_by=payer("corp/gpus"), owner=OwnerPath("corp")).relabel(
            2, funding=(Scene.entry("borrowed", s.at),)
        ),
        "payer-kin payer-lending",
    ),
    Spoil(
        "family",
        "a parent that the Budget denies",
        lambda s: s.edit("Budget", "org-a", {"spec": {"parents": []}}),
        "payer-kin payer-lending class-derived classes-partition-width status-agrees",
    ),
    Spoil(
        "loan",
        "a run that may not borrow",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"allowBorrow": False}}}),
        "payer-kin",
    ),
    Spoil(
        "loan",
        "a sponsor that is not listed",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"sponsors": ["org:z"]}}}),
        "payer-kin",
    ),
    Spoil(
        "loan",
        "a sponsor that does not lend",
        lambda s: s.envelope("org-l", {"lending": {"allow": False}}),
        "payer-lending",
    ),
    Spoil(
        "loan",
        "a borrower that no entry names",
        lambda s: s.envelope("org-l", {"lending": {"to": ["team:b", "team", "team:a:*"]}}),
        "payer-lending",
    ),
    Spoil(
        "loan",
        "a relative that neither shares nor lends",
        lambda s: (
            s.edit("Budget", "org-l", {"spec": {"owner": "team"}})
            .was("o-0", owner=OwnerPath("team"))
            .edit("Budget", "team-a", {"spec": {"parents": ["team"]}})
            .edit("Run", "r", {"spec": {"funding": {"sponsors": ["team"]}}})
            .respec(1, owner=OwnerPath("team"))
            .envelope("org-l", {"sharing": "none", "lending": {"allow": False}})
        ),
        "payer-lending",
    ),
    Spoil(
        "loan",
        "one GPU beyond maxBorrowGPUs",
        lambda s: s.edit("Run", "r", {"spec": {"funding": {"maxBorrowGPUs": 3}}}),
        "borrow-limit",
    ),
    Spoil("simple", "a start that nobody pays", lambda s: unpaid(s, 0), "funded-start"),
    Spoil("family", "a start that is paid in part", lambda s: unpaid(s, 2), "funded-start"),
    Spoil(
        "family",
        "a start by choice unfunded in part",
        lambda s: unpaid(s.edit("Run", "r", {"spec": {"funding": {"opportunistic": True}}}), 2),
        "funded-start",
    ),
    Spoil(
        "simple",
        "a namespace that may not charge",
        lambda s: s.edit("Budget", "org-a", {"spec": {"namespaces": ["team-a"]}}),
        "owner-namespace",
    ),
    Spoil(
        "family",
        "a namespace that the nearest list leaves out",
        lambda s: s.edit("Budget", "org", {"spec": {"namespaces": ["default"]}}).edit(
            "Budget", "org-a", {"spec": {"namespaces": ["team-a"]}}
        ),
        "owner-namespace",
    ),
    Spoil(
        "family",
        "a namespace that an inherited list leaves out",
        lambda s: s.edit("Budget", "org", {"spec": {"namespaces": ["team-a"]}}),
        "owner-namespace",
    ),
    Spoil(
        "simple",
        "an owner bound nowhere where a binding is required",
        lambda s: s.policy(tenancy={"requireBinding": True}),
        "owner-namespace",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
