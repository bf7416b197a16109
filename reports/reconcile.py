"""Whether a report's figures are those of the leases, counted by a second way (`reports.ledger`)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from jobtree.api import Refusal
from reports.definition import Check
from reports.ledger import Key, Ledger

CREDIT: Final = 3_600_000_000
"""Milli-GPU-seconds times milli-credits per GPU-hour that make a credit."""
EPSILON: Final = 1e-6
"""How far a figure in credits, a float, may be from the exact one, of the larger of both. The others are integers."""
SCALE: Final = {"credits": CREDIT}


@dataclass(frozen=True)
class Outcome:
    """A check that was made: the report's sum, the one from the leases, and where they differ, if they do."""

    check: Check
    reported: float
    counted: float
    apart: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every sum was the same."""
        return not self.apart

    def sentence(self) -> str:
        """What was found, for people."""
        by = f" per {', '.join(self.check.by)}" if self.check.by else ""
        if self.agrees:
            return f"{self.check.column}: {_shown(self.reported)} in all, as the leases say{by}."
        return f"{self.check.column} does not reconcile with the leases: {self.apart}"


def reconcile(rows: pa.Table, checks: Sequence[Check], ledger: Ledger) -> list[Outcome]:
    """Makes the checks of a report on its rows. Raises Refusal where a check cannot be made."""
    return [_outcome(rows, check, ledger) for check in checks]


def _outcome(rows: pa.Table, check: Check, ledger: Ledger) -> Outcome:
    missing = [name for name in (check.column, *check.by) if name not in rows.column_names]
    if missing:
        raise Refusal(f"@check needs the column {missing[0]}, which the report's rows do not have")
    scale = SCALE.get(check.figure, 1)
    sums = ledger.sums(check.figure, check.keys)
    counted: dict[Key, float] = {key: total / scale if scale > 1 else total for key, total in sums.items()}
    reported: dict[Key, float] = defaultdict(int)
    for *key, value in zip(*(rows[name].to_pylist() for name in (*check.by, check.column)), strict=True):
        if value:
            reported[tuple(None if each is None else str(each) for each in key)] += value
    apart = ""
    for each in sorted({*counted, *reported}, key=str):
        one, other = reported.get(each, 0), counted.get(each, 0)
        if abs(one - other) > (EPSILON * max(abs(one), abs(other)) if scale > 1 else 0):
            what = ", ".join(f"{name} {value}" for name, value in zip(check.by, each, strict=True)) or "in all"
            apart = f"{what}: the report says {_shown(one)}, the leases {_shown(other)}."
            break
    return Outcome(check, sum(reported.values()), sum(counted.values()), apart)


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6f}".rstrip("0").rstrip(".")
