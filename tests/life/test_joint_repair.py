"""Several failures at once are repaired together, at the least loss of tenants (spec §7): against every choice."""

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from planner.effort import USUAL
from planner.state.running.standbys import Standby, Tenant, Want, reclaimed, taken
from tests.support.effort import examples

TENANTS = [Tenant(("default", name), -1) for name in "abcde"]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Want], dict[Tenant, int]]:
    """One to three groups that lost pods, each with at least as many standbys, and tenants on some of these."""
    wants = []
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 5))
        standbys = []
        for place in range(count):
            on = frozenset(draw(st.sets(st.sampled_from(TENANTS), max_size=2)))
            standbys.append(Standby(draw(st.sampled_from("xyz")), (place,), on, ()))
        pods = draw(st.integers(1, count))
        wants.append(Want(("default", f"r{number}"), 0, pods, sorted(standbys, key=lambda each: each.node)))
    gpus = {tenant: draw(st.integers(1, 8)) for tenant in TENANTS}
    there = {tenant for want in wants for standby in want.standbys for tenant in standby.tenants}
    return wants, {tenant: count for tenant, count in gpus.items() if tenant in there}


def is_repaired(wants: list[Want], gone: frozenset[Tenant]) -> bool:
    """Has every group its standbys when these tenants are gone?"""
    return all(sum(each.tenants <= gone for each in want.standbys) >= want.pods for want in wants)


@examples(300)
@given(worlds())
def test_no_set_of_tenants_that_repairs_all_holds_fewer_gpus(world: tuple[list[Want], dict[Tenant, int]]) -> None:
    wants, gpus = world
    sets = chain.from_iterable(combinations(gpus, count) for count in range(len(gpus) + 1))
    least = min(sum(gpus[tenant] for tenant in each) for each in sets if is_repaired(wants, frozenset(each)))

    gone = reclaimed(wants, gpus, USUAL.nodes)
    assert (is_repaired(wants, gone), sum(gpus[tenant] for tenant in gone)) == (True, least)
    for want in wants:
        chosen = taken(want, gone)
        assert (len(chosen), len({(each.node, each.ordinals) for each in chosen})) == (want.pods, want.pods)
        assert all(each.tenants <= gone for each in chosen)
