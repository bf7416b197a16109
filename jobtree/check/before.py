"""What of a check needs no plan, and can be done before there is one.

That is to read the rows, to work out caps and what has been charged, and to see which runs end or lack something.
"""

from dataclasses import dataclass
from typing import Self

from jobtree.check.caps import Caps
from jobtree.check.closures import over
from jobtree.check.ledger import Ledger
from jobtree.check.rows import Rows
from jobtree.check.shape import lacks
from jobtree.check.unplanned import Unplanned
from jobtree.world.intake import collector_paused
from jobtree.world.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Before:
    """For plans of one snapshot at one second. ``entered``: charges up to then if a plan changes nothing."""

    case: Unplanned
    caps: Caps
    entered: Ledger

    @classmethod
    def of(cls, snapshot: Snapshot, at: int, rows: Rows | None = None) -> Self:
        """``at``: Unix second; ``rows``: those of the snapshot, where they have been read already."""
        with collector_paused():
            case = Unplanned(snapshot, rows or Rows.of(snapshot), at)
            caps = Caps(case)
            for key in case.open_by:
                over(case, key)
                lacks(case, key)
            _ = case.given
            return cls(case, caps, Ledger(case, caps))
