"""Manifests and plans of a compacted day, byte for byte in one Parquet file (see `exporters.lake.days`)."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from exporters.lake import storage
from jobtree.api import Refusal

SCHEMA: Final = pa.schema([("cycle", pa.string()), ("manifest", pa.binary()), ("plan", pa.binary())])
PLAN: Final = "plan.json"
_PAGE: Final = 1 << 24
"""Bytes of a page: plans of neighbouring cycles say almost the same, and are only compressed together on one page."""


class Record(NamedTuple):
    """A cycle's files. ``cycle``: the name of its manifest, without ``.json``."""

    cycle: str
    manifest: bytes
    plan: bytes


def path_for(file: Path) -> Path:
    """Where the records of the day are that a manifest or plan in ``cycles/`` belongs to."""
    day = file.parent.parent if file.name == PLAN else file.parent
    return day.parent.parent / "days" / day.name / "records.parquet"


def find(file: Path) -> bytes | None:
    """The bytes of a manifest or plan that was compacted; None where it was not. Raises Refusal for spoilt records."""
    path = path_for(file)
    if not storage.exists(path):
        return None
    column = "plan" if file.name == PLAN else "manifest"
    cycle = file.parent.name if file.name == PLAN else file.stem
    found = read(path, ["cycle", column])
    place = found["cycle"].to_pylist()
    data: bytes | None = found[column][place.index(cycle)].as_py() if cycle in place else None
    return data


def read(path: Path, columns: Sequence[str] = tuple(SCHEMA.names)) -> pa.Table:
    """Columns of a day's records. Raises Refusal where the file cannot be read."""
    data = storage.read(path)
    try:
        return pq.ParquetFile(io.BytesIO(data)).read(list(columns), use_threads=False)
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise Refusal(f"it is no Parquet file of records, or was cut off: {reason}", subject=str(path)) from None


def encode(records: Sequence[Record]) -> bytes:
    """The file of a day."""
    table = pa.Table.from_pylist([record._asdict() for record in records], SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=9, data_page_size=_PAGE, use_dictionary=False)
    return sink.getvalue()
