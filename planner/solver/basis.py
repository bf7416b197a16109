"""Basis in which a relaxation's solve ended: the next may begin there, whatever columns and rows are left out."""

from typing import Final, NamedTuple

import highspy

from jobtree.world.tables.values import Ints
from planner.solver.shrunk import Shrunk

_Statuses = list[highspy.HighsBasisStatus]
_AT_LEAST: Final = highspy.HighsBasisStatus.kLower
_BASIC: Final = highspy.HighsBasisStatus.kBasic


class Basis(NamedTuple):
    """``status``: of each column and row; ``columns``, ``rows``: how many the whole model had; ``left``: what of it was
    solved (None: all).
    """

    status: highspy.HighsBasis
    columns: int
    rows: int
    left: Shrunk | None

    def on(self, left: Shrunk | None) -> highspy.HighsBasis:
        """Basis for the same model, of which so much is left."""
        if self.left == left:
            return self.status
        of_columns, of_rows = list(self.status.col_status), list(self.status.row_status)
        if self.left is not None:
            of_columns = _among(of_columns, self.left.columns, self.columns, _AT_LEAST)
            of_rows = _among(of_rows, self.left.rows, self.rows, _BASIC)
        found = highspy.HighsBasis()
        found.valid = True
        if left is not None:
            of_columns = [of_columns[column] for column in left.columns.tolist()]
            of_rows = [of_rows[row] for row in left.rows.tolist()]
            found.alien = True  # it may be an older one than what is left was chosen for: then HiGHS completes it
        found.col_status, found.row_status = of_columns, of_rows
        return found


def _among(some: _Statuses, places: Ints, every: int, other: highspy.HighsBasisStatus) -> _Statuses:
    """``some`` at their ``places`` among so many, the ``other`` at the rest."""
    found = [other] * every
    for place, status in zip(places.tolist(), some, strict=True):
        found[place] = status
    return found
