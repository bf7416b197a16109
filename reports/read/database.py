"""The database that a report's SQL runs on: a lake's tables in memory, and the views of `views.sql` over them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from exporters.lake.foldtables import FOLDS
from reports.read.ledger import Terms
from reports.read.source import Source

STEPS: Final = (60, 300, 900, 3600, 14_400, 86_400, 604_800)
"""Lengths of a chart's step, in seconds; the first one is taken that gives at most `MOST_STEPS` of them."""
MOST_STEPS: Final = 120
MOST_BARS: Final = 62
"""The same of a bar: two months have one a day."""
ALWAYS: Final = frozenset({"cycles", "leases", "opening", "discounts", "budgets", "envelopes", "quarantine"})
"""Tables that every report needs: for its terms, its checks and what is odd."""
_COMMENT: Final = re.compile(r"""('[^']*'|"[^"]*")|--.*|/\*(?s:.*?)\*/""")
"""Or a text or a name in quotes, in which two hyphens begin none."""
_CREATE: Final = re.compile(r"^CREATE (?:MACRO|VIEW) (\w+).*?;$", re.MULTILINE | re.DOTALL)


@cache
def _made() -> dict[str, str]:
    """The statement that makes each view and macro, by its name: each stands on those before it alone."""
    texts = (resources.files("reports.read").joinpath(name).read_text("utf-8") for name in ("views.sql", "words.sql"))
    return {found[1]: found[0] for text in texts for found in _CREATE.finditer(text)}


@cache
def _words(sql: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _COMMENT.sub(r"\1", sql).lower()))


def _meant(sql: str) -> frozenset[str]:
    """All that queries can mean by name, and what the views and macros among it stand on."""
    words = _words(sql)
    for name, made in reversed(_made().items()):
        if name in words:
            words |= _words(made)
    return words


def tables_for(sql: str) -> frozenset[str]:
    """The tables of `FOLDS` that a query can mean: the others need not be read for it."""
    return ALWAYS | ({word.removesuffix("_history") for word in _meant(sql)} & FOLDS.keys())


def terms_for(source: Source, since: int | None, until: int | None) -> Terms:
    """The period that is reported: [since, until), Unix seconds, as far as the lake knows; None is all of it."""
    end, stop = (source.last, source.last + 1) if until is None or until > source.last else (until, until)
    begin = source.begin if since is None else since
    return Terms(min(begin, end), end, stop)


def last_forms(forms: pa.Table) -> pa.Table:
    """Each lease once, in its last form. A closed lease stays closed, whatever a cycle with another clock says."""
    count = forms.num_rows
    order = np.arange(count) + count * forms["closed"].to_numpy()
    ordered = forms.select(["namespace", "name"]).append_column("order", pa.array(order))
    last = ordered.group_by(["namespace", "name"]).aggregate([("order", "max")])["order_max"].to_numpy()
    kept = np.zeros(count, bool)
    kept[last % max(1, count)] = True
    return forms.filter(pa.array(kept))


def open_database(
    source: Source,
    leases: pa.Table,
    terms: Terms,
    settings: Mapping[str, str],
    owners: list[str] | None = None,
    queries: str | None = None,
) -> duckdb.DuckDBPyConnection:
    """A database in memory; ``settings`` are what a query gets by ``getvariable``, ``owners`` whom `asked` is for.

    ``queries``: the SQL that will be run on it, so that it has views for no other. Close it, or use it in ``with``.
    """
    database = duckdb.connect()
    for name, table in source.tables.items():
        history = "until" in table.column_names
        database.register("lease_forms" if name == "leases" else f"{name}_history" if history else name, table)
    database.register("leases", leases)
    length = terms.until - terms.since
    values: dict[str, int | str | list[str] | None] = {
        **settings,
        "since": terms.since,
        "until": terms.until,
        "stop": terms.stop,
        "begin": source.begin,
        "known": source.last,
        "bucket": next((s for s in STEPS if length <= s * MOST_STEPS), STEPS[-1]),
        "bar": next((s for s in STEPS if length <= s * MOST_BARS), STEPS[-1]),
        "owners": owners,
    }
    for name, value in values.items():
        database.execute(f'SET VARIABLE "{name}" = ?', [value])
    made = _made()
    meant = made.keys() if queries is None else _meant(queries)
    database.execute("".join(statement for name, statement in made.items() if name in meant))
    return database
