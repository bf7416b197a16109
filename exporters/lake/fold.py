"""What reports need of many cycles, folded into a few tables (`exporters.lake.foldtables`; spec §11).

A fold keeps what cannot be told from its neighbours. Leases carry their own history, so the last form of each is
enough, of one that was pruned that in the cycle that did it; a run's last form, with the cycles that had it first and
last; every other row with the time that it stood.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from exporters.lake import forward, said
from exporters.lake.foldtables import (
    CYCLES,
    DISCOUNTS,
    DRAWS,
    FOLDS,
    FOREIGN,
    LEASES,
    OPENING,
    PRICES,
    PROMISES,
    RUNS,
    STANDING,
    WAITS,
)
from exporters.lake.lake import Lake, policy_of, read_columns, read_manifest, read_plan, read_table
from exporters.lake.manifest import DONE, UNDONE, Manifest
from exporters.plans import jsonfile, planjson
from jobtree.api import Refusal
from jobtree.api.kinds.plan import Lottery
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.reservation import Reservation
from jobtree.world.memory.cycles import moment_of
from jobtree.world.memory.seen import Discount, discounts
from jobtree.world.plan import Plan, Prices, PromiseUpdate, Pruned, Wait
from jobtree.world.tables import after, values

Rows = Mapping[tuple[str, ...], dict[str, Any]]
"""A table's rows by key."""

Gone = list[tuple["Cycle", set[tuple[str, str]]]]
"""Cycles that prune leases, with their (namespace, name)."""

Read = Callable[[Path, str], pa.Table]


class Trouble(NamedTuple):
    """Something in the lake that could not be used, and what is left out for it."""

    subject: str
    message: str


class Cycle(NamedTuple):
    """A cycle's record: where its manifest is, and what it says."""

    path: Path
    manifest: Manifest

    @property
    def at(self) -> int:
        """The cycle's time, Unix seconds."""
        return int(self.manifest.at)


def read_cycle(path: Path) -> Cycle:
    """A cycle by its manifest. Raises Refusal where it cannot be read, its name is not that of its time, or its plan
    was not carried out.
    """
    manifest = read_manifest(path)
    moment = moment_of(path.stem)
    if moment is None or (path.parent.name, moment.at) != (f"date={str(manifest.at)[:10]}", int(manifest.at)):
        raise Refusal(f"its name and its time, {manifest.at}, disagree", subject=str(path))
    if manifest.phase not in DONE:
        raise Refusal(UNDONE[manifest.phase], subject=str(path))
    return Cycle(path, manifest)


@dataclass(frozen=True)
class Fold:
    """Tables of `FOLDS`, and what could not be read on the way."""

    tables: dict[str, pa.Table]
    troubles: list[Trouble]


class _Said(msgspec.Struct):
    """The part of a plan that a fold keeps."""

    waits: list[Wait] = []
    prices: Prices | None = None
    pruned: list[Pruned] = []
    reservations: list[Reservation] = []
    promises: list[PromiseUpdate] = []
    lottery: Lottery | None = None


def fold(lake: Lake, cycles: Sequence[Cycle]) -> Fold:
    """Folds the records of ``cycles``, which are in the order of their time. What cannot be read is a trouble.

    Leases and runs are as the last cycle left them, not as it found them.
    """
    reader = _Reader(lake)
    gone: Gone = []
    ends = _carried_out(cycles)
    tables = {"cycles": _cycles(cycles), "runs": _runs(reader, cycles, ends), "opening": _opening(reader, cycles)}
    for name, key in STANDING.items():
        columns = FOLDS[name].names[:-2]
        versions = ((at, _keyed(table.select(columns), key)) for at, table in reader.versions(name, cycles))
        tables[name] = spans(FOLDS[name], versions)
    tables["foreign"] = spans(FOREIGN, ((at, _foreign(table)) for at, table in reader.versions("pods", cycles)))
    waits, prices = Stretches(), Stretches()
    promises, draws = list[dict[str, Any]](), list[dict[str, Any]]()
    for cycle, plan in _said(cycles, reader.troubles):
        waits.see(cycle.at, {(wait.namespace, wait.name): said.wait(wait) for wait in plan.waits})
        prices.see(cycle.at, said.prices(plan.prices, plan.waits) if plan.prices is not None else {})
        promises += said.promises(cycle.at, plan.reservations, plan.promises)
        draws += said.draws(cycle.at, plan.lottery)
        if plan.pruned:
            gone.append((cycle, {(each.namespace, each.name) for each in plan.pruned}))
    tables |= {"waits": waits.table(WAITS), "prices": prices.table(PRICES)}
    tables |= {"promises": pa.Table.from_pylist(promises, PROMISES), "draws": pa.Table.from_pylist(draws, DRAWS)}
    tables["leases"] = _leases(reader, cycles, gone, ends)
    tables["discounts"] = _discounts(reader, cycles)
    return Fold({name: tables[name] for name in FOLDS}, reader.troubles)


class Stretches:
    """Rows by key, version after version, and the time that each stood."""

    def __init__(self) -> None:
        self._standing: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
        self._gone: list[tuple[tuple[str, ...], int, int | None, dict[str, Any]]] = []

    def see(self, at: int, rows: Rows) -> None:
        """The rows as a cycle had them first, Unix seconds."""
        for key in [key for key, (_, row) in self._standing.items() if rows.get(key) != row]:
            since, row = self._standing.pop(key)
            self._gone.append((key, since, at, row))
        for key, row in rows.items():
            self._standing.setdefault(key, (at, row))

    def table(self, schema: pa.Schema) -> pa.Table:
        """All of them with the time that they stood, sorted by key and time."""
        still = [(key, since, None, row) for key, (since, row) in self._standing.items()]
        found = sorted([*self._gone, *still], key=lambda each: each[:2])
        return pa.Table.from_pylist([{**row, "since": since, "until": until} for _, since, until, row in found], schema)


def spans(schema: pa.Schema, versions: Iterable[tuple[int, Rows]]) -> pa.Table:
    """The rows of a table's ``versions``, each the time of the first cycle that had one and its rows by key."""
    standing = Stretches()
    for at, rows in versions:
        standing.see(at, rows)
    return standing.table(schema)


class _Reader:
    """Tables of cycles; one that cannot be read is named once, and the cycles that have it go without."""

    def __init__(self, lake: Lake) -> None:
        self.troubles: list[Trouble] = []
        self._lake = lake
        self._bad: set[Path] = set()

    def table(self, name: str, cycle: Cycle, read: Read = read_table) -> pa.Table | None:
        """A cycle's table, None where it cannot be read."""
        path = self._lake.table_path(name, cycle.manifest.tables.get(name, "missing"))
        if path in self._bad:
            return None
        try:
            return read(path, name)
        except Refusal as refusal:
            self._bad.add(path)
            self.troubles.append(Trouble(str(path), f"{refusal.problem}; the cycles that need it go without it"))
            return None

    def versions(self, name: str, cycles: Sequence[Cycle], read: Read = read_table) -> Iterator[tuple[int, pa.Table]]:
        """Each form of a table with the time of the first cycle that had it, in their order."""
        before: str | None = None
        for cycle in cycles:
            digest = cycle.manifest.tables.get(name)
            if digest != before and (table := self.table(name, cycle, read)) is not None:
                before = digest
                yield cycle.at, table


def _keyed(table: pa.Table, key: tuple[str, ...]) -> Rows:
    return {tuple(row[column] for column in key): row for row in table.to_pylist()}


def _cycles(cycles: Sequence[Cycle]) -> pa.Table:
    rows = [
        (each.at, each.path.stem, each.manifest.snapshot, each.manifest.plan, each.manifest.tables.get("leases"),
         each.manifest.policy_digest)
        for each in cycles
    ]  # fmt: skip
    return pa.Table.from_pylist([dict(zip(CYCLES.names, row, strict=True)) for row in rows], CYCLES)


def _carried_out(cycles: Sequence[Cycle]) -> Plan | None:
    """What was carried out of the last cycle's plan; None where that is nothing, or cannot be read, as `_said` says."""
    if not cycles or cycles[-1].manifest.phase != "applied":
        return None
    last = cycles[-1]
    try:
        return forward.carried_out(planjson.decode(read_plan(last.path, last.manifest)), last.manifest.left_out)
    except Refusal:
        return None


def _after(table: pa.Table, plan: Plan | None, then: Callable[[pa.Table, Plan], pa.Table]) -> pa.Table:
    """A table of the last cycle as its plan left it, as far as the plan speaks of what is in it."""
    if plan is None:
        return table
    there = set(values.keys(table))
    lists = {
        name: [each for each in getattr(plan, name) if (each.namespace, each.name) in there]
        for name in ("closures", "segments", "runs", "pruned")
    }
    added = [lease for lease in plan.leases if (lease.namespace, lease.name) not in there]
    return then(table, msgspec.structs.replace(plan, leases=added, **lists))


def _leases(reader: _Reader, cycles: Sequence[Cycle], gone: Gone, ends: Plan | None) -> pa.Table:
    """The last table that can be read: leases outlive their runs, so whatever held a GPU meanwhile is in it; or was
    pruned by one of the cycles, whose own table still has it.
    """
    found = []
    for cycle, names in gone:
        table = reader.table("leases", cycle)
        if table is not None:
            found.append(_pruned(cycle, table, names))
    for cycle in reversed(cycles):
        table = reader.table("leases", cycle)
        if table is not None:
            if cycle is cycles[-1]:
                table = _after(table, ends, after.leases)
            found.append(_stamped(table, "seen", cycle.at, LEASES))
            break
    return pa.concat_tables([LEASES.empty_table(), *found])


def _pruned(cycle: Cycle, table: pa.Table, names: set[tuple[str, str]]) -> pa.Table:
    places = [place for place, key in enumerate(values.keys(table)) if key in names]
    return _stamped(table.take(pa.array(places, pa.int64())), "seen", cycle.at, LEASES)


def _opening(reader: _Reader, cycles: Sequence[Cycle]) -> pa.Table:
    table = reader.table("balances", cycles[0]) if cycles else None
    return OPENING.empty_table() if table is None else _stamped(table, "time", cycles[0].at, OPENING)


def _discounts(reader: _Reader, cycles: Sequence[Cycle]) -> pa.Table:
    """What the last cycle's charges of spares are counted by."""
    if not cycles:
        return DISCOUNTS.empty_table()
    last = cycles[-1]
    table = reader.table("seen_discounts", last)
    before = [] if table is None else [Discount(**row) for row in table.to_pylist()]
    try:
        found = discounts(before, policy_of(last.manifest, last.path), last.at)
    except Refusal as refusal:
        message = f"{refusal.problem}; spares are taken to weigh what they did before, or by default"
        reader.troubles.append(Trouble(str(last.path), message))
        found = tuple(before) or discounts((), PolicySpec(), last.at)
    known = [{"since": each.since, "milli": each.milli} for each in found]
    return pa.Table.from_pylist([{**row, "time": last.at} for row in known], DISCOUNTS)


def _stamped(table: pa.Table, column: str, at: int, schema: pa.Schema) -> pa.Table:
    return table.append_column(column, _same(at, table)).cast(schema)


def _runs(reader: _Reader, cycles: Sequence[Cycle], ends: Plan | None) -> pa.Table:
    columns = RUNS.names[:-2]
    found = [(at, table.select(columns)) for at, table in reader.versions("runs", cycles, read_columns)]
    if ends is not None and ends.runs and (newest := reader.table("runs", cycles[-1])) is not None:
        found.append((cycles[-1].at, _after(newest, ends, after.runs).select(columns)))
    nexts = [at for at, _ in found[1:]] + [cycles[-1].at + 1] if cycles else []
    times = [cycle.at for cycle in cycles]
    parts = []
    for (at, table), end in zip(found, nexts, strict=False):
        last = max((time for time in times if time < end), default=at)
        parts.append(table.append_column("first_seen", _same(at, table)).append_column("last_seen", _same(last, table)))
    if not parts:
        return RUNS.empty_table()
    every = pa.concat_tables(part.cast(RUNS) for part in parts)
    places = every.append_column("place", pa.array(range(every.num_rows), pa.int64()))
    key = ["namespace", "name", "uid"]
    bounds = [("place", "max"), ("first_seen", "min"), ("last_seen", "max")]
    kept = places.group_by(key, use_threads=False).aggregate(bounds).sort_by([(name, "ascending") for name in key])
    rows = every.take(kept["place_max"])
    return pa.Table.from_arrays(
        [*rows.select(columns).columns, kept["first_seen_min"], kept["last_seen_max"]], schema=RUNS
    )


def _foreign(pods: pa.Table) -> Rows:
    gpus: dict[str, int] = defaultdict(int)
    for pod in pods.select(["node", "run", "gpus"]).to_pylist():
        if pod["run"] is None and pod["node"] is not None and pod["gpus"]:
            gpus[pod["node"]] += pod["gpus"]
    return {(node,): {"node": node, "gpus": count} for node, count in gpus.items()}


def _said(cycles: Sequence[Cycle], troubles: list[Trouble]) -> Iterator[tuple[Cycle, _Said]]:
    """Each plan with the first cycle that had it."""
    before: str | None = None
    for cycle in cycles:
        if cycle.manifest.plan == before:
            continue
        try:
            plan = jsonfile.decode(read_plan(cycle.path, cycle.manifest), _Said, "it is no plan")
        except Refusal as refusal:
            message = f"its plan cannot be read: {refusal.problem}; who waited then is not known"
            troubles.append(Trouble(str(cycle.path), message))
            continue
        before = cycle.manifest.plan
        yield cycle, plan


def _same(value: int, table: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), table.num_rows)
