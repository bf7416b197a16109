"""Money: what reports charge is what the leases say, to the second, and a report that says otherwise is not given."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.lake.foldtables import FOLDS
from jobtree.api import Refusal
from jobtree.world.reading.intake import intake, key_of
from jobtree.world.tables.snapshot import take
from reports.query import Asked, build
from reports.read.definition import load
from reports.read.source import Source
from tests.reports.worlds import lease, make, record
from tests.support import documents as doc
from tests.support.commands import jobtree
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import rfc3339, unix

NODES = [doc.node("a01"), doc.node("a02")]
DECEMBER, JANUARY = "2025-12", "2026-01"


def slots(node: str, gpus: int) -> list[str]:
    return [f"{node}#{ordinal}" for ordinal in range(gpus)]


def rows(
    lake: Path, report: str, *columns: str, since: int | None = None, until: int | None = None
) -> list[tuple[Any, ...]]:
    made = make(lake, report, since, until)
    assert [outcome.apart for outcome in made.outcomes] == [""] * len(made.outcomes)
    return [tuple(row[column] for column in columns) for row in made.rows.to_pylist()]


def test_a_lease_over_new_year_is_split_at_the_first_second_of_the_year(tmp_path: Path) -> None:
    held = lease("l", "r", slots("a01", 3), "org-a/gpus", ("owned", "-10s", "+7s"), owner="org:a")
    record(tmp_path / "lake", "+1h", [*NODES, doc.budget("org:a", [doc.envelope(8)]), held])

    assert rows(tmp_path / "lake", "chargeback", "month", "owner", "milli_gpu_seconds") == [
        (DECEMBER, "org:a", 3 * 1000 * 10),
        (JANUARY, "org:a", 3 * 1000 * 7),
    ]


def test_the_period_is_cut_to_the_second(tmp_path: Path) -> None:
    held = lease("l", "r", slots("a01", 2), "org-a/gpus", ("owned", "+0s", "+1h"), owner="org:a")
    record(tmp_path / "lake", "+2h", [*NODES, doc.budget("org:a", [doc.envelope(8)]), held])

    inside = rows(tmp_path / "lake", "chargeback", "milli_gpu_seconds", since=unix("+10s"), until=unix("+13s"))
    assert inside == [(2 * 1000 * 3,)]


def test_a_spare_costs_its_discount_and_unfunded_time_nothing(tmp_path: Path) -> None:
    documents = [
        *NODES,
        doc.policy(spares={"discount": 0.125}),
        doc.budget("org:a", [doc.envelope(8)]),
        lease("s", "r", slots("a01", 4), "org-a/gpus", ("owned", "+0s", "+1h"), role="Spare", owner="org:a"),
        lease(
            "u", "r", slots("a02", 1), "org-a/gpus", ("owned", "+0s", "+1s"), ("unfunded", "+1s", "+1h"), owner="org:a"
        ),
        lease("n", "r", ["a02#7"], None, ("unfunded", "+0s", "+1h"), owner="org:a"),
    ]
    record(tmp_path / "lake", "+2h", documents)

    assert rows(tmp_path / "lake", "chargeback", "milli_gpu_seconds") == [(4 * 125 * 3600 + 1000,)]


def test_credits_are_those_of_the_rate_that_each_segment_recorded(tmp_path: Path) -> None:
    documents = [
        *NODES,
        doc.budget("org:a", [doc.envelope(8)]),
        lease("x", "r", slots("a01", 4), "org-a/gpus", ("owned", "+0s", "+1h"), owner="org:a", rate=2.5),
        lease("y", "r", slots("a02", 4), "org-a/gpus", ("owned", "+0s", "+1h"), owner="org:a", rate=0.1),
    ]
    record(tmp_path / "lake", "+2h", documents)

    assert rows(tmp_path / "lake", "chargeback", "gpu_hours", "credits") == [(8.0, 4 * 2.5 + 4 * 0.1)]


def test_the_payer_is_charged_whoever_ran(tmp_path: Path) -> None:
    documents = [
        *NODES,
        doc.budget("org:a", [doc.envelope(8)]),
        lease("x", "r", slots("a01", 1), "org-a/gpus", ("borrowed", "+0s", "+1h"), owner="org:b", payer_owner="org:a"),
    ]
    record(tmp_path / "lake", "+2h", documents)

    assert rows(tmp_path / "lake", "chargeback", "owner", "gpu_hours", "borrowed_gpu_hours") == [("org:a", 1.0, 1.0)]


def test_an_open_lease_counts_up_to_the_last_cycle(tmp_path: Path) -> None:
    held = lease("l", "r", slots("a01", 1), "org-a/gpus", ("owned", "+0s", None), owner="org:a")
    documents = [*NODES, doc.budget("org:a", [doc.envelope(8)]), held]
    record(tmp_path / "lake", "+10s", documents)
    record(tmp_path / "lake", "+70s", documents)

    assert rows(tmp_path / "lake", "chargeback", "milli_gpu_seconds") == [(70_000,)]
    assert rows(tmp_path / "lake", "chargeback", "milli_gpu_seconds", until=unix("+11s")) == [(11_000,)]


def test_what_a_later_cycle_saw_end_in_the_period_ends_there(tmp_path: Path) -> None:
    base = [*NODES, doc.budget("org:a", [doc.envelope(8)])]
    held = lease("l", "r", slots("a01", 1), "org-a/gpus", ("owned", "+0s", None), owner="org:a")
    ended = lease("l", "r", slots("a01", 1), "org-a/gpus", ("owned", "+0s", "+23h"), owner="org:a")
    record(tmp_path / "lake", "+22h", [*base, held])
    record(tmp_path / "lake", "+2d", [*base, ended])

    assert rows(tmp_path / "lake", "chargeback", "gpu_hours", until=unix("+24h")) == [(23.0,)]


def test_a_report_whose_figures_do_not_reconcile_is_refused(tmp_path: Path) -> None:
    documents = [
        *NODES,
        doc.budget("org:a", [doc.envelope(8), doc.envelope(8, name="more")]),
        lease("l", "r", slots("a01", 1), "org-a/gpus", ("owned", "+0s", "+1h"), owner="org:a"),
    ]
    record(tmp_path / "lake", "+2h", documents)
    wrong = tmp_path / "mine.sql"
    wrong.write_text(
        "-- Mine: joined by the budget alone, so each charge is there once per envelope.\n"
        "-- @check milli_gpu_seconds = charges by owner\n"
        "SELECT c.owner, sum(c.milli_gpu_seconds)::BIGINT AS milli_gpu_seconds\n"
        "FROM charges AS c JOIN envelopes AS e ON e.budget = c.budget GROUP BY c.owner\n"
    )

    assert jobtree("report", wrong, "--lake", tmp_path / "lake").refused() == (
        "error: the report mine: milli_gpu_seconds does not reconcile with the leases: "
        "owner org:a: the report says 7,200,000, the leases 3,600,000."
    )


def test_sums_beyond_64_bits_do_not_wrap_around(tmp_path: Path) -> None:
    record(tmp_path / "lake", "+2h", NODES)
    large = tmp_path / "mine.sql"
    large.write_text("-- Mine: large.\n-- @check a = charges\nSELECT 9223372036854775807 AS a FROM range(4)\n")

    assert jobtree("report", large, "--lake", tmp_path / "lake").refused() == (
        "error: the report mine: a does not reconcile with the leases: "
        "in all: the report says 36,893,488,147,419,103,228, the leases 0."
    )


Lease = tuple[int, str, str | None, list[tuple[str, int]], int, float | None, bool]
CLASSES = st.sampled_from(["owned", "shared", "borrowed", "unfunded"])
LEASES: st.SearchStrategy[list[Lease]] = st.lists(
    st.tuples(
        st.integers(1, 8),  # GPUs
        st.sampled_from(["Active", "Spare"]),
        st.sampled_from(["org-a/gpus", "org-b/gpus", None]),
        st.lists(st.tuples(CLASSES, st.integers(1, 40 * 86_400)), min_size=1, max_size=4),  # class, seconds
        st.integers(0, 60 * 86_400),  # start, from the beginning of November
        st.sampled_from([None, 0.001, 1.5]),
        st.booleans(),  # closed
    ),
    max_size=20,
)
BEGIN = unix("2025-11-01T00:00:00Z")
NOW = unix("2026-03-01T12:34:56Z")


def document(number: int, given: Lease) -> Document:
    gpus, role, payer, parts, start, rate, closed = given
    at = BEGIN + start
    segments: list[tuple[str, str, str | None]] = []
    for name, seconds in parts:
        segments.append((name, rfc3339(min(at, NOW)), rfc3339(min(at + seconds, NOW))))
        at += seconds
    if not closed:
        segments[-1] = (*segments[-1][:2], None)
    owner = "org:none" if payer is None else payer.partition("/")[0].replace("-", ":")
    return lease(
        f"l{number}", "r", slots("a01", gpus), payer, *segments, role=role, owner="org:x", payer_owner=owner, rate=rate
    )


def months(since: int, until: int) -> Iterator[tuple[str, int, int]]:
    """Calendar months from that of ``since`` on: name, first second, first second of the next one (UTC)."""
    first = datetime.fromtimestamp(since, UTC).replace(day=1, hour=0, minute=0, second=0)
    while first.timestamp() < until:
        following = (first + timedelta(days=31)).replace(day=1)
        yield f"{first:%Y-%m}", int(first.timestamp()), int(following.timestamp())
        first = following


def reference(leases: list[Document], since: int, until: int) -> dict[tuple[str, str], tuple[int, Fraction]]:
    """(month, owner) → milli-GPU-seconds and credits, the plain way: lease by lease, month by month."""
    found: dict[tuple[str, str], tuple[int, Fraction]] = defaultdict(lambda: (0, Fraction(0)))
    for each in leases:
        spec = each["spec"]
        weight = len(spec["slice"]["nodes"]) * (500 if spec["slice"]["role"] == "Spare" else 1000)
        for segment in each["status"]["funding"] if "paidBy" in spec else []:
            for month, begin, end in months(since, until):
                first = max(unix(segment["from"]), since, begin)
                last = min(unix(segment["to"]) if "to" in segment else NOW, until, end)
                if segment["class"] != "unfunded" and last > first:
                    charge, rated = found[month, spec["owner"]]
                    rate = Fraction(str(segment.get("rate", 0)))
                    charge, rated = charge + weight * (last - first), rated + weight * (last - first) * rate
                    found[month, spec["owner"]] = charge, rated
    return found


@examples(25)
@given(leases=LEASES, since=st.integers(BEGIN, NOW), length=st.integers(1, 120 * 86_400))
def test_sums_in_sql_are_those_of_plain_python(leases: list[Lease], since: int, length: int) -> None:
    documents = [document(number, each) for number, each in enumerate(leases)]
    until = min(since + length, NOW)
    since = min(since, until - 1)

    expected = reference(documents, since, until)
    made = build(seen_at(NOW, documents), load("chargeback"), Asked(since, until))
    found = {(row["month"], row["owner"]): row for row in made.rows.to_pylist()}

    assert [outcome.apart for outcome in made.outcomes] == ["", ""]
    assert {key: row["milli_gpu_seconds"] for key, row in found.items()} == {k: v[0] for k, v in expected.items()}
    assert {key: row["credits"] for key, row in found.items()} == pytest.approx(
        {key: float(rated / 3_600_000) for key, (_, rated) in expected.items()}, rel=1e-12
    )


def seen_at(at: int, documents: list[Document]) -> Source:
    """What a lake would say of these leases, without one."""
    objects = [(key_of(each["apiVersion"], "Lease", "default", each["metadata"]["name"]), each) for each in documents]
    leases = take(intake([(key, msgspec.json.encode(each)) for key, each in objects], "r")).tables["leases"]
    seen = leases.append_column("seen", pa.array([at] * leases.num_rows, pa.int64())).cast(FOLDS["leases"])
    cycle = pa.Table.from_pylist([{"time": at, "cycle": "c"}], FOLDS["cycles"])
    empty = {name: schema.empty_table() for name, schema in FOLDS.items()}
    half = pa.Table.from_pylist([{"since": None, "milli": 500, "time": at}], FOLDS["discounts"])
    return Source({**empty, "leases": seen, "cycles": cycle, "discounts": half}, [])


def test_an_sql_file_that_does_not_run_is_one_sentence(tmp_path: Path) -> None:
    record(tmp_path / "lake", "+1h", NODES)
    for text, sentence in (
        ("SELECT owners FROM charges", r"the report bad: its SQL does not run: Binder Error: .*owners"),
        ("-- Bad.\n-- @charts pie\nSELECT 1", "the line `-- @charts pie` is not understood"),
        ("-- Bad.\nSELECT 1;\n-- @chart pie: Pie\nSELECT 1", "the line `-- @chart pie: Pie` is not understood"),
        ("-- Bad.\nSELECT 1;\n-- @table sums=a\nSELECT 1", "the line `-- @table sums=a` is not understood"),
        ("-- @check a = charges\nSELECT 1 AS b", "@check needs the column a"),
        ("-- @check a = charges\nSELECT 'one' AS a", "@check needs numbers in the column a, which has string"),
        ("-- @check a = profit\nSELECT 1 AS a", "@check names the figure 'profit'; allowed are charges, credits"),
    ):
        (tmp_path / "bad.sql").write_text(text)
        with pytest.raises(Refusal, match=sentence):
            make(tmp_path / "lake", str(tmp_path / "bad.sql"))


def test_the_same_figures_in_every_format(tmp_path: Path) -> None:
    held = lease("l", "r", slots("a01", 3), "org-a/gpus", ("owned", "+0s", "+20m"), owner="org:a")
    record(tmp_path / "lake", "+1h", [*NODES, doc.budget("org:a", [doc.envelope(8)]), held])
    command = ("report", "chargeback", "--lake", tmp_path / "lake", "-o")

    table, text, data = (jobtree(*command, form).ok().out for form in ("table", "csv", "json"))

    assert [line.split() for line in table.splitlines()[:4]] == [
        ["org:a", "is", "charged", "1", "GPU-hour."],
        [],
        ["OWNER", "GPU-HOURS", "OWN", "RUNS"],
        ["org:a", "1.00", "1.00"],
    ]
    assert table.splitlines()[5:] == [
        "From 1 Jan 2026 until 1 Jan 2026, 01:00 (UTC), 1 cycle.",
        "Reconciled: 1.00 GPU-hours charged in all, as the leases say per month, owner, flavor, to the second.",
    ]
    assert text.splitlines()[1] == "2026-01,org:a,H100-80GB,1.0,1.0,0.0,0.0,0.0,0.0,3600000"
    assert json.loads(data)["rows"] == [
        {
            "month": JANUARY,
            "owner": "org:a",
            "flavor": "H100-80GB",
            "gpu_hours": 1.0,
            "owned_gpu_hours": 1.0,
            "shared_gpu_hours": 0.0,
            "borrowed_gpu_hours": 0.0,
            "spare_gpu_hours": 0.0,
            "credits": 0.0,
            "milli_gpu_seconds": 3_600_000,
        }
    ]
