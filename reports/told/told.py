"""What people are shown of a report: its answer, the figures that matter, one picture, one table."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa

from jobtree.api import Refusal
from reports.read.definition import Definition
from reports.told.sheet import Sheet, sheet


@dataclass(frozen=True)
class Figure:
    """A figure that matters, in words. ``note``: what it is to be seen against; may be empty."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Told:
    """The parts of a page, each of them empty where the report has none. ``chart``: the rows of its picture."""

    lead: str
    figures: tuple[Figure, ...]
    chart: pa.Table | None
    sheet: Sheet


def tell(database: duckdb.DuckDBPyConnection, defined: Definition, rows: pa.Table, past: pa.Table) -> Told:
    """What is shown of a report's rows; ``past``: those of the period before. Raises Refusal where its SQL is wrong."""
    database.register("report", rows)
    database.register("before", past)
    name = defined.name
    lead = run(database, defined.lead, name).to_pylist() if defined.lead else []
    figures = run(database, defined.figures, name).to_pylist() if defined.figures else []
    return Told(
        " ".join(str(value) for row in lead for value in row.values() if value),
        tuple(Figure(*(str(value or "") for value in row.values())) for row in figures),
        run(database, defined.chart.sql, name) if defined.chart else None,
        sheet(run(database, defined.table.sql, name) if defined.table else rows, defined.table),
    )


def run(database: duckdb.DuckDBPyConnection, sql: str, report: str) -> pa.Table:
    """The rows of a query. Raises Refusal, in one line, where it does not run."""
    try:
        return database.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        line = re.sub(r"\s+", " ", str(error).partition("\n\n")[0])
        raise Refusal(f"its SQL does not run: {line}", subject=f"the report {report}") from None


def before(since: int | None, until: int | None) -> tuple[int, int] | None:
    """The period before [since, until), as long as it; of whole months as many months. None where it has no begin."""
    if since is None or until is None:
        return None
    first, last = (datetime.fromtimestamp(each, UTC) for each in (since, until))
    if all(each == each.replace(day=1, hour=0, minute=0, second=0) for each in (first, last)):
        months = 12 * (last.year - first.year) + last.month - first.month
        place = 12 * first.year + first.month - 1 - months
        return int(first.replace(year=place // 12, month=place % 12 + 1).timestamp()), since
    return 2 * since - until, since
