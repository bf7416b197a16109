"""An owner's own shrink: groups of a running malleable run beyond the width that it wants (spec §7).

Borrowed groups go first, then the highest index, each with its spares; never below the least width.
"""

from collections.abc import Mapping

from jobtree.api.kinds.lease import ClosureReason
from planner.state.running.failing import Mending
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.inputs.unread import Unread


def shrunk(
    runs: Mapping[RunKey, RunRow], held: Mapping[RunKey, list[LeaseRow]], mending: Mending, unread: Unread, at: int
) -> dict[LeaseKey, ClosureReason]:
    """Leases that close so at ``at`` (Unix seconds); a run that ends, or that lost a node in this very cycle, does not
    shrink beside it, and one that started or grew in it does so in the next: dates count on what the plan leaves.
    """
    changing = mending.endings.keys() | {swap.run_key for swap in mending.swaps}
    found: dict[LeaseKey, ClosureReason] = {}
    for key in sorted(held.keys() & runs.keys() - changing - unread.runs):
        run, leases = runs[key], held[key]
        if run.desired is None or any(lease.key in mending.closing or lease.start == at for lease in leases):
            continue
        if unread.lease_of(run) is None:
            gone = _beyond(run, leases, run.desired)
            found.update((lease.key, "Shrink") for lease in leases if lease.group in gone)
    return found


def _beyond(run: RunRow, leases: list[LeaseRow], wanted: int) -> set[int]:
    """The groups beyond so many GPUs."""
    sizes: dict[int, int] = {}
    lent: set[int] = set()
    for lease in leases:
        if lease.active:
            sizes[lease.group] = sizes.get(lease.group, 0) + lease.gpus
            lent |= {lease.group} if lease.funding_class == "borrowed" else set()
    width, gone = sum(sizes.values()), set[int]()
    for group in sorted(sizes, key=lambda group: (group in lent, group), reverse=True):
        least = max(wanted, run.width_min)
        if width - sizes[group] >= least and (run.group or group):
            width -= sizes[group]
            gone.add(group)
    return gone
