"""What a simulation's plans make together: a plan that breaks it ends the simulation, with its sentence."""

import pytest

from jobtree.api import Refusal
from jobtree.world.plan import Plan
from simulator.lives import Life, Lives
from tests.simulate.plans import closure, ended, lease, plan


def lives() -> Lives:
    found = Lives({("a", "quota"): 4})
    found.follow(plan(leases=[lease("one", 0, 1), lease("spare", 2, run="r", role="Spare")]))
    return found


def test_plans_add_up() -> None:
    found = lives()

    changed = found.follow(plan(
        closures=[closure("spare")], leases=[lease("two", 0, run="s", role="Spare"), lease("three", 2, run="t")]
    ))  # fmt: skip

    assert changed == {("default", "t")}
    assert found.of([("default", "r"), ("default", "s"), ("default", "t")]) == {
        ("default", "r"): (frozenset({"n1"}), 2),
        ("default", "s"): (frozenset(), 0),
        ("default", "t"): (frozenset({"n1"}), 1),
    }
    assert dict(found.active())["default", "three"] == Life(
        ("default", "t"), "n1", ("n1#2",), True, ("a", "quota"), True
    )


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        (plan(leases=[lease("two", 1)]), "Lease default/two: slot n1#1 is held by Lease default/one too"),
        (plan(leases=[lease("two", 2, role="Spare")]), "slot n1#2 is held by Lease default/spare too"),
        (plan(leases=[lease("one", 3)]), "Lease default/one: a lease of that name was opened before"),
        (plan(closures=[closure("one"), closure("one")]), "Lease default/one: it is closed, and was closed before"),
        (plan(closures=[closure("none")]), "Lease default/none: it is closed, and was never opened"),
        (plan(closures=[closure("one")], leases=[lease("one", 3)]), "a lease of that name was opened before"),
        (plan(runs=[ended("r")]), "Lease default/one: its run default/r has come to its end"),
        (plan(leases=[lease("two", 3, 4, 5)]), "a/quota: it pays for 5 GPUs, and may for 4"),
    ],
)
def test_what_breaks_ends_the_simulation(spoiled: Plan, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        lives().follow(spoiled)


def test_what_is_unfunded_overdraws_nothing() -> None:
    found = lives()

    found.follow(plan(leases=[lease("two", 3, 4, 5, funded=False)]))

    assert found.overdraft() == {}
