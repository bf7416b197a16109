"""Known times: when something ends, opens or is over, and the world as it then is if nothing else happens (spec §5).

A cycle's plan is carried out, and then only time passes: what has a limit ends by it, what has an estimate ends by that
(`runtime.expected`, or the end that it reported), windows open, maintenance is over and loans come of age. Nodes stay
as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from jobtree.api.values.scalars import MINUTE
from jobtree.world.tables import values as col
from jobtree.world.tables.columns import replaced
from jobtree.world.tables.snapshot import Snapshot
from planner.state.state import State
from policies.caps.book import windows_ease
from policies.funding.classes import FRESH_LOAN
from policies.inputs.claims import RunKey
from policies.lifecycle.endings import started
from policies.model.recall import FARTHEST

FAR: Final = 1 << 50
"""After all times, Unix seconds or seconds from now; more than any amount."""


class Known(NamedTuple):
    """A time at which something changes for the better. ``source``: ``end``, ``window`` or ``estimate``."""

    at: int
    source: str


def foreseen(world: Snapshot, estimated: Mapping[RunKey, int]) -> Snapshot:
    """The world in which runs complete at ``estimated`` ends (Unix seconds), and no node fails by waiting alone."""
    nodes, runs = world.tables["nodes"], world.tables["runs"]
    silent = [i for i, ready in enumerate(col.bools(nodes, "ready").tolist()) if not ready]
    places = {key: i for i, key in enumerate(col.keys(runs))}
    ends = {places[key]: end for key, end in estimated.items()}
    tables = {
        **world.tables,
        "nodes": replaced(nodes, "not_ready_since", dict.fromkeys(silent)),
        "runs": replaced(runs, "completed_at", ends),
    }
    return Snapshot(tables, world.policy, world.since)


def estimates(world: Snapshot, state: State) -> dict[tuple[str, str], int]:
    """Estimated ends of what runs, Unix seconds: as reported, else start + ``expected``; only those still to come."""
    return {key: end for key, end in _estimates(world, state).items() if end > state.at}


def overdue(world: Snapshot, state: State, since: int) -> dict[RunKey, int]:
    """Estimated ends of what runs on beyond them, of those that passed after ``since``; Unix seconds."""
    return {key: end for key, end in _estimates(world, state).items() if since < end <= state.at}


def _estimates(world: Snapshot, state: State) -> dict[tuple[str, str], int]:
    runs = world.tables["runs"]
    told = zip(col.keys(runs), col.optional_ints(runs, "eta"), col.optional_ints(runs, "expected"), strict=True)
    found = {}
    for key, eta, span in told:
        leases = state.held.get(key)
        if leases is None or (eta is None and span is None):
            continue
        begun = started(state.runs[key], leases) or state.at
        found[key] = eta if eta is not None else begun + (span or 0)
    return found


def known_times(state: State, estimated: dict[tuple[str, str], int]) -> Iterator[Known]:
    """Times after now up to the Policy's horizon, in no order; an estimate only where it comes before a limit."""
    limits = state.limits
    for key, end in limits.items():
        if end is not None and end <= estimated.get(key, end):
            yield Known(end, "end")
    for key, end in estimated.items():
        limit = limits.get(key)
        if limit is None or end < limit:
            yield Known(end, "estimate")
    for edge in windows_ease(state.book):
        yield Known(max(edge, state.at + MINUTE), "window")  # the next cycle comes no sooner
    for window in state.policy.maintenance:
        yield Known(int(window.end), "end")
    for (key, _), age in ages(state).items():
        ends = [end for end in (limits.get(key), estimated.get(key)) if end is not None]
        if age < min(ends, default=age + 1):
            yield Known(age, "end")


def ages(state: State) -> dict[tuple[RunKey, int], int]:
    """Unix seconds, by run and envelope, at which loans come of age that what waits could recall then (§3.5, §3.8)."""
    fresh = [part for part in state.funded.parts if part.place.standing == FRESH_LOAN]
    lists = state.asked.payers(state.book)
    waiting = [run for run in state.pending if not run.is_cpu and run.key not in state.blocked] if fresh else []
    payers = {purse.number: purse.payers for purse in map(lists.of, waiting)}
    nearer = {payer.envelope for mine in payers.values() for payer in mine if payer.level < FARTHEST}
    recalling = {cap for envelope in nearer for cap in state.book.of_envelope(envelope, 0)}
    return {
        (place.run, place.envelope): place.admitted + state.money.envelopes[place.envelope].lending_duration
        for place in (part.place for part in fresh if not recalling.isdisjoint(part.touched))
    }


def expected(world: Snapshot) -> dict[tuple[str, str], int]:
    """Seconds that runs expect to take, of those that say so."""
    runs = world.tables["runs"]
    spans = col.optional_ints(runs, "expected")
    return {key: span for key, span in zip(col.keys(runs), spans, strict=True) if span is not None}


def last_of_shares(times: Sequence[int], most: int) -> set[int]:
    """Return the last of each of ``most`` equal shares of ``times``, all where they are no more."""
    if len(times) <= most:
        return {*times}
    return {times[(share + 1) * len(times) // most - 1] for share in range(most)}
