"""Reports run on a lake as cycles write it, and reconcile with the ledger to the second."""

from pathlib import Path

import pytest

from exporters.lake.lake import Lake
from exporters.plans import planjson
from jobtree.api import Refusal
from jobtree.world.plan import Plan, Solver
from reports.query import connect, newest_manifest, query
from reports.read.definition import names
from tests.reports import worlds


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    snapshot = worlds.snapshot(tmp_path / "cluster.yaml")
    root = tmp_path / "lake"
    Lake(root).write_tables(snapshot)
    for at in (worlds.AT - 60, worlds.AT):
        plan = Plan(
            jobtree="0",
            at=at,
            cycle="c",
            snapshot=snapshot.digest,
            policy=snapshot.policy_digest,
            solver=Solver(name="", version="", options={}),
        )
        Lake(root).write_cycle(snapshot, plan, planjson.encode(plan))
    return root


COLUMNS = ["budget", "envelope", "owner", "flavor", "concurrency"]
CLASSES = ["owned_gpus", "shared_gpus", "borrowed_gpus", "unfunded_gpus", "spare_gpus"]


def test_usage_of_every_envelope(lake: Path) -> None:
    found = query(lake, "usage")

    # 4 GPUs for 2 h, a spare at a quarter for 2 h, 4 closed GPUs for 1 h; then 2 GPUs from the window's start for 1 h.
    assert found[[*COLUMNS, *CLASSES, "gpu_seconds", "gpu_hours"]].to_numpy().tolist() == [
        ["org-a", "gpus", "org:a", "H100-80GB", 8, 4, 0, 0, 0, 1, 3600 * (4 * 2 + 0.25 * 2 + 4 * 1), 12.5],
        ["org-a-x", "gpus", "org:a:x", "H100-80GB", 4, 0, 0, 0, 2, 0, 3600 * 2 * 1, 2.0],
    ]


def test_usage_counts_to_the_cycle_s_own_second(lake: Path) -> None:
    (earlier, _) = sorted(lake.glob("cycles/*/*.json"))

    before, now = query(lake, "usage", earlier), query(lake, "usage")

    assert (now.gpu_seconds - before.gpu_seconds).tolist() == [60 * 4.25, 0.0]


def test_the_newest_cycle_is_taken(lake: Path) -> None:
    assert newest_manifest(lake) == lake / "cycles/date=2026-01-01/20260101T000000Z.json"


def test_reports_see_every_table_and_the_cycle_s_time(lake: Path) -> None:
    with connect(lake, newest_manifest(lake)) as database:
        found = database.execute(
            "SELECT cycle, getvariable('until'), (SELECT count(*) FROM runs), (SELECT count(*) FROM pods) FROM cycles"
        ).fetchone()

    assert found == ("20260101T000000Z", worlds.AT, 3, 1)


def test_every_report_runs_on_an_empty_world(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    snapshot = worlds.snapshot(path, [])
    Lake(tmp_path / "lake").write_tables(snapshot)
    plan = Plan(jobtree="0", at=0, cycle="c", snapshot="", policy="", solver=Solver(name="", version="", options={}))
    Lake(tmp_path / "lake").write_cycle(snapshot, plan, planjson.encode(plan))

    assert {name: len(query(tmp_path / "lake", name)) for name in names()} == dict.fromkeys(names(), 0)


def test_what_is_missing_is_named(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"'usages' is not a report; allowed are .*usage"):
        query(lake, "usages")
    with pytest.raises(Refusal, match="nowhere holds no cycle"):
        query(tmp_path / "nowhere", "usage")
    next(lake.glob("tables/leases/*.parquet")).unlink()
    with pytest.raises(Refusal, match=r"tables/leases/\w+\.parquet: there is no such file"):
        query(lake, "usage")
