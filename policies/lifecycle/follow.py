"""Runs that follow others (spec §7 Follow): a run waits, holding nothing, until all its upstreams are Completed.

Where one has Failed, a run with ``onUpstreamFailure: fail`` has Failed with it, any other one when
``upstreamFailureGrace`` has passed since a cycle first saw it; a good one in its place clears that.
"""

from collections.abc import Container, Mapping
from typing import Final

from jobtree.api.values.counted import counted, named
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending

REASON: Final = "UpstreamFailed"


def waiting(run: RunRow, outcomes: Mapping[RunKey, str]) -> str:
    """What it still waits for; empty when nothing. ``outcomes``: of every run that is there, empty while it lives."""
    missing = [name for name in run.follow if outcomes.get((run.namespace, name)) != "Completed"]
    if not missing:
        return ""
    return f"{len(missing)} of {counted(len(run.follow), 'upstream run')} outstanding: {named(missing)}"


def failed(run: RunRow, outcomes: Mapping[RunKey, str]) -> list[str]:
    """Those of its upstreams that are there and have Failed."""
    return [name for name in run.follow if outcomes.get((run.namespace, name)) == "Failed"]


def deadline(run: RunRow, at: int) -> int:
    """When a run ends of which an upstream has failed: now, or when the grace has passed; Unix seconds."""
    if run.on_upstream_failure == "fail":
        return at
    return at + (run.upstream_grace or 0) if run.told.follow_deadline is None else int(run.told.follow_deadline)


def endings(
    runs: Mapping[RunKey, RunRow], ended: Mapping[RunKey, Ending], held: Container[RunKey], at: int
) -> dict[RunKey, Ending]:
    """Waiting runs that have Failed with an upstream, be it in this very cycle; indices of arrays wait on."""
    outcomes = after(runs, ended)
    found = {}
    for key, run in runs.items():
        live = run.state == "Active" and not run.outcome and not run.deleting and key not in held and key not in ended
        waits = live and not run.array and not run.array_of and run.started is None
        if waits and (gone := failed(run, outcomes)) and deadline(run, at) <= at:
            found[key] = Ending("Failed", REASON, at, f"{named(gone)}, which it follows, failed.")
    return found


def after(runs: Mapping[RunKey, RunRow], ended: Mapping[RunKey, Ending]) -> dict[RunKey, str]:
    """Outcomes of all runs that are there, with what ends now; empty while they live."""
    told = {key: ending.outcome for key, ending in ended.items() if ending.outcome}
    return {key: run.outcome for key, run in runs.items()} | told
