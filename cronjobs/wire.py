"""What goes between a cycle and its planner process: a snapshot and a time in, a plan out, as bytes."""

import io
from collections.abc import Mapping

import msgspec
import pyarrow as pa
import pyarrow.ipc

from jobtree.api import Policy, dec_hook, enc_hook
from jobtree.world.memory.lottery import Lot
from jobtree.world.tables import digest
from jobtree.world.tables.schema import SCHEMA_VERSION
from jobtree.world.tables.snapshot import Snapshot


class Request(msgspec.Struct):
    """A plan is wanted: ``tables`` as Arrow streams, and their ``digests``, which the lake wants in any case and nobody
    is to make twice; ``at`` and ``since`` in Unix seconds, ``number`` and ``lot`` as in `Snapshot`; ``incumbent``: the
    one to finish, as the process sent it, or empty where the best is to be searched for.
    """

    at: int
    since: int | None
    number: int
    policy: bytes
    tables: dict[str, bytes]
    digests: Mapping[str, str]
    lot: Lot | None = None
    incumbent: bytes = b""

    @classmethod
    def of(cls, snapshot: Snapshot, at: int) -> "Request":
        """To search for the best plan."""
        tables = {name: _stream(table) for name, table in snapshot.tables.items()}
        policy = msgspec.json.encode(snapshot.policy, enc_hook=enc_hook)
        return cls(at, snapshot.since, snapshot.number, policy, tables, snapshot.table_digests, snapshot.lot)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot to plan for."""
        tables = {name: pa.ipc.open_stream(stream).read_all() for name, stream in self.tables.items()}
        for name, table in tables.items():
            digest.known(table, SCHEMA_VERSION, self.digests[name])
        policy = msgspec.json.decode(self.policy, type=Policy, dec_hook=dec_hook)
        return Snapshot(tables, policy, self.since, self.number, self.lot)


def _stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
