"""The example worlds are read whole, are legal, and are what they say."""

from collections import Counter

import pytest

from examples import demo
from jobtree.cluster.statefile import StateFile
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.snapshot import take
from reports.fleet.slots import fleet_slots
from tests.support import documents, invariants
from tests.support.console import ROOT
from tests.support.times import unix

WORLDS = {"philly": "2017-10-19T18:00:00Z", "cluster": "2025-11-01T13:50:00Z"}


def read(name: str) -> Intake:
    return StateFile(ROOT / f"examples/{name}.yaml", unix(WORLDS[name])).read()


@pytest.mark.parametrize("name", WORLDS)
def test_every_object_is_usable(name: str) -> None:
    assert read(name).quarantined == ()


@pytest.mark.parametrize("name", WORLDS)
def test_what_runs_is_legal(name: str) -> None:
    found = documents.read(ROOT / f"examples/{name}.yaml")

    invariants.check(found, found, unix(WORLDS[name]))


def test_philly_holds_what_its_readme_says() -> None:
    intake = read("philly")
    slots = Counter(s.state for d in fleet_slots(take(intake).tables) for n in d.nodes for s in n.slots)
    waiting = [run.spec.resources.total_gpus or 0 for run in intake.runs if not run.status.conditions]

    assert unix(WORLDS["philly"]) == demo.NOW
    assert slots == {"running": 177, "free": 63}
    assert (len(waiting), sum(waiting), len(intake.budgets)) == (60, 182, 16)


def test_examples_are_small() -> None:
    sizes = [path.stat().st_size for path in (ROOT / "examples").glob("*.*")]

    assert max(sizes) < 300_000
    assert sum(sizes) < 800_000
