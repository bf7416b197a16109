"""Endings in this cycle, before anything is planned (spec §7, §9 terminal-holds-nothing).

Completed (marked by hand in a state file, or all its pods Succeeded), Failed, Cancelled, deleted, Suspended, and time
limits: those end exactly at start + limit, even when the cycle comes later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

from jobtree.api.kinds.lease import ClosureReason
from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import Duration
from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.pods import UNSCHEDULABLE, Report
from policies.inputs.runs import RunRow
from policies.inputs.unread import Unread
from policies.lifecycle.failures import Place
from policies.lifecycle.incomplete import lack_of

_REASONS: Final = frozenset(get_args(ClosureReason))


@dataclass(frozen=True, slots=True)
class Ending:
    """A run that holds nothing any more.

    ``reason``: of its leases' closure; ``outcome``: empty if it may return; ``lack``: what it lacks since a hand
    took it, as a clause, else empty.
    """

    outcome: str
    reason: str
    ended: int
    message: str
    lack: str = ""


def endings(
    runs: Mapping[RunKey, RunRow],
    held: Mapping[RunKey, list[LeaseRow]],
    pods: Mapping[RunKey, Report],
    lost: frozenset[Place],
    unread: Unread,
    since: int | None,
    at: int,
) -> dict[RunKey, Ending]:
    """Runs that end now.

    ``held``: open leases by run (also of runs that are gone); ``pods``: what the pods that serve them say; ``lost``:
    failed nodes; ``unread``: what cannot be read keeps what it holds; ``since``: when the last cycle was.
    """
    found: dict[RunKey, Ending] = {}
    for key in sorted({*held, *(k for k, run in runs.items() if not run.outcome)} - unread.runs):
        run = runs.get(key)
        leases = held.get(key, [])
        gone = {lease.node for lease in leases if lease.active and lease.place in lost} if lost else set()
        ending = _gone(at) if run is None else _ending(run, leases, pods.get(key), gone, since, at)
        if run is not None and (ending is None or ending.reason == "NodeFailure") and unread.lease_of(run) is None:
            ending = _incomplete(run, leases, ending, at)
        if ending is not None:
            found[key] = ending
    return found


def started(run: RunRow, leases: Iterable[LeaseRow]) -> int | None:
    """Start of a run with these open leases, Unix seconds. A CPU run has its status alone."""
    found = since(run.started, (lease.start for lease in leases))
    return run.started if found is None and run.is_cpu else found


def since(told: int | None, starts: Iterable[int]) -> int | None:
    """Beginning of leases with these ``starts`` (Unix seconds): that of the oldest, or, as swaps renew leases, when the
    run's status has ``told``; None where there are none.
    """
    oldest = min(starts, default=None)
    return oldest if oldest is None or told is None else min(oldest, told)


def limit_end(start: int | None, limit: int | None) -> int | None:
    """Unix second at which a limit of ``limit`` seconds ends a run of that start; None where none does."""
    return None if start is None or limit is None else start + limit


def limit_ends(runs: Mapping[RunKey, RunRow], held: Mapping[RunKey, list[LeaseRow]]) -> dict[RunKey, int | None]:
    """Unix seconds at which time limits end runs that hold leases and are there."""
    known = ((run, leases) for key, leases in held.items() if (run := runs.get(key)) is not None)
    return {run.key: None if run.limit is None else limit_end(started(run, leases), run.limit) for run, leases in known}


def _gone(at: int) -> Ending:
    return Ending("", "RunDeleted", at, "The run is gone.")


def _ending(
    run: RunRow, leases: list[LeaseRow], pods: Report | None, lost: set[str], since: int | None, at: int
) -> Ending | None:
    start = started(run, leases)
    settled = _settled(leases, since)
    limit_at = limit_end(start, run.limit)
    limit_at = None if limit_at is None else max(limit_at, settled)
    if run.outcome:
        return _over_already(run, limit_at, settled, at) if leases else None
    completed = run.completed_at
    if completed is not None and (limit_at is None or completed <= limit_at) and completed <= at:
        return Ending("Completed", "Completed", max(completed, settled, start or 0), "Marked complete.")
    if limit_at is not None and run.limit is not None and limit_at <= at:
        return Ending("Failed", "TimeLimit", limit_at, f"Its time limit of {Duration(run.limit)} was reached.")
    if run.state == "Cancelled":
        return Ending("Failed", "Cancelled", at, "Cancelled by its owner.")
    if run.deleting:
        return _gone(at)
    return _told(run, bool(leases), pods, lost, at)


def _told(run: RunRow, holds: bool, pods: Report | None, lost: set[str], at: int) -> Ending | None:
    """Ending by what pods, the owner and failed nodes say: a pod that failed with its node did not fail by itself."""
    if pods is not None and pods.succeeded:
        return Ending("Completed", "Completed", at, f"All {counted(pods.pods, 'pod')} succeeded.")
    if run.state == "Suspended" and holds and (lost or pods is None or not pods.failed):
        return Ending("", "Suspended", at, "Suspended by its owner.")
    if lost:
        return _node_failure(run, lost, at)
    if pods is not None and pods.failed:
        return Ending("Failed", "Failed", at, f"{pods.failed} of {counted(pods.pods, 'pod')} failed.")
    return None if pods is None else _displaced(run, pods, at)


def runs_on(run: RunRow, pods: Report, at: int) -> bool:
    """Does no pod of these end the run?"""
    return not pods.failed and _displaced(run, pods, at) is None


def _displaced(run: RunRow, pods: Report, at: int) -> Ending | None:
    """Ending of a gang one of whose pods has no node: it waits again when ``requeue`` holds, else it has failed."""
    said = f": {pods.said.rstrip('.')}" if pods.said else ""
    if pods.evicted:
        words = f"{pods.evicted} of {counted(pods.pods, 'pod')} {'was' if pods.evicted == 1 else 'were'} evicted{said}."
    elif pods.stuck is not None and not run.is_cpu and at - pods.stuck >= UNSCHEDULABLE:
        words = f"No node for a pod for {Duration(at - pods.stuck)}{said}."
    else:
        return None
    return Ending("" if run.requeue else "Failed", "Failed", at, words)


def _settled(leases: list[LeaseRow], since: int | None) -> int:
    """Up to when what a run holds is settled: the last cycle left it, and its ledgers tell of it. No end is earlier.

    A start, a limit or an end that is written by hand, or reported late, may say so: what was charged by then stays.
    """
    told = [when for lease in leases for when in (lease.start, *(entry[1] for entry in lease.segments[-1:]))]
    return max(*told, since or 0) if told else 0


def _over_already(run: RunRow, limit_at: int | None, settled: int, at: int) -> Ending:
    """Ending of a run that is said to be over and still holds leases: they close for its reason, where that is one."""
    reason = run.outcome_reason
    if run.outcome == "Completed" or reason == "Completed" or reason not in _REASONS:
        reason = run.outcome
    if reason == "Completed" and run.completed_at is not None and run.completed_at <= at:
        return Ending(run.outcome, reason, max(run.completed_at, settled), "")
    if reason != "TimeLimit":
        return Ending(run.outcome, reason, at, "")
    if limit_at is None or limit_at > at:
        return Ending(run.outcome, run.outcome, at, "")
    return Ending(run.outcome, reason, limit_at, "")


def _node_failure(run: RunRow, lost: set[str], at: int) -> Ending:
    """A gang that lost a node stops: it waits again when ``requeue`` holds, else it has failed."""
    words = f"Node {named(sorted(lost))} failed under it."
    return Ending("" if run.requeue else "Failed", "NodeFailure", at, words)


def _incomplete(run: RunRow, leases: list[LeaseRow], ending: Ending | None, at: int) -> Ending | None:
    """A gang that is not whole any more stops likewise, and no standby mends it where it lost a node too."""
    lack = lack_of(run, leases)
    if not lack:
        return ending
    return replace(ending or Ending("" if run.requeue else "Failed", "Failed", at, f"{lack}."), lack=lack)
