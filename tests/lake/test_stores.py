"""A lake at an fsspec URL holds what one in a folder holds; what cannot be reached is one sentence (spec §11)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from exporters.lake import storage
from exporters.lake.lake import Lake, beside, read_manifest, read_plan, read_snapshot
from exporters.plans import planjson
from jobtree.api import Refusal
from tests.lake.test_lake import AT, WORLD, plan_of, same, store
from tests.support.commands import jobtree
from tests.support.times import T0
from tests.support.worlds import World
from tests.world.test_snapshot import snapshot_of


class Full(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store whose driver takes nothing and has errors of its own."""

    protocol = "full"
    store: dict[str, Any] = {}

    def pipe_file(self, *_args: Any, **_options: Any) -> None:
        raise RuntimeError("the quota\nis used up")

    def exists(self, path: str, **_options: Any) -> bool:
        if path.endswith("unknown.json"):
            raise RuntimeError("it is closed")
        return False


fsspec.register_implementation("full", Full)


@pytest.fixture
def url() -> Iterator[str]:
    """A place in memory, empty again at the end."""
    yield "memory://bucket/lake"
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def files(lake: str | Path) -> dict[str, bytes]:
    root = storage.place(lake)
    found = (
        storage.glob(root, "tables/*/*") + storage.glob(root, "cycles/*/*.json") + storage.glob(root, "cycles/*/*/*")
    )
    return {str(path).removeprefix(str(root)): storage.read(path) for path in found}


def test_a_lake_in_a_store_has_the_same_files_as_in_a_folder(url: str, tmp_path: Path) -> None:
    manifests = [store(Lake(root), WORLD) for root in (url, tmp_path)]
    assert files(url) == files(tmp_path)
    assert [str(each).rpartition("/cycles/")[2] for each in manifests] == ["date=2026-01-01/20260101T000000Z.json"] * 2


def test_a_record_comes_back_from_a_store(url: str) -> None:
    manifest = storage.place(str(store(Lake(url), WORLD)))
    found, at = read_snapshot(manifest)
    assert (same(found, WORLD), at, read_manifest(manifest).snapshot) == (True, AT, WORLD.digest)
    assert read_plan(manifest) == planjson.encode(plan_of(WORLD))


def test_a_url_of_a_folder_is_the_folder(tmp_path: Path) -> None:
    assert Lake(f"file://{tmp_path}/lake").root == tmp_path / "lake"


def test_a_store_keeps_its_record_of_another_decision(url: str) -> None:
    store(Lake(url), WORLD)
    with pytest.raises(Refusal, match=rf"^{url}/cycles/.*: it is the record of another decision"):
        Lake(url).refuse_other(snapshot_of([]), plan_of(snapshot_of([])), b"")


def test_cycles_replays_and_reports_work_on_a_store(url: str) -> None:
    world = World().domain("A").budget("org:a", 8).policy().run("r", 4)
    state = world.save()
    jobtree("--state", state, "cycle", "--at", T0, "--lake", url).ok()
    said = jobtree("replay", f"{url}/cycles/date=2026-01-01/20260101T000000Z.json").ok()
    assert said.out == "Plan 20260101T000000Z is the same again, byte for byte\n"
    assert not beside(state).exists()
    assert jobtree("report", "--lake", url, "usage", "-o", "csv").ok().out.count("org:a") == 1


@pytest.mark.parametrize("command", [["snapshot"], ["cycle", "--at", T0]])
@pytest.mark.parametrize(
    ("lake", "sentence"),
    [
        ("s3://bucket/lake", "the driver of its scheme is not installed: Install s3fs to access S3"),
        (
            "s4://bucket/lake",
            (
                "Unsupported filesystem: 's4'; allowed are a folder, and the URL of a store that fsspec knows, "
                "such as s3://BUCKET/PATH"
            ),
        ),
    ],
)
def test_a_store_that_nothing_reaches_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, lake: str, sentence: str, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    world = World().node("n")
    state = world.save()
    before = state.read_bytes()
    assert jobtree("--state", state, *command, "--lake", lake).refused() == f"error: {lake}: {sentence}"
    assert (state.read_bytes(), [each.name for each in state.parent.iterdir()]) == (before, [state.name])


def test_without_the_extra_a_url_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(Refusal) as refusal:
        Lake("memory://bucket/lake")
    assert str(refusal.value) == (
        "memory://bucket/lake: a lake at a URL needs universal-pathlib, which is not installed; "
        "install the wheel with [lake]"
    )


def test_what_a_driver_raises_is_one_sentence_and_stops_the_cycle() -> None:
    world = World().node("n")
    state = world.save()
    before = state.read_bytes()
    said = jobtree("--state", state, "cycle", "--at", T0, "--lake", "full://lake").refused()
    assert said.startswith("error: full://lake/tables/")
    assert said.endswith(".parquet: it cannot be written: the quota is used up")
    assert state.read_bytes() == before
    with pytest.raises(Refusal) as refusal:
        storage.exists(storage.place("full://lake/unknown.json"))
    assert str(refusal.value) == "full://lake/unknown.json: it cannot be looked for: it is closed"


def test_a_file_that_is_missing_in_a_store_is_named(url: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_manifest(storage.place(f"{url}/cycles/x.json"))
    assert str(refusal.value) == f"{url}/cycles/x.json: there is no such file"
