"""The order of cuts: unfunded work, spares, groups above the least width, then the lottery (spec §6).

    harm = (GPUs lost by the lottery, GPUs shrunk, spare GPUs, unfunded GPUs), compared from the left

The set of victims with the least harm is cut. Among sets of equal harm those go first whose run is furthest above its
least width, then the one that started last, then by the hash of its uid.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from jobtree.api.kinds.reservation import RemedyAction
from jobtree.world.plan import Closure
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.lifecycle.endings import Ending

LOTTERY, SHRUNK, SPARES, UNFUNDED = range(4)
"""Kinds of cuts by their place in a `Harm`: the gentlest is the last."""
REASONS: Final[tuple[RemedyAction, ...]] = ("Lottery", "Shrink", "DropSpare", "ReclaimUnfunded")
"""Why a lease closes, by kind of cut."""


class Harm(NamedTuple):
    """GPUs lost by each kind of cut; the run that falls below its least width loses all that it has."""

    lottery: int = 0
    shrunk: int = 0
    spares: int = 0
    unfunded: int = 0

    @property
    def gpus(self) -> int:
        """All of them."""
        return sum(self)


def preference(surplus: int, start: int, uid: str) -> tuple[int, int, str]:
    """Key by which equals are cut, least first. ``surplus``: GPUs above the run's least width; ``start``: Unix s."""
    return -surplus, -start, sha256(uid.encode()).hexdigest()


class Cut(NamedTuple):
    """Cause of a cut. ``reservation``: for which promise, empty for a start; ``draw``: the pick that took it."""

    reason: RemedyAction
    reservation: str = ""
    draw: int | None = None

    def closure(self, lease: LeaseRow, at: int) -> Closure:
        """The closure of that lease at ``at`` (Unix seconds)."""
        return Closure(
            namespace=lease.namespace,
            name=lease.name,
            ended=max(lease.start, at),
            reason=self.reason,
            made_room_for=self.reservation,
            draw=self.draw,
        )


class Cuts(NamedTuple):
    """Cuts of a cycle: leases, and runs that fall below their least width with that.

    ``pins``: nodes, by name, of the starts for which room was made, and of those beside which it was: there they start,
    so that nothing was cut for nothing. They are in the order in which they start.
    """

    leases: Mapping[LeaseKey, Cut]
    endings: Mapping[RunKey, Ending]
    pins: Mapping[RunKey, tuple[str, ...]]

    def label(self, key: RunKey) -> str:
        """The label of the nodes where a run is to start: none of a cluster's has it, since its key is no label's."""
        return f"starts-here {'/'.join(key)}"


NO_CUTS: Final = Cuts({}, {}, {})
