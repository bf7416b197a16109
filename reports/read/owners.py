"""Whom ``--owner`` means in a lake (`jobtree.world.naming.owners`), and the rows that are theirs."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api import Refusal
from jobtree.world.naming.owners import meant as meant_of
from jobtree.world.naming.owners import with_those_above
from reports.read.source import Source


def meant(source: Source, text: str | None) -> list[str] | None:
    """Every owner that is meant, sorted; None: every one is. Raises Refusal for one that the lake does not name."""
    if text is None:
        return None
    budgets = source.tables["budgets"].select(["owner", "parents"]).to_pylist()
    named = set(source.tables["opening"]["owner"].to_pylist()) | set(source.tables["opening"]["run_owner"].to_pylist())
    for name in ("owner", "run_owner"):
        named |= set(source.tables["leases"][name].unique().to_pylist())
    named |= {each for budget in budgets for each in (budget["owner"], *(budget["parents"] or ()))}
    named |= set(source.tables["runs"]["owner"].unique().to_pylist())
    declared = sorted({(row["owner"], _parents(row)) for row in budgets}, key=str)
    return sorted(meant_of(text, with_those_above(named), declared, missing=" in the lake"))


def _parents(row: dict[str, Any]) -> tuple[str, ...] | None:
    return None if row["parents"] is None else tuple(row["parents"])


def keep(rows: pa.Table, columns: tuple[str, ...], owners: list[str] | None, report: str) -> pa.Table:
    """The rows of these owners, by any of the columns. Raises Refusal where the report has none of them."""
    if owners is None:
        return rows
    there = [name for name in columns if name in rows.column_names]
    if not there:
        raise Refusal(f"the report {report} is not by owner; leave --owner out")
    asked = pa.array(owners, pa.string())
    masks = [pc.is_in(rows[name].cast(pa.string()), value_set=asked) for name in there]
    mask = masks[0]
    for other in masks[1:]:
        mask = pc.or_(mask, other)
    return rows.filter(mask)
