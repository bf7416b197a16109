"""A cycle that dies once its draws are in the lake is rolled forward, never drawn again (spec §6, §8)."""

# ruff: noqa: N802  the tests are called by the ids of their cases

from collections.abc import Iterator
from contextlib import closing

import pytest

from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake
from exporters.plans import planjson
from jobtree.cluster.statefile import StateFile
from tests.support.killed import before_the_first_write
from tests.support.times import unix
from tests.support.worlds import World


@pytest.fixture
def planner() -> Iterator[Planner]:
    with closing(Planner()) as made:
        yield made


def test_X9_the_next_cycle_carries_out_the_same_draws(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().domain("A", nodes=4)
    for owner in ("p", "q", "r", "s", "w"):
        world.budget(f"org:{owner}", 96)
    for name in ("p", "q", "r", "s"):
        world.run(name, 8, owner=f"org:{name}", runtime={"requeue": True})
    world.old()
    world.run("w", 16, by=8, owner="org:w").cycle()

    lake = Lake(world.lake, world.path.name)
    before_the_first_write(
        lambda: run_cycle(StateFile(world.path, unix("+15m")), unix("+15m"), lake, planner), monkeypatch
    )
    assert world.state().leases(open=False) == []
    (stored,) = world.lake.glob("cycles/date=2026-01-01/20260101T001500Z/plan.json")
    planned = planjson.decode(stored.read_bytes()).lottery
    assert planned is not None
    cycle = world.cycle("+16m")
    lost = sorted(f"default/{row.run}#{row.group}" for row in cycle.leases(open=False))
    assert lost == sorted(planned.draws[0].picks)
    (told,) = (each["status"]["lottery"] for each in cycle.all("Plan") if "lottery" in each["status"])
    assert (told["position"], told["secret"], tuple(told["draws"][0]["picks"])) == (
        planned.position, planned.secret, planned.draws[0].picks,
    )  # fmt: skip
    assert cycle.phases["w"] == "Running"
    assert cycle.get("ConfigMap", "jobtree-lottery")["data"]["position"] == "1"
