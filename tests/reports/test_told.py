"""What people are shown of a report: its answer, its figures, its picture, its table; and whose it is."""

import json
import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Refusal
from jobtree.world.plan import Wait
from reports.output import as_html, as_table, span
from reports.query import Asked, Report, made
from reports.read.definition import Chart, Layout, names
from reports.told.charts import picture, svg
from reports.told.sheet import Sheet, sheet
from reports.told.told import Told, before
from tests.reports.worlds import lease, record
from tests.support import documents as doc
from tests.support.commands import jobtree
from tests.support.documents import Document
from tests.support.times import moment, unix

OWNER_A, OWNER_B = "org:a", "org:a:b"


def world(cap: int | None, until: str | None) -> list[Document]:
    """Two owners of a family, 8 GPUs each; that of the first has a cap, and both held all they have from T0 on."""
    caps: Document = {} if cap is None else {"maxGPUHours": cap}
    caps |= {"start": moment("-1h"), "end": moment("+10d")}
    return [
        doc.node("a01"),
        doc.node("a02"),
        doc.budget(OWNER_A, [doc.envelope(8, **caps)]),
        doc.budget(OWNER_B, [doc.envelope(8)]),
        lease("one", "r1", [f"a01#{n}" for n in range(8)], "org-a/gpus", ("owned", "+0s", until), owner=OWNER_A),
        lease("two", "r2", [f"a02#{n}" for n in range(8)], "org-a-b/gpus", ("owned", "+0s", until), owner=OWNER_B),
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cap of 100 GPU-hours that is edited to 10 when 40 are spent; the other envelope has none."""
    lake = tmp_path_factory.mktemp("told") / "lake"
    for when, cap in (("+0s", 100), ("+2h", 100), ("+5h", 10), ("+6h", 10)):
        record(lake, when, world(cap, None))
    return lake


@cache
def told(lake: Path, report: str, **given: str | None) -> Report:
    since, until = (None if given.get(each) is None else unix(str(given[each])) for each in ("since", "until"))
    settings = {"currency": "USD", "credit_price": "2"} if report == "focus" else {}
    return made(lake, report, Asked(since, until, settings, given.get("owner"), tell=True))


def test_n9_what_is_left_is_never_below_0_and_a_cap_s_edit_is_a_step(lake: Path) -> None:
    rows = told(lake, "burndown").rows.to_pylist()

    own = {row["until"]: (row["max_gpu_hours"], row["gpu_hours_left"]) for row in rows if row["owner"] == OWNER_A}
    assert [own[moment(when)] for when in ("+2h", "+285m", "+5h", "+6h")] == [
        (100.0, 84.0), (100.0, 62.0), (10.0, 0.0), (10.0, 0.0)
    ]  # fmt: skip
    assert {row["gpu_hours_left"] for row in rows if row["owner"] == OWNER_B} == {None}


@pytest.mark.parametrize("when", ["+1h", "+2h", "+5h", "+6h"])
def test_n9_burndown_and_usage_say_the_same_of_an_instant(lake: Path, when: str) -> None:
    usage = [(row["owner"], row["max_gpu_hours"], row["gpu_hours_left"], row["gpu_hours"])
             for row in told(lake, "usage", until=when).rows.to_pylist()]  # fmt: skip
    burned = {row["owner"]: row for row in told(lake, "burndown", until=when).rows.to_pylist()}

    assert usage == [
        (owner, row["max_gpu_hours"], row["gpu_hours_left"], row["gpu_hours_spent_so_far"])
        for owner, row in burned.items()
    ]


def test_n9_an_envelope_without_a_cap_is_not_drawn(lake: Path) -> None:
    report = told(lake, "burndown")
    assert report.told is not None
    assert report.told.chart is not None

    assert set(report.told.chart["panel"].to_pylist()) == {"org-a/gpus"}
    assert report.told.lead == (
        "0 of 10 GPU-hours (0%) are left. Nothing is left of org-a/gpus. "
        "The cap of org-a/gpus was edited from 100 to 10 GPU-hours on 1 Jan 2026."
    )


def test_u11_usage_shows_spent_left_window_and_totals(lake: Path) -> None:
    lines = as_table(told(lake, "usage", until="+2h")).splitlines()

    assert lines[0] == (
        "16 of the 100 GPU-hours under caps (16%) are spent and 84 are left. At the pace of the last week 1 envelope "
        "runs out: org-a/gpus of org:a on 1 Jan 2026."
    )
    assert [re.split(r" {3,}", line.strip()) for line in lines[2:6]] == [
        ["OWNER / ENVELOPE", "GPUS IN USE", "GPUS AT MOST", "GPU-HOURS SPENT", "GPU-HOURS LEFT", "RUNS OUT",
         "WINDOW ENDS"],
        ["org-a/gpus", "8", "8", "16.00", "84.00", "1 Jan 2026, 12:30", "11 Jan 2026"],
        ["b / org-a-b/gpus", "8", "8", "16.00", "-", "-", "-"],
        ["Total of org:a", "16", "16", "32.00", "84.00"],
    ]  # fmt: skip


def test_u11_a_report_of_an_owner_is_of_it_and_of_those_below(lake: Path) -> None:
    command = ("report", "usage", "--lake", lake, "-o", "json", "--owner")

    assert [
        [row["owner"] for row in json.loads(jobtree(*command, owner).ok().out)["rows"]]
        for owner in ("org:a", "org", "org:a:b", "org:a:*")
    ] == [[OWNER_A, OWNER_B], [OWNER_A, OWNER_B], [OWNER_B], [OWNER_B]]
    assert jobtree(*command, "org:a:bb").refused() == (
        "error: there is no owner org:a:bb in the lake; did you mean org:a:b?"
    )
    assert jobtree("report", "utilisation", "--lake", lake, "--owner", "org:a").refused() == (
        "error: the report utilisation is not by owner; leave --owner out"
    )


def test_u11_a_setting_that_the_report_does_not_know_is_refused(lake: Path) -> None:
    assert jobtree("report", "usage", "--lake", lake, "--set", "price=2").refused() == (
        "error: --set price: the report usage does not know it; allowed are none: it has no settings"
    )
    focus = ("report", "focus", "--lake", lake, "--set", "currency=USD", "--set", "credit_price=1")
    assert jobtree(*focus, "--set", "rate=2").refused() == (
        "error: --set rate: the report focus does not know it; allowed are currency, credit_price"
    )


@pytest.mark.parametrize("report", names())
def test_every_report_is_told_of_a_period_an_owner_and_nothing(lake: Path, tmp_path: Path, report: str) -> None:
    owner = None if report in {"utilisation", "bottlenecks"} else "org:a:*"
    empty = tmp_path / "lake"
    for when in ("+0s", "+1h"):
        record(empty, when, [])

    for made_of in (told(lake, report, since="+2h", until="+4h", owner=owner), told(empty, report)):
        page = as_html(made_of)
        assert [outcome.apart for outcome in made_of.outcomes] == [""] * len(made_of.outcomes)
        assert "style=" not in page
        assert as_table(made_of)


def test_figures_stand_against_the_period_before(lake: Path) -> None:
    report = told(lake, "chargeback", since="+4h", until="+6h", owner=OWNER_A)
    assert report.told is not None

    assert [(each.label, each.value, each.note) for each in report.told.figures] == [
        ("Charged", "32 GPU-hours", "as in the period before"),
        ("Most by", "org:a", "16 GPU-hours"),
    ]


@pytest.mark.parametrize(
    ("since", "until", "begin"),
    [
        ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", "2025-10-01T00:00:00Z"),
        ("2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z", "2026-02-22T00:00:00Z"),
    ],
)
def test_the_period_before_months_is_months(since: str, until: str, begin: str) -> None:
    assert before(unix(since), unix(until)) == (unix(begin), unix(since))


OWNERS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(":".join)
ROWS = st.lists(st.tuples(OWNERS, st.sampled_from(["x", "y", None]), st.none() | st.integers(0, 9)), max_size=12)


@given(ROWS)
def test_a_tree_holds_every_row_once_and_its_sums_are_those_of_what_is_below(
    rows: list[tuple[str, str | None, int | None]],
) -> None:
    table = pa.table(
        dict(zip(("Owner", "What", "n"), ([row[place] for row in rows] for place in range(3)), strict=True))
    )
    table = table.set_column(2, "n", table["n"].cast(pa.int64()))

    found = sheet(table, Layout("", tree=True, sums=("n",)))

    def total(prefix: str) -> int | None:
        cells = [row[2] for row in rows if row[2] is not None and f"{row[0]}:".startswith(f"{prefix}:")]
        return sum(cells) if cells else None

    has_numbers = any(row[2] is not None for row in rows)
    leaves = [line for line in found.lines if not line.is_sum]
    assert sorted((line.name, line.cells[1] or 0) for line in leaves if has_numbers) == sorted(
        (row[0], row[2] or 0) for row in rows if has_numbers
    )
    assert [line.cells[1] for line in found.lines if line.is_sum and has_numbers] == [
        total(line.name) for line in found.lines if line.is_sum and has_numbers
    ]
    assert (found.total is None) == (len(rows) < 2)


def test_a_table_without_a_layout_has_nine_columns_and_says_how_many_are_left_out() -> None:
    table = pa.table({f"gpu_{n}": [None if n == 3 else n] for n in range(12)})

    assert sheet(table, None) == Sheet(
        tuple(f"Gpu {n}" for n in range(12) if n != 3)[:9],
        sheet(table, None).lines,
        left_out=2,
    )


def test_a_table_of_more_than_nine_columns_is_refused() -> None:
    table = pa.table({str(n): [n] for n in range(10)})
    with pytest.raises(Refusal, match=r"@table has 10 columns; allowed are at most 9"):
        sheet(table, Layout(""))


@pytest.mark.parametrize("kind", ["bars", "across", "each", "lines"])
def test_a_picture_is_one_svg_for_light_and_dark(kind: str) -> None:
    begun, ended = (pa.scalar(unix(when) * 10**6, pa.timestamp("us")) for when in ("+0s", "+1h"))
    table = pa.table({"x": [begun, begun], "x2": [ended, ended], "y": [1.0, 2.0], "series": ["a", "b"],
                      "label": ["one", "<b>two"], "panel": ["one", "<b>two"], "bound": [None, 3.0]})  # fmt: skip

    found = picture(Chart(kind, "Title", ""), table)
    assert found is not None
    drawn = [svg(spec, name="n") for spec in (*found.wide, *found.narrow)]

    assert [re.findall("style=|<b>|<script", each) for each in drawn] == [[]] * len(drawn)
    colours = {colour for each in drawn for colour in re.findall('(?:fill|stroke)="([^"]+)"', each)}
    assert {colour for colour in colours if not colour.startswith("var(--")} <= {"none", "transparent"}


def test_bars_that_do_not_add_up_are_left_out_where_there_are_too_many_and_others_are_one() -> None:
    table = pa.table(
        {"label": [f"o{n:02}" for n in range(50)], "y": [50.0 - n for n in range(50)], "series": ["s"] * 50}
    )

    means, sums = picture(Chart("each", "Wait", ""), table), picture(Chart("across", "Spent", ""), table)
    assert means is not None
    assert sums is not None
    assert (means.title, sums.title) == ("Wait (the first 42 of 50)", "Spent")
    shown = [[row["label"] for row in found.wide[0]["layer"][0]["data"]["values"]] for found in (means, sums)]
    assert [sorted(set(labels)) for labels in shown] == [
        [f"o{n:02}" for n in range(42)],
        sorted([*(f"o{n:02}" for n in range(15)), "35 others"]),
    ]


@pytest.mark.parametrize(("there", "title"), [(8, "Left"), (9, "Left (the first 8 of 9)")])
def test_a_panel_is_drawn_for_each_colour_and_the_title_says_what_is_left_out(there: int, title: str) -> None:
    begun = pa.scalar(unix("+0s") * 10**6, pa.timestamp("us"))
    table = pa.table({"panel": [f"p{n}" for n in range(there)], "x": [begun] * there, "y": [1.0] * there})

    found = picture(Chart("lines", "Left", ""), table)
    assert found is not None
    assert (found.title, [spec["title"]["text"] for spec in found.wide]) == (title, [f"p{n}" for n in range(8)])


def test_parts_of_an_hour_have_no_prefix_that_reads_as_minutes() -> None:
    found = picture(Chart("each", "Hours", ""), pa.table({"label": ["a"], "y": [0.08], "series": ["s"]}))
    assert found is not None

    ticks = re.findall(">([0-9.]+m?)<", svg(found.wide[0], name="n"))
    assert ticks == ["0", "0.02", "0.04", "0.06", "0.08"]


def test_a_picture_of_nothing_is_none() -> None:
    table = pa.table({"label": ["a"], "y": [0.0], "series": ["s"]})

    assert picture(Chart("across", "Title", ""), table) is None
    with pytest.raises(Refusal, match=r"@chart bars needs the column 'x', which its query does not have"):
        picture(Chart("bars", "Title", ""), table)


def test_waits_are_told_in_their_two_largest_units() -> None:
    given = (0, 59, 60, 3599, 7800, 7200, 86_400, 100_000)
    assert [span(each) for each in given] == ["0s", "59s", "1m", "59m 59s", "2h 10m", "2h", "1d", "1d 3h"]


def test_waits_of_two_flavors_are_two_bars_since_they_do_not_add_up(tmp_path: Path) -> None:
    started = (("r", "org:a", "H100-80GB", "+1h"), ("s", "org:a", "A100", "+2h"), ("t", "org:b", "A100", "+3h"))
    there: list[Document] = [doc.node("a01"), doc.node("a02", flavor="A100")]
    for place, (name, owner, flavor, since) in enumerate(started):
        slots = [f"{'a01' if place == 0 else 'a02'}#{gpu}" for gpu in range(4 * place % 8, 4 * place % 8 + 4)]
        held = lease(name, name, slots, None, ("unfunded", since, None), owner=owner)
        metadata = {"uid": name, "creationTimestamp": moment("+0s")}
        asked = {"metadata": metadata, "spec": {"resources": {"gpuType": flavor}}}
        there.append(doc.merge(doc.run(name, 4, owner), asked))
        there.append(doc.merge(held, {"spec": {"flavor": flavor}}))
    record(tmp_path / "lake", "+4h", there)

    report = told(tmp_path / "lake", "waits")

    assert report.told is not None
    assert report.told.chart is not None
    assert [(row["label"], row["series"]) for row in report.told.chart.to_pylist()] == [
        ("org:b", "A100"),
        ("org:a, A100", "A100"),
        ("org:a, H100-80GB", "H100-80GB"),
    ]


def test_who_waits_from_the_only_cycle_on_is_told(tmp_path: Path) -> None:
    """A single cycle is no time in which anybody waited."""
    wait = Wait(namespace="default", name="next", reason="CapacityShort", message="", shorts=[])
    record(tmp_path / "lake", "+0s", [*world(None, None), doc.run("next", 8, owner=OWNER_A)], [wait])

    report = told(tmp_path / "lake", "bottlenecks").told
    assert report is not None
    assert report.lead == ("Waiting as this period ends: 1 run; it has no hours of that yet.")


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One envelope's window ends half an hour before the last cycle; another's standbys go beyond its concurrency."""
    lake = tmp_path_factory.mktemp("over") / "lake"
    window: Document = {"maxGPUHours": 30, "start": moment("-1h"), "end": moment("+3h30m")}
    there = [
        doc.node("a01"),
        doc.node("a02"),
        doc.budget(OWNER_A, [doc.envelope(8, **window)]),
        doc.budget(OWNER_B, [doc.envelope(8)]),
        lease("one", "r1", [f"a01#{n}" for n in range(4)], "org-a/gpus", ("owned", "+0s", "+2h"), owner=OWNER_A),
        lease("two", "r2", [f"a02#{n}" for n in range(6)], "org-a-b/gpus", ("owned", "+0s", None), owner=OWNER_B),
        lease(
            "standby", "r2", [f"a01#{n}" for n in range(4, 8)], "org-a-b/gpus", ("owned", "+0s", None), owner=OWNER_B,
            role="Spare",
        ),
    ]  # fmt: skip
    for when in ("+0s", "+4h"):
        record(lake, when, there)
    return lake


def shown(lake: Path, report: str, **given: str | None) -> Told:
    found = told(lake, report, **given).told
    assert found is not None
    return found


CLOSED = "The window of org-a/gpus ended on 1 Jan 2026, 03:30: it pays no more, and 22 GPU-hours stay unused."


@pytest.mark.parametrize("report", ["usage", "burndown"])
def test_a_window_that_is_over_is_told_with_its_end(over: Path, report: str) -> None:
    while_open, now = (shown(over, report, until=until) for until in ("+1h", None))
    assert (CLOSED in while_open.lead, CLOSED in now.lead) == (False, True)
    ends = {each.label: each.value for each in while_open.figures}, {each.label: each.value for each in now.figures}
    assert [said.get("Next window to end") for said in ends] == (
        ["1 Jan 2026", None] if report == "burndown" else [None] * 2
    )


def test_more_gpus_in_use_than_at_most_are_told_why(over: Path, lake: Path) -> None:
    why = "More GPUs of org-a-b/gpus are in use than at most, as a spare counts 0.5 of a GPU."
    assert shown(over, "usage").lead.endswith(why)
    assert "at most" not in shown(lake, "usage").lead
