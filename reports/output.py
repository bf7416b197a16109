"""A report as text: a table, CSV, JSON, or a page of its own (`reports/told/page.html.j2`)."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from exporters.plans.summary import table
from jobtree.api import Time
from jobtree.api.values.counted import counted
from jobtree.api.values.escaped import escaped
from reports.query import Report
from reports.told.charts import Picture, picture, svg
from reports.told.sheet import Line, Sheet

PAGE_ROWS: Final = 500
"""Lines that a page shows: more are for a spreadsheet."""
_JSON: Final = msgspec.json.Encoder(decimal_format="number")
_LONG: Final = 1 << 63
"""What no integer of JSON may reach here."""
_FORMULAS: Final = ("=", "+", "-", "@")
"""What a cell begins with that a spreadsheet calculates; tabs and line ends, which it skips, are escaped."""
_BATCH: Final = 10_000
"""Rows that are Python values at the same time, where they are written one by one."""


def as_table(report: Report) -> str:
    """For a terminal: the answer, the table that people see, the period and what was checked."""
    told = report.told
    if told is None:
        raise ValueError("a table is of a report that was told")
    columns = told.sheet.columns
    rows = [
        (f"{'  ' * line.depth}{shown(line.cells[0])}", *(shown(cell, blank=line.is_sum) for cell in line.cells[1:]))
        for line in _all_lines(told.sheet)
    ]
    lines = table(tuple(name.upper() for name in columns), rows) if told.sheet.lines else ["Nothing in this period."]
    lead = [told.lead, ""] if told.lead else []
    text = (*lead, *lines, "", period(report), *left_out(report), *reconciled(report))
    return "".join(f"{escaped(line)}\n" for line in text)


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
    told = report.told
    if told is None:
        raise ValueError("a page is of a report that was told")
    template = _environment().get_template("page.html.j2")
    chart = report.definition.chart
    lines = told.sheet.lines[:PAGE_ROWS]
    text = template.render(
        report=report,
        told=told,
        picture=picture(chart, told.chart) if chart and told.chart is not None else None,
        lines=lines,
        more=len(told.sheet.lines) - len(lines),
        numbers=[any(_is_number(line.cells[place]) for line in lines) for place in range(len(told.sheet.columns))],
        period=period(report),
        left_out=left_out(report),
        reconciled=reconciled(report),
    )
    return str(text)


class Pictures(NamedTuple):
    """A page of pictures below one table, whose first column names its rows. Cells are texts."""

    title: str
    lead: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    pictures: Sequence[Picture]
    notes: Sequence[str] = ()


def as_pictures(page: Pictures) -> str:
    """A page of pictures that needs nothing else, as `as_html`."""
    return str(_environment().get_template("pictures.html.j2").render(page=page))


def _environment() -> Any:
    """Templates and what they are given: no page is made without it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_seen,
        loader=FunctionLoader(lambda name: resources.files("reports.told").joinpath(name).read_text(encoding="utf-8")),
    )  # fmt: skip
    environment.filters |= {"shown": shown, "plain": _plain, "is_number": _is_number, "svg": _svg, "whole": _whole}
    return environment


def _svg(spec: dict[str, Any], name: str) -> Any:
    from markupsafe import Markup

    return Markup(svg(spec, name=name))  # Vega escapes the texts that it draws


def _whole(text: str) -> Any:
    """A text whose words are not broken at hyphens, colons and slashes, unless one alone is too long for a line.

    That one is broken behind a colon or a slash.
    """
    from markupsafe import Markup, escape

    words = (escape(word) for word in escaped(text).split(" "))
    return Markup(" ").join(_unbroken(word) if re.search("[-:/]", word) else word for word in words)


def _unbroken(word: Any) -> Any:
    from markupsafe import Markup

    return Markup('<span class="whole">{}</span>').format(Markup(re.sub("(?<=[:/])(?=.)", "<wbr>", word)))


def _all_lines(found: Sheet) -> list[Line]:
    return [*found.lines, *([found.total] if found.total else [])]


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
    """The period in words, or that the lake knows nothing of it."""
    if report.outside is not None:
        edge, at = report.outside
        return f"The lake knows nothing of this period: it {edge} at {_time(at)} (UTC)."
    cycles = counted(f"{report.cycles:,}", "cycle")
    return f"From {_time(report.terms.since)} until {_time(report.terms.until)} (UTC), {cycles}."


def _time(at: int) -> str:
    return clock(datetime.fromtimestamp(at, UTC))


def left_out(report: Report) -> list[str]:
    """What people are not shown, and where it is."""
    more = report.told.sheet.left_out if report.told else 0
    return [f"{counted(more, 'more column')}: -o csv and -o json have all of them."] if more else []


def reconciled(report: Report) -> list[str]:
    """What was checked, in words."""
    if not report.outcomes:
        return ["None of these figures is checked against the leases: the report has no @check line."]
    whose = " of all owners" if report.owner else " in all"
    told = [outcome for outcome in report.outcomes if outcome.reported] or report.outcomes[:1]  # no word of no credits
    return [outcome.sentence(whose) for outcome in told]


def shown(value: Any, *, blank: bool = False) -> str:
    """A value for people: thousands apart, two decimals, waits as ``2h 10m``, ``-`` or nothing where there is none."""
    if isinstance(value, datetime):
        return clock(value.replace(second=0))
    if isinstance(value, pa.MonthDayNano):
        return span(86_400 * value.days + value.nanoseconds // 1_000_000_000)
    value = _plain(value)
    if value is None:
        return "" if blank else "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return f"{value:,.2f}"
    return str(value)


def clock(moment: datetime) -> str:
    """A time as ``1 Nov 2025, 14:12``, to the second where it has one; a day's first second as the day."""
    form = "%b %Y, %H:%M:%S" if moment.second else "%b %Y, %H:%M" if moment.hour or moment.minute else "%b %Y"
    return f"{moment.day} {moment:{form}}"


def span(seconds: int) -> str:
    """A length of time in its two largest units."""
    for unit, name, part, below in ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= unit:
            rest = seconds % unit // part
            return f"{seconds // unit}{name}{f' {rest}{below}' if rest else ''}"
    return f"{seconds}s"


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
    """The same for CSV: a decimal in digits alone; a text that a spreadsheet would calculate begins with ``'``."""
    value = _plain(value)
    if isinstance(value, str):
        text = escaped(value)
        return f"'{text}" if text.startswith(_FORMULAS) else text
    return f"{value:f}" if isinstance(value, Decimal) else value


def _seen(value: Any) -> Any:
    """What a page shows of a value."""
    return escaped(value) if type(value) is str else value


def _is_number(value: Any) -> bool:
    return isinstance(_plain(value), int | float | Decimal) and not isinstance(value, bool)
