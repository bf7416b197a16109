"""Natural starts: the first known time at which a run fits in room and money, beside what is promised before it.

Conservative backfill (Mu'alem and Feitelson, 2001) on the planner's own rules: runs are dated one by one, and each
start holds its slots and its money at every moment until its limit ends it, so a later one delays no earlier one.
"""

from bisect import insort
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.dating import CutDate
from planner.filling.filler import Learnt, Settled
from planner.forecast.calendar import Known
from planner.forecast.moments import Moment
from planner.state.derive import State
from policies.inputs.claims import RunKey


class Natural(NamedTuple):
    """A start to come. ``nodes``: where, by name; ``payers``: (budget, envelope), nearest first; ``source``: what makes
    its time known; ``cut``: what goes for it.
    """

    at: int
    source: str
    nodes: tuple[str, ...]
    payers: tuple[tuple[str, str], ...]
    cut: CutDate | None = None


class _Dated(NamedTuple):
    """A start that holds what it has found from ``at`` to ``end`` (None: for good)."""

    key: RunKey
    found: Settled
    at: int
    end: int | None


@dataclass
class Timeline:
    """See the module. ``most``: moments that may be looked at in all."""

    world: Snapshot
    most: int
    moments: list[Moment] = field(default_factory=list)
    dated: list[_Dated] = field(default_factory=list)

    @classmethod
    def of(cls, world: Snapshot, known: Iterable[Known], most: int, now: State | None = None) -> "Timeline":
        """Of a world, and the times that are known in it; of more than ``most`` the last of equal shares of them, and
        those of promises.

        ``now``: its present state, where what can start now is to start now.
        """
        sources: dict[int, str] = {}
        promised: set[int] = set()
        for each in sorted(known):
            sources.setdefault(each.at, each.source)
            promised |= {each.at} if each.source == "promise" else set()
        times = [*sources]
        if len(times) > most:
            # of the others alone: promises must not change which of these are looked at, or dates would move by them
            times = [at for at, source in sources.items() if source != "promise"]
            shares = {times[(share + 1) * len(times) // most - 1] for share in range(min(most, len(times)))}
            sources = {at: source for at, source in sources.items() if at in shares or at in promised}
        timeline = cls(world, most)
        timeline.moments = [Moment(at, source, world) for at, source in sources.items()]
        if now is not None:
            timeline.moments.insert(0, Moment.of(now, world))
        return timeline

    def date(self, together: Mapping[RunKey, int | None]) -> dict[RunKey, Natural]:
        """Find the first start of runs that start together, and hold it; empty where there is none.

        ``together``: by run, seconds that it runs at most.
        """
        for place, moment in enumerate(self.moments):
            starts = self._try(moment, place, together)
            if starts:
                self.dated += starts
                for dated in starts:
                    self._open(dated.end)
                return {dated.key: self._natural(moment, dated.found) for dated in starts}
        return {}

    def _try(self, moment: Moment, place: int, together: Mapping[RunKey, int | None]) -> list[_Dated]:
        """Start all of them at a moment and hold them at all later ones; where one cannot be, none is."""
        starts: list[_Dated] = []
        held: list[tuple[Moment, Settled]] = []
        for key, lasting in together.items():
            found = moment.try_start(key)
            if found is not None:
                starts.append(_Dated(key, found, moment.at, None if lasting is None else moment.at + lasting))
            if found is None or not self._hold(starts[-1], place, held):
                break
        else:
            return starts
        for other, taken in held:
            other.give_back(taken)
        if starts:
            moment.filler.take_back([dated.found for dated in starts])
            moment.filler.learnt = Learnt()
        return []

    def moment(self, at: int) -> Moment:
        """The moment at a known time."""
        return next(each for each in self.moments if each.at == at)

    def _hold(self, dated: _Dated, place: int, held: list[tuple[Moment, Settled]]) -> bool:
        """Hold it at all later moments, as far as they have the room; what is taken there is added to ``held``."""
        for moment in self.moments[place + 1 :]:
            if dated.end is not None and moment.at >= dated.end:
                break
            taken = moment.take(dated.key, dated.found)
            if taken is None:
                return False
            held.append((moment, taken))
        return True

    def _open(self, at: int | None) -> None:
        """Look at the time at which a dated start ends, too."""
        if at is None or len(self.moments) >= self.most or any(moment.at == at for moment in self.moments):
            return
        moment = Moment(at, "end", self.world)
        for dated in self.dated:
            if dated.at <= at and (dated.end is None or at < dated.end):
                moment.take(dated.key, dated.found)
        insort(self.moments, moment, key=attrgetter("at"))

    def _natural(self, moment: Moment, found: Settled) -> Natural:
        fleet, envelopes = moment.state.fleet, moment.state.money.envelopes
        payers = dict.fromkeys(envelope for paid in found.paid.values() for envelope in paid)
        return Natural(
            moment.at,
            moment.source,
            tuple(fleet.names[node] for node in found.nodes),
            tuple((envelopes[payer].budget, envelopes[payer].name) for payer in payers),
        )


def together(
    state: State, key: RunKey, waiting: Container[RunKey], expected: Mapping[RunKey, int] | None = None
) -> dict[RunKey, int | None]:
    """A run, or those of its gang that are ``waiting``, with the seconds that each lasts at most, if that is known."""
    run = state.runs[key]
    mine = [run]
    if run.gang:
        same = (each for each in state.runs.values() if (each.namespace, each.gang) == (run.namespace, run.gang))
        mine = [each for each in same if each.key in waiting]
    return {each.key: each.limit or (expected or {}).get(each.key) for each in mine}
