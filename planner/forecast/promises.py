"""From a plan to its dates: which promises stand, move or end, and when every other run will probably start (spec §5).

Runs are dated by their age, those with a promise first, each beside those before it. The oldest demand holds
Reservations, up to ``maxHeld``; the others are told an estimate.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final

import msgspec

from jobtree.api.kinds.meta import EnvelopeRef, ObjectMeta
from jobtree.api.kinds.reservation import (
    STANDING,
    Confidence,
    Conflict,
    Forecast,
    IntendedSlice,
    Move,
    Reservation,
    ReservationSpec,
    ReservationStatus,
)
from jobtree.api.kinds.run import Eta, RunStatus
from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import Time, dec_hook
from jobtree.world.naming.arrays import is_new, whole
from jobtree.world.plan import Plan, PromiseUpdate, Pruned, RunUpdate, Wait
from jobtree.world.tables import values as col
from jobtree.world.tables.after import after
from jobtree.world.tables.rows_arrays import indices_of
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.dating import CutDate, CutDates, Kept
from planner.effort import USUAL, Effort
from planner.forecast.calendar import Known, estimates, expected, is_any_wrong, known_times
from planner.forecast.estimates import estimated, is_near, likely
from planner.forecast.fitting import Date, Fitting
from planner.forecast.later import Later
from planner.forecast.natural import Dated, Natural, Timeline
from planner.forecast.standing import Standing
from planner.forecast.undated import without_date
from planner.state.derive import state_of
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import read_runs
from policies.lifecycle import unweighed
from policies.promises.rules import AWAITS, Fate, Promise, fate, read_promises

MOMENTS: Final = 64
"""Most known times that are looked at where few runs wait."""
FEWER_MOMENTS: Final = 12
"""... and where many do."""
DATED: Final = 300
"""Most runs without a promise for which one is looked for where many wait: the oldest."""
LARGEST: Final = 5_000
"""Most nodes on which runs are promised anything where many wait: each known time is a world to be derived."""
NOTHING_KNOWN: Final = "nothing that is known to end within the horizon frees enough room and money for it"
"""Why a run has no estimate."""
SOONER: Final = 8
"""Where many runs wait, how many promises, the oldest, an earlier time is looked for in a cycle."""
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

_STATUS: Final = msgspec.json.Decoder(RunStatus, dec_hook=dec_hook)


def dated(snapshot: Snapshot, plan: Plan, effort: Effort = USUAL) -> Plan:
    """The plan with its promises and estimates; it decides nothing anew."""
    stored = read_promises(snapshot.tables["reservations"])
    waits = {(wait.namespace, wait.name): wait for wait in plan.waits if wait.reason not in unweighed.ELSEWHERE}
    if not stored and not waits:
        return plan
    world = after(snapshot, plan)
    dating = _Dating(plan, world, state_of(world, plan.at, effort=effort), snapshot.since, _etas(snapshot, waits))
    held = dating.settle(stored, waits)
    if len(snapshot.tables["nodes"]) > LARGEST and not effort.few(len(waits)):
        dating.estimate(waits, held)
    else:
        dating.date(waits, held)
    dating.fit(held)
    dating.warn()
    plan = without_date(plan, dating.cuts.why_not)
    return msgspec.structs.replace(
        plan,
        runs=_updates(snapshot, plan, dating.told),
        reservations=sorted(dating.new, key=lambda each: (each.namespace, each.name)),
        promises=sorted(dating.moved, key=lambda each: (each.namespace, each.name)),
        lapsed=_lapsed(stored, held, dating),
    )


@dataclass
class _Dating:
    """``state``: of the ``world`` as the plan leaves it; ``since``: the last cycle, Unix seconds;
    ``etas``: what was told of their start until now.

    ``told``: what runs are told of their start, as fields of their status; ``cuts``: dates that cuts make; ``later``:
    known times; ``named``: by run, promises that name it, whose start they are of (a run's, or a gang's that starts
    together: one draw for all its promises), and its chance to be cut; ``new``, ``moved``: Reservations to write.
    """

    plan: Plan
    world: Snapshot
    state: State
    since: int | None
    etas: Mapping[RunKey, Eta]
    told: dict[RunKey, dict[str, object]] = field(default_factory=dict)
    cuts: CutDates = field(init=False)
    later: Later = field(init=False)
    named: dict[RunKey, list[tuple[str, str, float]]] = field(default_factory=dict)
    new: list[Reservation] = field(default_factory=list)
    moved: list[PromiseUpdate] = field(default_factory=list)

    standing: Standing = field(init=False)

    def __post_init__(self) -> None:
        self.cuts = CutDates(self.state, self._later, self._kept)

    def _kept(self) -> list[Kept]:
        return self.standing.timeline.kept()

    def _later(self, at: int) -> State:
        """The state at a known time (Unix seconds)."""
        return self.later.at(at)

    def settle(self, stored: Iterable[Promise], waits: Mapping[RunKey, Wait]) -> dict[RunKey, Promise]:
        """End what is over; returns the promises that stand, by run, the oldest where a run has several."""
        starting = {lease.run_key for lease in self.plan.leases}
        standing: dict[RunKey, Promise] = {}
        for promise in stored:
            if not promise.stands:
                continue
            key = promise.run_key
            run = self.state.runs.get(key)
            over = fate(
                there=run is not None,
                starts=key in starting,
                runs=key in self.state.held,
                why_not="" if key in waits and key not in standing else self._why_not(key, standing),
            )
            if over is None:
                standing[key] = promise
            else:
                self._end(promise, over)
        return standing

    def _end(self, promise: Promise, over: Fate) -> None:
        status = msgspec.structs.replace(
            promise.told, state=over.state, reason=over.reason, message=over.message, forecast=None
        )
        self.moved.append(PromiseUpdate(namespace=promise.namespace, name=promise.name, status=status))

    def _why_not(self, key: RunKey, standing: Mapping[RunKey, Promise]) -> str:
        if key in standing:
            return f"{standing[key].name} is its promise"
        run = self.state.runs.get(key)
        if run is None or run.outcome:
            return "it is over"
        return self.state.blocked[key][1] if key in self.state.blocked else f"it is {run.state}"

    def date(self, waits: Mapping[RunKey, Wait], held: Mapping[RunKey, Promise]) -> None:
        """Date what waits by age, what is promised first, where it stands: what has a reason to move alone moves."""
        runs, policy = self.state.runs, self.state.policy.reservations
        many = not self.state.effort.few(len(self.plan.waits))
        promised, others = (
            sorted(keys, key=lambda key: (runs[key].created, key)) for keys in (held, waits.keys() - held.keys())
        )
        left = policy.max_held - len(held)
        if self._is_still:
            others = [key for key in others if left > 0 or not self._stays_told(key)]
        if many and self._is_still and not promised and left <= 0:
            self.cuts.why_not |= {key: NOTHING_KNOWN for key in others if not waits[key].never}
            return
        exact = {*held, *(others[:DATED] if left > 0 else ())} if many else waits.keys()
        standing = self.standing = self._standing(FEWER_MOMENTS if many else MOMENTS, waits, held, exact)
        timeline, starts = standing.timeline, standing.starts
        asks = any(not waits[key].never for key in others)
        promised = [key for key in promised if not self._is_still or not self._stays(held[key], beside_others=asks)]
        asked: set[RunKey] = set()
        cut = {closure.made_room_for for closure in self.plan.closures}
        rest: list[RunKey] = []
        for key in (*promised, *others):
            if key not in held and (key not in exact or (many and left <= 0)):
                rest += [] if waits[key].never else [key]
                continue
            if key in held and (f"{key[0]}/{held[key].name}" in cut or held[key].awaits_victims(self.plan.at)):
                self._await(held[key], anew=f"{key[0]}/{held[key].name}" in cut)
                continue
            wait = waits[key]
            if key not in asked and not wait.never:
                mine = standing.mine(key)
                asked |= mine.keys()
                starts |= {} if key in starts else timeline.date(mine)
            found = starts.get(key)
            if not wait.never:
                found = self._sooner(key, held.get(key), found)
            waits_for_cuts = key in held and (held[key].is_by_cuts or held[key].start <= self.plan.at)
            if self.cuts.is_spent and waits_for_cuts and (found is None or held[key].is_by_cuts):
                standing.by_cuts(key)
                self.stay(held[key])
                continue
            found = self._unfunded(key, held.get(key), found)
            if key in held:
                self._keep(held[key], wait, found)
            elif found is not None and left > 0:
                left -= 1
                self._promise(key, wait, found)
            elif found is not None:
                self._tell(key, found, "")
        self._estimate(rest, timeline.dated)

    def estimate(self, waits: Mapping[RunKey, Wait], held: Mapping[RunKey, Promise]) -> None:
        """Leave promises as they stand, and estimate all others."""
        for promise in held.values():
            self.stay(promise)
        others = [key for key in waits.keys() - held.keys() if not waits[key].never]
        self._estimate(sorted(others, key=lambda key: (self.state.runs[key].created, key)), ())

    def _estimate(self, keys: Sequence[RunKey], beside: Sequence[Dated]) -> None:
        """Tell runs about when they start, anew where that moved by a ``bucket`` or is past."""
        bucket = int(self.state.policy.reservations.bucket)
        known = likely(self.world, self.state)
        found = estimated(self.state, keys, beside, known) if keys else {}
        for key in keys:
            if key not in found:
                self.cuts.why_not[key] = NOTHING_KNOWN
                continue
            before = self.etas.get(key)
            self.told[key] = {"eta": before if is_near(before, found[key], self.plan.at, bucket) else found[key]}

    @cached_property
    def _is_still(self) -> bool:
        """Is the world as the last cycle left it, and does this one leave it so? Then nothing has a reason to move."""
        plan, since = self.plan, self.since
        if since is None or plan.changed == plan.at or plan.leases or plan.closures or plan.segments:
            return False
        return not is_any_wrong(self.world, self.state, since)

    def _stays(self, promise: Promise, *, beside_others: bool) -> bool:
        """Does a promise stand as it stood? Then that is told, and what is cut for it is nobody's ``beside_others``."""
        if promise.start <= self.plan.at or promise.awaits_victims(self.plan.at):
            return False
        if beside_others and promise.is_by_cuts:
            self._sooner(promise.run_key, promise, None)
            self.cuts.why_not.pop(promise.run_key, None)
        self.stay(promise)
        return True

    def _stays_told(self, key: RunKey) -> bool:
        """Is its start still as it was estimated? Then that is told."""
        eta = self.etas.get(key)
        if eta is None or eta.p50 is None or int(eta.p50) <= self.plan.at:
            return False
        self.told[key] = {"eta": eta}
        return True

    def _await(self, promise: Promise, *, anew: bool) -> None:
        """Its victims are cut, and it starts when their pods are gone. ``anew``: they were cut by this very plan."""
        before, start = promise.told, Time(self.plan.at if anew else promise.start)
        history = before.history
        if start != promise.start:
            cause = "Its victims are cut, and their pods are ending."
            history = (*history, Move(at=Time(self.plan.at), earliest_start=start, cause=cause))[-HISTORY:]
        words = "What was cut for it is ending; it starts when the pods are gone."
        status = msgspec.structs.replace(before, reason=AWAITS, message=words, earliest_start=start, history=history)
        if status != before:
            self.moved.append(PromiseUpdate(namespace=promise.namespace, name=promise.name, status=status))
        self.told[promise.run_key] = _told(start, promise.name)

    def stay(self, promise: Promise) -> None:
        """It stands as it stood: this cycle has no work left to date it anew."""
        self.told[promise.run_key] = _told(Time(promise.start), promise.name)
        forecast = promise.told.forecast
        self._name(promise.run_key, promise.name, forecast.conflict_set if forecast else ())

    def _name(self, key: RunKey, promise: str, conflicts: Iterable[Conflict]) -> None:
        """Runs that may be cut for a run's promise."""
        start = f"{key[0]}/{self.state.runs[key].gang or promise}"
        for conflict in conflicts:
            namespace, _, run = conflict.run.partition("/")
            told = f"{key[0]}/{promise}", start, float(conflict.kill_probability)
            self.named.setdefault((namespace, run), []).append(told)

    def _sooner(self, key: RunKey, promise: Promise | None, found: Natural | None) -> Natural | None:
        """The natural start, or one that cuts make: of opportunistic work alone after its own notice, else where
        patience does not reach the natural start. A promise by cuts is not put off for a start that comes in reach.
        """
        policy, at, mine = self.state.policy, self.plan.at, self.standing.mine(key)
        by_cuts = promise is not None and promise.is_by_cuts
        notice = int(policy.opportunistic.notice)
        soon = promise.start if promise is not None and by_cuts else at + notice
        cut = None
        if notice and (found is None or found.at > soon):
            cut = self._held(key, self.cuts.opportunistic(key, soon, mine, held=promise is not None))
        patience = soon if by_cuts else at + int(policy.reservations.patience)
        if cut is None and (found is None or found.at > patience):
            cut = self._cut(key, promise, found)
        return found if cut is None else Natural(cut.at, "end", cut.nodes, cut.payers, cut)

    def _cut(self, key: RunKey, promise: Promise | None, natural: Natural | None) -> CutDate | None:
        """A start that cuts make before the natural one, and after who may be cut has been told for ``notice``."""
        policy, at = self.state.policy.reservations, self.plan.at
        earliest = at + int(policy.notice)
        if promise is not None:
            soon = promise.takes_unfunded_alone and bool(self.state.policy.opportunistic.notice)
            told = promise.is_by_cuts and not soon
            earliest = promise.start if told else max(promise.start, earliest)
        if natural is not None and natural.at <= earliest:
            return None
        horizon = at + int(policy.horizon) if natural is None else natural.at - 1
        found = self.cuts.date(key, earliest, horizon, self.standing.mine(key), held=promise is not None)
        cut = self._held(key, found)
        if natural is not None:
            self.cuts.why_not.pop(key, None)
        return cut

    def _held(self, key: RunKey, cut: CutDate | None) -> CutDate | None:
        """A start that cuts make, with its room held from then on like any other's; None where it has none."""
        timeline = self.standing.timeline
        if cut is None or timeline.is_cut_for(key):
            return cut
        gone = timeline.release(cut.starts.keys())
        if timeline.cut(cut.at, cut.starts, self.standing.mine(key), cut.leases):
            return cut
        timeline.restore(gone)
        self.cuts.drop(cut)
        return None

    def _unfunded(self, key: RunKey, promise: Promise | None, found: Natural | None) -> Natural | None:
        """A start without money, where the Policy lets it, room is there, and it is earlier than what was found."""
        earliest = self.plan.at + int(self.state.policy.reservations.notice) if promise is None else promise.start
        if found is not None and found.at <= earliest:
            return found
        start = self._held(key, self.cuts.unfunded(key, earliest, self.standing.mine(key)))
        return found if start is None else Natural(start.at, "end", start.nodes, start.payers, start)

    def _standing(
        self, most: int, waits: Mapping[RunKey, Wait], held: Mapping[RunKey, Promise], exact: Collection[RunKey]
    ) -> Standing:
        """What is known to come, with what is promised; ``exact``: what may be dated on it."""
        at = self.plan.at
        horizon = at + int(self.state.policy.reservations.horizon)
        times = [
            Known(at + int(self.state.policy.reservations.notice), "notice"),
            *(Known(promise.start, "promise") for promise in held.values()),
            *known_times(self.state, estimates(self.world, self.state)),
        ]
        known = [each for each in times if at < each.at <= horizon]
        self.later = Later.of(self.world, self.state, exact)
        timeline = Timeline.of(self.later, known, most)
        standing = Standing(timeline, self.state, held, waits.keys(), expected(self.world))
        order = sorted(held, key=lambda key: (self.state.runs[key].created, key))
        standing.hold(order)
        if not self._is_still:
            natural = [key for key in order if key in standing.starts]
            for key in natural if self.state.effort.few(len(self.plan.waits)) else natural[:SOONER]:
                standing.sooner(key, standing.starts[key].at)
        return standing

    def _promise(self, key: RunKey, wait: Wait, found: Natural) -> None:
        name = f"{key[1]}-{self.plan.cycle.lower()}"
        where = self._slice(found)
        spec = ReservationSpec(
            run_ref=self.state.runs[key].ref,
            intended_slice=where,
            earliest_start=Time(found.at),
            paying_envelopes=tuple(EnvelopeRef(budget=budget, envelope=name) for budget, name in found.payers),
        )
        status = self._status(ReservationStatus(), wait, found, where)
        metadata = ObjectMeta(name=name, namespace=key[0], creation_timestamp=Time(self.plan.at))
        self.new.append(Reservation(metadata=metadata, spec=spec, status=status))
        self._tell(key, found, name)

    def _keep(self, promise: Promise, wait: Wait, found: Natural | None) -> None:
        """A promise stands; where its time or place moves, it remembers when, to what and why. With none it is over."""
        if found is None:
            self._end(promise, Fate("Failed", "NoKnownTime", "No known time lets its run start any more."))
            return
        before, where = promise.told, self._slice(found)
        moves = []
        if found.at != promise.start or where.nodes != promise.nodes:
            cause = "Room or money comes free earlier." if found.at < promise.start else "Its place was taken or lost."
            if found.at > promise.start:
                cause = "What it waits for ends later than was known, or room or money was lost."
            place = where if where.nodes != promise.nodes else None
            moves = [Move(at=Time(self.plan.at), earliest_start=Time(found.at), intended_slice=place, cause=cause)]
        history = (*before.history, *moves)[-HISTORY:]
        status = self._status(msgspec.structs.replace(before, history=history), wait, found, where)
        if status != before:
            self.moved.append(PromiseUpdate(namespace=promise.namespace, name=promise.name, status=status))
        self._tell(promise.run_key, found, promise.name)

    def _status(self, before: ReservationStatus, wait: Wait, found: Natural, where: IntendedSlice) -> ReservationStatus:
        start = Time(found.at)
        scope = next((short.subject for short in wait.shorts if short.rule == "capacity"), "")
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
                confidence=_confidence(before, found),
                p50=start,
                p90=start,
                conflict_set=found.cut.conflicts if found.cut else (),
                remedies=found.cut.remedies if found.cut else (),
            ),
        )

    def _slice(self, found: Natural) -> IntendedSlice:
        fleet, labels = self.state.fleet, self.state.policy.topology.labels
        domains = {fleet.domains[int(fleet.domain[fleet.index[node]])] for node in found.nodes}
        if len(domains) > 1:
            return IntendedSlice(nodes=found.nodes)
        (domain,) = domains
        named = {labels.region: domain.region, labels.cluster: domain.cluster}
        if not domain.alone:
            named[labels.domain] = domain.label
        return IntendedSlice(domain={key: value for key, value in named.items() if value}, nodes=found.nodes)

    def _tell(self, key: RunKey, found: Natural, name: str) -> None:
        if name:
            self._name(key, name, found.cut.conflicts if found.cut else ())
        self.told[key] = _told(Time(found.at), name)

    def fit(self, held: Mapping[RunKey, Promise]) -> None:
        """End dates that hold no more beside the others, and say why."""
        moved = {(each.namespace, each.name): each.status for each in self.moved}
        told = {key: (each.name, moved.get((each.namespace, each.name), each.told)) for key, each in held.items()}
        told |= {(each.namespace, each.spec.run_ref.run_name): (each.name, each.status) for each in self.new}
        dates = [
            Date(
                key,
                int(status.earliest_start),
                status.intended_slice.nodes if status.intended_slice else held[key].nodes,
                frozenset(each.run for each in status.forecast.conflict_set) if status.forecast else frozenset(),
            )
            for key, (_, status) in told.items()
            if status.state in STANDING and status.earliest_start is not None
        ]
        for key, why in Fitting(self.world, self.state).unfit(dates).items() if dates else ():
            mine = key[0], told[key][0]
            self.told.pop(key, None)
            self.new = [each for each in self.new if (each.namespace, each.name) != mine]
            self.moved = [each for each in self.moved if (each.namespace, each.name) != mine]
            if key in held:
                self._end(held[key], Fate("Failed", "NoRoom", f"Its date holds no more: {why}"))
            for run, names in self.named.items():
                self.named[run] = [each for each in names if each[0] != "/".join(mine)]

    def warn(self) -> None:
        """Tell runs of the promises that name them, and of their chance to lose all for any of these."""
        for key, promises in self.named.items():
            chances: dict[str, float] = {}
            for _, start, chance in promises:
                chances[start] = max(chance, chances.get(start, 0.0))
            spared = prod(1 - chance for chance in chances.values())
            names = tuple(sorted(name for name, *_ in promises))
            self.told[key] = {"conflict_sets": names, "kill_probability": round(1 - spared, 6)}


def _etas(snapshot: Snapshot, keys: Container[RunKey]) -> dict[RunKey, Eta]:
    """The estimates that runs were told of so far."""
    runs = read_runs(snapshot.tables["runs"], snapshot.tables["arrays"])
    return {run.key: run.told.eta for run in runs if run.key in keys and run.told.eta is not None}


def _confidence(before: ReservationStatus, found: Natural) -> Confidence:
    """How sure a start is; where nothing but the promise itself makes its time known, as sure as it was."""
    if found.source == "promise" and before.forecast is not None:
        return before.forecast.confidence
    return CONFIDENCE[found.source]


def _told(start: Time, reservation: str) -> dict[str, object]:
    """What a run's status says of its start; ``reservation``: empty where none is held."""
    told: dict[str, object] = {"eta": Eta(p50=start, p90=start)}
    return told | {"reservation": reservation, "earliest_start": start} if reservation else told


def _updates(snapshot: Snapshot, plan: Plan, told: Mapping[RunKey, dict[str, object]]) -> list[RunUpdate]:
    """Statuses of runs with what they are told of their start; those that say nothing new are left out."""
    return [*_changed(snapshot, {(each.namespace, each.name): each.status for each in plan.runs}, told)]


def _changed(
    snapshot: Snapshot, updates: Mapping[RunKey, RunStatus], told: Mapping[RunKey, dict[str, object]]
) -> Iterator[RunUpdate]:
    table, indices = snapshot.tables["runs"], indices_of(snapshot.tables["arrays"])
    keys = zip(col.texts(table, "namespace"), col.texts(table, "name"), strict=True)
    for key, text in zip(keys, col.texts(table, "status"), strict=True):
        if key in updates or key in told:
            before = _STATUS.decode(text) if text else RunStatus()
            now = updates[key] if key in updates else whole(before) if key in indices else before
            status = msgspec.structs.replace(now, **told.get(key, {}))
            if is_new(status, before, is_index=key in indices):
                yield RunUpdate(namespace=key[0], name=key[1], status=status)


def _lapsed(stored: Iterable[Promise], held: Mapping[RunKey, Promise], dating: _Dating) -> list[Pruned]:
    """Promises that were over before this cycle, and whose run is over, gone, or has another one."""
    again = {*held, *((each.namespace, each.spec.run_ref.run_name) for each in dating.new)}
    runs = dating.state.runs
    return [
        Pruned(namespace=each.namespace, name=each.name)
        for each in stored
        if not each.stands and (each.run_key in again or each.run_key not in runs or bool(runs[each.run_key].outcome))
    ]
