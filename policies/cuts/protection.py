"""Protection: who may be drawn, and from when on (spec §6).

No run of the waiting run's own owner is drawn, none within ``lottery.term`` of its (re)start, and nobody before a
chain of secrets that replaces another may be used. Its unfunded work, its spares and its groups above the least width
may be cut at any time.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import pyarrow as pa

from jobtree.world.tables import values
from policies.inputs.claims import LeaseRow
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import started


class Protection(NamedTuple):
    """``term``: seconds after its start in which a run is not drawn; ``draws``: Unix second before which nobody is."""

    term: int
    draws: int = 0

    def open_from(self, run: RunRow, leases: Iterable[LeaseRow]) -> int:
        """Unix second from which on a run with these open leases may be drawn."""
        return self.open_after(started(run, leases))

    def open_after(self, start: int | None) -> int:
        """Unix second from which on a run may be drawn that started then."""
        return max((start or 0) + self.term, self.draws)

    def is_drawable(self, owner: str, start: int, owners: Collection[str], at: int) -> bool:
        """May a run of an owner be drawn at ``at`` (Unix seconds) for runs of ``owners``, which start together?"""
        return owner not in owners and self.open_after(start) <= at


def draws_from(lottery: pa.Table) -> int:
    """Unix second from which on a chain of secrets in place of another may be used; 0 where there is none such."""
    return max(values.ints(lottery, "opens").tolist(), default=0)
