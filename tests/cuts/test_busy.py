"""A busy small world, cycle after cycle: every cut is for a start that uses its room; the checker passes every plan."""

import random
from typing import Any

import pytest

from tests.support.effort import share
from tests.support.worlds import Cycle, World

OWNERS = ("org:a", "org:b", "org:c")


def unused(cycle: Cycle) -> list[str]:
    """Reservations for which this plan cut something, and whose run it did not start where any of that lay."""
    started = {(lease.namespace, lease.spec.run_ref.run_name): set[str]() for lease in cycle.plan.leases}
    for lease in cycle.plan.leases:
        started[lease.namespace, lease.spec.run_ref.run_name].add(lease.spec.node)
    due = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["spec"]["runRef"]["name"]
        for each in cycle.all("Reservation")
    }
    nodes = {row["metadata"]["name"]: row["spec"]["slice"]["nodes"][0].partition("#")[0] for row in cycle.all("Lease")}
    cut: dict[str, set[str]] = {}
    for closure in cycle.plan.closures:
        if closure.made_room_for:
            cut.setdefault(closure.made_room_for, set()).add(nodes[closure.name])
    return [name for name, where in cut.items() if not where & started.get(("default", due[name]), set())]


@pytest.mark.slow
def test_no_cut_is_for_nothing() -> None:
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
        cycle = world.cycle(f"+{minute}m")
        assert unused(cycle) == []
        cut += len({closure.made_room_for for closure in cycle.plan.closures if closure.made_room_for})
    assert cut > 0
