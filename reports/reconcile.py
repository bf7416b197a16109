"""The second way to a report's figures: exact integers straight from the leases, without SQL, views or joins.

    charges = Σ over funded segments of weight × seconds in the period          milli-GPU-seconds (spec §3.6)
    credits = the same times the segment's rate                                 3.6e9 of it are a credit
    window  = as charges, but from the start of each envelope's present window, as caps count it
    held    = Σ over all segments of GPUs × seconds in the period               GPU-seconds, whoever pays
    active  = the same of Active leases alone
    starts  = runs whose first Active lease began in the period
    waited  = Σ over the waits of GPUs asked for × seconds in the period        GPU-seconds, not per anything

Each figure can be asked per month, class and any column of the leases.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api import Refusal
from reports.definition import Check

Integers = npt.NDArray[np.int64]
Key = tuple[Any, ...]

CREDIT: Final = 3_600_000_000
"""Milli-GPU-seconds times milli-credits per GPU-hour that make a credit."""
EPSILON: Final = 1e-6
"""How far a figure in credits, a float, may be from the exact one, of the larger of both. The others are integers."""


@dataclass(frozen=True)
class Terms:
    """The period, Unix seconds, and what a spare GPU weighs, in thousandths."""

    since: int
    until: int
    spare_milli: int


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


class Ledger:
    """The segments of leases, one array per column, cut to the period: what the second way counts over.

    ``opened``: (budget, envelope) of every envelope that is there → the start of its window, None where it has none.
    ``tables``: those of a fold, whose last cycle is ``known``.
    """

    def __init__(
        self,
        leases: pa.Table,
        terms: Terms,
        opened: Mapping[tuple[str, str], int | None],
        tables: Mapping[str, pa.Table],
        known: int,
    ) -> None:
        self._leases = leases
        self._tables = tables
        self._known = known
        self._terms = terms
        funding = leases["funding"].combine_chunks()
        lengths = pc.list_value_length(funding).fill_null(0).to_numpy(zero_copy_only=False)
        self._rows: Integers = np.repeat(np.arange(leases.num_rows), lengths.astype(np.int64))
        entries = pc.list_flatten(funding)
        self._classes = _texts(pc.struct_field(entries, "class"))
        self._rates = _integers(pc.struct_field(entries, "rate_milli"), 0)
        closed = leases["closed"].to_numpy()
        last = np.where(closed, _integers(leases["ended"], 0), _integers(leases["seen"], 0))[self._rows]
        stated = pc.struct_field(entries, "to")
        ends = np.where(stated.is_valid().to_numpy(zero_copy_only=False), _integers(stated, 0), last)
        begins = _integers(pc.struct_field(entries, "from"), 0)
        self._ends = np.minimum(ends, terms.until)
        self._begins = np.maximum(begins, terms.since)
        payers = zip(_texts(leases["budget"]), _texts(leases["envelope"]), strict=True)
        windows = np.array([opened.get(payer, terms.until) or 0 for payer in payers], np.int64)[self._rows]
        self._since_start = np.maximum(self._ends - np.maximum(begins, windows), 0)
        self._gpus = _integers(pc.list_value_length(leases["ordinals"]), 0)[self._rows]
        spare = _texts(leases["role"])[self._rows] == "Spare"
        self._active = ~spare
        self._weights = self._gpus * np.where(spare, terms.spare_milli, 1000)
        paid = leases["budget"].is_valid().to_numpy()[self._rows]
        self._funded = (self._classes != "unfunded") & paid

    def sums(self, figure: str, by: Sequence[str]) -> dict[Key, int]:
        """A figure's sums by key; keys whose sum is 0 are left out. Raises Refusal for a figure that there is not."""
        if figure == "starts":
            return self.starts(by)
        if figure == "waited" and not by:
            return {(): self.waited()}
        if figure not in FIGURES:
            allowed = f"{', '.join(FIGURES)}, starts, and waited without a key"
            raise Refusal(f"@check names the figure {figure!r}; allowed are {allowed}")
        found: dict[Key, int] = defaultdict(int)
        for month, begin, end in self._months() if "month" in by else [("", self._terms.since, self._terms.until)]:
            inside = np.maximum(np.minimum(self._ends, end) - np.maximum(self._begins, begin), 0)
            seconds = self._since_start if figure == "window" else inside
            factors = FIGURES[figure](self)
            keys = [np.full(len(seconds), month) if name == "month" else self._column(name) for name in by]
            for key, group in _groups(keys, np.flatnonzero(seconds * factors[0])):
                found[key] += _dot([seconds[group], *(factor[group] for factor in factors)])
        return dict(found)

    def starts(self, by: Sequence[str]) -> dict[Key, int]:
        """Runs that started in the period, by key."""
        firsts: dict[str, tuple[tuple[int, str, str], Key]] = {}
        columns = ["run_uid", "role", "start", "namespace", "name", *by]
        for uid, role, *rest in zip(*(self._leases[name].to_pylist() for name in columns), strict=True):
            place, key = tuple(rest[:3]), tuple(rest[3:])
            if role == "Active" and (uid not in firsts or place < firsts[uid][0]):
                firsts[uid] = place, key
        inside = (key for (start, _, _), key in firsts.values() if self._terms.since <= start < self._terms.until)
        return dict(Counter(inside))

    def waited(self) -> int:
        """GPU-seconds that runs waited in the period."""
        asked: dict[tuple[str, str], tuple[int, int]] = {}
        for run in self._tables["runs"].select(["namespace", "name", "total", "last_seen"]).to_pylist():
            key = run["namespace"], run["name"]
            asked[key] = max(asked.get(key, (-1, 0)), (run["last_seen"], run["total"]))
        waits = self._tables["waits"].select(["namespace", "name", "since", "until"]).to_pylist()
        total = 0
        for wait in waits:
            stop = min(self._known if wait["until"] is None else wait["until"], self._terms.until)
            gpus = asked.get((wait["namespace"], wait["name"]), (0, 0))[1]
            total += gpus * max(0, stop - max(wait["since"], self._terms.since))
        return total

    def _months(self) -> Iterator[tuple[str, int, int]]:
        inside = self._begins < self._ends
        if inside.any():
            yield from months(int(self._begins[inside].min()), int(self._ends[inside].max()))

    def _column(self, name: str) -> npt.NDArray[Any]:
        if name == "class":
            return self._classes
        if name not in self._leases.column_names:
            raise Refusal(f"@check counts by {name!r}; allowed are month, class and the columns of leases")
        return _texts(self._leases[name])[self._rows]

    def charges(self) -> list[Integers]:
        """Factors of a charge beside its seconds."""
        return [np.where(self._funded, self._weights, 0)]

    def credits(self) -> list[Integers]:
        """Factors of a charge in credits."""
        return [*self.charges(), self._rates]

    def held(self) -> list[Integers]:
        """Factors of GPU-seconds held."""
        return [self._gpus]

    def active(self) -> list[Integers]:
        """Factors of GPU-seconds of Active leases."""
        return [np.where(self._active, self._gpus, 0)]


FIGURES: Final[dict[str, Callable[[Ledger], list[Integers]]]] = {
    "charges": Ledger.charges,
    "credits": Ledger.credits,
    "window": Ledger.charges,
    "held": Ledger.held,
    "active": Ledger.active,
}
SCALE: Final = {"credits": CREDIT}


def reconcile(frame: pd.DataFrame, checks: Sequence[Check], ledger: Ledger) -> list[Outcome]:
    """Makes the checks of a report on its rows. Raises Refusal where a check cannot be made."""
    return [_outcome(frame, check, ledger) for check in checks]


def _outcome(frame: pd.DataFrame, check: Check, ledger: Ledger) -> Outcome:
    missing = [name for name in (check.column, *check.by) if name not in frame.columns]
    if missing:
        raise Refusal(f"@check needs the column {missing[0]}, which the report's rows do not have")
    scale = SCALE.get(check.figure, 1)
    counted = {
        key: total / scale if scale > 1 else total for key, total in ledger.sums(check.figure, check.keys).items()
    }
    reported: dict[Key, float] = defaultdict(int)
    for values in frame[[*check.by, check.column]].itertuples(index=False, name=None):
        *key, value = values
        if not pd.isna(value) and value != 0:
            reported[tuple(None if pd.isna(each) else str(each) for each in key)] += value
    apart = ""
    for each in sorted({*counted, *reported}, key=str):
        one, other = reported.get(each, 0), counted.get(each, 0)
        if abs(one - other) > (EPSILON * max(abs(one), abs(other)) if scale > 1 else 0):
            what = ", ".join(f"{name} {value}" for name, value in zip(check.by, each, strict=True)) or "in all"
            apart = f"{what}: the report says {_shown(one)}, the leases {_shown(other)}."
            break
    return Outcome(check, sum(reported.values()), sum(counted.values()), apart)


def months(since: int, until: int) -> Iterator[tuple[str, int, int]]:
    """The months (UTC) that [since, until) touches: name, first second, first second of the next."""
    moment = datetime.fromtimestamp(since, UTC)
    year, month = moment.year, moment.month
    while (begin := int(datetime(year, month, 1, tzinfo=UTC).timestamp())) < until:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        end = int(datetime(year, month, 1, tzinfo=UTC).timestamp())
        yield datetime.fromtimestamp(begin, UTC).strftime("%Y-%m"), begin, end


def _groups(keys: Sequence[npt.NDArray[Any]], rows: Integers) -> Iterable[tuple[Key, Integers]]:
    if not keys or not len(rows):
        return [((), rows)] if len(rows) else []
    frame = pd.DataFrame({str(place): key[rows] for place, key in enumerate(keys)})
    numbers = frame.groupby(list(frame.columns), dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(numbers, kind="stable")
    firsts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return [
        (tuple(None if key[rows[group[0]]] is None else str(key[rows[group[0]]]) for key in keys), rows[group])
        for group in np.split(order, firsts[1:])
    ]


def _dot(factors: Sequence[Integers]) -> int:
    """Σ of products, exactly: in parts that no 64-bit sum overflows."""
    product = factors[0].astype(object) if len(factors) > 2 else factors[0]
    for factor in factors[1:]:
        product = product * factor
    return sum(int(part.sum()) for part in np.array_split(product, len(product) // 4096 + 1))


def _integers(column: pa.Array | pa.ChunkedArray, missing: int) -> Integers:
    values: Integers = column.cast(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _texts(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    texts: npt.NDArray[Any] = column.cast(pa.string()).to_numpy(zero_copy_only=False)
    return texts


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.6f}".rstrip("0").rstrip(".")
