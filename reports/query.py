"""Reports: SQL files beside this module, run by DuckDB over one cycle's tables in the lake (spec §11).

A report sees the snapshot's tables by their names (``jobtree.world.schema``), and three variables through
``getvariable('NAME')``: ``at``, the cycle's time in Unix seconds; ``spare_milli``, what a spare GPU costs of a whole
one, in thousandths; ``cycle``, the manifest's name.
"""

from importlib import resources
from pathlib import Path

import duckdb
import msgspec
import pandas as pd

from exporters.lake import Lake, Manifest, read_manifest
from jobtree.api import Refusal, dec_hook
from jobtree.api.policy import PolicySpec


def query(lake_root: Path | str, report: str, manifest: Path | str | None = None) -> pd.DataFrame:
    """The rows of a report, such as ``usage``, on one cycle: the newest one, or that of ``manifest``.

    Raises Refusal where the report, the lake, the manifest or one of its tables is missing.
    """
    sql = report_sql(report)
    path = Path(manifest) if manifest is not None else newest_manifest(lake_root)
    with connect(lake_root, path) as database:
        rows: pd.DataFrame = database.sql(sql).df()
        return rows


def reports() -> list[str]:
    """The names of all reports."""
    return sorted(f.name.removesuffix(".sql") for f in resources.files("reports").iterdir() if f.name.endswith(".sql"))


def report_sql(report: str) -> str:
    """The SQL of a report. Raises Refusal where there is none of that name."""
    if report not in reports():
        raise Refusal(f"{report!r} is not a report; allowed are {', '.join(reports())}")
    return resources.files("reports").joinpath(f"{report}.sql").read_text(encoding="utf-8")


def newest_manifest(lake_root: Path | str) -> Path:
    """The manifest of the latest cycle. Raises Refusal where the lake has none."""
    found = sorted(Path(lake_root).glob("cycles/date=*/*.json"), key=lambda path: path.name)
    if not found:
        raise Refusal(f"{lake_root} holds no cycle; `jobtree --state FILE cycle` writes one")
    return found[-1]


def connect(lake_root: Path | str, manifest: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory that sees the manifest's tables as views. Close it, or use it in ``with``."""
    found = read_manifest(manifest)
    lake = Lake(lake_root)
    database = duckdb.connect()
    for name, digest in found.tables.items():
        path = lake.table_path(name, digest)
        if not path.exists():
            database.close()
            raise Refusal(f"{path} is missing, and {manifest} needs it")
        database.read_parquet(str(path)).create_view(name)
    for variable, value in _variables(found, manifest).items():
        database.execute(f'SET VARIABLE "{variable}" = ?', [value])
    return database


def _variables(manifest: Manifest, path: Path) -> dict[str, int | str]:
    policy = msgspec.json.decode(manifest.policy, type=PolicySpec, dec_hook=dec_hook)
    return {"at": int(manifest.at), "spare_milli": policy.spares.discount_milli, "cycle": path.stem}
