"""The plan as a record (spec §4): every wrong word is caught under its own name."""

import pytest

from jobtree.world.plan import Wait
from tests.check.spoils import (
    Spoil,
    backwards,
    each,
    finishing,
    more,
    plan,
    shorts,
    stage,
    twice,
    without,
)

SPOILS = [
    Spoil("simple", "another snapshot", lambda s: s.then(plan(snapshot="0" * 64)), "plan-names-snapshot"),
    Spoil("simple", "another policy", lambda s: s.then(plan(policy="0" * 64)), "plan-names-snapshot"),
    Spoil("simple", "another world", lambda s: s.then(plan(given="0" * 64)), "plan-names-snapshot"),
    Spoil("simple", "a world that has long been the same", lambda s: s.then(plan(changed=0)), "plan-names-snapshot"),
    Spoil(
        "simple",
        "a world that changes, and is the same",
        lambda s: s.since(s.at - 60).then(plan(changed=s.at)),
        "plan-names-snapshot",
    ),
    Spoil("simple", "another version", lambda s: s.then(plan(version=99)), "plan-names-snapshot"),
    *(
        Spoil(scene, f"{field} in another order", finishing(backwards(field)), "plan-sorted")
        for scene, field in (("gang", "leases"), ("endings", "closures"), ("simple", "runs"))
    ),
    Spoil("simple", "a value that is one too high", lambda s: s.then(stage(value=1, bound=1)), "stage-value"),
    Spoil("simple", "a value that is one too low", lambda s: s.then(stage(value=-1)), "stage-value"),
    Spoil("simple", "a bound below the best", lambda s: s.then(stage(bound=-1)), "stage-bound"),
    Spoil(
        "simple",
        "a bound above the least",
        lambda s: s.then(stage(bound=1)).then(each("stages", sense="min")),
        "stage-bound",
    ),
    Spoil("family", "payers that rank otherwise", lambda s: s.then(each("stages", name="payers")), "stage-value"),
    Spoil("simple", "domains that are more", lambda s: s.then(each("stages", name="domains")), "stage-value"),
    Spoil(
        "opportunistic",
        "unfunded work that counts as funded",
        lambda s: s.then(each("stages", name="opportunistic")),
        "stage-value",
    ),
    Spoil("simple", "a run that starts and waits", lambda s: s.then(each("waits", name="r")), "wait-or-start"),
    Spoil("simple", "a run that neither starts nor waits", lambda s: s.then(without("waits", "w")), "wait-or-start"),
    Spoil(
        "simple",
        "a wait of no run",
        lambda s: s.then(more("waits", Wait(namespace="default", name="z", reason="NoRoom", message="It waits."))),
        "wait-or-start",
    ),
    Spoil("simple", "a wait that is told twice", lambda s: s.then(twice("waits")), "unique-names"),
    Spoil("simple", "a wait without a reason", lambda s: s.then(each("waits", reason="")), "wait-words"),
    Spoil("simple", "a wait without a sentence", lambda s: s.then(each("waits", message="")), "wait-words"),
    Spoil("simple", "a shortage of nothing", lambda s: s.then(each("waits", shorts=shorts(0))), "wait-words"),
    Spoil("simple", "shortages the smallest first", lambda s: s.then(each("waits", shorts=shorts(1, 2))), "wait-words"),
    Spoil("simple", "a deficit below nothing", lambda s: s.then(each("waits", deficit_gpus=-1)), "wait-words"),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
