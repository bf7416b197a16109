"""V2: bytes that are no UTF-8, or no JSON, in any file of the lake are named; cycles and reports go on."""

import shutil
from pathlib import Path

import pytest

from tests.support.commands import jobtree
from tests.support.times import T0, moment
from tests.support.worlds import World

SPOILT = {"no UTF-8": b"\xff", "nested": b"[" * 200_000, "cut": b"", "other": b"[]"}
FILES = ("cluster.json", "cycles/*/20260101T000000Z.json", "cycles/*/20260101T000000Z/plan.json", "seen/*.json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two cycles of a cluster."""
    world = World(tmp_path_factory.mktemp("made") / "c.yaml").node("n").budget("org:a", 8).policy().run("r", 8)
    world.cycle("-1m")
    world.cycle(T0)
    return world


def spoil(data: bytes, how: str) -> bytes:
    """A byte in the middle of the first text, or all of it."""
    if how != "no UTF-8":
        return SPOILT[how]
    place = data.index(b'": "' if b'": "' in data else b'":"') + 5
    return data[:place] + b"\xff" + data[place + 1 :]


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("pattern", FILES)
def test_v2_a_spoilt_file_is_named_and_cycles_and_reports_go_on(
    made: World, tmp_path: Path, pattern: str, how: str
) -> None:
    world = World(tmp_path / "c.yaml")
    world.lake = tmp_path / "lake"
    shutil.copy(made.path, world.path)
    shutil.copytree(made.lake, world.lake)
    path = next(world.lake.glob(pattern))
    path.write_bytes(spoil(path.read_bytes(), how))

    report = jobtree("report", "usage", "--lake", world.lake).ok()
    said = [line for line in report.err.splitlines() if str(path.with_suffix("")).removesuffix("/plan") in line]
    assert len(said) == (0 if pattern.startswith(("cluster", "seen")) else 1), report.err
    if "Z/plan" in pattern or pattern.startswith("cycles"):
        assert (
            "Traceback" not in jobtree("replay", world.lake / "cycles/date=2026-01-01/20260101T000000Z.json").refused()
        )
    if pattern == "cluster.json":
        assert str(path) in jobtree("--state", world.path, "snapshot", "--lake", world.lake).refused()

    cycle = world.cycle("+1m")
    named = [line for line in cycle.output.err.splitlines() if str(path) in line]
    assert len(named) == pattern.startswith("cluster") + (pattern == FILES[1]), cycle.output.err
    assert jobtree("report", "usage", "--lake", world.lake).ok().out
    assert moment("+1m")[:10] in cycle.output.out
