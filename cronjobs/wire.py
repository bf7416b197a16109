"""What goes between a cycle and its planner process: a snapshot and a time in, plans out, as bytes."""

import io

import msgspec
import pyarrow as pa
import pyarrow.ipc

from exporters import planjson
from jobtree.api import Policy, dec_hook, enc_hook
from jobtree.world.snapshot import Snapshot

pack_plan = planjson.encode
unpack_plan = planjson.decode


class _Request(msgspec.Struct):
    at: int
    policy: bytes
    tables: dict[str, bytes]


def pack_request(snapshot: Snapshot, at: int) -> bytes:
    """A snapshot, its tables as Arrow streams, and the Unix second to plan for."""
    tables = {name: _stream(table) for name, table in snapshot.tables.items()}
    return msgspec.msgpack.encode(_Request(at, msgspec.json.encode(snapshot.policy, enc_hook=enc_hook), tables))


def unpack_request(data: bytes) -> tuple[Snapshot, int]:
    """The other way."""
    request = msgspec.msgpack.decode(data, type=_Request)
    tables = {name: pa.ipc.open_stream(stream).read_all() for name, stream in request.tables.items()}
    return Snapshot(tables, msgspec.json.decode(request.policy, type=Policy, dec_hook=dec_hook)), request.at


def _stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
