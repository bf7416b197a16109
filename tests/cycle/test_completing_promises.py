"""V1: promises of a cycle that died are made, told and ended by the next one, as far as they still can be."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake
from exporters.writes.writes import writes_for
from jobtree.cluster.protocol import Write
from jobtree.cluster.statefile import StateFile
from tests.support.killed import before_the_first_write
from tests.support.times import moment, unix
from tests.support.worlds import World


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with closing(Planner()) as made:
        yield made


def cycle(state: Path, planner: Planner, at: str) -> list[str]:
    """Runs one, and returns its notices."""
    lake = Lake(state.parent / "lake", state.name)
    return run_cycle(StateFile(state, unix(at)), unix(at), lake, planner).notices


def died(state: Path, planner: Planner, at: str, monkeypatch: pytest.MonkeyPatch) -> list[Write]:
    """The writes of a cycle that ended before the first of them."""
    return before_the_first_write(lambda: cycle(state, planner, at), monkeypatch)


def waiting(folder: Path) -> World:
    """A run whose money comes in two hours."""
    return World(folder / "cluster.yaml").node("n1").budget("org:a", 8, start=moment("+2h")).run("r", 8)


def states(world: World) -> dict[str, str]:
    return {each["spec"]["runRef"]["name"]: each["status"]["state"] for each in world.state().all("Reservation")}


@pytest.mark.parametrize("more", [0, 1])
def test_v1_a_promise_is_made_by_the_next_cycle(
    more: int, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = waiting(tmp_path)
    world.save()
    writes = died(world.path, planner, "+0s", monkeypatch)
    (made,) = (number for number, write in enumerate(writes) if write.ref.kind == "Reservation")
    state = StateFile(world.path, unix("+0s"))
    state.write(writes[: made + more], state.read().revision)
    assert states(world) == ({"r": "Pending"} if more else {})
    assert len(cycle(world.path, planner, "+1m")) == 1
    assert states(world) == {"r": "Pending"}


def test_v1_a_promise_that_is_there_is_not_written_again(tmp_path: Path, planner: Planner) -> None:
    world = waiting(tmp_path)
    world.save()
    state = StateFile(world.path, unix("+0s"))
    plan = run_cycle(state, unix("+0s"), Lake(tmp_path / "lake", state.path.name), planner).plan
    assert plan is not None
    assert len(plan.reservations) == 1
    encoded = next((tmp_path / "lake" / "cycles").glob("*/*/plan.json")).read_bytes()
    assert writes_for(state.read(), plan, encoded) == []


def test_v1_a_promise_that_is_gone_is_left_out_and_said(
    tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = waiting(tmp_path)
    world.save()
    cycle(world.path, planner, "+0s")
    (promise,) = (each["metadata"]["name"] for each in world.state().all("Reservation"))
    died(world.path, planner, "+2h", monkeypatch)
    world.delete("Reservation", promise).save()
    begun, left = cycle(world.path, planner, "+2h1m")
    assert left == (
        f"Reservation default/{promise}: the plan of {moment('+2h')} is left out where it speaks of it: "
        "it is not there any more"
    )
    assert (begun.startswith(f"the cycle of {moment('+2h')} was begun"), states(world)) == (True, {})
    assert world.state().phases == {"r": "Running"}


def test_v1_a_promise_of_a_run_that_is_gone_is_not_said_to_be_kept(
    tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = waiting(tmp_path)
    world.save()
    cycle(world.path, planner, "+0s")
    died(world.path, planner, "+2h", monkeypatch)
    world.delete("Run", "r").save()
    assert len(cycle(world.path, planner, "+2h1m")) == 3
    assert states(world) == {"r": "Failed"}
