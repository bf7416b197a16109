"""What is written of dates: Reservations made, moved and ended, and what runs are told of their start (spec §1, §5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import msgspec

from jobtree.api.kinds.meta import EnvelopeRef, ObjectMeta
from jobtree.api.kinds.reservation import (
    AWAITS,
    Confidence,
    Conflict,
    Forecast,
    IntendedSlice,
    Move,
    Reservation,
    ReservationSpec,
    ReservationStatus,
)
from jobtree.api.kinds.run import Eta
from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import Time, enc_hook
from jobtree.world.plan import Plan, PromiseUpdate, Wait
from planner.cutting.places import Place
from planner.dates.causes import Causes
from planner.dates.ground import Ground
from planner.forecast.starts import Natural
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.promises.rules import Fate, Promise

ENDING: Final = "What was cut for it is ending; it starts when the pods are gone."
"""What a promise says whose victims are cut."""
HISTORY: Final = 20
"""Most moves that a promise remembers (spec §1)."""
CONFIDENCE: Final[Mapping[str, Confidence]] = {
    "end": "fixed",
    "notice": "fixed",
    "promise": "fixed",
    "window": "window",
    "estimate": "estimated",
}
"""By what makes a time known."""


@dataclass
class Written:
    """``told``: what runs are told of their start, as fields of their status; ``named``: by run, promises that name it,
    whose start they are of (a run's, or a gang's that starts together: one draw for all its promises), and its chance
    to be cut; ``new``, ``moved``: Reservations to write, ``over``: those that end. ``state``: of the world as the plan
    leaves it.
    """

    plan: Plan
    state: State
    told: dict[RunKey, dict[str, object]] = field(default_factory=dict)
    named: dict[RunKey, list[tuple[str, str, float]]] = field(default_factory=dict)
    new: list[Reservation] = field(default_factory=list)
    moved: list[PromiseUpdate] = field(default_factory=list)
    over: list[Promise] = field(default_factory=list)

    @cached_property
    def ground(self) -> Ground:
        """Ground that promises by cuts are weighed on."""
        return Ground(self.state, self.plan.policy)

    def end(self, promise: Promise, over: Fate) -> None:
        """End a promise."""
        self.over.append(promise)
        self._move(promise, msgspec.structs.replace(promise.told, forecast=None, **over._asdict()))

    def stay(self, promise: Promise) -> None:
        """Let it stand as it stood."""
        forecast = promise.told.forecast
        late = forecast.p90 if forecast else None
        self._tell(promise.run_key, Time(promise.start), promise.name, forecast.conflict_set if forecast else (), late)

    def wait(self, promise: Promise, place: Place | None, *, anew: bool) -> None:
        """Say that its victims are cut, and it starts when their pods are gone, in a ``place`` where this very plan cut
        them (``anew``).
        """
        start = Time(self.plan.at if anew else promise.start)
        where = None if place is None or place.nodes == promise.nodes else self._slice(place.nodes)
        moves = []
        if start != promise.start or where is not None:
            cause = "Its victims are cut, and their pods are ending."
            moves = [Move(at=Time(self.plan.at), earliest_start=start, intended_slice=where, cause=cause)]
        status = _moved(promise, *moves)
        told: dict[str, object] = {"state": "Activated", "reason": AWAITS, "message": ENDING, "earliest_start": start}
        told |= {} if where is None else {"intended_slice": where}
        self._move(promise, msgspec.structs.replace(status, **told))
        self._tell(promise.run_key, start, promise.name, ())

    def make(self, key: RunKey, wait: Wait, found: Natural) -> None:
        """A new promise."""
        name = f"{key[1]}-{self.plan.cycle.lower()}"
        where = self._slice(found.nodes)
        spec = ReservationSpec(
            run_ref=self.state.runs[key].ref,
            intended_slice=where,
            earliest_start=Time(found.at),
            paying_envelopes=tuple(EnvelopeRef(budget=budget, envelope=name) for budget, name in found.payers),
        )
        status = self._status(ReservationStatus(), wait, found, where)
        metadata = ObjectMeta(name=name, namespace=key[0], creation_timestamp=Time(self.plan.at))
        self.new.append(Reservation(metadata=metadata, spec=spec, status=status))
        self._tell(key, Time(found.at), name, found.conflicts, _late(status))

    def hold(self, key: RunKey, wait: Wait, found: Natural) -> Promise:
        """A new promise of slots whose pods are still ending, as it is once it is stored."""
        self.make(key, wait, found)
        made = self.new.pop()
        status = msgspec.structs.replace(made.status, state="Activated", reason=AWAITS, message=ENDING)
        self.new.append(msgspec.structs.replace(made, status=status))
        text = msgspec.json.encode(status, enc_hook=enc_hook).decode()
        return Promise(key[0], made.name, "", key[1], found.at, found.at, found.nodes, status.state, text)

    def keep(self, promise: Promise, wait: Wait, found: Natural, causes: Causes) -> None:
        """A promise stands; where its time or place moves, it remembers when, to what and why."""
        where, moves = self._slice(found.nodes), []
        if found.at != promise.start or where.nodes != promise.nodes:
            place = where if where.nodes != promise.nodes else None
            moves = [
                Move(
                    at=Time(self.plan.at),
                    earliest_start=Time(found.at),
                    intended_slice=place,
                    cause=causes.of(promise, found.at, wait),
                )
            ]
        status = self._status(_moved(promise, *moves), wait, found, where)
        self._move(promise, status)
        self._tell(promise.run_key, Time(found.at), promise.name, found.conflicts, _late(status))

    def estimate(self, key: RunKey, eta: Eta) -> None:
        """A run is promised nothing, and told about when it starts."""
        self.told[key] = {"eta": eta}

    def drop(self, key: RunKey, name: str) -> None:
        """Nothing is written of a run's promise of this name, nor told of it."""
        mine = key[0], name
        self.told.pop(key, None)
        self.new = [each for each in self.new if (each.namespace, each.name) != mine]
        self.moved = [each for each in self.moved if (each.namespace, each.name) != mine]
        for run, names in self.named.items():
            self.named[run] = [each for each in names if each[0] != "/".join(mine)]

    def warn(self) -> None:
        """Tell runs of the promises that name them, and of their chance to lose all for one of these: once it has, it
        loses nothing for another, so chances add up.
        """
        for key, promises in self.named.items():
            chances: dict[str, float] = {}
            for _, start, chance in promises:
                chances[start] = max(chance, chances.get(start, 0.0))
            names = tuple(sorted(name for name, *_ in promises))
            self.told[key] = {"conflict_sets": names, "kill_probability": round(min(1.0, sum(chances.values())), 6)}

    def _move(self, promise: Promise, status: ReservationStatus) -> None:
        if status != promise.told:
            self.moved.append(PromiseUpdate(namespace=promise.namespace, name=promise.name, status=status))

    def _status(self, before: ReservationStatus, wait: Wait, found: Natural, where: IntendedSlice) -> ReservationStatus:
        """Status of it now; what is estimated is told anew only where it moved by a ``bucket``."""
        bucket = int(self.state.policy.reservations.bucket)
        start, told = Time(found.at), before.forecast
        confidence = CONFIDENCE[found.source]
        if found.source == "promise" and told is not None:
            confidence = told.confidence  # nothing but the promise itself makes its time known
        scope = next((short.subject for short in wait.shorts if short.rule == "capacity"), "")
        if told is not None and (told.deficit_gpus, told.p50) == (wait.deficit_gpus, start):
            scope = told.scope  # as much is missing elsewhere as well
        late = Time(found.at if found.p90 is None else found.p90)
        if told is not None and told.p50 == start and told.p90 is not None and abs(told.p90 - late) < bucket:
            late = told.p90
        return msgspec.structs.replace(
            before,
            state="Pending",
            reason="Waiting",
            message=f"{counted(wait.deficit_gpus, 'GPU')} missing now; it starts at {start}.",
            earliest_start=start,
            intended_slice=where,
            forecast=Forecast(
                deficit_gpus=wait.deficit_gpus,
                scope=scope,
                confidence=confidence,
                p50=start,
                p90=late,
                conflict_set=found.conflicts,
                remedies=found.cut.remedies if found.cut else (),
                ground=self.ground.of((wait.namespace, wait.name)) if found.conflicts else "",
            ),
        )

    def _tell(
        self, key: RunKey, start: Time, promise: str, conflicts: Iterable[Conflict], late: Time | None = None
    ) -> None:
        """A run that has a promise of its start, and runs that may be cut for it, of it; ``late``: nine of ten."""
        self.told[key] = {"eta": Eta(p50=start, p90=late or start), "reservation": promise, "earliest_start": start}
        whose = f"{key[0]}/{self.state.runs[key].gang or promise}"
        for conflict in conflicts:
            namespace, _, run = conflict.run.partition("/")
            told = f"{key[0]}/{promise}", whose, float(conflict.kill_probability)
            self.named.setdefault((namespace, run), []).append(told)

    def _slice(self, nodes: tuple[str, ...]) -> IntendedSlice:
        fleet, labels = self.state.fleet, self.state.policy.topology.labels
        domains = {fleet.domains[int(fleet.domain[fleet.index[node]])] for node in nodes}
        if len(domains) > 1:
            return IntendedSlice(nodes=nodes)
        (domain,) = domains
        named = {labels.region: domain.region, labels.cluster: domain.cluster}
        if not domain.alone:
            named[labels.domain] = domain.label
        return IntendedSlice(domain={key: value for key, value in named.items() if value}, nodes=nodes)


def _moved(promise: Promise, *moves: Move) -> ReservationStatus:
    """Say it with these moves in its history."""
    history = (*promise.told.history, *moves)[-HISTORY:]
    return msgspec.structs.replace(promise.told, history=history)


def _late(status: ReservationStatus) -> Time | None:
    return status.forecast.p90 if status.forecast is not None else None
