"""Incumbents: whoever finishes one makes the same plan of it, so one that is cut off loses nothing but better ones."""

import msgspec
import pytest
from hypothesis import given

from exporters.plans import planjson
from jobtree.check import check
from planner import Planning, plan
from planner.search.incumbent import Incumbent
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.slow
@given(worlds.worlds("all"))
@examples(60)
def test_every_incumbent_is_a_whole_plan_wherever_it_is_finished(world: World) -> None:
    snapshot = world.snapshot()
    search = Planning(snapshot, AT)
    found = list(search.incumbents())
    told = [msgspec.msgpack.decode(msgspec.msgpack.encode(each), type=Incumbent) for each in found]
    here, elsewhere = [search.finish(each) for each in found], [Planning(snapshot, AT).finish(each) for each in told]

    assert [planjson.encode(each) for each in elsewhere] == [planjson.encode(each) for each in here]
    assert [str(violation) for each in here for violation in check(snapshot, each)] == []
    assert planjson.encode(here[-1]) == planjson.encode(plan(snapshot, AT))
