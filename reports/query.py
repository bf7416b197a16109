"""Reports: SQL files beside this module, run by DuckDB over a lake (spec §11).

Whole reports, with their checks and troubles, are made by `make`; `query` gives the rows of one on one cycle, and
`connect` a database for queries by hand. What a query sees: `views.sql`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa

from exporters.fold import Trouble
from exporters.lake import Lake, read_manifest, read_table
from exporters.storage import glob, place
from jobtree.api import Refusal, Time
from reports import definition
from reports.database import last_forms, open_database, tables_for, terms_for
from reports.definition import Definition
from reports.ledger import Ledger, Terms
from reports.notices import notices
from reports.reconcile import Outcome, reconcile
from reports.source import Source, of_cycle, of_period


@dataclass(frozen=True)
class Report:
    """A report as made: its rows, what was found odd in the lake, and how its figures reconcile with the leases.

    ``terms``: its period; ``cycles``: how many the lake has in it.
    """

    definition: Definition
    terms: Terms
    cycles: int
    rows: pa.Table
    troubles: list[Trouble]
    outcomes: list[Outcome]


def make(
    root: Path | str, report: str, since: int | None = None, until: int | None = None, settings: Mapping[str, str] = {}
) -> Report:
    """Makes a report (a name, or an SQL file's) over [since, until), Unix seconds; by default all that the lake knows.

    Raises Refusal where there is no such report or lake, a setting that it needs is not given, or its SQL is wrong.
    """
    defined = definition.load(report)
    for name in defined.needs:
        if name not in settings:
            raise Refusal(f"the report {defined.name} needs a setting; say --set {name}=VALUE")
    if since is not None and until is not None and since >= until:
        raise Refusal(f"--since is {Time(since)}; allowed is a time before --until, {Time(until)}")
    source = of_period(root, None if defined.everything else since, until, tables_for(defined.sql))
    return build(source, defined, since, until, settings)


def build(
    source: Source, defined: Definition, since: int | None, until: int | None, settings: Mapping[str, str] = {}
) -> Report:
    """The report over what was read for it. Raises Refusal where its SQL is wrong."""
    terms = terms_for(source, since, until)
    leases = last_forms(source.tables["leases"])
    with open_database(source, leases, terms, settings) as database:
        opened = dict(database.sql("SELECT concat_ws('/', budget, name, owner, flavor), start FROM payers").fetchall())
        rows = _rows(database, defined)
        troubles = list(notices(database, source, until))
    outcomes = reconcile(rows, defined.checks, Ledger(leases, terms, opened, source.tables, source.last))
    times: list[int] = source.tables["cycles"]["time"].to_pylist()
    cycles = len([at for at in times if terms.since <= at <= terms.until])
    return Report(defined, terms, cycles, rows, troubles, outcomes)


def query(lake_root: Path | str, report: str, manifest: Path | str | None = None) -> pd.DataFrame:
    """The rows of a report, such as ``usage``, on one cycle: the newest one, or that of ``manifest``.

    Raises Refusal where the report, the lake or the manifest is missing, or a table of it cannot be read.
    """
    defined = definition.load(report)
    with connect(lake_root, place(manifest) if manifest is not None else newest_manifest(lake_root)) as database:
        rows: pd.DataFrame = _rows(database, defined).to_pandas()
    return rows


def frame(rows: pa.Table) -> pd.DataFrame:
    """A report's rows for pandas, integers and nulls kept as they are."""
    found: pd.DataFrame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    return found


def newest_manifest(lake_root: Path | str) -> Path:
    """The manifest of the latest cycle. Raises Refusal where the lake has none."""
    found = sorted(glob(place(lake_root), "cycles/date=*/*.json"), key=lambda path: path.name)
    if not found:
        raise Refusal(f"{lake_root} holds no cycle; `jobtree --state FILE cycle` writes one")
    return found[-1]


def connect(lake_root: Path | str, manifest: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory: the tables and views of `views.sql` over one cycle, and all other tables of its snapshot.

    Close it, or use it in ``with``. Raises Refusal where a table cannot be read.
    """
    lake = Lake(lake_root)
    source = of_cycle(lake, manifest)
    for subject, message in source.troubles:
        raise Refusal(message, subject=subject)
    others = {name: digest for name, digest in read_manifest(manifest).tables.items() if name not in source.tables}
    tables = {name: read_table(lake.table_path(name, digest), name) for name, digest in others.items()}
    database = open_database(source, last_forms(source.tables["leases"]), terms_for(source, None, None), {})
    for name, table in tables.items():
        database.register(name, table)
    return database


def _rows(database: duckdb.DuckDBPyConnection, defined: Definition) -> pa.Table:
    try:
        return database.sql(defined.sql).to_arrow_table()
    except duckdb.Error as error:
        line = re.sub(r"\s+", " ", str(error).partition("\n\n")[0])
        raise Refusal(f"its SQL does not run: {line}", subject=f"the report {defined.name}") from None
