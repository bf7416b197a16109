"""Whom ``--owner`` means: an owner and its descendants, or with a trailing ``:*`` its descendants alone."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api import OwnerPath, Refusal
from jobtree.api.values.nearest import nearest
from jobtree.world.naming.kinship import family_of
from reports.read.source import Source

BELOW: Final = ":*"


def meant(source: Source, text: str | None) -> list[str] | None:
    """Every owner that is meant, sorted; None: every one is. Raises Refusal for one that the lake does not name.

    Descendants are those below it by their path, and those that Budgets' ``parents`` put below it.
    """
    if text is None:
        return None
    top = text.removesuffix(BELOW)
    budgets = source.tables["budgets"].select(["owner", "parents"]).to_pylist()
    named = set(source.tables["opening"]["owner"].to_pylist()) | set(source.tables["opening"]["run_owner"].to_pylist())
    for name in ("owner", "run_owner"):
        named |= set(source.tables["leases"][name].unique().to_pylist())
    named |= {each for budget in budgets for each in (budget["owner"], *(budget["parents"] or ()))}
    named |= set(source.tables["runs"]["owner"].unique().to_pylist())
    known = sorted({each for name in named if name for each in (name, *OwnerPath(name).ancestors())})
    if top not in known:
        near = nearest(top, known)
        hint = (
            f"did you mean {near}{BELOW if text.endswith(BELOW) else ''}?"
            if near
            else f"there are {', '.join(known[:5])}"
        )
        raise Refusal(f"there is no owner {top} in the lake; {hint}")
    family = family_of(sorted({(row["owner"], _parents(row)) for row in budgets}, key=str))
    below = [name for name in known if name != top and (name.startswith(f"{top}:") or family.descends(name, top))]
    return below if text.endswith(BELOW) else sorted([top, *below])


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
