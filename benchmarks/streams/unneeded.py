"""Cuts that were not needed: without one of them alone, all that was due and started could still have been laid.

A cut is what is drawn of a run, one group, or one spare. So GPUs that are left over of a run that goes whole, or of a
group, are no fault where nothing smaller would have done. Starts are laid out in every way, at their least width, each
group in one domain: of a world whose pods have no size and whose owners may each use all of it. They leave to later
promises what these hold: at each promised start, of runs that may last until then,

    Σ GPUs of starts in a domain ≤ GPUs there − what runs on − Σ (GPUs promised − GPUs that are to be cut for these)

GPUs to be cut are those of the runs that a promise names, times their chance. Where promises and what runs on do not
fit at their least width, they hold nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.reservation import Reservation
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake

CUTS: Final = ("Lottery", "Shrink", "DropSpare", "ReclaimUnfunded")
EVER: Final = 1 << 40
"""Later than any end, Unix seconds."""


class Cut(NamedTuple):
    """What goes together. ``group``: of what goes group by group; ``promised``: for a promise, not for any start?"""

    reason: str
    run: tuple[str, str]
    group: int | None
    promised: bool


class Group(NamedTuple):
    """GPUs that lie in one domain until ``end``, Unix seconds."""

    gpus: int
    end: int


@dataclass
class Room:
    """GPUs by domain that are left ``at`` a time, Unix seconds."""

    at: int
    left: Counter[str] = field(default_factory=Counter)


def unneeded(room: Mapping[str, int], domain: Mapping[str, str], before: Intake, plan: Plan) -> list[Cut]:
    """Of one plan. ``room``: GPUs by domain; ``domain``: by node; ``before``: what the cluster held."""
    return _Weighed(room, domain, before, plan).unneeded()


class _Weighed:
    def __init__(self, room: Mapping[str, int], domain: Mapping[str, str], before: Intake, plan: Plan) -> None:
        self._domain, self._plan = domain, plan
        self._runs = {(each.namespace, each.name): each for each in before.runs}
        self._open = [lease for lease in before.leases if not lease.status.closed]
        self._begun = {lease.run_key: int(lease.spec.interval.start) for lease in reversed(self._open)}
        self._starting = {each.run_key for each in plan.leases if each.spec.reason == "Start"}
        self._closures = {(each.namespace, each.name): each for each in plan.closures}
        standing = [each for each in before.reservations if each.status.stands]
        self._due = [each for each in standing if _start(each) <= plan.at and _key(each) in self._starting]
        self._later = [each for each in standing if _start(each) > plan.at and _key(each) not in self._starting]
        times = sorted({plan.at, *map(_start, self._later)})
        self._rooms = [self._room(at, room) for at in times]

    def unneeded(self) -> list[Cut]:
        cuts: dict[Cut, list[Lease]] = {}
        for lease in self._open:
            closure = self._closures.get((lease.namespace, lease.name))
            if closure is not None and closure.reason in CUTS:
                group = None if closure.reason == "Lottery" else lease.spec.group
                cut = Cut(closure.reason, lease.run_key, group, bool(closure.made_room_for))
                cuts.setdefault(cut, []).append(lease)
        drawn = {cut.run for cut in cuts if cut.reason == "Lottery"}
        return [
            cut
            for cut, freed in cuts.items()
            if cut.reason == "Lottery" or cut.run not in drawn  # of a run that is drawn all goes
            if self._fits(self._kept() if cut.promised else self._funded(), freed)
        ]

    def _room(self, at: int, room: Mapping[str, int]) -> Room:
        left = Counter(room)
        for lease in self._open:
            if (lease.namespace, lease.name) not in self._closures and at < self._end(lease.run_key):
                left[self._domain[lease.spec.node]] -= _size(lease)
        for promise in self._later:
            if _start(promise) <= at < self._end_of(promise):
                left.subtract(self._held(promise))
        return Room(at, left)

    def _held(self, promise: Reservation) -> Counter[str]:
        """What a later promise needs of its domain beside what is to be cut for it."""
        where = promise.status.intended_slice
        (there, *others) = {self._domain[node] for node in where.nodes} if where is not None else {""}
        if others:
            return Counter()  # its least width may lie in either
        forecast = promise.status.forecast
        chances = {each.run: float(each.kill_probability or 0) for each in forecast.conflict_set} if forecast else {}
        cut = sum(
            chances.get("/".join(lease.run_key), 0) * _size(lease)
            for lease in self._open
            if self._domain[lease.spec.node] == there
        )
        return Counter({there: max(0, self._runs[_key(promise)].spec.min_gpus - round(cut))})

    def _end(self, key: tuple[str, str]) -> int:
        limit = self._runs[key].spec.runtime.time_limit
        return EVER if limit is None else self._begun.get(key, self._plan.at) + int(limit)

    def _end_of(self, promise: Reservation) -> int:
        limit = self._runs[_key(promise)].spec.runtime.time_limit
        return EVER if limit is None else _start(promise) + int(limit)

    def _kept(self) -> Iterator[Group]:
        """Groups of runs that this plan starts and whose promises were due, each run at its least width."""
        for key in {_key(promise): None for promise in self._due}:
            spec = self._runs[key].spec
            least = spec.min_gpus
            size = spec.locality.group_gpus or least
            yield from (Group(min(size, least - begun), self._end(key)) for begun in range(0, least, size))

    def _funded(self) -> Iterator[Group]:
        """Groups of all that this plan starts, or lets grow, on somebody's money, as wide as it is."""
        groups: Counter[tuple[tuple[str, str], int]] = Counter()
        for lease in self._plan.leases:
            if lease.spec.paid_by is not None:
                groups[lease.run_key, lease.spec.group] += _size(lease)
        return (Group(gpus, self._end(key)) for (key, _), gpus in groups.items())

    def _fits(self, groups: Iterable[Group], spared: Iterable[Lease]) -> bool:
        """Is there a way to lay each group in one domain, where these leases stay?"""
        names = sorted({*self._domain.values()})
        rooms = [Room(each.at, Counter(each.left)) for each in self._rooms]
        for lease in spared:
            for each in rooms:
                if each.at < self._end(lease.run_key):
                    each.left[self._domain[lease.spec.node]] -= _size(lease)
        free = {(each.at, name): each.left[name] for each in rooms for name in names}
        ways = [{**{cell: left for cell, left in free.items() if left >= 0 or cell[0] == self._plan.at}}]
        for group in sorted(groups, reverse=True):
            found = (
                {cell: left - group.gpus * (cell[1] == name and cell[0] < group.end) for cell, left in way.items()}
                for way in ways
                for name in names
            )
            ways = [*{tuple(way.items()): way for way in found if min(way.values()) >= 0}.values()]
        return bool(ways)


def _key(promise: Reservation) -> tuple[str, str]:
    return promise.namespace, promise.spec.run_ref.run_name


def _start(promise: Reservation) -> int:
    return int(promise.status.earliest_start or 0)


def _size(lease: Lease) -> int:
    return len(lease.spec.slice.nodes)
