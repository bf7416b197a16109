"""Whether a report's figures are those of the leases, counted by a second way (`reports.read.ledger`)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from jobtree.api import Refusal
from reports.read.definition import Check
from reports.read.ledger import Key, Ledger

CREDIT: Final = 3_600_000_000
"""Milli-GPU-seconds times milli-credits per GPU-hour that make a credit."""
EPSILON: Final = 1e-6
"""How far a figure in credits, a float, may be from the exact one, of the larger of both. The others are integers."""
_WIDE: Final = pa.decimal128(38, 0)
SCALE: Final = {"credits": CREDIT}
SOURCE: Final = {"waited": "the plans' waits", "promised": "the plans' promises and the leases"}
"""What a figure is counted from a second time, where that is not the leases."""
UNITS: Final = {
    "credits": (1, "credits"),
    "charges": (3_600_000, "GPU-hours charged"),
    "window": (3_600_000, "GPU-hours charged"),
    "held": (3600, "GPU-hours held"),
    "active": (3600, "GPU-hours held"),
    "waited": (3600, "GPU-hours waited"),
    "promised": (3600, "hours after what was promised"),
    "lost": (1, "runs drawn"),
}
"""What a figure's sum is shown in: how many of its own unit that is, and its name."""


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

    @property
    def source(self) -> str:
        """What was counted the second way, in words."""
        return SOURCE.get(self.check.figure, "the leases")

    def sentence(self, whose: str = " in all") -> str:
        """What was found, for people; ``whose`` the sum is, in words."""
        if self.agrees:
            scale, unit = UNITS.get(self.check.figure, (1, self.check.column.replace("_", " ")))
            names = [name.removeprefix("x_").replace("_", " ") for name in self.check.keys]
            by = f" per {', '.join(names)}" if names else ""
            return (
                f"Reconciled: {_summed(self.reported, scale)} {unit}{whose}, as {self.source} say{by}, to the second."
            )
        return f"{self.check.column} does not reconcile with {self.source}: {self.apart}"


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
    reported = _reported(rows, check)
    apart = ""
    for each in sorted({*counted, *reported}, key=str):
        one, other = reported.get(each, 0), counted.get(each, 0)
        if abs(one - other) > (EPSILON * max(abs(one), abs(other)) if scale > 1 else 0):
            what = ", ".join(f"{name} {value}" for name, value in zip(check.by, each, strict=True)) or "in all"
            apart = f"{what}: the report says {_shown(one)}, {SOURCE.get(check.figure, 'the leases')} {_shown(other)}."
            break
    return Outcome(check, sum(reported.values()), sum(counted.values()), apart)


def _reported(rows: pa.Table, check: Check) -> dict[Key, float]:
    """The report's sums by key, integers exact. Raises Refusal where the column has no numbers."""
    values = rows[check.column]
    if pa.types.is_integer(values.type):
        values = values.cast(_WIDE)  # else a sum beyond 64 bits would wrap around
    by = [str(place) for place in range(len(check.by))]
    named = pa.table([*(rows[name] for name in check.by), values], names=[*by, "value"])
    try:
        sums = named.group_by(by, use_threads=False).aggregate([("value", "sum")])
    except pa.ArrowNotImplementedError:
        raise Refusal(f"@check needs numbers in the column {check.column}, which has {values.type}") from None
    found: dict[Key, float] = defaultdict(int)
    for *key, value in zip(*(sums[name].to_pylist() for name in (*by, "value_sum")), strict=True):
        if value:
            name = tuple(None if each is None else str(each) for each in key)
            found[name] += int(value) if isinstance(value, Decimal) and value == int(value) else float(value)
    return found


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6f}".rstrip("0").rstrip(".")


def _summed(value: float, scale: int) -> str:
    return f"{value / scale:,.2f}" if scale > 1 or value != int(value) else _shown(value)
