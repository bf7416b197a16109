"""Plans of fixed worlds stay as they are, byte for byte (see `tests.support.golden`)."""

from pathlib import Path
from typing import Final

import pytest

import planner
from benchmarks import fleet
from benchmarks.catalogue import CASES
from benchmarks.fleet.recipe import DAYS, EQUAL, HOURS, ODD, Recipe
from exporters.plans import planjson
from jobtree.cluster.statefile import StateFile
from jobtree.world.tables.snapshot import Snapshot, take
from tests.examples.test_worlds import WORLDS, read
from tests.golden import seeded
from tests.model.test_branching import AT as CROWDED_AT
from tests.model.test_branching import crowd
from tests.reference import worlds
from tests.support.effort import share
from tests.support.golden import digest, hold
from tests.support.times import unix

EACH: Final = min(12, share(12))
"""Reference worlds of each kind, eighty in all from effort 1 on."""
CROWDS: Final = 10
SMALL: Final = {
    "family": Recipe(gpus=1_000, pending=100, owners=20),
    "empty": Recipe(gpus=1_000, pending=100, owners=20, running=0.0),
    "odd": Recipe(gpus=1_000, pending=100, owners=20, grain=ODD),
    "private": Recipe(gpus=1_000, pending=100, owners=20, budgets="private", running=0.0, ages=DAYS),
    "cohorts": Recipe(gpus=800, pending=1_000, owners=30, budgets="cohorts", running=0.0),
    "equal": Recipe(gpus=1_000, pending=100, owners=20, ages=EQUAL),
    "hours": Recipe(gpus=1_000, pending=100, owners=20, ages=HOURS, seed=2),
}
"""The benchmarks' fleets at a size that takes seconds."""
QUICK: Final = ("private", "cohorts")
LARGE: Final = {case.name: case.recipe for case in CASES if case.name in ("equal-10k", "tight-10k-1")}
"""One solved by bands, one family by family."""


def planned(snapshot: Snapshot, at: int) -> str:
    """The digest of a plan's bytes."""
    return digest([planjson.encode(planner.plan(snapshot, at))])


def of_fleet(recipe: Recipe, folder: Path) -> str:
    """The same of a fleet of the benchmarks."""
    path = folder / "fleet.json"
    fleet.write_fleet(path, recipe)
    return planned(take(StateFile(path, fleet.AT).read()), fleet.AT)


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_reference_worlds(kind: str) -> None:
    hold({
        f"reference/{kind}-{seed}": planned(seeded.world(kind, seed).snapshot(), worlds.AT) for seed in range(EACH)
    })  # fmt: skip


@pytest.mark.slow
def test_crowds() -> None:
    hold({f"crowds/{seed}": planned(crowd(seed).snapshot(), CROWDED_AT) for seed in range(CROWDS)})


@pytest.mark.parametrize("name", WORLDS)
def test_examples(name: str) -> None:
    hold({f"examples/{name}": planned(take(read(name)), unix(WORLDS[name]))})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SMALL]
)
def test_fleets_of_1000_gpus(name: str, tmp_path: Path) -> None:
    hold({f"fleet-1k/{name}": of_fleet(SMALL[name], tmp_path)})


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_fleets_of_10000_gpus(name: str, tmp_path: Path) -> None:
    hold({f"fleet-10k/{name}": of_fleet(LARGE[name], tmp_path)})
