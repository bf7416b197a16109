"""Usage of Budgets (spec §1, §3.6): every wrong figure is caught under its own name."""

import pytest

from jobtree.api.kinds.budget import BudgetStatus, EnvelopeUsage
from jobtree.world.plan import BudgetUpdate
from tests.check.spoils import (
    Spoil,
    capped,
    healthy,
    plan,
    sick,
    usage,
)

SPOILS = [
    Spoil("hours", "a GPU too many in the usage", lambda s: s.then(usage(owned_gpus=7)), "usage-agrees"),
    Spoil("hours", "a GPU of another class in it", lambda s: s.then(usage(shared_gpus=1)), "usage-agrees"),
    Spoil("hours", "a spare in it", lambda s: s.then(usage(spare_gpus=1)), "usage-agrees"),
    Spoil("hours", "more headroom than there is", lambda s: s.then(usage(headroom_gpus=3)), "usage-agrees"),
    Spoil("hours", "less headroom than there is", lambda s: s.then(usage(headroom_gpus=1.5)), "usage-agrees"),
    Spoil("hours", "fewer hours committed", lambda s: s.then(usage(gpu_hours_committed=53)), "usage-agrees"),
    Spoil("hours", "hours left that are committed", lambda s: s.then(usage(headroom_gpu_hours=1)), "usage-agrees"),
    Spoil("hours", "no hours left to be told", lambda s: s.then(usage(headroom_gpu_hours=None)), "usage-agrees"),
    Spoil("hours", "credits left that are no cap", lambda s: s.then(usage(headroom_credits=9)), "usage-agrees"),
    Spoil("hours", "a usage without its aggregate cap", lambda s: capped(s).then(usage()), "usage-agrees"),
    Spoil(
        "hours",
        "an aggregate cap with room that its envelopes have not",
        lambda s: capped(s).then(usage(aggregate=4)),
        "usage-agrees",
    ),
    Spoil(
        "hours",
        "a Budget that is not healthy with nothing beyond its caps",
        lambda s: s.then(sick(usage())),
        "usage-agrees",
    ),
    Spoil(
        "classes",
        "a Budget that is healthy with work beyond its caps",
        lambda s: s.then(
            healthy(
                owned_gpus=4,
                shared_gpus=2,
                unfunded_gpus=2,
                gpu_seconds_consumed=12 * 3600,
                gpu_hours_consumed=12,
                gpu_hours_committed=144,
            )
        ),
        "usage-agrees",
    ),
    Spoil(
        "hours",
        "a GPU-second too few in it",
        lambda s: s.then(usage(gpu_seconds_consumed=46 * 3600 - 1)),
        "charges-are-ledger",
    ),
    Spoil(
        "hours",
        "a hundredth of a GPU-hour in it",
        lambda s: s.then(usage(gpu_hours_consumed=46.01)),
        "charges-are-ledger",
    ),
    Spoil(
        "hours", "credits in it that nothing cost", lambda s: s.then(usage(credits_consumed=1)), "charges-are-ledger"
    ),
    Spoil(
        "hours",
        "the usage of no Budget",
        lambda s: s.then(
            plan(budgets=[BudgetUpdate(name="org-x", status=BudgetStatus(envelopes=(EnvelopeUsage(name="gpus"),)))])
        ),
        "usage-agrees",
    ),
    Spoil(
        "hours",
        "usage that leaves an envelope out",
        lambda s: s.then(plan(budgets=[BudgetUpdate(name="org-a", status=BudgetStatus())])),
        "usage-agrees",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
