"""A report as text: a table, CSV, JSON, or a page of its own (`reports/page.html.j2`)."""

import csv
import io
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import resources
from typing import Any, Final

import msgspec

from exporters.summary import CONTROLS, table
from jobtree.api import Time
from jobtree.api.counted import counted
from reports.charts import draw
from reports.picture import PALETTE
from reports.query import Report, frame

PAGE_ROWS: Final = 500
"""Rows that a page shows: more are for a spreadsheet."""
_JSON: Final = msgspec.json.Encoder(decimal_format="number")
_LONG: Final = 1 << 63
"""What no integer of JSON may reach here."""
_BATCH: Final = 10_000
"""Rows that are Python values at the same time, where they are written one by one."""


def as_table(report: Report) -> str:
    """For a terminal; figures rounded to two decimals, then the period and what was checked."""
    header = tuple(name.replace("_", " ").upper() for name in report.rows.column_names)
    rows = [tuple(shown(value).translate(CONTROLS) for value in row.values()) for row in records(report)]
    lines = table(header, rows) if rows else ["Nothing in this period."]
    return "".join(f"{line}\n" for line in (*lines, "", period(report), *reconciled(report)))


def as_csv(report: Report) -> str:
    """The rows, figures as they are."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(report.rows.column_names)
    writer.writerows([_cell(value) for value in row.values()] for row in records(report))
    return sink.getvalue()


def as_json(report: Report) -> str:
    """Everything: the rows, the period, what is odd in the lake, what was checked."""
    found = {
        "report": report.definition.name,
        "since": str(Time(report.terms.since)),
        "until": str(Time(report.terms.until)),
        "cycles": report.cycles,
        "rows": [{name: _plain(value) for name, value in row.items()} for row in records(report)],
        "notices": [{"object": trouble.subject, "message": trouble.message} for trouble in report.troubles],
        "reconciled": [
            {"column": o.check.column, "figure": o.check.figure, "by": list(o.check.by),
             "reported": _plain(o.reported), "leases": _plain(o.counted), "agrees": o.agrees}
            for o in report.outcomes
        ],
    }  # fmt: skip
    return msgspec.json.format(_JSON.encode(found), indent=2).decode() + "\n"


def as_html(report: Report) -> str:
    """A page that needs nothing else: no script, no font, no request."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["shown"] = shown
    template = environment.from_string(resources.files("reports").joinpath("page.html.j2").read_text(encoding="utf-8"))
    rows = list(records(report, PAGE_ROWS))
    drawings = [draw(frame(report.rows), chart) for chart in report.definition.charts]
    return template.render(
        report=report,
        columns=[name.replace("_", " ") for name in report.rows.column_names],
        rows=[[(_plain(value), _is_number(value)) for value in row.values()] for row in rows],
        left_out=report.rows.num_rows - len(rows),
        drawings=[drawing for drawing in drawings if drawing is not None],
        palette=PALETTE,
        period=period(report),
        reconciled=reconciled(report),
    )


FORMATS: Final[dict[str, Callable[[Report], str]]] = {
    "table": as_table,
    "csv": as_csv,
    "json": as_json,
    "html": as_html,
}


def records(report: Report, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows as Python values, each by the name of its column: all of them, or the first ``most``."""
    for batch in report.rows.slice(0, most).to_batches(_BATCH):
        yield from batch.to_pylist()


def period(report: Report) -> str:
    """The period in words."""
    cycles = counted(f"{report.cycles:,}", "cycle")
    return f"From {Time(report.terms.since)} until {Time(report.terms.until)}, {cycles}."


def reconciled(report: Report) -> list[str]:
    """What was checked, in words."""
    if not report.outcomes:
        return ["None of these figures is checked against the leases: the report has no @check line."]
    return [f"Reconciled: {outcome.sentence()}" for outcome in report.outcomes]


def shown(value: Any) -> str:
    """A value for people: thousands apart, two decimals, ``-`` where there is none."""
    value = _plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return f"{value:,.2f}"
    return str(value)


def _plain(value: Any) -> Any:
    """A value that JSON has: decimals as numbers to the last digit, what is no number as null, lists by comma."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < _LONG else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _cell(value: Any) -> Any:
    """The same for CSV: a decimal in digits alone."""
    value = _plain(value)
    return f"{value:f}" if isinstance(value, Decimal) else value


def _is_number(value: Any) -> bool:
    return isinstance(_plain(value), int | float | Decimal) and not isinstance(value, bool)
