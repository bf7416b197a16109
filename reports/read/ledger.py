"""The second way to a report's figures: exact integers straight from the leases, without SQL, views or joins.

    charges = Σ over funded segments of weight × seconds in the period          milli-GPU-seconds (spec §3.6)
    credits = the same times the segment's rate                                 3.6e9 of it are a credit
    window  = as charges, but from the start of each envelope's present window, as caps count it
    held    = Σ over all segments of GPUs × seconds in the period               GPU-seconds, whoever pays
    active  = the same of Active leases alone
    starts  = runs whose first Active lease began in the period
    lost    = runs that the lottery took in the period
    promised = Σ over promises that ended in a start of start − first promised  seconds, by the run's owner
    waited  = Σ over the waits of GPUs asked for × seconds in the period        GPU-seconds, not per anything

Charges, credits and window also count what leases had been charged that were pruned before the lake began, as the first
cycle's balances have it. Each figure can be asked per month, class and any column of the leases.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api import Refusal
from jobtree.world.tables.columns import full_names

Integers = npt.NDArray[np.int64]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Terms:
    """The period, Unix seconds: amounts are of [since, until), what happens in one second is of [since, stop).

    ``stop`` is ``until``, or a second later where the lake ends there: what its last cycle started or drew is known.
    """

    since: int
    until: int
    stop: int


class Ledger:
    """The segments of leases, one array per column, cut to the period: what the second way counts over.

    ``leases``: each in its last form. ``opened``: ``budget/envelope/owner/flavor`` of every envelope that is there →
    the start of its window, None where it has none. ``tables``: those of a fold, whose last cycle is ``known``.
    """

    def __init__(
        self,
        leases: pa.Table,
        terms: Terms,
        opened: Mapping[str, int | None],
        tables: Mapping[str, pa.Table],
        known: int,
    ) -> None:
        self._leases = leases
        self._terms = terms
        self._opened = opened
        self._tables = tables
        self._known = known
        parts = [_of_leases(leases, tables["discounts"]), _of_balances(tables["opening"])]
        self._paid = pa.concat_tables(parts, promote_options="default").combine_chunks()
        self._froms = _integers(self._paid["from"])
        self._ends = np.minimum(_integers(self._paid["to"]), terms.until)
        self._begins = np.maximum(self._froms, terms.since)

    @cached_property
    def _gpus(self) -> Integers:
        return _integers(self._paid["gpus"])

    @cached_property
    def _active(self) -> npt.NDArray[np.bool_]:
        active: npt.NDArray[np.bool_] = pc.equal(self._paid["role"], "Active").to_numpy()
        return active

    @cached_property
    def _weights(self) -> Integers:
        """Milli-GPUs of funded segments, 0 of others."""
        unfunded = pc.equal(self._paid["class"], "unfunded").to_numpy()
        return np.where(self._paid["budget"].is_valid().to_numpy() & ~unfunded, _integers(self._paid["milli"]), 0)

    @cached_property
    def _since_start(self) -> Integers:
        """Seconds of each segment since its envelope's window began."""
        named = (self._paid[name].cast(pa.string()) for name in ("budget", "envelope", "owner", "flavor"))
        payers = pc.binary_join_element_wise(*named, "/")
        codes, labels = _coded(payers)
        begins = np.array([self._opened.get(label, self._terms.until) or 0 for label in labels], np.int64)
        seconds: Integers = np.maximum(self._ends - np.maximum(self._froms, begins[codes]), 0)
        return seconds

    def sums(self, figure: str, by: Sequence[str]) -> dict[Key, int]:
        """A figure's sums by key; keys whose sum is 0 are left out. Raises Refusal for a figure that there is not."""
        if figure == "starts":
            return self.starts(by)
        if figure == "lost":
            return self.lost(by)
        if figure == "promised" and by == ("run_owner",):
            return self.promised()
        if figure == "waited" and not by:
            return {(): self.waited()}
        if figure not in FIGURES:
            allowed = f"{', '.join(FIGURES)}, starts, lost, promised by run_owner, and waited without a key"
            raise Refusal(f"@check names the figure {figure!r}; allowed are {allowed}")
        factors = FIGURES[figure](self)
        order, firsts, keys = self._groups([name for name in by if name != "month"])
        found: dict[Key, int] = {}
        for month, begin, end in self._months() if "month" in by else [("", self._terms.since, self._terms.until)]:
            inside = np.maximum(np.minimum(self._ends, end) - np.maximum(self._begins, begin), 0)
            seconds = self._since_start if figure == "window" else inside
            product: Integers = reduce(np.multiply, factors, seconds)
            for key, total in zip(keys, _exact(product[order], firsts), strict=True):
                if total:
                    rest = iter(key)
                    found[tuple(month if name == "month" else next(rest) for name in by)] = total
        return found

    def _groups(self, by: Sequence[str]) -> tuple[Integers, Integers, list[Key]]:
        """Segments in the order of their keys, where each key begins there, and the keys."""
        combined = np.zeros(self._paid.num_rows, np.int64)
        columns = [self._column(name) for name in by]
        for codes, labels in columns:
            combined = combined * len(labels) + codes
        order: Integers = np.argsort(combined, kind="stable")
        firsts: Integers = np.flatnonzero(np.diff(combined[order], prepend=-1))
        at = order[firsts]
        keys = [tuple(labels[codes[place]] for codes, labels in columns) for place in at]
        return order, firsts, keys

    def _column(self, name: str) -> tuple[Integers, list[Any]]:
        if name not in self._paid.column_names:
            raise Refusal(f"@check counts by {name!r}; allowed are month, class and the columns of leases")
        return _coded(self._paid[name].cast(pa.string()))

    def _months(self) -> Iterator[tuple[str, int, int]]:
        inside = self._begins < self._ends
        if inside.any():
            yield from months(int(self._begins[inside].min()), int(self._ends[inside].max()))

    def starts(self, by: Sequence[str]) -> dict[Key, int]:
        """Runs that started in the period, by key."""
        firsts: dict[str, tuple[tuple[int, str, str], Key]] = {}
        columns = ["run_uid", "role", "start", "namespace", "name", *by]
        for uid, role, start, namespace, name, *key in zip(
            *(self._leases[column].to_pylist() for column in columns), strict=True
        ):
            place = start, namespace, name
            if role == "Active" and (uid not in firsts or place < firsts[uid][0]):
                firsts[uid] = place, tuple(key)
        inside = (key for (start, _, _), key in firsts.values() if self._terms.since <= start < self._terms.stop)
        return dict(Counter(inside))

    def lost(self, by: Sequence[str]) -> dict[Key, int]:
        """Runs whose leases the lottery closed in the period, by key; a run drawn twice counts twice."""
        columns = (self._leases[name].to_pylist() for name in ("closure_reason", "ended", "run_uid", *by))
        found = {
            (ended, uid): tuple(key)
            for reason, ended, uid, *key in zip(*columns, strict=True)
            if reason == "Lottery" and self._terms.since <= ended < self._terms.stop
        }
        return dict(Counter(found.values()))

    def promised(self) -> dict[Key, int]:
        """Seconds between the starts of promised runs and what was first promised, by the run's owner."""
        starts: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
        columns = (
            self._leases[name].to_pylist() for name in ("namespace", "run", "role", "start", "name", "run_owner")
        )
        for namespace, run, role, *place in zip(*columns, strict=True):
            if role == "Active":
                starts.setdefault((namespace, run), []).append((place[0], place[1], place[2]))
        made: dict[tuple[str, str], dict[str, Any]] = {}
        last: dict[tuple[str, str], str] = {}
        for row in self._tables["promises"].to_pylist():
            key = row["namespace"], row["name"]
            last[key] = row["state"]
            if row["run"] is not None:
                made.setdefault(key, row)
        found: dict[Key, int] = {}
        for key, row in made.items():
            begun = [each for each in starts.get((key[0], row["run"]), ()) if each[0] >= row["time"]]
            if last[key] in {"Activated", "Released"} and begun:
                start, _, owner = min(begun)
                if self._terms.since <= start < self._terms.stop:
                    found[(owner,)] = found.get((owner,), 0) + start - row["start"]
        return {key: total for key, total in found.items() if total}

    def waited(self) -> int:
        """GPU-seconds that runs waited in the period."""
        runs, waits = (
            self._tables[name].append_column("run", full_names(self._tables[name])) for name in ("runs", "waits")
        )
        runs = runs.filter(pc.is_in(runs["run"], value_set=waits["run"]))
        asked: dict[str, tuple[int, int]] = {}
        for run, *form in zip(*(runs[name].to_pylist() for name in ("run", "last_seen", "total")), strict=True):
            asked[run] = max(asked.get(run, (-1, 0)), (form[0], form[1]))
        total = 0
        for run, since, until in zip(*(waits[name].to_pylist() for name in ("run", "since", "until")), strict=True):
            stop = min(self._known if until is None else until, self._terms.until)
            total += asked.get(run, (0, 0))[1] * max(0, stop - max(since, self._terms.since))
        return total

    def charges(self) -> list[Integers]:
        """Factors of a charge beside its seconds."""
        return [self._weights]

    def credits(self) -> list[Integers]:
        """Factors of a charge in credits."""
        return [self._weights, _integers(self._paid["rate_milli"])]

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


def _of_leases(leases: pa.Table, discounts: pa.Table) -> pa.Table:
    """A row per segment of a lease, of a spare's per discount: its columns, class, from, to, gpus and milli-GPUs."""
    funding = leases["funding"].combine_chunks()
    lengths = pc.list_value_length(funding).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    rows: Integers = np.repeat(np.arange(leases.num_rows), lengths)
    entries = pc.list_flatten(funding)
    last = np.where(leases["closed"].to_numpy(), _integers(leases["ended"]), _integers(leases["seen"]))[rows]
    stated = pc.struct_field(entries, "to")
    froms = _integers(pc.struct_field(entries, "from"))
    ends = np.where(stated.is_valid().to_numpy(zero_copy_only=False), _integers(stated), last)
    spare = pc.equal(leases["role"], "Spare").to_numpy()[rows]
    gpus = _integers(pc.list_value_length(leases["ordinals"]))[rows]
    known = sorted((row["since"] or 0, row["milli"]) for row in discounts.to_pylist())
    turns = [since for since, _ in known[1:]] + [_FOREVER]
    weights = [(~spare, 0, _FOREVER, 1000)]
    weights += [(spare, since, until, milli) for (since, milli), until in zip(known, turns, strict=True)]
    chosen: list[Integers] = []
    cells: dict[str, list[Integers]] = {"from": [], "to": [], "milli": []}
    for role, since, until, milli in weights:
        low, high = np.maximum(froms, since), np.minimum(ends, until)
        place: Integers = np.flatnonzero(role & (low < high))
        chosen.append(place)
        for name, column in (("from", low), ("to", high), ("milli", gpus * milli)):
            cells[name].append(column[place])
    places = np.concatenate(chosen)
    found = leases.drop_columns(["funding", "closed", "ended"]).take(pa.array(rows[places]))
    for name in ("class", "rate_milli"):
        found = found.append_column(name, pc.struct_field(entries, name).take(pa.array(places)))
    for name, columns in cells.items():
        found = found.append_column(name, pa.array(np.concatenate(columns)))
    return found.append_column("gpus", pa.array(gpus[places]))


def _of_balances(balances: pa.Table) -> pa.Table:
    """The same of balances: a row per span, of no GPU and no lease."""
    spans = balances["spans"].combine_chunks()
    entries = pc.list_flatten(spans)
    named = balances.drop_columns(["spans", "time", "place", "lent"]).rename_columns({"funding_class": "class"})
    found = named.take(pc.list_parent_indices(spans))
    for name, field in (("from", "from"), ("to", "to"), ("milli", "milli_gpus")):
        found = found.append_column(name, pc.struct_field(entries, field))
    return found.append_column("gpus", pa.array(np.zeros(found.num_rows, np.int64)))


_FOREVER: Final = 2**62


def months(since: int, until: int) -> Iterator[tuple[str, int, int]]:
    """The months (UTC) that [since, until) touches: name, first second, first second of the next."""
    moment = datetime.fromtimestamp(since, UTC)
    year, month = moment.year, moment.month
    while (begin := int(datetime(year, month, 1, tzinfo=UTC).timestamp())) < until:
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        end = int(datetime(year, month, 1, tzinfo=UTC).timestamp())
        yield datetime.fromtimestamp(begin, UTC).strftime("%Y-%m"), begin, end


def _exact(values: Integers, firsts: Integers) -> list[int]:
    """Sums of the stretches that begin at ``firsts``, in two halves, so that no 64-bit sum overflows."""
    if not len(firsts):
        return []
    high, low = (np.add.reduceat(half, firsts) for half in (values >> 31, values & (2**31 - 1)))
    return [(int(upper) << 31) + int(lower) for upper, lower in zip(high, low, strict=True)]


def _coded(column: pa.Array | pa.ChunkedArray) -> tuple[Integers, list[Any]]:
    """A column as codes into its distinct values, null among them."""
    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = chunk.dictionary_encode(null_encoding="encode")
    return _integers(coded.indices), coded.dictionary.to_pylist()


def _integers(column: pa.Array | pa.ChunkedArray) -> Integers:
    """A column of whole numbers, nulls as 0."""
    values: Integers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return values
