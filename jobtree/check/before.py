"""What of a check needs no plan, and can be done before there is one.

That is to read the rows, to work out caps and what has been charged, and to see which runs end or lack something.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from jobtree.check.case.caps import Caps
from jobtree.check.case.tables import Rows
from jobtree.check.case.unplanned import Told, Unplanned
from jobtree.check.life import pods
from jobtree.check.life.closures import over
from jobtree.check.life.failures import Failures
from jobtree.check.life.shape import lacks
from jobtree.check.money.ledger import Ledger
from jobtree.world.collector import collector_paused
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Before:
    """For plans of one snapshot at one second. ``entered``: charges up to then if a plan changes nothing."""

    told: Told
    caps: Caps
    entered: Ledger

    @classmethod
    def of(cls, snapshot: Snapshot, at: int, between: Callable[[], None] | None = None) -> Self:
        """``at``: Unix second; ``between``: called now and then, for a caller who has something else to look after."""
        rest = between or _nothing
        with collector_paused():
            rows = Rows.of(snapshot)
            rest()
            case = Unplanned(snapshot, rows, at)
            caps = Caps(case)
            rest()
            speaking = pods.speaking(case)
            said = pods.said(case, speaking, Failures(case))
            over_ = {key: over(case, key, said.get(key)) for key in case.open_by}
            lacking = {key: lacks(case, key) for key in case.open_by}
            told = Told(snapshot, rows, at, given_of(snapshot, at), over_, lacking, said, speaking)
            rest()
            return cls(told, caps, Ledger(case, caps))

    def is_of(self, snapshot: Snapshot, at: int) -> bool:
        """Whether it is of this very snapshot at this second."""
        return self.told.snapshot is snapshot and self.told.at == at


def _nothing() -> None:
    """Nobody has anything else to do."""
