"""Runs that follow others (spec §7 Follow): a run waits, holding nothing, until all its upstreams are Completed.

Where one has Failed, or was deleted before it completed, a run with ``onUpstreamFailure: fail`` has Failed with it, any
other one when ``upstreamFailureGrace`` has passed since a cycle first saw it; a good one in its place clears that. Of a
run that is not there, or is being deleted, its Leases tell how it ended; one that has none may be yet to come, and is
waited for, as is one that cannot be read.
"""

from collections.abc import Container, Mapping, Set
from typing import Final

import pyarrow as pa

from jobtree.api.values.counted import counted, named
from jobtree.world.tables import values as col
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending

REASON: Final = "UpstreamFailed"
_LAST: Final = 1 << 60
"""After all times: of a Lease that is open."""


def gone(leases: pa.Table, runs: Mapping[RunKey, RunRow], unread: Set[RunKey]) -> dict[RunKey, str]:
    """Outcomes of upstreams that are there no more, of those whose Leases are: how the last of these ended.

    Completed, else Failed: nothing but its deletion, be it while it ran, keeps a run from its own end. One that is
    being deleted stays until its Leases are closed, and is gone already. ``unread``: Runs that cannot be read.
    """
    asked = followed(runs) - unread - {key for key, run in runs.items() if run.outcome or not run.deleting}
    last: dict[RunKey, tuple[int, bool]] = {}
    if asked:
        ends, reasons = col.optional_ints(leases, "ended"), col.texts(leases, "closure_reason")
        for key, ended, reason in zip(col.keys(leases, "run"), ends, reasons, strict=True):
            if key in asked:
                end = _LAST if ended is None else ended, reason == "Completed"
                last[key] = max(end, last.get(key, end))
    return {key: "Completed" if completed else "Failed" for key, (_, completed) in last.items()}


def followed(runs: Mapping[RunKey, RunRow]) -> set[RunKey]:
    """Upstreams of runs that are not over."""
    return {(run.namespace, name) for run in runs.values() if not run.outcome for name in run.follow}


def waiting(run: RunRow, outcomes: Mapping[RunKey, str]) -> str:
    """Words on what it still waits for; empty when nothing. ``outcomes``: see `after`."""
    missing = [name for name in run.follow if outcomes.get((run.namespace, name)) != "Completed"]
    if not missing:
        return ""
    return f"{len(missing)} of {counted(len(run.follow), 'upstream run')} outstanding: {named(missing)}"


def failed(run: RunRow, outcomes: Mapping[RunKey, str]) -> list[str]:
    """Those of its upstreams that have Failed, or were deleted before they completed."""
    return [name for name in run.follow if outcomes.get((run.namespace, name)) == "Failed"]


def deadline(run: RunRow, at: int) -> int:
    """Unix second at which a run ends of which an upstream has failed: now, or when the grace has passed."""
    if run.on_upstream_failure == "fail":
        return at
    return at + (run.upstream_grace or 0) if run.told.follow_deadline is None else int(run.told.follow_deadline)


def endings(
    runs: Mapping[RunKey, RunRow],
    ended: Mapping[RunKey, Ending],
    gone: Mapping[RunKey, str],
    held: Container[RunKey],
    at: int,
) -> dict[RunKey, Ending]:
    """Waiting runs that have Failed with an upstream, be it in this very cycle, and so on down the chain.

    Indices of arrays wait on.
    """
    live = {key: run for key, run in runs.items() if run.follow and key not in ended and _waits(run, held)}
    if not live:
        return {}
    outcomes = after(runs, ended, gone)
    followers: dict[RunKey, list[RunKey]] = {}
    for key, run in live.items():
        for name in run.follow:
            followers.setdefault((run.namespace, name), []).append(key)
    doomed = {key for key, run in live.items() if failed(run, outcomes) and deadline(run, at) <= at}
    edge = [*doomed]
    while edge:
        outcomes |= dict.fromkeys(edge, "Failed")
        more = {each for key in edge for each in followers.get(key, ()) if deadline(live[each], at) <= at}
        edge = [*(more - doomed)]
        doomed |= more
    return {key: _ending(run, outcomes, gone, at) for key, run in live.items() if key in doomed}


def _waits(run: RunRow, held: Container[RunKey]) -> bool:
    active = run.state == "Active" and not run.outcome and not run.deleting and run.key not in held
    return active and not run.array and not run.array_of and run.started is None


def _ending(run: RunRow, outcomes: Mapping[RunKey, str], gone: Mapping[RunKey, str], at: int) -> Ending:
    bad = failed(run, outcomes)
    deleted = [name for name in bad if (run.namespace, name) in gone]
    there = [name for name in bad if name not in deleted]
    words = [f"{named(there)}, which it follows, failed."] if there else []
    words += [f"{named(deleted)}, which it follows, was deleted before it completed."] if deleted else []
    return Ending("Failed", REASON, at, " ".join(words))


def after(
    runs: Mapping[RunKey, RunRow], ended: Mapping[RunKey, Ending], gone: Mapping[RunKey, str]
) -> dict[RunKey, str]:
    """Outcomes of all runs that are there, with what ends now, empty while they live; and of upstreams `gone`."""
    told = {key: ending.outcome for key, ending in ended.items() if ending.outcome}
    return {**{key: run.outcome for key, run in runs.items()}, **gone, **told}
