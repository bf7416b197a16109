"""A report's definition: one SQL file with a query over `views.sql`, and a head of comments that says what it is.

-- Title: one sentence.
--
-- More words, for people.
-- @chart KIND x=COLUMN y=COLUMN by=COLUMN     KIND: bars (stacked), lines
-- @check COLUMN = FIGURE by COLUMN, COLUMN    what its sums must be by a second way (`reports.reconcile`)
-- @reads everything                           from the lake's begin, not only the period
-- @needs NAME                                 a setting that has to be given, as `--set NAME=VALUE`
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from jobtree.api import Refusal
from jobtree.cluster import disk

_NOTE: Final = re.compile(r"@(\w+)\s+(.*)")
_CHART: Final = re.compile(r"(bars|lines) x=(\w+) y=(\w+)(?: by=(\w+))?")
_CHECK: Final = re.compile(r"(\w+) = (\w+)(?: by ([\w:]+(?:, ?[\w:]+)*))?")
INNER: Final = {"views", "notices"}
"""SQL files that are no reports."""


@dataclass(frozen=True)
class Chart:
    """A chart of a report's rows: ``y`` over ``x``, a series for each value of ``by``."""

    kind: str
    x: str
    y: str
    by: str | None


@dataclass(frozen=True)
class Check:
    """The sums of ``column`` per ``by`` must be those of ``figure`` as `reports.reconcile` counts it.

    ``keys``: what the ledger calls the columns of ``by``.
    """

    column: str
    figure: str
    by: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Definition:
    """A report: its name, what it says of itself, and its query. ``notes``: the paragraph under its title."""

    name: str
    title: str
    summary: str
    notes: str
    sql: str
    charts: tuple[Chart, ...] = ()
    checks: tuple[Check, ...] = ()
    everything: bool = False
    needs: tuple[str, ...] = ()


def names() -> list[str]:
    """The names of the reports that Jobtree has."""
    files = (f.name for f in resources.files("reports").iterdir())
    return sorted(name.removesuffix(".sql") for name in files if name.endswith(".sql") and name[:-4] not in INNER)


def load(report: str) -> Definition:
    """A report of Jobtree's by its name, or anybody's by its file's. Raises Refusal where there is none."""
    if report.endswith(".sql"):
        return parse(Path(report).stem, _file(Path(report)), subject=report)
    return parse(report, text(report), subject=report)


def text(report: str) -> str:
    """The SQL file of one of Jobtree's own reports. Raises Refusal where there is none of that name."""
    if report not in names():
        raise Refusal(
            f"{report!r} is not a report; allowed are {', '.join(names())}, and a file's name that ends in .sql"
        )
    return resources.files("reports").joinpath(f"{report}.sql").read_text(encoding="utf-8")


def parse(name: str, sql: str, subject: str) -> Definition:
    """Reads a definition. Raises Refusal, about ``subject``, naming the line that is none."""
    words: list[str] = []
    charts: list[Chart] = []
    checks: list[Check] = []
    needs: list[str] = []
    everything = False
    for line in _head(sql):
        note = _NOTE.fullmatch(line)
        if note is None:
            words.append(line)
        elif note[1] == "chart" and (found := _CHART.fullmatch(note[2])):
            charts.append(Chart(found[1], found[2], found[3], found[4]))
        elif note[1] == "check" and (found := _CHECK.fullmatch(note[2])):
            parts = [part.partition(":") for part in re.split(", ?", found[3])] if found[3] else []
            keys = tuple(key or column for column, _, key in parts)
            checks.append(Check(found[1], found[2], tuple(column for column, _, _ in parts), keys))
        elif note[1] == "reads" and note[2] == "everything":
            everything = True
        elif note[1] == "needs" and note[2].isidentifier():
            needs.append(note[2])
        else:
            raise Refusal(
                f"the line `-- {line}` is not understood; allowed are `@chart bars|lines x=COLUMN y=COLUMN by=COLUMN`, "
                "`@check COLUMN = FIGURE by COLUMN`, `@reads everything` and `@needs NAME`",
                subject=subject,
            )
    title, _, summary = (words[0] if words else name).partition(": ")
    notes = " ".join(line for line in words[1:] if line)
    return Definition(name, title, summary, notes, sql, tuple(charts), tuple(checks), everything, tuple(needs))


def _head(sql: str) -> Sequence[str]:
    lines = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return lines


def _file(path: Path) -> str:
    try:
        data = disk.read(path)
        if data is None:
            raise Refusal("there is no such file")
        return data.decode()
    except UnicodeDecodeError:
        raise Refusal("it is not UTF-8 text", subject=str(path)) from None
    except Refusal as refusal:
        raise refusal.about(str(path)) from None
