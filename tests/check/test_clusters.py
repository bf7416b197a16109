"""Claims that no cap ties together do not matter to each other: the checker asks of recall only those that do."""

from collections.abc import Iterable
from itertools import chain

import pytest
from hypothesis import given

import planner
from jobtree.check import Before
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.claims import Claim, Claims
from jobtree.check.case.rows import LeaseKey
from jobtree.check.money.classes import Present
from jobtree.check.money.ledger import Ledger
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.parametrize("kind", ["recall", "running"])
def test_a_cluster_alone_has_the_classes_that_it_has_among_all(kind: str) -> None:
    @examples(10)
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        snapshot = world.snapshot()
        case = Case(Before.of(snapshot, AT).told, planner.plan(snapshot, AT))
        claims = Claims(case, Caps(case))
        ledger = Ledger(case, claims.caps)
        together = Present(claims, ledger).classes

        assert sorted(leases_of(chain.from_iterable(claims.clusters))) == sorted(leases_of(claims.ordered))
        for cluster in claims.clusters:
            alone = Present(claims, ledger, cluster).classes
            mine = leases_of(cluster)
            assert {key: alone[key] for key in mine} == {key: together[key] for key in mine}

    holds()


def leases_of(some: Iterable[Claim]) -> list[LeaseKey]:
    """The leases of some claims."""
    return [lease.key for claim in some for part in claim.parts for lease in part.leases]
