"""The lake keeps snapshots bit for bit, once each, and says what is wrong with a file (spec §4, §11)."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.lake.lake import Lake, plan_path, read_manifest, read_plan, read_snapshot
from exporters.plans import planjson
from jobtree.api import Refusal
from jobtree.world.plan import Plan, Solver
from jobtree.world.tables.schema import TABLES
from jobtree.world.tables.snapshot import Snapshot
from tests.support import documents as doc
from tests.support.effort import examples
from tests.world.test_snapshot import snapshot_of, world

AT = 1767225600


def plan_of(snapshot: Snapshot, at: int = AT) -> Plan:
    solver = Solver(name="HiGHS", version="1", options={})
    return Plan(
        jobtree="0.1.0", at=at, cycle="c", snapshot=snapshot.digest, policy=snapshot.policy_digest, solver=solver
    )


def store(lake: Lake, snapshot: Snapshot, at: int = AT) -> Path:
    lake.write_tables(snapshot)
    plan = plan_of(snapshot, at)
    return lake.write_cycle(snapshot, plan, planjson.encode(plan), {"plan": 1.5})


WORLD = snapshot_of(world())


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one cycle in it, made once: every file waits for the disk."""
    root = tmp_path_factory.mktemp("stored") / "lake"
    store(Lake(root), WORLD)
    return root


@pytest.fixture
def lake(stored: Path, tmp_path: Path) -> Lake:
    return Lake(shutil.copytree(stored, tmp_path / "lake"))


@pytest.fixture
def manifest(lake: Lake) -> Path:
    return lake.manifest_path(AT)


def refused(manifest: Path) -> str:
    with pytest.raises(Refusal) as refusal:
        read_snapshot(manifest)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots are equal to the last buffer: values, schemas, dictionaries and their codes, digests."""
    for name in TABLES:
        first, second = one.tables[name], other.tables[name]
        assert second.schema.equals(first.schema, check_metadata=True)
        assert second.equals(first)
        for a, b in zip(first.columns, second.columns, strict=True):
            assert b.num_chunks == a.num_chunks == 1
            if pa.types.is_dictionary(a.type):
                assert b.chunk(0).dictionary.equals(a.chunk(0).dictionary)
                assert b.chunk(0).indices.equals(a.chunk(0).indices)
    return (one.digest, one.policy_digest, one.policy) == (other.digest, other.policy_digest, other.policy)


def test_a_snapshot_comes_back_bit_for_bit_with_its_time(manifest: Path) -> None:
    found, at = read_snapshot(manifest)
    assert (same(found, WORLD), at) == (True, AT)


def test_an_empty_snapshot_comes_back_too(lake: Lake) -> None:
    snapshot = snapshot_of([])
    assert same(read_snapshot(store(lake, snapshot, AT + 60))[0], snapshot)


@examples(5)
@given(names=st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=4), gpus=st.integers(0, 16))
def test_whatever_labels_say_comes_back(tmp_path_factory: pytest.TempPathFactory, names: list[str], gpus: int) -> None:
    nodes = [
        doc.merge(doc.node(f"n{number}", gpus, domain=name, flavor=None), {"metadata": {"labels": {name: name}}})
        for number, name in enumerate(names)
    ]
    snapshot = snapshot_of(nodes)
    lake = Lake(tmp_path_factory.mktemp("lake"))
    assert same(read_snapshot(store(lake, snapshot))[0], snapshot)


def test_what_lies_where(lake: Lake, manifest: Path) -> None:
    assert manifest == lake.root / "cycles" / "date=2026-01-01" / "20260101T000000Z.json"
    files = {str(path.relative_to(lake.root)) for path in lake.root.rglob("*") if path.is_file()}
    assert files == {
        "cycles/date=2026-01-01/20260101T000000Z.json",
        "cycles/date=2026-01-01/20260101T000000Z/plan.json",
        *(f"tables/{name}/{digest}.parquet" for name, digest in WORLD.table_digests.items()),
    }


def test_the_manifest_says_what_the_cycle_was_made_from(manifest: Path) -> None:
    found = json.loads(manifest.read_text(encoding="utf-8"))
    policy = found.pop("policy")
    plan = found.pop("plan")
    assert found == {
        "schemaVersion": 7,
        "jobtree": "0.1.0",
        "at": "2026-01-01T00:00:00Z",
        "since": None,
        "snapshot": WORLD.digest,
        "policyDigest": WORLD.policy_digest,
        "tables": dict(WORLD.table_digests),
        "timings": {"plan": 1.5},
        "phase": "applied",
        "on": None,
        "seen": "",
        "leftOut": [],
    }
    assert (policy["mode"], policy["lottery"]["term"], len(plan)) == ("noCuts", "12h", 64)


def test_the_plan_comes_back_to_the_byte(manifest: Path) -> None:
    assert read_plan(manifest) == planjson.encode(plan_of(WORLD))


def test_a_table_is_written_once(lake: Lake) -> None:
    tables = sorted(lake.root.glob("tables/*/*.parquet"))
    before = [path.stat().st_mtime_ns for path in tables]
    store(lake, snapshot_of([*world(), doc.node("another")]), AT + 60)
    assert [path.stat().st_mtime_ns for path in tables] == before
    assert len(list(lake.root.glob("tables/*/*.parquet"))) == len(tables) + 1


def test_parquet_files_tell_their_schema_version(lake: Lake) -> None:
    (path,) = lake.root.glob("tables/nodes/*.parquet")
    found = pq.ParquetFile(path)
    assert found.schema_arrow.metadata[b"jobtree.schema_version"] == b"7"


@pytest.mark.parametrize(("nodes", "compression"), [(2, "UNCOMPRESSED"), (200, "ZSTD")])
def test_parquet_files_are_compressed_where_that_makes_them_shorter(
    nodes: int, compression: str, tmp_path: Path
) -> None:
    Lake(tmp_path).write_tables(snapshot_of([doc.node(f"n{number}") for number in range(nodes)]))
    (path,) = tmp_path.glob("tables/nodes/*.parquet")
    found = pq.ParquetFile(path).metadata.row_group(0)
    assert {found.column(number).compression for number in range(found.num_columns)} == {compression}


def the_table(lake: Lake) -> Path:
    (path,) = lake.root.glob("tables/nodes/*.parquet")
    return path


def test_a_table_that_was_cut_off_is_named(lake: Lake, manifest: Path) -> None:
    table = the_table(lake)
    table.write_bytes(table.read_bytes()[:1000])
    assert refused(manifest).startswith(f"{table}: it is no Parquet file, or was cut off: ")


def test_a_damaged_table_is_named(lake: Lake, manifest: Path) -> None:
    table = the_table(lake)
    data = bytearray(table.read_bytes())
    data[100:140] = bytes(40)
    table.write_bytes(data)
    assert refused(manifest).startswith(f"{table}: it")


def test_a_foreign_table_is_named(lake: Lake, manifest: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), the_table(lake))
    assert refused(manifest) == f"{the_table(lake)}: it has other columns than the table nodes"


def test_a_table_under_another_ones_name_is_named(lake: Lake, manifest: Path) -> None:
    table = the_table(lake)
    store(lake, snapshot_of([doc.node("other")]), AT + 60)
    (other,) = set(lake.root.glob("tables/nodes/*.parquet")) - {table}
    other.replace(table)
    assert refused(manifest) == f"{table}: its content is not what its name says: it was changed"


def test_a_missing_table_is_named(lake: Lake, manifest: Path) -> None:
    table = the_table(lake)
    table.unlink()
    assert refused(manifest) == f"{table}: there is no such file"


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("schemaVersion", 0, "it was written with schema version 0, and this is version 7; read it with jobtree 0.1.0"),
        ("snapshot", "0" * 64, "its digests do not belong to its tables and Policy: it was changed"),
        ("policy", {"mode": "observe"}, "its digests do not belong to its tables and Policy: it was changed"),
        ("policy", {"mode": 1}, "its Policy cannot be read: Expected `str`, got `int` - at `$.mode`"),
        ("tables", {}, "it names no table aggregates"),
        ("at", "soon", "it is not the manifest of a cycle: "),
    ],
)
def test_a_manifest_that_was_changed_is_named(manifest: Path, key: str, value: object, sentence: str) -> None:
    found = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**found, key: value}), encoding="utf-8")
    assert refused(manifest).startswith(f"{manifest}: {sentence}")


def test_a_manifest_that_is_none_is_named(manifest: Path, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    assert refused(path) == f"{path}: there is no such file"
    manifest.write_text(manifest.read_text(encoding="utf-8")[:100], encoding="utf-8")
    assert refused(manifest).startswith(f"{manifest}: it is not the manifest of a cycle: ")


@pytest.mark.parametrize("spoilt", [b"", b"{}", b'{"cluster": 1}', b"\xff", b'{"cluster": "\xff"}', b"[" * 100_000])
def test_a_spoilt_word_on_whose_lake_it_is_is_named(lake: Lake, spoilt: bytes) -> None:
    mark = lake.root / "cluster.json"
    mark.write_bytes(spoilt)
    with pytest.raises(Refusal) as refusal:
        Lake(lake.root, "a.yaml").refuse_stranger()
    said = str(refusal.value)
    assert said.startswith(f"{mark}: it does not say whose lake this is: ")
    assert said.endswith('; it should read {"cluster": "a.yaml"}')


def test_a_plan_that_was_changed_is_named(manifest: Path) -> None:
    path = plan_path(manifest)
    path.write_bytes(path.read_bytes().replace(b"HiGHS", b"other"))
    with pytest.raises(Refusal) as refusal:
        read_plan(manifest)
    assert str(refusal.value) == f"{path}: it is not the plan that its manifest names: it was changed"


def test_a_second_cycle_of_the_same_second_replaces_the_record(lake: Lake, manifest: Path) -> None:
    store(lake, snapshot_of([]))
    assert read_manifest(manifest).snapshot == snapshot_of([]).digest
    assert sorted(os.listdir(manifest.parent)) == [manifest.stem, manifest.name]


def test_a_lake_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file", encoding="utf-8")
    lake, snapshot = Lake(tmp_path / "lake"), snapshot_of([])
    with pytest.raises(Refusal) as refusal:
        lake.write_tables(snapshot)
    said = "this lake cannot be written (--lake names another): Not a directory"
    assert str(refusal.value) == f"{tmp_path / 'lake'}: {said}"
