"""Who stays funded when a cap holds only one of two claims (spec §3.5), as the checker derives it."""

from itertools import pairwise

import pytest

from jobtree.check import Before
from jobtree.check.case.accounts import Budget
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.claims import Claims
from jobtree.check.case.kin import Kin
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger
from tests.check.outcome import plan_of
from tests.check.scene import Scene, ago
from tests.support.documents import envelope


def classes(scene: Scene) -> dict[str, str]:
    """The present class of each lease that is held."""
    snapshot = scene.snapshot()
    case = Case(Before.of(snapshot, scene.at).told, plan_of(scene, snapshot))
    caps = Caps(case)
    found = Present(Claims(case, caps), Ledger(case, caps)).classes
    return {name: found["default", name] for name in sorted(lease.name for lease in scene.old)}


def two(first: str, second: str, *, cap: int = 2, starts: tuple[str, str] = ("3h", "2h")) -> dict[str, str]:
    """Claims of 2 GPUs of two owners at the envelope of org:p, of which ``cap`` hold; the first began earlier."""
    lending = {"allow": True, "maxDuration": "4h"}
    scene = Scene().domain("A", 8).budget("org:p", envelope(cap, lending=lending))
    scene.budget("org", envelope(1, sharing="none"), parents=[])
    scene.budget("org:s", envelope(1, sharing="none")).budget("corp", envelope(1, sharing="none"), parents=[])
    for number, (owner, start) in enumerate(zip((first, second), starts, strict=True)):
        scene.run(f"r{number}", 2, owner=owner, created="-30h")
        slots = f"a01#{2 * number}-{2 * number + 1}"
        scene.holds(f"r{number}", slots, payer="org-p/gpus", name=f"l{number}", start=ago(start))
    return classes(scene)


NEAREST_FIRST = ("org:p", "org:p:child", "org:s", "org", "org:s:cousin")
CLASS = {"org:p": "owned", "corp": "borrowed"}


@pytest.mark.parametrize(("nearer", "farther"), list(pairwise(NEAREST_FIRST)))
def test_the_nearer_claimant_stays_funded_though_it_came_later(nearer: str, farther: str) -> None:
    assert two(farther, nearer) == {"l0": "unfunded", "l1": CLASS.get(nearer, "shared")}


@pytest.mark.parametrize("owner", NEAREST_FIRST)
def test_of_equals_the_earlier_admission_stays_funded(owner: str) -> None:
    assert two(owner, owner, starts=("2h", "3h")) == {"l0": "unfunded", "l1": CLASS.get(owner, "shared")}


def test_a_young_loan_comes_before_the_owner() -> None:
    assert two("org:p", "corp", starts=("9h", "3h")) == {"l0": "unfunded", "l1": "borrowed"}


def test_a_loan_of_max_duration_comes_last() -> None:
    assert two("corp", "org:s:cousin", starts=("4h", "1h")) == {"l0": "unfunded", "l1": "shared"}


def test_a_claim_that_is_too_big_is_skipped_and_a_later_one_fits() -> None:
    scene = Scene().domain("A", 8).budget("org:a", envelope(3))
    scene.run("big", 4, created="-9h").run("small", 3, created="-9h")
    scene.holds("big", "a01#0-3", name="big", start=ago("3h")).holds("small", "a01#4-6", name="small")
    assert classes(scene) == {"big": "unfunded", "small": "owned"}


def test_a_malleable_claim_is_funded_group_by_group_from_0() -> None:
    scene = Scene().domain("A", 8, 8).budget("org:a", envelope(7))
    scene.run("m", 6, created="-9h", malleable={"minTotalGPUs": 2, "maxTotalGPUs": 6, "stepGPUs": 2})
    scene.run("r", 3, created="-9h").holds("r", "a02#0-2", name="r", start=ago("3h"))
    for group in (2, 0, 1):
        scene.holds("m", f"a01#{2 * group}-{2 * group + 1}", name=f"m{group}", group=group)
    assert classes(scene) == {"m0": "owned", "m1": "owned", "m2": "unfunded", "r": "owned"}


@pytest.mark.parametrize(("seconds", "expected"), [(0, "owned"), (1, "unfunded")])
def test_a_claim_is_funded_while_a_whole_second_of_it_is_left(seconds: int, expected: str) -> None:
    scene = Scene().domain("A", 8).budget("org:a", envelope(8, maxGPUHours=4)).run("r", 4, created="-9h")
    scene.holds("r", "a01#0-3", name="r", start=ago("1h") - seconds + 1)
    assert classes(scene) == {"r": expected}


def kin(**parents: tuple[str, ...] | None) -> Kin:
    return Kin([Budget(name, name.replace("_", ":"), None, above) for name, above in parents.items()])


def test_the_parent_is_the_longest_prefix_that_has_a_budget() -> None:
    family = kin(a=None, a_b=None, a_b_c_d=None)
    assert [family.parents(owner) for owner in ("a:b:c:d", "a:b:c:d:e", "a:b", "a", "x:y")] == [
        {"a:b"}, {"a:b:c:d"}, {"a"}, set(), set(),
    ]  # fmt: skip


def test_ranks_of_everyone() -> None:
    family = kin(a=None, a_b=None, a_c=None, a_b_d=None, x=())
    ranks = {owner: family.rank("a:b", owner) for owner in ("a:b", "a", "a:c", "a:b:d", "a:b:d:e", "x")}
    assert ranks == {"a:b": 0, "a": 1, "a:c": 2, "a:b:d": 3, "a:b:d:e": 5, "x": None}
    assert family.rank("a:b:d", "a") == 4
    assert family.rank("a:c", "a:b:d") == 5


def test_no_parents_is_a_root_and_two_parents_are_both_family() -> None:
    family = kin(a=None, a_b=(), c=None, a_d=("a", "c"))
    assert (family.rank("a:b", "a"), family.rank("a:d", "a"), family.rank("a:d", "c")) == (None, 1, 1)
    assert family.rank("a", "c") is None


def test_of_two_relations_the_nearest_counts() -> None:
    family = kin(p=None, y=("p",), x=("p", "y"))
    assert (family.rank("x", "y"), family.standing("x", "y")) == (1, 1)
    assert (family.rank("y", "x"), family.standing("y", "x")) == (2, 2)
