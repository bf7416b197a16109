"""The benchmark itself: what it measures, and the page it writes."""

import platform
from pathlib import Path

import msgspec
import pytest

from benchmarks import fleet, load, machine
from benchmarks.catalogue import CASES, Case, chosen, fresh
from benchmarks.clock import Clock
from benchmarks.cycles import baselines, steps, tables
from benchmarks.cycles.baselines import Baseline
from benchmarks.cycles.cycle import Usage
from benchmarks.cycles.run import Cycle, Facts, Measured, measure
from benchmarks.fleet.recipe import Recipe
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Stage
from jobtree.world.tables.snapshot import take
from planner import Planning
from planner.search.certificates import Step
from tests.reference.large import AS_LARGE

TINY = Recipe(gpus=128, pending=12, owners=12, running=0.85)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "CACHE", tmp_path / "cache")


def test_fresh_fleets_hang_on_the_commit_alone() -> None:
    cases = fresh("abc")

    assert [case.name for case in cases[:2]] == ["fresh-10k-3128432319", "fresh-10k-2399260650"]  # ba7816bf 8f01cfea
    assert [case.recipe.gpus for case in cases] == [10_000] * 10 + [100_000] * 5
    assert len({case.recipe.seed for case in cases}) == 10


@pytest.mark.slow
def test_a_pair_of_cycles_is_measured_on_a_copy() -> None:
    path = load.world(TINY)
    before = path.read_bytes()

    found = measure(Case(name="tiny", recipe=TINY, what="pair"))

    first, second = found.cycles
    assert path.read_bytes() == before
    assert (found.facts.gpus, found.facts.running_gpus, found.facts.pending_runs) == (128, 109, 12)
    assert list(first.phases) == ["read", "complete", "snapshot", "plan", "check", "record", "write"]
    assert first.value in [stage.value for stage in first.stages]
    assert (second.started_runs, second.truncated) == (0, False)
    assert [each.name for each in found.baselines] == list(baselines.ORDERS)
    assert [step.name for step in found.steps] == ["whole", "placed", "paid", "topped up"]
    assert found.steps[-1].value == first.value


@pytest.mark.slow
def test_what_dates_add_is_measured_on_a_world_without_any() -> None:
    found = measure(Case(name="tiny", recipe=TINY, what="dates"))

    assert [each.started_runs for each in found.undated] == [each.started_runs for each in found.cycles]
    assert found.undated[0].stages == found.cycles[0].stages
    page = tables.markdown(tables.Result(date="2026-01-12", machine=machine.describe(), measured=[found]))
    (dates,) = [part for part in page.split("## ") if part.startswith("Forecast and promises")]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in dates.splitlines() if line.startswith("| tiny")
    ]
    assert [row[0] for row in rows] == ["tiny", "tiny, a minute later"]
    assert [row[-2] for row in rows] == [row[-1] for row in rows]


def test_each_part_of_the_search_says_what_it_leaves(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.write_fleet(path, Recipe(gpus=256, pending=60, owners=12, running=0.5))

    *_, last = Planning(take(StateFile(path, fleet.AT).read()), fleet.AT, AS_LARGE).outcomes()

    (starts, *_), values = last.stages, dict(last.steps)
    assert [name for name in steps.NAMES if name in values] == [name for name, _ in last.steps]
    assert values["relaxation"] >= values["allowed"] >= values["whole"] >= values["placed"] >= values["paid"]
    assert values["paid"] <= values["topped up"] == starts.value


@pytest.mark.slow
def test_a_solver_that_hangs_is_ended_from_outside() -> None:
    recipe = msgspec.structs.replace(TINY, deadline=1)
    path = load.world(recipe)

    (cycle,) = measure(Case(name="hang", recipe=recipe, what="hang", bound_of="tiny")).cycles

    first = next(Planning(take(StateFile(path, fleet.AT).read()), fleet.AT).incumbents())
    assert (cycle.truncated, cycle.stages) == (True, first.stages)


@pytest.mark.parametrize("budgets", ["family", "private", "cohorts"])
def test_the_order_by_age_is_the_planners_first_plan_and_no_order_beats_its_last(budgets: str, tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.write_fleet(path, Recipe(gpus=256, pending=60, owners=12, running=0.5, budgets=budgets))  # type: ignore[arg-type]
    snapshot = take(StateFile(path, fleet.AT).read())

    found = {each.name: each.value for each in baselines.measure(snapshot, fleet.AT)}

    first, *_, last = Planning(snapshot, fleet.AT).incumbents()
    assert found["by age"] == first.stages[0].value
    assert max(found.values()) <= last.stages[0].value == last.stages[0].bound


def test_a_case_brings_along_the_one_whose_bound_it_takes() -> None:
    assert [case.name for case in chosen(["hang-10k"], everything=False)] == ["full-10k-1", "hang-10k"]
    assert chosen([], everything=True) == list(CASES)
    assert {case.bound_of for case in chosen([], everything=False)} - {""} <= {case.name for case in CASES}


def test_the_page_states_gaps_to_one_bound() -> None:
    used = Usage(1.5, 80)
    stage = Stage(name="starts", unit="GPU-seconds", sense="max", value=900, bound=1000)
    overdraw = Stage(name="overdraw", unit="milli-GPUs", sense="min", value=1576, bound=0)
    cycle = Cycle(
        wall=2.0, parent=used, child=used, phases={"read": 0.5, "plan": 1.0}, truncated=False, stages=[stage, overdraw],
        started_runs=7, started_gpus=56, value=900, bound=1000,
    )  # fmt: skip
    cut = msgspec.structs.replace(cycle, value=800, bound=5000, truncated=True)
    facts = Facts(gpus=1000, running_runs=5, running_gpus=50, pending_runs=20, pending_gpus=2000)
    simple = [Baseline("by age", 6, 50, 850, 0.25), Baseline("best fit", 3, 48, 700, 0.2)]
    cases = [Case(name="whole", recipe=TINY), Case(name="cut", recipe=TINY, bound_of="whole")]
    measured = [
        Measured(
            case=cases[0],
            facts=facts,
            cycles=[cycle, cycle],
            baselines=simple,
            steps=[Step("whole", 990), Step("paid", 850)],
        ),
        Measured(case=cases[1], facts=facts, cycles=[cut], baselines=[]),
    ]

    page = tables.markdown(tables.Result(date="2026-01-12", machine=machine.describe(), measured=measured))

    assert "| whole | 2.0 | 3.0 | 160 (80 + 80) | 10.000% | 15.000% |  |  | 30.000% |" in page
    assert "| whole, a minute later | 2.0 | 3.0 | 160 (80 + 80) | 10.000% |  |  |  |  |" in page
    assert "| whole |  |  | 1.000% |  |  | 15.000% |  |" in page
    assert "| cut | 2.0, cut short | 3.0 | 160 (80 + 80) | 20.000% |  |  |  |  |" in page
    assert "| whole | 1,000 | 50 | 5 | 2,000 | 20 | 56 | 7 |" in page
    assert "| whole | 0.25 | 0.50 | 1.00 | 0.50 |" in page
    assert "| whole | starts | 900 | 1,000 | 10.0000% | GPU-seconds |" in page
    assert "| whole | overdraw | 1,576 | 0 | 1,576 above | milli-GPUs |" in page


def test_the_machine_is_described_without_its_name() -> None:
    assert platform.node() not in msgspec.to_builtins(machine.describe()).values()


def test_spans_come_in_order() -> None:
    clock = Clock()
    with clock.span("b"):
        pass
    with clock.span("a"):
        pass

    assert list(msgspec.to_builtins(clock.spans)) == ["b", "a"]
