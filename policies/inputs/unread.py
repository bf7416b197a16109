"""Runs and Leases that cannot be read, and what they keep as it is (spec §2).

A Lease that cannot be read may be what a run holds, or lacks: while there is one, the run neither starts nor ends as
broken. One that runs, by its status, and of which nothing else is left stands as it was; one that never ran is told so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from jobtree.world.reading.unread import Slot, UnreadLease
from jobtree.world.tables import values as col
from jobtree.world.tables.rows import set_aside
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow


@dataclass(frozen=True)
class Unread:
    """Keys of the Runs, and the Leases that may be open."""

    runs: frozenset[RunKey]
    leases: tuple[UnreadLease, ...]

    @cached_property
    def _by_run(self) -> dict[RunKey, UnreadLease]:
        """Index them by the runs that they name; the first of each."""
        return {(lease.namespace, run): lease for lease in reversed(self.leases) for run in lease.runs}

    @cached_property
    def _others(self) -> list[UnreadLease]:
        return [lease for lease in self.leases if not lease.runs]

    def lease_of(self, run: RunRow) -> UnreadLease | None:
        """One that may be the run's; None where there is none, as of a run without GPUs."""
        if not self.leases or run.is_cpu:
            return None
        own, start = self._by_run.get(run.key), f"{run.name}-"
        by_name = (each for each in self._others if each.namespace == run.namespace and each.name.startswith(start))
        return own or next(by_name, None)

    def stands(self, run: RunRow) -> bool:
        """Does a live run that holds nothing that can be read run on by its status, in what cannot be?"""
        return self.lease_of(run) is not None and run.started is not None

    def covering(self) -> Iterator[tuple[RunKey, Slot]]:
        """Slots on which there may be pods of a run."""
        return (((lease.namespace, run), slot) for lease in self.leases for run in lease.runs for slot in lease.slots)

    def refusal(self, run: RunRow) -> str:
        """Say why a run does not start; empty where none of them may be its own."""
        lease = self.lease_of(run)
        if lease is None:
            return ""
        name = f"Lease {lease.namespace}/{lease.name}"
        return f"{name} may be its own and cannot be read; mend it, or delete it if nothing runs there"


def unread_of(quarantine: pa.Table, leases: pa.Table) -> Unread:
    """Read the tables ``quarantine`` and ``unread``."""
    columns = (col.column(leases, name) for name in UnreadLease._fields)
    found = tuple(UnreadLease(*row) for row in zip(*columns, strict=True))
    return Unread(frozenset(set_aside(quarantine, "Run")), found)
