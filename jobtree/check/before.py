"""What of a check needs no plan, and can be done before there is one: rows, caps, and what has been charged."""

from dataclasses import dataclass
from typing import Self

from jobtree.check.caps import Caps
from jobtree.check.case import Unplanned
from jobtree.check.ledger import Ledger
from jobtree.check.rows import Rows
from jobtree.world.intake import collector_paused
from jobtree.world.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Before:
    """For plans of one snapshot at Unix second ``at``. ``entered``: charges up to then if a plan changes nothing."""

    at: int
    rows: Rows
    caps: Caps
    entered: Ledger

    @classmethod
    def of(cls, snapshot: Snapshot, at: int, rows: Rows | None = None) -> Self:
        """``rows``: those of the snapshot, where they have been read already."""
        with collector_paused():
            rows = rows or Rows.of(snapshot)
            case = Unplanned(snapshot, rows, at)
            caps = Caps(case)
            return cls(at, rows, caps, Ledger(case, caps))
