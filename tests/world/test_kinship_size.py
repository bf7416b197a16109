# ruff: noqa: N802 -- test names are case ids
"""A family in which there are a great many ways to one ancestor is read as fast as any other."""

from jobtree.check.case.accounts import Budget
from jobtree.check.case.kin import Kin
from jobtree.world.naming.kinship import Family


def test_V3_layers_of_owners_that_all_descend_from_the_layer_above() -> None:
    parents = {
        f"o{layer}-{place}": [f"o{layer - 1}-{up}" for up in range(16)] if layer else []
        for layer in range(20)
        for place in range(16)
    }
    family = Family(parents)
    kin = Kin([Budget(owner, owner, None, tuple(ups)) for owner, ups in parents.items()])

    assert len(family.lineage("o19-0")) == len(kin.line("o19-0")) == 19 * 16 + 1
    assert family.rank("o19-0", "o0-15") == kin.rank("o19-0", "o0-15") == 5
