"""Protection: who may be drawn, and from when on (spec §6).

No run of the waiting run's own owner is drawn, and none within ``lottery.term`` of its (re)start. Its unfunded work,
its spares and its groups above the least width may be cut at any time.
"""

from collections.abc import Collection, Iterable

from policies.inputs.claims import LeaseRow
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import started


def open_from(run: RunRow, leases: Iterable[LeaseRow], term: int) -> int:
    """Unix second from which on a run with these open leases may be drawn."""
    return open_after(started(run, leases), term)


def open_after(start: int | None, term: int) -> int:
    """Unix second from which on a run may be drawn that started then: ``term`` seconds later."""
    return (start or 0) + term


def is_drawable(owner: str, start: int, owners: Collection[str], term: int, at: int) -> bool:
    """May a run of an owner be drawn at ``at`` (Unix seconds) for runs of ``owners``, which start together?"""
    return owner not in owners and open_after(start, term) <= at
