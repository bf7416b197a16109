"""Reports: the files of `reports/sql`, run by DuckDB over a lake (spec §11).

Whole reports, with their checks and troubles, are made by `made`; `query` gives the rows of one on one cycle, and
`connect` a database for queries by hand. What a query sees: `reports/read/views.sql`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa

from exporters.lake.fold import Trouble
from exporters.lake.lake import Lake, manifests_in, read_manifest, read_table
from exporters.lake.manifest import DONE
from exporters.lake.storage import glob, place
from jobtree.api import Refusal, Time
from reports.read import definition
from reports.read.database import last_forms, open_database, tables_for, terms_for
from reports.read.definition import Definition
from reports.read.ledger import Ledger, Terms
from reports.read.notices import ODD, Edge, notices, outside
from reports.read.owners import keep, meant
from reports.read.reconcile import Outcome, reconcile
from reports.read.source import Source, of_cycle, of_period
from reports.told.told import Told, before, run, tell

_OPENED: Final = "\nSELECT concat_ws('/', budget, name, owner, flavor), start FROM payers\n"
"""When the window of each envelope began."""


@dataclass(frozen=True)
class Report:
    """A report as made: its rows, what was found odd in the lake, and how its figures reconcile with the leases.

    ``terms``: its period; ``cycles``: how many the lake has in it; ``told``: what people are shown, where that was
    asked for; ``outside``: see `notices.outside`. With an ``owner``, ``rows`` are of those that it means; ``outcomes``
    are of all.
    """

    definition: Definition
    terms: Terms
    cycles: int
    rows: pa.Table
    troubles: list[Trouble]
    outcomes: list[Outcome]
    told: Told | None = None
    owner: str | None = None
    outside: tuple[Edge, int] | None = None


@dataclass(frozen=True)
class Asked:
    """What is asked for: a period, settings, whose it is (see `reports.read.owners`), and whether it is told."""

    since: int | None = None
    until: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    tell: bool = False


def made(root: Path | str, report: str, asked: Asked) -> Report:
    """Makes a report (a name, or an SQL file's) over its period; by default all that the lake knows.

    Raises Refusal where there is no such report, lake or owner, a setting is not known or missing, or its SQL is wrong.
    """
    defined = definition.load(report)
    _check_settings(defined, asked.settings)
    since, until = asked.since, asked.until
    if since is not None and until is not None and since >= until:
        raise Refusal(f"--since is {Time(since)}; allowed is a time before --until, {Time(until)}")
    names = tables_for(defined.text) | ({"runs"} if asked.owner else set())
    earlier = before(since, until) if asked.tell and "before" in defined.lead + defined.figures else None
    begin = since if earlier is None else earlier[0]
    source = of_period(root, None if defined.everything else begin, until, names)
    return build(source, defined, asked, earlier)


def build(source: Source, defined: Definition, asked: Asked, earlier: tuple[int, int] | None = None) -> Report:
    """The report over what was read for it; ``earlier``: the period before. Raises Refusal where its SQL is wrong."""
    owners = meant(source, asked.owner)
    terms = terms_for(source, asked.since, asked.until)
    known = source.first if defined.cycles else source.begin
    if defined.cycles and terms.since < known:
        terms = replace(terms, since=min(known, terms.until))
    leases = last_forms(source.tables["leases"])
    with open_database(source, leases, terms, asked.settings, owners, defined.text + _OPENED + ODD) as database:
        rows, outcomes = _reconciled(database, source, defined, leases, terms)
        rows = keep(rows, defined.owners, owners, defined.name)
        troubles = list(notices(database, source, asked.since, asked.until))
        told = None
        if asked.tell:
            past = rows.slice(0, 0)
            if earlier is not None and earlier[0] >= known:
                past = _of_before(source, defined, leases, Terms(*earlier, stop=earlier[1]), asked, owners)
            told = tell(database, defined, rows, past)
    beyond = outside(source, asked.since, asked.until)
    times: list[int] = source.tables["cycles"]["time"].to_pylist()
    cycles = len([at for at in times if (asked.since or at) <= at and (asked.until is None or at < asked.until)])
    return Report(defined, terms, cycles, rows, troubles, outcomes, told, asked.owner, beyond)


def _of_before(
    source: Source, defined: Definition, leases: pa.Table, terms: Terms, asked: Asked, owners: list[str] | None
) -> pa.Table:
    """The rows of the period before. Raises Refusal where they do not reconcile with the leases."""
    with open_database(source, leases, terms, asked.settings, owners, defined.text + _OPENED) as database:
        rows, outcomes = _reconciled(database, source, defined, leases, terms)
    for outcome in outcomes:
        if not outcome.agrees:
            raise Refusal(f"the report {defined.name}, of the period before: {outcome.sentence()}")
    return keep(rows, defined.owners, owners, defined.name)


def _reconciled(
    database: duckdb.DuckDBPyConnection, source: Source, defined: Definition, leases: pa.Table, terms: Terms
) -> tuple[pa.Table, list[Outcome]]:
    opened = dict(database.sql(_OPENED).fetchall())
    rows = _rows(database, defined)
    return rows, reconcile(rows, defined.checks, Ledger(leases, terms, opened, source.tables, source.last))


def _check_settings(defined: Definition, settings: Mapping[str, str]) -> None:
    allowed = ", ".join(defined.needs) or "none: it has no settings"
    for name in settings:
        if name not in defined.needs:
            raise Refusal(f"--set {name}: the report {defined.name} does not know it; allowed are {allowed}")
    for name in defined.needs:
        if name not in settings:
            raise Refusal(f"the report {defined.name} needs a setting; say --set {name}=VALUE")


def query(lake_root: Path | str, report: str, manifest: Path | str | None = None) -> pd.DataFrame:
    """The rows of a report, such as ``usage``, on one cycle: the newest one, or that of ``manifest``.

    Raises Refusal where the report, the lake or the manifest is missing, or a table of it cannot be read.
    """
    defined = definition.load(report)
    with connect(lake_root, place(manifest) if manifest is not None else newest_manifest(lake_root)) as database:
        rows: pd.DataFrame = _rows(database, defined).to_pandas()
    return rows


def newest_manifest(lake_root: Path | str) -> Path:
    """The manifest of the latest cycle whose plan was carried out.

    Raises Refusal where the lake has none, or the manifest of a later one cannot be read.
    """
    for day in sorted(glob(place(lake_root), "cycles/date=*"), key=lambda path: path.name, reverse=True):
        for path in reversed(manifests_in(day)):
            if read_manifest(path).phase in DONE:
                return path
    raise Refusal(f"{lake_root} holds no cycle that was carried out; `jobtree --state FILE cycle` writes one")


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
    return run(database, defined.sql, defined.name)
