"""A report's definition: one SQL file, whose comments say what it is, what it shows, and how.

-- Title: one sentence.
--
-- More words, for people.
-- @check COLUMN = FIGURE by COLUMN, COLUMN    what its sums must be by a second way (`reports.read.reconcile`)
-- @reads everything                           from the lake's begin, not only the period
-- @reads cycles                               of the period only what lies after the lake's first cycle
-- @needs NAME                                 a setting that has to be given, as `--set NAME=VALUE`
-- @owner COLUMN, COLUMN                       the columns that --owner asks for (without it: owner)
SELECT ...                                     the rows: over `views.sql` beside this module

What a page and a terminal show of it follows, a query each over the rows, ``report``, those of the period before,
``before`` (none where that is not asked for or not known), the views, and the macros of `words.sql`:

-- @lead                 a text: the answer, in a sentence or two
-- @figures              (label, value, note): the figures that matter, as texts
-- @chart KIND: TITLE    one picture: its columns are those of its KIND (`reports.told.charts`)
-- @table tree sum=COLUMN, COLUMN    at most nine columns, named as people say them; with ``tree`` the first one is an
                         owner, the second one what of it the row is
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from jobtree.api import Refusal
from jobtree.cluster import disk

KINDS: Final = ("bars", "across", "each", "lines")
_OWN: Final = resources.files("reports") / "sql"
"""Where Jobtree's own reports lie: one file each."""
_NOTE: Final = re.compile(r"@(\w+)\s+(.*)")
_CHECK: Final = re.compile(r"(\w+) = (\w+)(?: by ([\w:]+(?:, ?[\w:]+)*))?")
_NAMES: Final = re.compile(r"\w+(?:, ?\w+)*")
_SECTION: Final = re.compile(r"^-- @(lead|figures|chart|table)\b[ \t]*(.*)$", re.MULTILINE)
_CHART: Final = re.compile(rf"({'|'.join(KINDS)}): (.+)")
_TABLE: Final = re.compile(r"(tree)?\s*(?:sum=(.+))?")


@dataclass(frozen=True)
class Check:
    """The sums of ``column`` per ``by`` must be those of ``figure`` as `reports.read.reconcile` counts it.

    ``keys``: what the ledger calls the columns of ``by``.
    """

    column: str
    figure: str
    by: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """A picture: its kind, its title, and the query for what it shows."""

    kind: str
    title: str
    sql: str


@dataclass(frozen=True)
class Layout:
    """The table that people see: its query, whether it is a tree of owners, the columns that are summed up."""

    sql: str
    tree: bool = False
    sums: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """A report: its name, what it says of itself, and its queries. ``notes``: the paragraph under its title."""

    name: str
    title: str
    summary: str
    notes: str
    text: str
    sql: str
    lead: str = ""
    figures: str = ""
    chart: Chart | None = None
    table: Layout | None = None
    checks: tuple[Check, ...] = ()
    everything: bool = False
    cycles: bool = False
    needs: tuple[str, ...] = ()
    owners: tuple[str, ...] = ("owner",)


def names() -> list[str]:
    """The names of the reports that Jobtree has."""
    return sorted(file.name.removesuffix(".sql") for file in _OWN.iterdir())


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
    return (_OWN / f"{report}.sql").read_text(encoding="utf-8")


def parse(name: str, text: str, subject: str) -> Definition:
    """Reads a definition. Raises Refusal, about ``subject``, naming the line that is none."""
    words: list[str] = []
    checks: list[Check] = []
    needs: list[str] = []
    owners: tuple[str, ...] = ("owner",)
    reads: set[str] = set()
    sql, *rest = _SECTION.split(text)
    for line in _head(sql):
        note = _NOTE.fullmatch(line)
        if note is None:
            words.append(line)
        elif note[1] == "check" and (found := _CHECK.fullmatch(note[2])):
            parts = [part.partition(":") for part in _listed(found[3] or "")]
            keys = tuple(key or column for column, _, key in parts)
            checks.append(Check(found[1], found[2], tuple(column for column, _, _ in parts), keys))
        elif note[1] == "reads" and note[2] in {"everything", "cycles"}:
            reads.add(note[2])
        elif note[1] == "needs" and note[2].isidentifier():
            needs.append(note[2])
        elif note[1] == "owner" and _NAMES.fullmatch(note[2]):
            owners = _listed(note[2])
        else:
            raise Refusal(
                f"the line `-- {line}` is not understood; allowed are `@check COLUMN = FIGURE by COLUMN`, "
                "`@reads everything`, `@reads cycles`, `@needs NAME`, `@owner COLUMN`, and below the query "
                f"`@lead`, `@figures`, `@chart {'|'.join(KINDS)}: TITLE` and `@table tree sum=COLUMN`",
                subject=subject,
            )
    title, _, summary = (words[0] if words else name).partition(": ")
    notes = " ".join(line for line in words[1:] if line)
    shown = {kind: (given, query) for kind, given, query in zip(rest[::3], rest[1::3], rest[2::3], strict=True)}
    return Definition(
        name,
        title,
        summary,
        notes,
        text,
        sql,
        shown.get("lead", ("", ""))[1],
        shown.get("figures", ("", ""))[1],
        _chart(*shown["chart"], subject) if "chart" in shown else None,
        _table(*shown["table"], subject) if "table" in shown else None,
        tuple(checks),
        "everything" in reads,
        "cycles" in reads,
        tuple(needs),
        owners,
    )


def _chart(given: str, sql: str, subject: str) -> Chart:
    found = _CHART.fullmatch(given.strip())
    if found is None:
        raise Refusal(f"the line `-- @chart {given}` is not understood; allowed is `@chart {'|'.join(KINDS)}: TITLE`",
                      subject=subject)  # fmt: skip
    return Chart(found[1], found[2], sql)


def _table(given: str, sql: str, subject: str) -> Layout:
    found = _TABLE.fullmatch(given.strip())
    if found is None:
        raise Refusal(f"the line `-- @table {given}` is not understood; allowed is `@table tree sum=COLUMN, COLUMN`",
                      subject=subject)  # fmt: skip
    return Layout(sql, found[1] is not None, _listed(found[2] or ""))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(re.split(", ?", text)) if text else ()


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
