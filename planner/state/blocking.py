"""Waiting runs that are not even weighed, and why: tenancy, Leases that cannot be read, upstreams, turns of arrays."""

from collections.abc import Mapping

from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.lifecycle import arrays, follow, tenancy, unweighed


def block(state: State, gone: Mapping[RunKey, str]) -> None:
    """Say in ``state`` why a waiting run is not weighed, as (reason, sentence), and until when one may wait on.

    ``gone``: outcomes of upstreams that are there no more.
    """
    follows = any(run.follow for run in state.pending)
    outcomes = follow.after(state.runs, state.endings, gone) if follows else {}
    refusals: dict[tuple[str, str], str] = {}
    for run in state.pending:
        whose = run.owner, run.namespace
        if whose not in refusals:
            refusals[whose] = tenancy.refusal(state.money, *whose)
        refusal = refusals[whose]
        waiting = follow.waiting(run, outcomes)
        if refusal:
            state.blocked[run.key] = (unweighed.OWNER, refusal)
        elif unreadable := state.unread.refusal(run):
            state.blocked[run.key] = (unweighed.LEASE, unreadable)
        elif waiting:
            state.blocked[run.key] = (unweighed.UPSTREAM, waiting)
            if follow.failed(run, outcomes) and not run.array_of:
                state.deadlines[run.key] = follow.deadline(run, state.at)
    _block_arrays(state)


def _block_arrays(state: State) -> None:
    """Indices beyond those that may run at once wait, the lowest first; blocked ones take nobody's turn."""
    waiting = {run.key: run for run in state.pending if run.array_of and run.key not in state.blocked}
    for array in state.arrays:
        busy = [key for key in array.members if key in state.held or key in state.standing]
        for key in arrays.beyond(array, waiting, len(busy), state.endings):
            state.blocked[key] = (unweighed.ARRAY, arrays.limit(array))
