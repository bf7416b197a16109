"""Runs that follow others (spec §7 Follow): a run waits, holding nothing, until all its upstreams are Completed."""

from collections.abc import Mapping

from jobtree.api.values.counted import counted, named
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow


def waiting(run: RunRow, outcomes: Mapping[RunKey, str]) -> str:
    """What it still waits for; empty when nothing. ``outcomes``: of every run that is there, empty while it lives."""
    missing = [name for name in run.follow if outcomes.get((run.namespace, name)) != "Completed"]
    if not missing:
        return ""
    return f"{len(missing)} of {counted(len(run.follow), 'upstream run')} outstanding: {named(missing)}"
