"""Compacted days: a day's cycles in a few Parquet files instead of thousands of small ones (spec §11).

::

    days/date=YYYY-MM-DD/TABLE.parquet       what reports need of the day (`exporters.lake.fold`)
    days/date=YYYY-MM-DD/records.parquet     its manifests and plans, byte for byte
    days/date=YYYY-MM-DD/done.json           written last: the SHA-256 of each of these files

A day is compacted when a later one has begun. Its manifests and plans then leave ``cycles/``; the tables that they name
stay, so every decision can still be replayed.
"""

import contextlib
import hashlib
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from exporters.lake import manifest, records, storage
from exporters.lake.fold import Cycle, Fold, Trouble, fold, read_cycle
from exporters.lake.foldtables import FOLD_VERSION, FOLDS
from exporters.lake.lake import Lake, manifests_in, plan_path, read_plan, read_table
from exporters.lake.records import Record
from exporters.plans import jsonfile
from jobtree.api import Refusal
from jobtree.world.tables.columns import full_names


class Done(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A compacted day: SHA-256 of its files by their names, hex."""

    fold_version: int
    files: dict[str, str]


def dates(root: Path) -> list[str]:
    """Every day that the lake knows, as ``2026-01-01``, in order."""
    folders = [*storage.glob(root, "cycles/date=*"), *storage.glob(root, "days/date=*")]
    return sorted({folder.name.removeprefix("date=") for folder in folders})


def manifests(root: Path, date: str) -> list[Path]:
    """The manifests of a day that are files of their own, by time."""
    return manifests_in(root / "cycles" / f"date={date}")


def is_done(root: Path, date: str) -> bool:
    """Whether the day was compacted."""
    return storage.exists(_folder(root, date) / "done.json")


def is_begun(root: Path, date: str) -> bool:
    """Whether the day has records of its own, be it compacted to the end or not."""
    return storage.exists(_folder(root, date) / "records.parquet")


def late(root: Path, date: str) -> list[Path]:
    """Manifests of a compacted day that it does not hold. Raises Refusal where what it holds cannot be read."""
    loose = manifests(root, date)
    if not loose:
        return []
    held = set(records.read(_folder(root, date) / "records.parquet", ["cycle"])["cycle"].to_pylist())
    return [path for path in loose if path.stem not in held]


def read(root: Path, date: str, names: Collection[str] = FOLDS.keys()) -> dict[str, pa.Table]:
    """The tables of a compacted day, those not in ``names`` empty.

    Raises Refusal naming the file that is missing, or is not the one written.
    """
    place = _folder(root, date)
    files = _done(place / "done.json").files
    return {
        name: _table(place / f"{name}.parquet", files.get(f"{name}.parquet", ""), name) if name in names else empty
        for name, empty in ((name, schema.empty_table()) for name, schema in FOLDS.items())
    }


def cycles(root: Path, date: str) -> list[Cycle]:
    """The records of a compacted day, where its own tables cannot be read. Raises Refusal where they cannot either."""
    found = records.read(_folder(root, date) / "records.parquet", ["cycle", "manifest"]).to_pylist()
    place = root / "cycles" / f"date={date}"
    paths = [(place / f"{row['cycle']}.json", row["manifest"]) for row in found]
    return [Cycle(path, manifest.decode(data, path)) for path, data in paths]


def compact(lake: Lake, on_day: Callable[[str, int], None] | None = None) -> Iterator[Trouble]:
    """Compacts every day before the last one, oldest first, and yields what could not be used of it.

    ``on_day`` hears of each day with the number of its cycles. Raises Refusal naming a file that cannot be written. A
    crash at any moment leaves a day that is read as before, or compacted again.
    """
    known = dates(lake.root)
    for before, date in zip([None, *known], known[:-1], strict=False):
        paths = manifests(lake.root, date)
        if paths and not is_done(lake.root, date):
            if on_day is not None:
                on_day(date, len(paths))
            yield from _compact(lake, date, paths, before)
        if paths:
            _remove(lake.root, date, paths)


def _compact(lake: Lake, date: str, paths: Sequence[Path], before: str | None) -> Iterator[Trouble]:
    whole: list[Cycle] = []
    packed: list[Record] = []
    for path in paths:
        try:
            cycle = read_cycle(path)
            plan, raw = read_plan(path, cycle.manifest), storage.read(path)
        except Refusal as refusal:
            yield Trouble(str(path), f"{refusal.problem}; it stays as it is, and reports go without it")
            continue
        whole.append(cycle)
        packed.append(Record(path.stem, raw, plan))
    found = fold(lake, whole)
    yield from found.troubles
    store(lake, date, {**found.tables, "leases": _fresh(lake, found, before)}, packed)


def store(lake: Lake, date: str, tables: Mapping[str, pa.Table], packed: Sequence[Record]) -> None:
    """Writes a compacted day: tables of `FOLDS` and the records that they were folded from."""
    place = _folder(lake.root, date)
    data = {f"{name}.parquet": _parquet(table) for name, table in tables.items()}
    data["records.parquet"] = records.encode(packed)
    for name, content in data.items():
        lake.put(place / name, content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in data.items()}
    lake.put(place / "done.json", msgspec.json.encode(Done(fold_version=FOLD_VERSION, files=digests)) + b"\n")


def _fresh(lake: Lake, found: Fold, before: str | None) -> pa.Table:
    """The day's leases less those that had closed by the end of the day before: they are in the day that saw that."""
    leases = found.tables["leases"]
    if before is None:
        return leases
    try:
        digest = read(lake.root, before)["cycles"]["leases"][-1].as_py()
        old = read_table(lake.table_path("leases", digest), "leases")
    except Refusal:
        return leases  # then some are there twice, which does no harm
    return leases.filter(pc.invert(pc.is_in(full_names(leases), value_set=full_names(old.filter(old["closed"])))))


def _remove(root: Path, date: str, paths: Sequence[Path]) -> None:
    """Takes the files out of ``cycles/`` that a compacted day holds, byte for byte."""
    held = {row["cycle"]: row for row in records.read(_folder(root, date) / "records.parquet").to_pylist()}
    for path in paths:
        plan, row = plan_path(path), held.get(path.stem)
        if row is None or storage.read(path) != row["manifest"]:
            continue
        if storage.exists(plan) and storage.read(plan) != row["plan"]:
            continue
        path.unlink()  # first: a plan without a manifest is no record
        plan.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something else lies there: it stays
            plan.parent.rmdir()
    with contextlib.suppress(OSError):
        (root / "cycles" / f"date={date}").rmdir()


def _folder(root: Path, date: str) -> Path:
    return root / "days" / f"date={date}"


def _done(path: Path) -> Done:
    found = jsonfile.decode(storage.read(path), Done, "it is not the list of a compacted day", str(path))
    if found.fold_version != FOLD_VERSION:
        raise Refusal(f"it has version {found.fold_version}, and this is version {FOLD_VERSION}", subject=str(path))
    return found


def _table(path: Path, digest: str, name: str) -> pa.Table:
    data = storage.read(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise Refusal("it is not the file that was written: it was changed or cut off", subject=str(path))
    try:
        return pq.ParquetFile(io.BytesIO(data)).read(use_threads=False).cast(FOLDS[name])
    except (pa.ArrowException, OSError, ValueError):  # signed by someone who wrote other columns
        raise Refusal(f"it has other columns than the table {name}, or is no Parquet file", subject=str(path)) from None


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
