"""Stored promises, and what becomes of one (spec §5 Activation).

run gone or set aside → Failed; running already → Released; started by this cycle → Activated; over, suspended or
waiting for other runs → Failed, as it holds nothing then, and so is a second promise of a run; else it stands.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec
import pyarrow as pa

from jobtree.api.kinds.policy import ReservationsPolicy
from jobtree.api.kinds.reservation import AWAITS, ReservationState, ReservationStatus
from jobtree.api.values.scalars import dec_hook
from jobtree.world.tables.records import read
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow

_STATUS = msgspec.json.Decoder(ReservationStatus, dec_hook=dec_hook)


VICTIMS_END = 600
"""Seconds in which the pods of what was cut for a promise should be gone; then it is looked for room anew."""


def noticed(policy: ReservationsPolicy, at: int) -> int:
    """The first Unix second that a promise made at ``at`` may name for cuts: a promise is to come, if by a second."""
    return at + max(1, int(policy.notice))


class Promise(msgspec.Struct, frozen=True, gc=False):
    """One Reservation. ``first_start``: as first promised, ``start`` and ``nodes``: as they stand; Unix seconds."""

    namespace: str
    name: str
    uid: str
    run: str
    first_start: int
    start: int
    nodes: tuple[str, ...]
    state: str
    status: str

    @property
    def run_key(self) -> RunKey:
        """(namespace, run)."""
        return self.namespace, self.run

    @property
    def stands(self) -> bool:
        """Is it still to be kept?"""
        return self.told.stands

    def awaits_victims(self, at: int) -> bool:
        """Has been cut for it, and may the victims' pods still be ending at ``at`` (Unix seconds)?"""
        return self.told.reason == AWAITS and at < self.start + VICTIMS_END

    @property
    def holds_unnoticed(self) -> bool:
        """Does it hold slots for which opportunistic work alone gave way? Then nobody else was told of cuts for it."""
        return self.told.reason == AWAITS and not self.is_by_cuts

    def takes_opportunistic_alone(self, runs: Mapping[RunKey, RunRow]) -> bool:
        """Were only ``runs`` that are unfunded by their own choice, or gone, told that they give way to it?"""
        forecast = self.told.forecast
        remedies = forecast.remedies if forecast is not None else ()
        named = [runs.get((namespace, name)) for namespace, _, name in (each.run.partition("/") for each in remedies)]
        is_unfunded = bool(remedies) and all(each.action == "ReclaimUnfunded" for each in remedies)
        return is_unfunded and all(run is None or run.opportunistic for run in named)

    @property
    def is_by_cuts(self) -> bool:
        """Does it count on cuts?"""
        forecast = self.told.forecast
        return forecast is not None and bool(forecast.conflict_set)

    @property
    def warned(self) -> frozenset[RunKey]:
        """Runs that were told of it, since they may lose something for it."""
        forecast = self.told.forecast
        named = (each.run.partition("/") for each in forecast.conflict_set) if forecast is not None else ()
        return frozenset((namespace, run) for namespace, _, run in named)

    @property
    def told(self) -> ReservationStatus:
        """Whole status of it."""
        return _STATUS.decode(self.status)


class Fate(NamedTuple):
    """End of a promise."""

    state: ReservationState
    reason: str
    message: str


def read_promises(table: pa.Table) -> list[Promise]:
    """All Reservations in (namespace, name) order."""
    return read(table, Promise)


def held(table: pa.Table, waiting: Mapping[RunKey, RunRow]) -> list[Promise]:
    """Promises that stand, of runs that wait: one a run, the oldest.

    In the order in which they are kept: by the time that they stand at, then by their run's creation, the hash of its
    uid, and its name.
    """
    found: dict[RunKey, Promise] = {}
    for each in read_promises(table):
        if each.stands and each.run_key in waiting:
            found.setdefault(each.run_key, each)

    def turn(promise: Promise) -> tuple[int, int, str, RunKey]:
        run = waiting[promise.run_key]
        return promise.start, run.created, sha256(run.uid.encode()).hexdigest(), promise.run_key

    return sorted(found.values(), key=turn)


def fate(*, there: bool, unread: bool, starts: bool, runs: bool, first: str, why_not: str) -> Fate | None:
    """Decide how a promise ends; None where it stands. ``first``: the name of another one that its run has;
    ``why_not``: why its run cannot start whatever is free.
    """
    if unread:
        return Fate("Failed", "RunUnreadable", "Its run cannot be read; mended, it is promised a start anew.")
    if not there:
        return Fate("Failed", "RunGone", "Its run is gone.")
    if starts:
        return Fate("Activated", "Started", "Its run starts.")
    if runs:
        return Fate("Released", "Running", "Its run runs already.")
    if first:
        return Fate("Failed", "Repeated", f"Its run has another promise: {first}.")
    return Fate("Failed", "NotWaiting", f"Its run holds nothing: {why_not}.") if why_not else None
