"""Caps, one unit beyond each of them (spec §3.4): caught under its own name."""

import pytest

from tests.check.scene import ago
from tests.check.spoils import (
    Spoil,
    limit,
    spent_below,
    unreadable,
    used,
)
from tests.support.documents import envelope

SPOILS = [
    Spoil(
        "simple",
        "one GPU beyond the concurrency",
        lambda s: s.envelope("org-a", {"concurrency": 3}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "simple",
        "one GPU beyond it beside running work",
        lambda s: s.run("x", 5, created="-3h").holds("x", "b01#0-4"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "simple",
        "a half too much beside two running spares",
        lambda s: s.run("x", 4, spares=1, created="-3h").holds("x", "b01#0-3").holds("x", "b01#4", role="Spare"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "gang",
        "spares beyond the concurrency",
        lambda s: s.envelope("org-a", {"concurrency": 19}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "gang",
        "a thousandth by a dearer spare",
        lambda s: s.policy(spares={"discount": 0.501}),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "family",
        "one GPU beyond a parent's concurrency",
        lambda s: s.run("x", 8, owner="org", created="-3h").holds("x", "b01#0-7", payer="org/gpus"),
        "no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "caps",
        "one GPU beyond the aggregate",
        lambda s: s.edit(
            "Budget",
            "org-a-x",
            {"spec": {"aggregateCaps": [{"name": "both", "envelopes": ["one", "two"], "maxConcurrency": 9}]}},
        ),
        "no-overdraft-aggregate classes-partition-width",
    ),
    Spoil(
        "caps",
        "one GPU beyond the subtree",
        lambda s: s.envelope("org-a", {"concurrency": 11}),
        "no-overdraft-subtree classes-partition-width",
    ),
    Spoil(
        "caps",
        "no room in the subtree beside what a Budget pays that cannot be read",
        unreadable,
        "no-overdraft-subtree classes-partition-width",
    ),
    Spoil(
        "loan",
        "one GPU beyond the lending cap",
        lambda s: s.envelope("org-l", {"lending": {"maxConcurrency": 4}}),
        "no-overdraft-lending classes-partition-width status-agrees",
    ),
    Spoil(
        "caps",
        "one GPU beyond the use cap of its owner, whoever pays",
        lambda s: used(s, maxConcurrency=9),
        "no-overdraft-use-cap classes-partition-width",
    ),
    Spoil(
        "caps",
        "one GPU beyond the use cap of an owner above, which counts its own run too",
        lambda s: used(s, "org:a", maxConcurrency=11),
        "no-overdraft-use-cap classes-partition-width",
    ),
    Spoil(
        "caps",
        "one GPU beyond the use cap of an owner above that has no envelope",
        lambda s: used(s, "org", maxConcurrency=11),
        "no-overdraft-use-cap classes-partition-width",
    ),
    Spoil("caps", "hours of a use cap", lambda s: used(s, maxGPUHours=239), "look-ahead-hours"),
    Spoil("caps", "one GPU beyond what a run may use", lambda s: used(s, perRun={"maxGPUs": 9}), "use-run-gpus"),
    Spoil(
        "caps", "a run without a limit where one is due", lambda s: used(s, perRun={"maxTime": "9d"}), "use-run-time"
    ),
    Spoil(
        "loan",
        "one GPU beyond the use cap of a borrower",
        lambda s: used(s, "team:a", maxConcurrency=7),
        "no-overdraft-use-cap classes-partition-width",
    ),
    Spoil(
        "hours",
        "hours that are gone",
        lambda s: s.envelope("org-a", {"maxGPUHours": 46}).turns("v-0", "unfunded"),
        "no-overdraft-hours classes-partition-width",
    ),
    Spoil(
        "credits",
        "credits that are gone",
        lambda s: s.envelope("org-a", {"maxCredits": 0}),
        "no-overdraft-credits classes-partition-width",
    ),
    Spoil("hours", "a second too little ahead", lambda s: s.edit("Run", "r", limit("19h1s")), "look-ahead-hours"),
    Spoil("hours", "a second too little beside v", lambda s: s.edit("Run", "v", limit("5h1s")), "look-ahead-hours"),
    Spoil("hours", "no limit, so a whole period ahead", lambda s: s.edit("Run", "r", limit(None)), "look-ahead-hours"),
    Spoil(
        "hours",
        "one more second spent",
        lambda s: s.had("done", "a02#4", ago("2h"), ago("2h") + 1, name="done-9"),
        "look-ahead-hours",
    ),
    Spoil(
        "hours",
        "hours of an aggregate",
        lambda s: s.edit(
            "Budget", "org-a", {"spec": {"aggregateCaps": [{"name": "all", "envelopes": ["gpus"], "maxGPUHours": 99}]}}
        ),
        "look-ahead-hours",
    ),
    Spoil(
        "hours",
        "hours of a subtree",
        lambda s: s.budget("org", envelope(8, scope="subtree", maxGPUHours=99)),
        "look-ahead-hours",
    ),
    Spoil(
        "hours",
        "hours of a subtree that a Budget spent which is gone",
        lambda s: spent_below(s, hours=100 + 6 - 1),
        "look-ahead-hours",
    ),
    Spoil(
        "loan",
        "hours of loans",
        lambda s: s.envelope("org-l", {"lending": {"maxGPUHours": 120}}),
        "look-ahead-hours",
    ),
    Spoil(
        "credits",
        "a second of credits too little",
        lambda s: s.edit("Run", "r", limit("12h30m1s")),
        "look-ahead-credits",
    ),
    Spoil(
        "credits",
        "a dearer flavor",
        lambda s: s.policy(creditRates={"H100-80GB": 2.001}),
        "look-ahead-credits class-derived",
    ),
    Spoil(
        "recall",
        "a start as far as what another one recalls",
        lambda s: s.edit("Run", "niece", {"spec": {"owner": "org:b:y"}}).respec(0, run_owner="org:b:y"),
        "recall-justified",
    ),
    Spoil(
        "recall",
        "a recall in a world that has been the same since the claim was admitted",
        lambda s: s.since(ago("3h")),
        "recall-justified",
    ),
    Spoil(
        "recall",
        "a recall that the ledger does not say",
        lambda s: s.unturned(),
        "class-derived classes-partition-width",
    ),
    Spoil(
        "bound",
        "one GPU beyond the tree's quota",
        lambda s: s.edit("Run", "root", {"spec": {"quota": {"maxGPUs": 5}}}),
        "tree-quota",
    ),
    Spoil(
        "bound",
        "a GPU-hour beyond the tree's quota",
        lambda s: s.edit("Run", "root", {"spec": {"quota": {"maxGPUHours": 145}}}),
        "tree-quota",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
