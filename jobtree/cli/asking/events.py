"""`events`: what happened to runs, oldest first, as Runs, Leases and Reservations tell it themselves.

A server forgets its Events after an hour, and a state file has none: these come from objects that stay, so that they go
back as far as Policy `retention.leases` keeps closed Leases.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from jobtree.api import Time
from jobtree.api.kinds.run import OVER, UNPAID
from jobtree.api.values.counted import counted, gpus_of, named
from jobtree.cli.asking.watch import Countdown, looks
from jobtree.cli.common import lookup, show
from jobtree.cli.common.args import Commands, Options, UsageError, command, everywhere
from jobtree.world.naming import arrays
from jobtree.world.naming.payments import Flip, Part, flips, messages

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.cli.common.lookup import RunKey
    from jobtree.world.reading.intake import Intake

_BEGAN: Final = {"Start": "Started", "Grow": "Grown", "Swap": "Swapped"}
"""What a Lease's reason is as an event."""
_BESIDE: Final = {
    "SwapDeclined": ", as funded work of {} lies there",
    "ReclaimedBySpare": ", to make room for a standby of {}",
}
"""What is said where a swap came about, or did not, for who lies on the same slots."""


class Event(NamedTuple):
    """One thing that happened to a run, at a time."""

    at: Time
    run: RunKey
    what: str
    message: str


def add(commands: Commands) -> None:
    """Declares the command."""
    summary = "list what happened to runs: submitted, promised, started, grown, unpaid, ended, and why they wait"
    parser = command(commands, "events", _events, summary, example="kubectl runs --state cluster.yaml events train-32")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("run", nargs="?", metavar="RUN", help="only of this run (default: of all in the namespace)")
    everywhere(which)
    parser.add_argument(
        "--follow", action="store_true", help="go on with what happens, until the run is over or Ctrl-C"
    )


def _events(options: Options, given: argparse.Namespace) -> int:
    if given.follow and options.output in {"json", "yaml"}:
        raise UsageError("--follow prints a table; leave -o out")
    told = set[Event]()
    with Countdown() as countdown:
        for intake in looks(options, countdown if given.follow else None):
            events = [each for each in _asked(options, given, intake) if each not in told]
            told.update(events)
            if options.output in {"json", "yaml"}:
                show.data([_data(each) for each in events], options.output)
                return 0
            countdown.clear()
            _say(events, given, _none(options, given, intake), is_first=len(told) == len(events))
            if given.run is not None and _is_over(options, given.run, intake):
                return 0
    return 0


def _say(events: list[Event], given: argparse.Namespace, none: str, *, is_first: bool) -> None:
    """A table, and what is new later on in its columns; ``none``: what is said where there are none."""
    from exporters.plans.summary import table

    if not events:
        show.say(*([] if given.follow else [none]))
        return
    place = ["NAMESPACE"] if given.all else []
    rows = [(*each.run[: len(place)], str(each.at), each.run[1], each.what, each.message) for each in events]
    lines = table((*place, "TIME", "RUN", "EVENT", "MESSAGE"), rows)
    show.say(*(lines if is_first else lines[1:]))
    show.flush()


def _none(options: Options, given: argparse.Namespace, intake: Intake) -> str:
    from jobtree.cli.asking.state import elsewhere

    here, places = options.namespace or intake.namespace, (run.namespace for run in intake.runs)
    others = "" if given.all or given.run is not None else elsewhere(here, places, "-A or -n")
    return f"No events: {others}" if others else "No events found."


def _is_over(options: Options, name: str, intake: Intake) -> bool:
    key = lookup.find_holder(intake, name, options.namespace)
    run = next((run for run in intake.runs if (run.namespace, run.name) == key), None)
    return run is None or lookup.phase(run) in OVER


def _asked(options: Options, given: argparse.Namespace, intake: Intake) -> list[Event]:
    """Of the run that is named, an array with its indices, or of every run of the namespace or of all, oldest first."""
    here, name = options.namespace or intake.namespace, given.run
    is_meant = lookup.holders(intake, lookup.find_holder(intake, name, options.namespace)) if name else None
    found = (each for each in of(intake) if (is_meant(each.run) if is_meant else given.all or each.run[0] == here))
    return sorted(found, key=lambda each: each.at)  # of one time, in the order of `of`


def of(intake: Intake) -> Iterator[Event]:
    """All of them: of each moment ends first, then starts, promises, and what a run is told."""
    for run in intake.runs:
        if run.metadata.creation_timestamp is not None:
            asks = run.spec.resources
            width = (
                counted(asks.total_gpus, f"GPU of {asks.gpu_type}", f"GPUs of {asks.gpu_type}")
                if asks.total_gpus
                else counted(asks.pods or 0, "pod without GPUs", "pods without GPUs")
            )
            key = run.namespace, run.name
            yield Event(run.metadata.creation_timestamp, key, "Submitted", f"{width}, for {run.spec.owner}")
    yield from _ends(intake.leases)
    yield from _starts(intake.leases)
    yield from _turns(intake)
    for promise in intake.reservations:
        key = promise.namespace, promise.spec.run_ref.run_name
        if promise.metadata.creation_timestamp is not None:
            first = f"a start at {promise.spec.earliest_start} (reservation {promise.metadata.name})"
            yield Event(promise.metadata.creation_timestamp, key, "Promised", first)
        for move in promise.status.history:
            yield Event(move.at, key, "PromiseMoved", f"to {move.earliest_start}: {move.cause}")
    yield from _warnings(intake)
    yield from filter(None, map(_told, intake.runs))


def _starts(leases: Iterable[Lease]) -> Iterator[Event]:
    groups: dict[tuple[Time, RunKey, str], list[Lease]] = defaultdict(list)
    for lease in leases:
        groups[lease.spec.interval.start, lease.run_key, _BEGAN[lease.spec.reason]].append(lease)
    for (at, key, what), mine in groups.items():
        paid = {lease.spec.paid_by for lease in mine}
        payers = named(sorted("nobody" if each is None else f"{each.budget}/{each.envelope}" for each in paid))
        yield Event(at, key, what, f"{_where(mine)}, paid by {payers}")


def _turns(intake: Intake) -> Iterator[Event]:
    """Payers that stopped, and that pay again, by the ledgers; why, of what is unfunded now."""
    from exporters.plans.summary import payer

    known = arrays.Runs(intake.runs)
    parts: dict[RunKey, dict[Flip, list[Part]]] = defaultdict(lambda: defaultdict(list))
    for lease in intake.leases:
        for flip in flips(Flip(int(each.from_), each.class_ != lookup.UNFUNDED) for each in lease.status.funding):
            part = Part(payer(lease), len(lease.spec.slice.nodes), lease.spec.slice.role == "Active")
            parts[lease.run_key][flip].append(part)
    for key, turns in parts.items():
        run = known.get(key)
        now = None if run is None else lookup.unpaid_words(run)
        for flip, why in messages(turns, "" if now is None else now.message):
            yield Event(Time(flip.since), key, "Funded" if flip.paid else UNPAID[0], why)


def _ends(leases: Sequence[Lease]) -> Iterator[Event]:
    groups: dict[tuple[Time, RunKey, str, str], list[Lease]] = defaultdict(list)
    for lease in leases:
        if lease.status.ended is not None:
            cause = lease.status.cause.reservation if lease.status.cause else ""
            groups[lease.status.ended, lease.run_key, lease.status.closure_reason or "Ended", cause].append(lease)
    for (at, key, what, cause), mine in groups.items():
        why = f", to make room for {cause}" if cause else _beside(mine, what, at, leases)
        yield Event(at, key, what, f"{_where(mine)} closed{why}")


def _beside(mine: list[Lease], what: str, at: Time, leases: Iterable[Lease]) -> str:
    """Whose work is on these slots instead, where that is why they are closed."""
    if what not in _BESIDE:
        return ""
    slots = {slot for lease in mine for slot in lease.spec.slice.nodes}
    others = {
        "/".join(each.run_key)
        for each in leases
        if each.run_key != mine[0].run_key and each.spec.slice.role == "Active" and each.spec.interval.start <= at
        and (each.status.ended is None or each.status.ended > at) and not slots.isdisjoint(each.spec.slice.nodes)
    }  # fmt: skip
    return _BESIDE[what].format(named(sorted(others))) if others else ""


def _warnings(intake: Intake) -> Iterator[Event]:
    """Whom promises that stand may cut: from when they stood so, or from the start of what they name."""
    from exporters.writes.events import RISK
    from jobtree.cli.fate import cuts

    begun: dict[RunKey, Time] = {}
    for lease in intake.leases:
        if not lease.status.closed:
            begun[lease.run_key] = max(lease.spec.interval.start, begun.get(lease.run_key, lease.spec.interval.start))
    for promise in intake.reservations:
        status, made = promise.status, promise.metadata.creation_timestamp
        if made is None or not status.stands or status.forecast is None:
            continue
        told = max([made, *(move.at for move in status.history)])
        for each in status.forecast.conflict_set:
            namespace, _, name = each.run.partition("/")
            at, chance = max(told, begun.get((namespace, name), told)), float(each.kill_probability)
            message = f"in the way of {cuts.asked(each.run, promise)}; loses all with a chance of {chance:.1%}"
            yield Event(at, (namespace, name), RISK, message)


def _where(leases: list[Lease]) -> str:
    """``8 GPUs and 1 spare on a01-a02``."""
    from exporters.plans.nodelist import compress

    active = lookup.active_gpus(leases)
    spare = sum(len(lease.spec.slice.nodes) for lease in leases) - active
    return f"{gpus_of(active, spare)} on {compress(lease.spec.node for lease in leases)}"


def _told(run: Run) -> Event | None:
    """Why it waits or is over; what runs is told by its leases."""
    said = lookup.speaker(run)
    if said is None or said.last_transition_time is None or lookup.phase(run) == "Running":
        return None
    return Event(said.last_transition_time, (run.namespace, run.name), said.reason, said.message)


def _data(event: Event) -> dict[str, object]:
    namespace, name = event.run
    return {
        "time": event.at, "namespace": namespace, "run": name, "event": event.what, "message": event.message,
    }  # fmt: skip
