"""A busy small world, cycle after cycle: no cut could be left out; the checker passes every plan."""

import random
from typing import Any

import pytest

from benchmarks.streams.unneeded import unneeded
from jobtree.cluster.statefile import StateFile
from tests.support.effort import share
from tests.support.times import unix
from tests.support.worlds import World

OWNERS = ("org:a", "org:b", "org:c")
ROOM = {"A": 24, "B": 16}
DOMAIN = {"a01": "A", "a02": "A", "a03": "A", "b01": "B", "b02": "B"}


@pytest.mark.slow
def test_no_cut_could_be_left_out() -> None:
    chance = random.Random(7)
    world = World().domain("A", nodes=3).domain("B", nodes=2)
    world.policy(lottery={"term": "30m"}, reservations={"patience": "10m", "notice": "5m"})
    for owner in OWNERS:
        world.budget(owner, 40)
    cut = 0
    for minute in range(share(150)):
        if chance.random() < 0.5:
            fields: dict[str, Any] = {}
            if chance.random() < 0.3:
                fields = {"by": 4, "malleable": {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}}
            elif chance.random() < 0.2:
                fields = {"funding": {"opportunistic": True}}
            gpus = 12 if "malleable" in fields else chance.choice([2, 4, 8, 8])
            limit = chance.choice([None, None, "40m"])
            stamp = f"+{minute}m"
            world.run(f"r{minute:03}", gpus, owner=chance.choice(OWNERS), limit=limit, created=stamp, **fields)
        before = StateFile(world.save(f"+{minute}m"), unix(f"+{minute}m")).read()
        cycle = world.cycle(f"+{minute}m")
        assert unneeded(ROOM, DOMAIN, before, cycle.plan) == []
        cut += len({closure.made_room_for for closure in cycle.plan.closures if closure.made_room_for})
    assert cut > 0
