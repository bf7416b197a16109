"""The lake: every snapshot and plan, as Parquet and JSON in a folder or an object store (spec §11).

::

    tables/TABLE/DIGEST.parquet               a table's content, named by its digest and written once
    cycles/date=YYYY-MM-DD/STAMP.json         a cycle's manifest: its time, Policy, tables by digest, version, phase
    cycles/date=YYYY-MM-DD/STAMP/plan.json    its plan, canonical bytes
    seen/DIGEST.json                          Budgets and rates as cycles saw them (`jobtree.world.memory.seen`)
    cluster.json                              the one cluster whose cycles these are, written with the first of them
    writing/                                  files that are being written

Days that have been compacted hold their manifests and plans elsewhere (`exporters.lake.days`); they are found there.

STAMP is the cycle's name: its time as 20260101T000000Z, a second one in that second 20260101T000000Z-2. A record is
never replaced by one of another decision. It is there, marked planned, before anything is written to the cluster.
"""

import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from exporters.lake import manifest as manifests
from exporters.lake import records, storage
from exporters.lake.manifest import LeftOut, Manifest, Phase, PlanName
from exporters.plans import jsonfile, planjson
from jobtree.api import Policy, Refusal, Time
from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.memory import seen
from jobtree.world.memory.cycles import Moment, moment_of
from jobtree.world.plan import Plan
from jobtree.world.tables import columns, digest
from jobtree.world.tables.schema import SCHEMA_VERSION, TABLES, WHERE_ROWS
from jobtree.world.tables.snapshot import Snapshot, policy_json

_VERSION_KEY: Final = "jobtree.schema_version"
_BLOCK: Final = 4096
"""Bytes of a table up to which it is not compressed: that makes its file no shorter than a disk's block, and takes a
third of the time that writing it does."""


class Unmarked(Refusal):
    """It cannot be read whose lake this is."""


class _Cluster(msgspec.Struct, frozen=True):
    """What `cluster.json` holds."""

    cluster: str


class Lake:
    """A lake in a folder, which is made when first written to, or at an fsspec URL (see `storage.place`).

    ``cluster``: the name of the cluster that is recorded or reported on, of a state file the file's; None: any;
    ``lasting``: whether what is written outlasts a power cut, as the record of decisions has to (spec §8).
    """

    def __init__(self, root: Path | str, cluster: str | None = None, *, lasting: bool = True) -> None:
        self.root = storage.place(root)
        self.cluster = cluster
        self._lasting = lasting
        self._mark = self.root / "cluster.json"
        self._scratch = self.root / "writing"

    def refuse_stranger(self) -> None:
        """Raises Refusal where the lake is that of a cluster of another name: reports would add up both."""
        if self.cluster is None or not storage.exists(self._mark):
            return
        try:
            there = jsonfile.decode(storage.read(self._mark), _Cluster, "it does not say whose lake this is").cluster
        except Refusal as refusal:
            hint = f'it should read {{"cluster": "{self.cluster}"}}'
            raise Unmarked(f"{refusal.problem}; {hint}", subject=str(self._mark)) from None
        if there != self.cluster:
            raise Refusal(
                f"this lake has the cycles of {there}, not of {self.cluster}; say another --lake, or, where it is the "
                "same cluster under a new name, write that name into this file",
                subject=str(self._mark),
            )

    def write_tables(self, snapshot: Snapshot) -> None:
        """Stores the tables that are not there yet. Raises Refusal naming the file that cannot be written."""
        for name in snapshot.tables:
            self.write_table(snapshot, name)

    def write_table(self, snapshot: Snapshot, name: str) -> None:
        """Stores one of the tables where it is not there yet; raises like `write_tables`."""
        path = self.table_path(name, snapshot.table_digests[name])
        if not storage.exists(path):
            self.put(path, _parquet(snapshot.tables[name]))

    def put(self, path: Path, data: bytes) -> None:
        """Makes ``data`` the content of a file of the lake in one step. Raises Refusal naming it."""
        storage.write(path, data, self._scratch, lasting=self._lasting)

    def write_seen(self, record: Mapping[str, str]) -> str:
        """Stores what a cycle saw of the money, where it is not there yet; returns its digest."""
        name = seen.digest_of(record)
        path = self._seen_path(name)
        if not storage.exists(path):
            self.put(path, seen.text_of(record))
        return name

    def read_seen(self, name: str) -> dict[str, str]:
        """What a cycle saw of the money, by its digest. Raises Refusal where it is missing or was changed."""
        path = self._seen_path(name)
        record = jsonfile.decode(storage.read(path), dict[str, str], "it is no record of Budgets", str(path))
        if seen.digest_of(record) != name:
            raise Refusal("its content is not what its name says: it was changed", subject=str(path))
        return record

    def _seen_path(self, name: str) -> Path:
        return self.root / "seen" / f"{name}.json"

    def number_for(self, at: int, snapshot: Snapshot) -> int:
        """The number in its second of the cycle that plans this snapshot: its own, or the next one that is not taken.

        Taken are the records of other decisions, which another history of the cluster left (`refuse_other` says when).
        Raises Refusal where a store does not answer.
        """
        number = snapshot.number
        while self._is_taken(self.manifest_path(at, number), snapshot):
            number += 1
        return number

    def _is_taken(self, path: Path, snapshot: Snapshot) -> bool:
        if not storage.exists(path) and records.find(path) is None:
            return False
        try:
            there = read_manifest(path)
        except Refusal:
            return True  # whatever it is of
        return (there.snapshot, there.policy_digest, there.since) != (
            snapshot.digest, snapshot.policy_digest, None if snapshot.since is None else Time(snapshot.since)
        )  # fmt: skip

    def refuse_other(self, snapshot: Snapshot, plan: Plan, encoded: bytes) -> None:
        """Raises Refusal where the record of the plan's name is that of another decision.

        It was made from another snapshot, or is another plan than the one with these canonical bytes.
        """
        path = self.path_of(plan)
        if not storage.exists(path) and records.find(path) is None:
            return
        if self._is_taken(path, snapshot) or read_manifest(path).plan != planjson.digest_of(encoded):
            raise Refusal(
                f"it is the record of another decision for {Time(plan.at)}, and stays; "
                "time only goes forward: say a later --at, or another --lake",
                subject=str(path),
            )

    def write_cycle(
        self,
        snapshot: Snapshot,
        plan: Plan,
        encoded: bytes,
        timings: Mapping[str, float] | None = None,
        *,
        phase: Phase = "applied",
        on: PlanName | None = None,
        money: str = "",
    ) -> Path:
        """Stores a plan and, last, the manifest that completes the record; returns the manifest's path.

        The snapshot's tables have been written before, and no record of another decision is there (`refuse_other`).
        ``encoded``: the plan's canonical bytes; ``phase``, ``on`` and ``money``, which is its ``seen``: as `Manifest`
        says. Raises Refusal naming the file that cannot be written.
        """
        path = self.path_of(plan)
        manifest = Manifest(
            schema_version=SCHEMA_VERSION,
            jobtree=plan.jobtree,
            at=Time(plan.at),
            since=None if snapshot.since is None else Time(snapshot.since),
            snapshot=snapshot.digest,
            policy=msgspec.Raw(policy_json(snapshot.policy)),
            policy_digest=snapshot.policy_digest,
            tables=dict(snapshot.table_digests),
            plan=planjson.digest_of(encoded),
            timings=dict(timings or {}),
            phase=phase,
            on=on,
            seen=money,
        )
        if self.cluster is not None and not storage.exists(self._mark):
            self.put(self._mark, msgspec.json.encode(_Cluster(self.cluster)) + b"\n")
        self.put(plan_path(path), encoded)
        self.put(path, manifests.encode(manifest))
        return path

    def finish(
        self, path: Path, phase: Phase, left_out: Sequence[LeftOut] = (), timings: Mapping[str, float] | None = None
    ) -> None:
        """Says in a cycle's manifest how it ended. Raises Refusal where that cannot be read or written."""
        before = read_manifest(path)
        timings = before.timings | dict(timings or {})
        after = msgspec.structs.replace(before, phase=phase, left_out=list(left_out), timings=timings)
        self.put(path, manifests.encode(after))

    def newest(self) -> Path | None:
        """The manifest of the newest cycle, None where there is none. Raises Refusal where a store does not answer.

        A day that was compacted is none of the newest: it has another one after it.
        """
        for day in sorted(storage.glob(self.root, "cycles/date=*"), key=lambda path: path.name, reverse=True):
            found = manifests_in(day)
            if found and moment_of(found[-1].stem):
                return found[-1]
        return None

    def sweep(self) -> None:
        """Takes away what killed writers left: files that did not become whole, and plans without a manifest."""
        storage.sweep(self._scratch)
        for day in sorted(storage.glob(self.root, "cycles/date=*"), key=lambda path: path.name)[-1:]:
            for plan in storage.glob(day, f"*/{records.PLAN}"):
                path = plan.parent.with_name(f"{plan.parent.name}.json")
                if not storage.exists(path) and records.find(path) is None:
                    storage.remove(plan)

    def table_path(self, name: str, table_digest: str) -> Path:
        """Where a table's content is."""
        return self.root / "tables" / name / f"{table_digest}.parquet"

    def manifest_path(self, at: int, number: int = 1) -> Path:
        """Where the manifest of the cycle at Unix second ``at`` is, by its number in that second."""
        return self.root / "cycles" / f"date={str(Time(at))[:10]}" / f"{Moment(at, number).name}.json"

    def path_of(self, plan: Plan) -> Path:
        """Where the manifest of a plan's cycle is."""
        moment = moment_of(plan.cycle)
        return self.manifest_path(plan.at, moment.number if moment else 1)


def manifests_in(day: Path) -> list[Path]:
    """The manifests that are files of a day's folder, by time, those of odd names first. Raises Refusal."""
    return sorted(storage.glob(day, "*.json"), key=lambda path: (moment_of(path.stem) or Moment(-1), path.name))


def beside(state: Path) -> Path:
    """The lake of a state file where none is named: the file's whole name with `.lake`, in its folder."""
    return state.with_name(f"{state.name}.lake")


def plan_path(manifest: Path) -> Path:
    """The plan beside a manifest."""
    return manifest.with_suffix("") / "plan.json"


def read_manifest(path: Path) -> Manifest:
    """A cycle's manifest. Raises Refusal where it is missing, spoilt or of another schema."""
    return manifests.decode(_get(path), path)


def read_snapshot(path: Path) -> tuple[Snapshot, int]:
    """The snapshot of the cycle with that manifest, and its time in Unix seconds; the same bit for bit as was planned.

    Raises Refusal naming the file that is missing or is not what its name says.
    """
    manifest = read_manifest(path)
    lake = Lake(path.absolute().parents[2])
    missing = TABLES.keys() - WHERE_ROWS - manifest.tables.keys()
    if missing:
        raise Refusal(f"it names no table {min(missing)}", subject=str(path))
    tables = {
        name: read_table(lake.table_path(name, manifest.tables[name]), name)
        if name in manifest.tables
        else TABLES[name].empty_table()
        for name in TABLES
    }
    since = None if manifest.since is None else int(manifest.since)
    moment = moment_of(path.stem)
    number = 1 if moment is None else moment.number
    snapshot = Snapshot(tables, Policy(spec=policy_of(manifest, path)), since, number)
    if (snapshot.digest, snapshot.policy_digest) != (manifest.snapshot, manifest.policy_digest):
        raise Refusal("its digests do not belong to its tables and Policy: it was changed", subject=str(path))
    return snapshot, int(manifest.at)


def policy_of(manifest: Manifest, path: Path) -> PolicySpec:
    """The Policy that a cycle read by. Raises Refusal where its manifest has none that can be read."""
    return jsonfile.decode(manifest.policy, PolicySpec, "its Policy cannot be read", str(path))


def read_plan(path: Path, manifest: Manifest | None = None) -> bytes:
    """The canonical bytes of the plan of the cycle with that manifest. Raises Refusal where they were changed."""
    data = _get(plan_path(path))
    if planjson.digest_of(data) != (manifest or read_manifest(path)).plan:
        raise Refusal("it is not the plan that its manifest names: it was changed", subject=str(plan_path(path)))
    return data


def _parquet(table: pa.Table) -> bytes:
    return _encoded(table) if table.num_rows else _empty(table.schema)


@cache
def _empty(schema: pa.Schema) -> bytes:
    """Most tables of a small cluster are."""
    return _encoded(schema.empty_table())


def _encoded(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    marked = table.replace_schema_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
    pq.write_table(marked, sink, compression="zstd" if table.nbytes > _BLOCK else "none")
    return sink.getvalue()


def read_table(path: Path, name: str) -> pa.Table:
    """A table of the snapshot. Raises Refusal where the file is missing, is none of this table, or was changed."""
    table = columns.canonical(read_columns(path, name), TABLES[name])
    if digest.of_table(table, SCHEMA_VERSION) != path.stem:
        raise Refusal("its content is not what its name says: it was changed", subject=str(path))
    return table


def read_columns(path: Path, name: str) -> pa.Table:
    """The same as the file holds it, its content not compared with its name."""
    try:
        found = pq.ParquetFile(io.BytesIO(storage.read(path))).read(use_threads=False).replace_schema_metadata(None)
    except (pa.ArrowException, OSError) as error:
        raise Refusal(f"it is no Parquet file, or was cut off: {_first_line(error)}", subject=str(path)) from None
    if found.schema != TABLES[name]:
        raise Refusal(f"it has other columns than the table {name}", subject=str(path))
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _get(path: Path) -> bytes:
    """A file's bytes, those of a manifest or plan wherever they are. Raises Refusal where there are none."""
    try:
        return storage.read(path)
    except Refusal:
        found = records.find(path) if path.suffix == ".json" else None
        if found is None:
            raise
        return found
