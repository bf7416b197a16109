"""The lake: every snapshot and plan, as Parquet and JSON in a folder or an object store (spec §11).

::

    tables/TABLE/DIGEST.parquet               a table's content, named by its digest and written once
    cycles/date=YYYY-MM-DD/STAMP.json         a cycle's manifest: its time, Policy, tables by digest, version
    cycles/date=YYYY-MM-DD/STAMP/plan.json    its plan, canonical bytes
    cluster.json                              the one cluster whose cycles these are, written with the first of them

Days that have been compacted hold their manifests and plans elsewhere (`exporters.days`); they are found there.

STAMP is the cycle's time as 20260101T000000Z. A record is never replaced by one of another decision.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from exporters import planjson, records, storage
from jobtree.api import Policy, Refusal, Time, dec_hook, enc_hook
from jobtree.api.policy import PolicySpec
from jobtree.world import columns, digest
from jobtree.world.plan import Plan
from jobtree.world.schema import SCHEMA_VERSION, TABLES
from jobtree.world.snapshot import Snapshot, policy_json

_VERSION_KEY: Final = "jobtree.schema_version"


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a cycle was made from. ``since``: the time of the cycle before it; digests are SHA-256 in hex, timings
    seconds of wall time per phase.
    """

    schema_version: int
    jobtree: str
    at: Time
    since: Time | None = None
    snapshot: str
    policy: msgspec.Raw
    policy_digest: str
    tables: dict[str, str]
    plan: str
    timings: dict[str, float] = {}


class _Cluster(msgspec.Struct, frozen=True):
    """What `cluster.json` holds."""

    cluster: str


class Lake:
    """A lake in a folder, which is made when first written to, or at an fsspec URL (see `storage.place`).

    ``cluster``: the name of the cluster that is recorded or reported on, of a state file the file's; None: any.
    """

    def __init__(self, root: Path | str, cluster: str | None = None) -> None:
        self.root = storage.place(root)
        self.cluster = cluster
        self._mark = self.root / "cluster.json"

    def refuse_stranger(self) -> None:
        """Raises Refusal where the lake is that of a cluster of another name: reports would add up both."""
        if self.cluster is None or not storage.exists(self._mark):
            return
        try:
            there = msgspec.json.decode(storage.read(self._mark), type=_Cluster).cluster
        except msgspec.DecodeError as error:
            raise Refusal(
                f'it does not say whose lake this is ({error}); it should read {{"cluster": "{self.cluster}"}}',
                subject=str(self._mark),
            ) from None
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
            storage.write(path, _parquet(snapshot.tables[name]))

    def refuse_other(self, at: int, snapshot: Snapshot, encoded: bytes | None = None) -> None:
        """Raises Refusal where the lake is another cluster's, or where a record for ``at`` is there that was made from
        another snapshot, or is another plan than the one with these canonical bytes.
        """
        self.refuse_stranger()
        path = self.manifest_path(at)
        if not storage.exists(path) and records.find(path) is None:
            return
        there = read_manifest(path)
        same = (there.snapshot, there.policy_digest, there.since) == (
            snapshot.digest, snapshot.policy_digest, snapshot.since
        )  # fmt: skip
        if not same or (encoded is not None and there.plan != planjson.digest_of(encoded)):
            raise Refusal(
                f"it is the record of another decision for {Time(at)}, and stays; "
                "time only goes forward: say a later --at, or another --lake",
                subject=str(path),
            )

    def write_cycle(
        self, snapshot: Snapshot, plan: Plan, encoded: bytes, timings: Mapping[str, float] | None = None
    ) -> Path:
        """Stores a plan and, last, the manifest that completes the record; returns the manifest's path.

        The snapshot's tables have been written before, and no record of another decision is there (`refuse_other`); one
        of the same has its timings renewed. ``encoded``: the plan's canonical bytes. Raises Refusal naming the file
        that cannot be written.
        """
        path = self.manifest_path(plan.at)
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
        )
        if self.cluster is not None and not storage.exists(self._mark):
            storage.write(self._mark, msgspec.json.encode(_Cluster(self.cluster)) + b"\n")
        storage.write(plan_path(path), encoded)
        storage.write(path, msgspec.json.format(msgspec.json.encode(manifest, enc_hook=enc_hook), indent=1) + b"\n")
        return path

    def table_path(self, name: str, table_digest: str) -> Path:
        """Where a table's content is."""
        return self.root / "tables" / name / f"{table_digest}.parquet"

    def manifest_path(self, at: int) -> Path:
        """Where the manifest of the cycle at Unix second ``at`` is."""
        time = str(Time(at))
        stamp = time.replace("-", "").replace(":", "")
        return self.root / "cycles" / f"date={time[:10]}" / f"{stamp}.json"


def beside(state: Path) -> Path:
    """The lake of a state file where none is named: the file's whole name with `.lake`, in its folder."""
    return state.with_name(f"{state.name}.lake")


def plan_path(manifest: Path) -> Path:
    """The plan beside a manifest."""
    return manifest.with_suffix("") / "plan.json"


def read_manifest(path: Path) -> Manifest:
    """A cycle's manifest. Raises Refusal where it is missing, spoilt or of another schema."""
    return decode_manifest(_get(path), path)


def decode_manifest(data: bytes, path: Path) -> Manifest:
    """The manifest in these bytes of the file ``path``. Raises Refusal where they are spoilt or of another schema."""
    try:
        found = msgspec.json.decode(data, type=Manifest, dec_hook=dec_hook)
    except msgspec.DecodeError as error:
        raise Refusal(f"it is not the manifest of a cycle: {error}", subject=str(path)) from None
    if found.schema_version != SCHEMA_VERSION:
        raise Refusal(
            f"it was written with schema version {found.schema_version}, and this is version {SCHEMA_VERSION};"
            f" read it with jobtree {found.jobtree}",
            subject=str(path),
        )
    return found


def read_snapshot(path: Path) -> tuple[Snapshot, int]:
    """The snapshot of the cycle with that manifest, and its time in Unix seconds; the same bit for bit as was planned.

    Raises Refusal naming the file that is missing or is not what its name says.
    """
    manifest = read_manifest(path)
    lake = Lake(path.absolute().parents[2])
    missing = TABLES.keys() - manifest.tables.keys()
    if missing:
        raise Refusal(f"it names no table {min(missing)}", subject=str(path))
    tables = {name: read_table(lake.table_path(name, manifest.tables[name]), name) for name in TABLES}
    since = None if manifest.since is None else int(manifest.since)
    snapshot = Snapshot(tables, Policy(spec=_policy(manifest, path)), since)
    if (snapshot.digest, snapshot.policy_digest) != (manifest.snapshot, manifest.policy_digest):
        raise Refusal("its digests do not belong to its tables and Policy: it was changed", subject=str(path))
    return snapshot, int(manifest.at)


def _policy(manifest: Manifest, path: Path) -> PolicySpec:
    try:
        return msgspec.json.decode(manifest.policy, type=PolicySpec, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise Refusal(f"its Policy cannot be read: {error}", subject=str(path)) from None


def read_plan(path: Path, manifest: Manifest | None = None) -> bytes:
    """The canonical bytes of the plan of the cycle with that manifest. Raises Refusal where they were changed."""
    data = _get(plan_path(path))
    if planjson.digest_of(data) != (manifest or read_manifest(path)).plan:
        raise Refusal("it is not the plan that its manifest names: it was changed", subject=str(plan_path(path)))
    return data


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    marked = table.replace_schema_metadata({_VERSION_KEY: str(SCHEMA_VERSION)})
    pq.write_table(marked, sink, compression="zstd")
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
