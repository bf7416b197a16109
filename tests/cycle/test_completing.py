"""V1: no decision without its record. A cycle that dies at any moment is completed by the next one, as planned."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cronjobs.cycle import CycleResult, run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake, read_manifest
from exporters.writes.writes import writes_for
from jobtree.api import Refusal
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan
from reports.query import newest_manifest, query
from tests.support import documents as doc
from tests.support import invariants
from tests.support.commands import jobtree
from tests.support.disk import full_at
from tests.support.killed import Killed, before_the_first_write
from tests.support.times import T0, moment, unix
from tests.support.worlds import World

AT = unix(T0)
BEGUN = f"the cycle of {T0} was begun and not ended; it is completed now, as it was planned: "


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    with closing(Planner()) as made:
        yield made


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, planner: Planner) -> Path:
    """A folder with a cluster in which much ends and begins at T0, and the lake of the cycle an hour before."""
    folder = tmp_path_factory.mktemp("started")
    world = World(folder / "cluster.yaml").domain("A", nodes=3).budget("org:a", 24).policy()
    world.run("short", 8, runtime={"timeLimit": "30m"}).run("long", 8).run("gone", 4)
    world.save("-1h")
    cycle(folder, planner, "-1h")
    world.delete("Run", "gone").run("r", 16).run("s", 4).run("t", 8).save()
    return folder


def cycle(folder: Path, planner: Planner, at: str) -> CycleResult:
    path = folder / "cluster.yaml"
    before = doc.read(path)
    found = run_cycle(StateFile(path, unix(at)), unix(at), Lake(folder / "lake", path.name), planner)
    invariants.check(before, doc.read(path), unix(at))
    return found


@pytest.fixture(scope="module")
def whole(started: Path, tmp_path_factory: pytest.TempPathFactory, planner: Planner) -> Path:
    """The same folder after the cycles of T0 and a minute later, which nothing interrupted."""
    folder = shutil.copytree(started, tmp_path_factory.mktemp("whole") / "f")
    for at in (T0, "+1m"):
        cycle(folder, planner, at)
    return folder


@contextmanager
def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Within, the process ends in the middle of the n-th thing that it does to the disk: a write is half done."""
    done: list[str] = []
    write, replace, unlink = os.write, os.replace, Path.unlink

    def ends() -> bool:
        return len(done) == number + 1

    def written(file: int, data: Any) -> int:
        done.append("write")
        if ends():
            write(file, bytes(data)[: len(data) // 2])
            raise Killed
        return write(file, data)

    def replaced(old: Any, new: Any) -> None:
        done.append(f"before {new}")
        if ends():
            raise Killed
        replace(old, new)
        done.append(f"after {new}")
        if ends():
            raise Killed

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        done.append(f"unlink {self}")
        if ends():
            raise Killed
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", written)
        patch.setattr(os, "replace", replaced)
        patch.setattr(Path, "unlink", unlinked)
        yield done


def lake_of(folder: Path) -> dict[str, str]:
    """Phases of the records of a lake."""
    paths = sorted((folder / "lake" / "cycles").glob("*/*.json"))
    return {path.stem: read_manifest(path).phase for path in paths}


def assert_as_if_nothing_had_happened(folder: Path, whole: Path) -> None:
    assert doc.read(folder / "cluster.yaml") == doc.read(whole / "cluster.yaml")
    assert lake_of(folder) == lake_of(whole) == dict.fromkeys(lake_of(whole), "applied")
    for record in (whole / "lake" / "cycles").glob("*/*/plan.json"):
        assert (folder / record.relative_to(whole)).read_bytes() == record.read_bytes()
    assert list((folder / "lake" / "writing").iterdir()) == []
    assert len(list((folder / "lake" / "cycles").glob("*/*/plan.json"))) == len(lake_of(whole))


def died(folder: Path, planner: Planner, number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a cycle at T0 did that was killed in its n-th step; it may end before."""
    with killed_at(number, monkeypatch) as done, suppress(Killed):
        cycle(folder, planner, T0)
    return done


def steps(started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return died(shutil.copytree(started, tmp_path / "counted"), planner, -2, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("again", [[T0, "+1m"], ["+1m"]])
def test_v1_killed_in_any_step_of_its_writing_a_cycle_is_as_if_nothing_had_happened(
    again: list[str], started: Path, whole: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = steps(started, tmp_path, planner, monkeypatch)
    recorded = next(number for number, step in enumerate(done) if step.endswith("Z.json") and step.startswith("after "))
    every = range(len(done)) if T0 in again else range(recorded, len(done))  # earlier, there was no decision yet
    for number in every:
        folder = shutil.copytree(started, tmp_path / "f")
        assert len(died(folder, planner, number, monkeypatch)) == number + 1
        for at in again:
            cycle(folder, planner, at)
        assert_as_if_nothing_had_happened(folder, whole)
        shutil.rmtree(folder)


def test_v1_killed_after_its_record_the_cycle_is_completed_with_its_own_times_and_says_so(
    started: Path, whole: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = steps(started, tmp_path, planner, monkeypatch)
    recorded = next(number for number, step in enumerate(done) if step.endswith("Z.json") and step.startswith("after "))
    folder = shutil.copytree(started, tmp_path / "f")
    died(folder, planner, recorded, monkeypatch)
    assert doc.read(folder / "cluster.yaml") == doc.read(started / "cluster.yaml")
    assert lake_of(folder)["20260101T000000Z"] == "planned"

    (said,) = cycle(folder, planner, "+1m").notices
    assert said.startswith(BEGUN)
    assert_as_if_nothing_had_happened(folder, whole)


def test_v1_killed_after_the_clusters_writes_only_its_record_is_missing(
    started: Path, whole: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = steps(started, tmp_path, planner, monkeypatch)
    written = next(number for number, step in enumerate(done) if re.fullmatch("after .*cluster.yaml", step))
    folder = shutil.copytree(started, tmp_path / "f")
    died(folder, planner, written, monkeypatch)
    assert lake_of(folder)["20260101T000000Z"] == "planned"

    assert cycle(folder, planner, "+1m").notices == [f"the cycle of {T0} had been carried out; its record says so now"]
    assert_as_if_nothing_had_happened(folder, whole)


def recorded(started: Path, folder: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A folder whose cycle of T0 has its record and nothing else; the writes that are missing."""
    shutil.copytree(started, folder)
    return before_the_first_write(lambda: cycle(folder, planner, T0), monkeypatch)


@pytest.mark.slow
def test_v1_killed_after_any_single_write_to_an_api_server_the_rest_is_written(
    started: Path, whole: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = recorded(started, tmp_path / "made", planner, monkeypatch)
    for number in range(1, len(writes) + 1):
        folder = shutil.copytree(tmp_path / "made", tmp_path / "f")
        state = StateFile(folder / "cluster.yaml", AT)
        state.write(writes[:number], state.read().revision)
        for at in (T0, "+1m"):
            cycle(folder, planner, at)
        assert_as_if_nothing_had_happened(folder, whole)
        shutil.rmtree(folder)


Edit = Callable[[World], object]
LEFT_OUT: dict[str, tuple[Edit, dict[str, str]]] = {
    "run gone": (lambda w: w.delete("Run", "s"), {"Run default/s": "it is not there any more"}),
    "run made again": (
        lambda w: w.delete("Run", "s").run("s", 4, created="+30s").save("+40s"),
        {"Run default/s": "it is another one, made after the plan"},
    ),
    "run cancelled": (
        lambda w: w.edit("Run", "r", spec={"state": "Cancelled"}), {"Run default/r": "it is Cancelled"},
    ),
    "node gone": (lambda w: w.delete("Node", "a01"), {"Run default/r": "the node a01 is not there any more"}),
    "lease gone": (
        lambda w: w.delete("Lease", "short-20251231t230000z-g0-0"),
        {"Lease default/short-20251231t230000z-g0-0": "it is not there any more"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_v1_what_can_no_longer_be_is_left_out_and_said(
    name: str, started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(started, tmp_path / "f", planner, monkeypatch)
    edit, expected = LEFT_OUT[name]
    edit(World(tmp_path / "f" / "cluster.yaml"))

    said = cycle(tmp_path / "f", planner, "+1m").notices
    manifest = Lake(tmp_path / "f" / "lake").manifest_path(AT)
    left = {each.object: each.message for each in read_manifest(manifest).left_out}
    assert left == expected
    assert said[1:] == [
        f"{each}: the plan of {T0} is left out where it speaks of it: {message}" for each, message in expected.items()
    ]
    assert said[0].startswith(BEGUN)
    assert jobtree("replay", manifest).ok().out == "Plan 20260101T000000Z is the same again, byte for byte\n"


def test_v1_a_record_of_another_history_is_set_aside_and_named(
    started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(started, tmp_path / "f", planner, monkeypatch)
    state = tmp_path / "f" / "cluster.yaml"
    kept = [each for each in doc.read(state) if each["kind"] != "Plan"]  # as a backup from before the first cycle
    state.write_text(doc.dump(kept))

    path = Lake(tmp_path / "f" / "lake").manifest_path(AT)
    why = "it was begun on another history of this cluster, so it is set aside: nothing of it is carried out"
    assert cycle(tmp_path / "f", planner, "+1m").notices == [f"{path}: {why}"]
    assert lake_of(tmp_path / "f") == {
        "20251231T230000Z": "applied", "20260101T000000Z": "aside", "20260101T000100Z": "applied"
    }  # fmt: skip
    said = jobtree("report", "usage", "--lake", tmp_path / "f" / "lake").ok().err
    assert f"{path}: it was set aside" in said
    assert jobtree("replay", path).ok().out == (
        "Plan 20260101T000000Z is the same again, byte for byte\nThe cycle is aside: it was set aside: "
        "its plan was made on another history of the cluster, and not carried out\n"
    )


def test_v1_reports_leave_an_unfinished_cycle_out_and_say_so(
    started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(started, tmp_path / "f", planner, monkeypatch)
    said = jobtree("report", "usage", "--lake", tmp_path / "f" / "lake").ok().err
    path = Lake(tmp_path / "f" / "lake").manifest_path(AT)
    why = "its plan has not been carried out to the end, which the next cycle does; this cycle is left out"
    assert said == f"warning: {path}: {why}\n"
    assert jobtree("replay", path).ok().out == (
        "Plan 20260101T000000Z is the same again, byte for byte\nThe cycle is planned: "
        "its plan has not been carried out to the end, which the next cycle does\n"
    )


def test_v1_the_last_cycle_is_the_last_one_that_was_carried_out(
    started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "f" / "lake"
    shutil.copytree(started, tmp_path / "f")
    before = query(root, "usage")
    shutil.rmtree(tmp_path / "f")
    recorded(started, tmp_path / "f", planner, monkeypatch)
    path = Lake(root).manifest_path(AT)

    assert newest_manifest(root) == Lake(root).manifest_path(unix("-1h"))
    assert query(root, "usage").equals(before)
    with pytest.raises(Refusal, match="its plan has not been carried out to the end"):
        query(root, "usage", path)
    # A report that begins on the next day knows the state by the last cycle of this one that was carried out.
    since = ("--since", "2026-01-01", "--until", "2026-01-02", "--lake", root, "-o", "csv")
    (unfinished,) = csv.DictReader(jobtree("report", "usage", *since).ok().out.splitlines())
    assert unfinished["owned_gpus"] == str(before.owned_gpus[0])


def test_v1_time_does_not_go_back_behind_a_cycle_that_was_begun(
    started: Path, tmp_path: Path, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(started, tmp_path / "f", planner, monkeypatch)
    state, before = tmp_path / "f" / "cluster.yaml", moment("-1m")
    bytes_before = state.read_bytes()
    path = Lake(tmp_path / "f" / "lake").manifest_path(AT)
    assert jobtree("--state", state, "cycle", "--at", before, "--lake", tmp_path / "f" / "lake").refused() == (
        f"error: {path}: the cycle of {T0} was begun and is to be completed, and this one is for {before}; "
        "time only goes forward: say a later --at"
    )
    assert state.read_bytes() == bytes_before


def test_v1_a_lake_that_is_behind_its_cluster_or_before_it_is_named(
    started: Path, tmp_path: Path, planner: Planner
) -> None:
    folder = shutil.copytree(started, tmp_path / "f")
    cycle(folder, planner, T0)
    shutil.copy(folder / "cluster.yaml", tmp_path / "newer.yaml")
    shutil.copy(started / "cluster.yaml", folder / "cluster.yaml")
    first = moment("-1h")
    assert cycle(folder, planner, "+1m").notices == [
        (
            f"the lake has a cycle of {T0} that this cluster knows nothing of, whose last one was at {first}: "
            "both histories stay in the lake, and reports count both"
        )
    ]
    shutil.rmtree(folder / "lake")
    shutil.copytree(started / "lake", folder / "lake")
    shutil.copy(tmp_path / "newer.yaml", folder / "cluster.yaml")
    assert cycle(folder, planner, "+1m").notices == [
        (
            f"the lake ends with the cycle of {first}, and the last one of this cluster was at {T0}: "
            "reports know nothing of the cycles in between"
        )
    ]


@pytest.mark.slow
def test_v1_a_full_disk_leaves_everything_as_it_was_or_the_next_cycle_completes_it(
    started: Path, whole: Path, tmp_path: Path, planner: Planner
) -> None:
    state_size = (whole / "cluster.yaml").stat().st_size
    for limit in (100, 2000, 5000, state_size - 1000):
        folder = shutil.copytree(started, tmp_path / f"f{limit}")
        with full_at(limit):
            output = jobtree("--state", folder / "cluster.yaml", "cycle", "--at", T0, "--lake", folder / "lake")
        said = output.refused()
        assert "it cannot be written and is" in said, said
        assert said.endswith("file too large")
        assert doc.read(folder / "cluster.yaml") == doc.read(started / "cluster.yaml")
        for at in (T0, "+1m"):
            cycle(folder, planner, at)
        assert_as_if_nothing_had_happened(folder, whole)


def test_writes_of_a_plan_that_is_carried_out_are_none(started: Path, tmp_path: Path, planner: Planner) -> None:
    folder = shutil.copytree(started, tmp_path / "f")
    plan = cycle(folder, planner, T0).plan
    assert isinstance(plan, Plan)
    encoded = (Lake(folder / "lake").manifest_path(AT).with_suffix("") / "plan.json").read_bytes()
    assert writes_for(StateFile(folder / "cluster.yaml", AT).read(), plan, encoded) == []


def test_a_manifest_says_in_json_how_far_it_came(started: Path) -> None:
    (path,) = (started / "lake" / "cycles").glob("*/*.json")
    found = json.loads(path.read_text())
    assert (found["phase"], found["on"], found["leftOut"]) == ("applied", None, [])


KILLS = int(os.environ.get("JOBTREE_KILLS", "40" if os.environ.get("CI") else "6"))
"""How often the real command is killed: `JOBTREE_KILLS=200` for a whole night's worth."""


@pytest.mark.slow
def test_v1_the_real_command_killed_at_random_moments_loses_nothing(
    started: Path, whole: Path, tmp_path: Path, planner: Planner
) -> None:
    dice = random.Random(1)
    program = [str(Path(sys.executable).with_name("jobtree")), "--state"]
    begun = time.perf_counter()
    folder = shutil.copytree(started, tmp_path / "timed")
    args = ["cluster.yaml", "cycle", "--at", T0, "--lake", "lake"]
    subprocess.run([*program, *args], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    span = time.perf_counter() - begun
    for number in range(KILLS):
        folder = shutil.copytree(started, tmp_path / "f")
        late = 0.5 if number % 2 else 0.0  # half of them in the second half, where the writing is
        killed = subprocess.Popen([*program, *args], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            killed.wait(span * dice.uniform(late, 1.05))
        killed.kill()
        killed.wait()
        for at in (T0, "+1m"):
            cycle(folder, planner, at)
        assert_as_if_nothing_had_happened(folder, whole)
        shutil.rmtree(folder)
    for path in sorted((whole / "lake" / "cycles").glob("*/*.json")):
        jobtree("replay", path).ok()
