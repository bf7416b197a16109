"""What a run that waits is promised: its Reservation as it stands, or as the next cycle would make it.

earliestStart: 2025-11-01T14:05:00Z on domain=B
intendedSlice: domain=B (nodes b01-b08)
deficit: 48 GPUs in domain=B
conflictSet: [run/mm1, run/research-demo]
remedies: drop spares (32), shrink trainer (16), lottery conflict set [run/mm1]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from jobtree.api import Time

if TYPE_CHECKING:
    from jobtree.api.kinds.reservation import Forecast, Remedy, ReservationStatus
    from jobtree.api.kinds.run import RunStatus
    from jobtree.world.plan import Plan
    from jobtree.world.reading.intake import Intake

_SURE: Final = {
    "fixed": "fixed: it follows from exact ends or notice",
    "window": "window: a window opens then",
    "estimated": "estimated: it hangs on ends that are only expected",
}


class Promised(NamedTuple):
    """``name``: of the Reservation, empty where none is held; ``nodes``: where; ``history``: oldest first."""

    name: str
    start: Time | None
    nodes: tuple[str, ...]
    forecast: Forecast | None
    history: tuple[str, ...]


def of(key: tuple[str, str], status: RunStatus, intake: Intake, plan: Plan | None) -> Promised | None:
    """What a run is promised under ``plan``, made from ``intake``, or as it stands; ``status``: its own then."""
    moved = {(each.namespace, each.name): each.status for each in plan.promises} if plan else {}
    for each in (*(plan.reservations if plan else ()), *intake.reservations):
        told = moved.get((each.namespace, each.name), each.status)
        if (each.namespace, each.spec.run_ref.run_name) == key and told.stands:
            where = told.intended_slice or each.spec.intended_slice
            start = told.earliest_start or each.spec.earliest_start
            history = tuple(_moves(each.spec.earliest_start, each.metadata.creation_timestamp, told))
            return Promised(each.name, start, where.nodes, told.forecast, history)
    if status.eta is not None and status.eta.p50 is not None:
        return Promised("", status.eta.p50, (), None, ())
    return None


def lines(found: Promised) -> Iterator[str]:
    """What follows time and place in the block that people read."""
    forecast = found.forecast
    if forecast is None:
        return
    if forecast.conflict_set:
        yield f"conflictSet: [{', '.join(_run(each.run) for each in forecast.conflict_set)}]"
    if forecast.remedies:
        yield f"remedies: {', '.join(_remedies(forecast.remedies))}"
    late = forecast.p90 if forecast.p90 != forecast.p50 else None
    yield f"confidence: {_SURE[forecast.confidence]}{f'; nine times of ten by {late}' if late else ''}"


def _run(name: str) -> str:
    return f"run/{name.removeprefix('default/')}"


def _remedies(remedies: Iterable[Remedy]) -> Iterator[str]:
    """Cuts in the order in which they are made, spares together, and last everyone who may be drawn."""
    spares = sum(each.gpus for each in remedies if each.action == "DropSpare")
    drawn = [_run(each.run) for each in remedies if each.action == "Lottery"]
    yield from (f"reclaim {_run(each.run)} ({each.gpus})" for each in remedies if each.action == "ReclaimUnfunded")
    if spares:
        yield f"drop spares ({spares})"
    yield from (
        f"shrink {each.run.removeprefix('default/')} ({each.gpus})" for each in remedies if each.action == "Shrink"
    )
    if drawn:
        yield f"lottery conflict set [{', '.join(drawn)}]"


def _moves(first: Time, made: Time | None, status: ReservationStatus) -> Iterator[str]:
    """How it came to stand where it does, oldest first."""
    yield f"{made or '-'}  first promised for {first}"
    for move in status.history:
        where = f" on {', '.join(move.intended_slice.nodes)}" if move.intended_slice else ""
        yield f"{move.at}  now {move.earliest_start}{where}: {move.cause}"
