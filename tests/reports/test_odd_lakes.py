"""Lakes with something wrong in them: each thing is named, and the rest is reported."""

import hashlib
import re
from pathlib import Path

import pytest

from exporters.lake import days
from exporters.lake.lake import Lake, plan_path
from jobtree.api import Refusal
from jobtree.api.values.counted import counted
from jobtree.world.plan import Wait
from reports.query import Report
from tests.reports.worlds import lease, make, record
from tests.support import documents as doc
from tests.support.commands import jobtree
from tests.support.documents import Document
from tests.support.times import unix

WAIT = Wait(namespace="default", name="w", reason="NoFunding", message="")
BASE = [doc.node("a01"), doc.budget("org:a", [doc.envelope(8)])]


def held(until: str | None, name: str = "l", payer: str = "org-a/gpus", begin: str = "+0s") -> Document:
    return lease(name, "r", ["a01#0"], payer, ("owned", begin, until), owner="org:a")


def notices(report: Report) -> list[str]:
    return [f"{subject}: {message}" for subject, message in report.troubles]


def absent(owner: str = "org:a", flavor: str = doc.FLAVOR, leases: int = 1) -> str:
    """What is said of a payer that is in no cycle."""
    seen = f"of {owner} for {flavor} it is in no cycle of the period, and pays for {counted(leases, 'lease')}"
    return f"{seen}: its charges stay with {owner}, as the leases say"


def hours(report: Report) -> float:
    return float(sum(row["gpu_hours"] for row in report.rows.to_pylist()))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def test_an_ordinary_lake_has_nothing_to_say(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    record(lake, "+2h", [*BASE, held("+90m")])

    assert notices(make(lake, "chargeback")) == []


def test_a_half_written_table_is_left_out(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    before = set(lake.glob("tables/leases/*"))
    record(lake, "+2h", [*BASE, held("+90m")])
    (half,) = set(lake.glob("tables/leases/*")) - before
    half.write_bytes(half.read_bytes()[:-20])

    report = make(lake, "chargeback")

    (notice,) = notices(report)
    assert notice.startswith(f"{half}: it is no Parquet file, or was cut off: ")
    assert notice.endswith("; the cycles that need it go without it")
    assert hours(report) == 1.0  # as far as the cycle before saw


def test_a_foreign_table_is_left_out(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    (leases,) = lake.glob("tables/leases/*")
    (nodes,) = lake.glob("tables/nodes/*")
    leases.write_bytes(nodes.read_bytes())

    report = make(lake, "chargeback")

    assert notices(report) == [
        f"{leases}: it has other columns than the table leases; the cycles that need it go without it"
    ]
    assert report.rows.num_rows == 0


def test_a_manifest_that_is_none_is_left_out(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    spoilt = record(lake, "+2h", [*BASE, held("+90m")])
    spoilt.write_text("{")

    report = make(lake, "chargeback")

    (notice,) = notices(report)
    assert notice.startswith(f"{spoilt}: it is not the manifest of a cycle: ")
    assert hours(report) == 1.0


def test_a_manifest_under_another_time_s_name_is_left_out(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    moved = record(lake, "+2h", [*BASE, held("+90m")]).rename(lake / "cycles/date=2026-01-01/20260101T030000Z.json")

    assert notices(make(lake, "chargeback")) == [
        f"{moved}: its name and its time, 2026-01-01T02:00:00Z, disagree; this cycle is left out"
    ]


def test_a_manifest_in_another_day_s_folder_is_left_out(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    (lake / "cycles/date=nonsense").mkdir()
    moved = record(lake, "+2h", [*BASE, held("+90m")]).rename(lake / "cycles/date=nonsense/20260101T020000Z.json")

    assert notices(make(lake, "chargeback")) == [
        f"{moved}: its name and its time, 2026-01-01T02:00:00Z, disagree; this cycle is left out"
    ]


def test_a_policy_that_is_none_leaves_spares_as_they_weighed_before(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    spoilt = record(lake, "+2h", [*BASE, held("+90m"), doc.policy(spares={"discount": 0.25})])
    spoilt.write_text(re.sub(r'"discount": ?0.25', '"discount": "a quarter"', spoilt.read_text()))

    report = make(lake, "chargeback")

    (notice,) = notices(report)
    assert notice == (
        f"{spoilt}: its Policy cannot be read: Expected `int | float`, got `str` - at `$.spares.discount`; "
        "spares are taken to weigh what they did before, or by default"
    )
    assert hours(report) == 1.5


def test_a_plan_that_is_not_there_leaves_what_waited_unknown(lake: Path) -> None:
    for when in ("+1h", "+2h", "+3h"):
        manifest = record(lake, when, [*BASE, doc.run("w", 4)], [WAIT])
        if when == "+2h":
            plan_path(manifest).unlink()

    report = make(lake, "bottlenecks")

    said = "its plan cannot be read: there is no such file; who waited then is not known"
    assert notices(report) == [f"{lake}/cycles/date=2026-01-01/20260101T020000Z.json: {said}"]
    assert hours(report) == 8.0  # as the cycle before saw it


def days_of(lake: Path) -> Path:
    """A lake of three days of which two are compacted; the folder of the first."""
    for when in ("+1h", "+25h", "+49h"):
        record(lake, when, [*BASE, held(None)])
    assert list(days.compact(Lake(lake))) == []
    return lake / "days/date=2026-01-01"


def test_a_compacted_day_that_was_not_finished_is_read_from_its_records(lake: Path) -> None:
    done = days_of(lake) / "done.json"
    done.unlink()

    report = make(lake, "chargeback")

    assert notices(report) == [f"{done}: there is no such file; the day is read from its records instead"]
    assert (report.cycles, hours(report)) == (3, 49.0)


def test_a_foreign_table_of_a_compacted_day_is_read_from_its_records(lake: Path) -> None:
    day = days_of(lake)
    nodes = (day / "nodes.parquet").read_bytes()
    own = hashlib.sha256((day / "leases.parquet").read_bytes()).hexdigest()
    (day / "leases.parquet").write_bytes(nodes)
    (day / "done.json").write_text((day / "done.json").read_text().replace(own, hashlib.sha256(nodes).hexdigest()))

    report = make(lake, "chargeback")

    said = "it has other columns than the table leases, or is no Parquet file; the day is read from its records instead"
    assert notices(report) == [f"{day / 'leases.parquet'}: {said}"]
    assert hours(report) == 49.0


def test_a_cycle_that_came_after_its_day_was_compacted_is_named(lake: Path) -> None:
    days_of(lake)
    late = record(lake, "+5h", [*BASE, held(None)])

    assert notices(make(lake, "chargeback")) == [
        f"{late}: the day 2026-01-01 was compacted without this cycle; it is left out"
    ]


def test_a_lake_with_nothing_but_spoilt_records_is_refused(lake: Path) -> None:
    day = days_of(lake)
    for each in lake.glob("cycles/*/*.json"):
        each.unlink()
    for each in lake.glob("days/*/*.parquet"):
        each.write_bytes(each.read_bytes()[:40])

    with pytest.raises(Refusal, match="holds no cycle that can be read"):
        make(lake, "chargeback")
    assert day.exists()


def test_missing_days_are_named_and_charged_as_the_leases_say(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    record(lake, "+73h", [*BASE, held("+50h")])

    report = make(lake, "chargeback")

    (notice,) = notices(report)
    assert notice == (
        "The lake between 2026-01-01T01:00:00Z and 2026-01-04T01:00:00Z: it has no cycle for 2 whole days: "
        "leases say what they cost then, the rest is taken as the cycle before saw it"
    )
    assert hours(report) == 50.0


def test_of_missing_days_those_of_the_period_count(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    record(lake, "+120h", [*BASE, held("+50h")])
    periods = [
        (None, None),
        *((unix(since), unix(until)) for since, until in (("+48h", "+96h"), ("+60h", "+96h"), ("+60h", "+84h"))),
    ]
    told = [notices(make(lake, "chargeback", since=since, until=until)) for since, until in periods]
    assert [[words.partition("for ")[2].partition(":")[0] for words in each] for each in told] == [
        ["4 whole days"], ["2 whole days"], ["1 whole day"], []
    ]  # fmt: skip


def test_what_is_asked_for_after_the_last_cycle_is_not_known(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])

    report = make(lake, "chargeback", until=unix("+5h"))

    (notice,) = notices(report)
    assert notice == (
        "The period: it was asked for until 2026-01-01T05:00:00Z, and the lake's last cycle is of "
        "2026-01-01T01:00:00Z: figures are up to that one"
    )
    assert hours(report) == 1.0


def test_a_closed_lease_stays_closed_when_a_later_cycle_saw_it_open(lake: Path) -> None:
    record(lake, "+2h", [*BASE, held("+90m")])
    record(lake, "+25h", [*BASE, held(None)])

    report = make(lake, "chargeback")

    (notice,) = notices(report)
    assert notice == (
        "Lease default/l: the cycle of 2026-01-01T02:00:00Z saw it closed, that of 2026-01-02T01:00:00Z open: "
        "two clocks disagree, and it counts as closed"
    )
    assert hours(report) == 1.5


def test_a_ledger_from_the_future_is_named(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held("+3h", begin="+2h")])

    (notice,) = notices(make(lake, "chargeback"))

    assert notice == (
        "Lease default/l: its ledger begins a segment at 2026-01-01T02:00:00Z, after the cycle of 2026-01-01T01:00:00Z "
        "that saw it: two clocks disagree"
    )


def test_a_lease_that_vanished_counts_until_it_was_seen_last(lake: Path) -> None:
    record(lake, "+1h", [*BASE, held(None)])
    record(lake, "+25h", BASE)
    record(lake, "+26h", [*BASE, held(None, name="m", begin="+25h")])

    report = make(lake, "chargeback")

    assert notices(report) == [
        "Lease default/l: it was open at 2026-01-01T01:00:00Z and is in no later cycle: it counts until then"
    ]
    assert hours(report) == 2.0


def test_leases_of_a_deleted_budget_stay_with_their_payer(lake: Path) -> None:
    record(lake, "+1h", [doc.node("a01"), held("+30m"), held("+45m", name="m", payer="gone/fund")])

    report = make(lake, "chargeback")

    assert notices(report) == [f"Envelope gone/fund: {absent()}", f"Envelope org-a/gpus: {absent()}"]
    assert hours(report) == 1.25


def test_payers_of_one_name_are_told_apart(lake: Path) -> None:
    of_b = doc.merge(held("+20m", name="b"), {"spec": {"owner": "org:b"}})
    on_a100 = doc.merge(held("+10m", name="a"), {"spec": {"flavor": "A100"}})
    record(lake, "+1h", [doc.node("a01"), held("+30m"), held("+45m", name="m"), of_b, on_a100])

    assert notices(make(lake, "chargeback")) == [
        f"Envelope org-a/gpus: {said}" for said in (absent("org:a", "A100"), absent(leases=2), absent("org:b"))
    ]


def test_owner_and_flavor_that_never_stood_together_are_no_payer(lake: Path) -> None:
    record(lake, "+1h", [doc.node("a01"), doc.budget("org:a", [doc.envelope(8, flavor="A100")]), held(None)])
    record(lake, "+2h", [doc.node("a01"), doc.budget("org:b", [doc.envelope(8)], "org-a"), held("+90m")])

    assert notices(make(lake, "chargeback")) == [f"Envelope org-a/gpus: {absent()}"]


def test_what_was_set_aside_is_named(lake: Path) -> None:
    record(lake, "+1h", [*BASE, {**held(None), "spec": {"owner": "org:a"}}])

    (notice,) = notices(make(lake, "chargeback"))

    said = "it was set aside by the cycle of 2026-01-01T01:00:00Z, and counted for nothing then: "
    assert notice.startswith(f"Lease default/l: {said}")


def test_many_of_a_kind_are_counted(lake: Path) -> None:
    record(lake, "+1h", [doc.node("a01"), *(held("+1m", name=f"l{n}", payer=f"gone{n}/x") for n in range(9))])

    found = notices(make(lake, "chargeback"))

    assert [notice.partition(":")[0] for notice in found] == [
        "Envelope gone0/x",
        "Envelope gone1/x",
        "Envelope gone2/x",
        "Envelopes",
    ]
    assert found[-1] == "Envelopes: 6 more like the last one"


def test_the_same_trouble_with_many_files_is_counted(lake: Path) -> None:
    for minute in range(8):
        manifest = record(lake, f"+{60 + minute}m", [*BASE, held(None)])
        if minute < 7:
            manifest.write_text(manifest.read_text().replace('"schemaVersion": ', '"schemaVersion": 9'))

    found = notices(make(lake, "chargeback"))

    said = "it was written with schema version 9"
    assert [said in notice for notice in found] == [True] * 4
    assert found[-1].startswith("Files: 4 more of which is to be said: it was written with schema version 9")


def test_notices_are_warnings_on_stderr_and_part_of_every_page(lake: Path) -> None:
    record(lake, "+1h", [doc.node("a01"), held("+30m")])
    command = ("report", "chargeback", "--lake", lake, "-o")

    outputs = {form: jobtree(*command, form).ok() for form in ("table", "csv", "json", "html")}

    assert {output.err.count("warning: Envelope org-a/gpus: of org:a for") for output in outputs.values()} == {1}
    assert "Envelope org-a/gpus" in outputs["json"].out
    assert "Envelope org-a/gpus" in re.sub(r"<[^>]+>", "", outputs["html"].out)


def test_a_lake_without_cycles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"nowhere holds no cycle that can be read"):
        make(tmp_path / "nowhere", "chargeback")


@pytest.mark.parametrize(
    "budget",
    [doc.budget("org:b", [doc.envelope(8)], "org-a"), doc.budget("org:a", [doc.envelope(8, flavor="A100")])],
    ids=["owner", "flavor"],
)
def test_an_envelope_that_is_another_payer_now_was_charged_nothing(lake: Path, budget: Document) -> None:
    record(lake, "+1h", [doc.node("a01"), budget, held(None)])
    record(lake, "+2h", [doc.node("a01"), budget, held("+90m")])

    for name in ("usage", "burndown"):
        report = make(lake, name)
        assert [row["milli_gpu_seconds"] for row in report.rows.to_pylist() if row["milli_gpu_seconds"]] == []
        assert [outcome.apart for outcome in report.outcomes] == [""]
        assert notices(report) == [f"Envelope org-a/gpus: {absent()}"]
    assert [(row["owner"], row["gpu_hours"]) for row in make(lake, "chargeback").rows.to_pylist()] == [("org:a", 1.5)]
