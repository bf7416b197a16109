"""Compacted days: fewer files, the same reports, the same records byte for byte."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from exporters.lake import days, records
from exporters.lake.foldtables import FOLDS
from exporters.lake.lake import Lake, plan_path, read_manifest, read_plan
from jobtree.api import Refusal
from jobtree.api.kinds.meta import ObjectMeta, RunRef
from jobtree.api.kinds.plan import Draw, Lottery, PoolOwner
from jobtree.api.kinds.reservation import IntendedSlice, Reservation, ReservationSpec, ReservationStatus
from jobtree.api.values.scalars import OwnerPath, Time
from jobtree.world.plan import PromiseUpdate, Short, Wait
from reports.read.definition import names
from tests.lake.test_lake import plan_of
from tests.reports.worlds import lease, record, snapshot
from tests.support import documents as doc
from tests.support.commands import jobtree
from tests.support.documents import Document
from tests.support.times import unix

SETTINGS = ("--set", "currency=USD", "--set", "credit_price=2")


def morning(day: int) -> str:
    return f"+{24 * day + 1}h"


def world(day: int) -> tuple[list[Document], list[Wait]]:
    """What stood on a day: leases that begin, end and turn unfunded, a cordon, a cap that moves, runs that wait."""
    ends: dict[str, tuple[int, int]] = {"x": (0, 1), "y": (0, 3), "z": (1, 2), "w": (2, 9)}
    leases = [
        lease(
            f"{name}-0",
            name,
            [f"a01#{place}"],
            "org-a/gpus",
            ("owned", morning(begin), morning(end) if end <= day else None),
            owner="org:a",
            rate=1.5,
            role="Spare" if name == "z" else "Active",
            reason="Lottery" if name == "x" else "Completed",
        )
        for place, (name, (begin, end)) in enumerate(ends.items())
        if begin <= day
    ]
    node = doc.merge(doc.node("a02"), {"spec": {"unschedulable": day == 1}})
    runs = [doc.run(name, 1) for name, (begin, _) in ends.items() if begin <= day + 1]
    base = [
        doc.node("a01"),
        node,
        doc.budget("org:a", [doc.envelope(8 + day)]),
        doc.foreign_pod("p", on="a02", gpus=day),
    ]
    short = Short(rule="concurrency", subject="org-a/gpus", amount=day + 1, unit="GPU")
    waits = [Wait(namespace="default", name="w", reason="BudgetShort", message=f"{day}", shorts=[short])]
    return [*base, *runs, *leases], waits if day < 2 else []


def said(day: int) -> dict[str, Any]:
    """What plans promise and draw: w's start of the day after, kept; x, alone in its pool."""
    start = Time(unix(morning(2)))
    promise = Reservation(
        metadata=ObjectMeta(name="w-1", namespace="default"),
        spec=ReservationSpec(run_ref=RunRef(name="w"), intended_slice=IntendedSlice(), earliest_start=start),
    )
    pool = (PoolOwner(owner=OwnerPath("org:a"), tokens=("default/x#0",)),)
    draw = Draw(
        reservation="default/w-1", uid="w-1", earliest_start=start, seed="", pools=(pool,), picks=("default/x#0",)
    )
    if day == 1:
        return {"reservations": [promise], "lottery": Lottery(position=1, secret="", draws=(draw,))}
    kept = PromiseUpdate(namespace="default", name="w-1", status=ReservationStatus(state="Activated"))
    return {"promises": [kept]} if day == 2 else {}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake of four days and the same one compacted."""
    folder = tmp_path_factory.mktemp("lakes")
    for day in range(4):
        for hour in (2, 20):
            record(folder / "lake", f"+{24 * day + hour}h", *world(day), **(said(day) if hour == 2 else {}))
    shutil.copytree(folder / "lake", folder / "short")
    jobtree("compact", "--lake", folder / "short").ok()
    return folder


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    """A copy of the one, to be spoilt."""
    return shutil.copytree(made / "lake", tmp_path / "lake")


@pytest.fixture
def short(made: Path, tmp_path: Path) -> Path:
    """A copy of the other."""
    return shutil.copytree(made / "short", tmp_path / "short")


def report(lake: Path, name: str, *period: str) -> Any:
    settings = SETTINGS if name == "focus" else ()
    made = jobtree("report", name, "--lake", lake, "-o", "json", *settings, *period).ok()
    assert made.err == ""
    return json.loads(made.out)


def files(lake: Path) -> list[str]:
    return sorted(
        str(path.relative_to(lake)) for path in lake.rglob("*") if path.is_file() and "tables" not in path.parts
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_reports_say_the_same_before_and_after(made: Path, name: str) -> None:
    for period in ((), ("--since", "2026-01-02T05:00:00Z", "--until", "2026-01-03")):
        found = report(made / "lake", name, *period)
        assert found["rows"] or period
        assert report(made / "short", name, *period) == found


def test_only_the_last_day_is_left_in_cycles(lake: Path, short: Path) -> None:
    found = files(short)

    assert [path for path in found if path.startswith("cycles/")] == [
        path for path in files(lake) if "date=2026-01-04" in path
    ]
    assert len([path for path in found if path.startswith("days/")]) == 3 * (
        len(FOLDS) + 2
    )  # and records, and that it is done


def test_records_are_found_byte_for_byte(lake: Path, short: Path) -> None:
    for path in lake.glob("cycles/*/*.json"):
        there = short / path.relative_to(lake)
        assert read_plan(there) == plan_path(path).read_bytes()
        assert read_manifest(there) == read_manifest(path)


def test_a_decision_of_a_compacted_day_is_not_replaced(short: Path, tmp_path: Path) -> None:
    found = snapshot(tmp_path / "other.yaml", [doc.node("z")], unix("+2h"))

    with pytest.raises(Refusal, match=r"it is the record of another decision for 2026-01-01T02:00:00Z"):
        Lake(short).refuse_other(found, plan_of(found, unix("+2h")), b"")


def test_without_a_lake_it_says_how_to_name_one() -> None:
    assert jobtree("compact").refused() == (
        "error: no lake is named: say --state FILE, whose lake is beside it, or --lake DIR, or an fsspec URL"
    )


def test_compacting_again_changes_nothing(short: Path) -> None:
    before = {path: (short / path).read_bytes() for path in files(short)}

    said = jobtree("compact", "--lake", short).ok().out
    assert said == f"Nothing to compact before 2026-01-04, the last day of {short}\n"
    assert {path: (short / path).read_bytes() for path in files(short)} == before


def test_each_day_is_said_with_its_cycles(lake: Path) -> None:
    assert jobtree("compact", "--lake", lake).ok().out == "".join(f"2026-01-0{day}: 2 cycles\n" for day in (1, 2, 3))


@pytest.mark.slow
def test_a_crash_leaves_a_day_that_reports_the_same(lake: Path, short: Path) -> None:
    whole = report(lake, "chargeback")
    unmarked = lake.with_name("unmarked")  # stopped before the day was marked as done
    shutil.copytree(lake, unmarked)
    shutil.copytree(short / "days", unmarked / "days")
    (unmarked / "days/date=2026-01-02/done.json").unlink()
    doubled = lake.with_name("doubled")  # stopped before, or while, its files were taken out of cycles/
    shutil.copytree(lake, doubled)
    shutil.copytree(short / "days", doubled / "days")
    plan_path(next(doubled.glob("cycles/date=2026-01-02/*.json"))).unlink()

    for stopped in (unmarked, doubled):
        assert report(stopped, "chargeback") == whole
        jobtree("compact", "--lake", stopped).ok()
        assert report(stopped, "chargeback") == whole


def test_a_lease_that_closed_is_in_the_day_that_saw_it(short: Path) -> None:
    held = {date: days.read(short, date)["leases"]["name"].to_pylist() for date in days.dates(short)[:-1]}

    assert held == {
        "2026-01-01": ["x-0", "y-0"],
        "2026-01-02": ["x-0", "y-0", "z-0"],
        "2026-01-03": ["w-0", "y-0", "z-0"],
    }


@pytest.mark.parametrize("name", ["leases", "nodes", "cycles"])
def test_a_spoilt_day_is_read_from_its_records(lake: Path, short: Path, name: str) -> None:
    whole = report(lake, "utilisation")
    spoilt = short / f"days/date=2026-01-02/{name}.parquet"
    spoilt.write_bytes(spoilt.read_bytes()[:-9])

    made = jobtree("report", "utilisation", "--lake", short, "-o", "json").ok()

    said = "it is not the file that was written: it was changed or cut off; the day is read from its records instead"
    assert made.err == f"warning: {spoilt}: {said}\n"
    assert json.loads(made.out)["rows"] == whole["rows"]


def test_a_day_with_nothing_left_to_read_is_named(short: Path) -> None:
    for path in short.glob("days/date=2026-01-02/*.parquet"):
        path.write_bytes(b"PAR1")

    made = jobtree("report", "chargeback", "--lake", short, "-o", "json").ok()

    assert "the day 2026-01-02 is left out\n" in made.err
    assert "it has no cycle for 1 whole day: " in made.err


def test_what_cannot_be_read_stays_where_it_is(lake: Path) -> None:
    spoilt = lake / "cycles/date=2026-01-02/20260102T200000Z.json"
    spoilt.write_text("{")

    made = jobtree("compact", "--lake", lake).ok()

    assert made.err.startswith(f"warning: {spoilt}: it is not the manifest of a cycle: ")
    assert [path for path in files(lake) if "cycles/date=2026-01-02" in path] == [
        "cycles/date=2026-01-02/20260102T200000Z.json",
        "cycles/date=2026-01-02/20260102T200000Z/plan.json",
    ]


def test_the_last_day_is_not_compacted(tmp_path: Path) -> None:
    record(tmp_path / "lake", "+1h", [doc.node("a01")])

    said = jobtree("compact", "--lake", tmp_path / "lake").ok().out
    assert said == f"Nothing to compact before 2026-01-01, the last day of {tmp_path / 'lake'}\n"
    assert not (tmp_path / "lake/days").exists()


@pytest.mark.parametrize("command", [["compact"], ["nightly"], ["metrics"], ["report", "usage"]])
def test_a_lake_that_is_not_there_or_holds_no_cycle_is_refused(tmp_path: Path, command: list[str]) -> None:
    missing, step = tmp_path / "lkae", "; `jobtree --state FILE cycle` writes one"
    assert jobtree(*command, "--lake", missing).refused() == f"error: there is no lake {missing}{step}"
    assert jobtree(*command, "--lake", tmp_path).refused() == f"error: {tmp_path} holds no cycle{step}"
    (tmp_path / "file").write_text("")
    assert (
        jobtree(*command, "--lake", tmp_path / "file").refused() == f"error: {tmp_path / 'file'} holds no cycle{step}"
    )
    assert jobtree("--state", tmp_path / "s.yaml", *command).refused() == (
        f"error: there is no lake {tmp_path / 's.yaml.lake'}{step}"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_plans_that_say_almost_the_same_pack_small() -> None:
    waits = [{"name": f"run-{number}", "message": "It waits for 64 GPUs. " * 9} for number in range(40)]
    plans = [json.dumps({"at": minute, "waits": waits}).encode() for minute in range(300)]

    packed = records.encode([records.Record(f"{minute}", b"{}", plan) for minute, plan in enumerate(plans)])

    assert len(packed) < sum(map(len, plans)) / 100


def test_a_manifest_that_is_nowhere_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert jobtree("replay", "none.json").refused() == (
        "error: none.json: there is no such file; a replay takes the manifest of a cycle in a lake, such as "
        "FILE.lake/cycles/date=2026-01-01/20260101T000000Z.json"
    )
