"""Natural starts: the first known time at which a run fits in room and money, beside what is promised before it.

Conservative backfill (Mu'alem and Feitelson, 2001) on the planner's own rules: runs are dated one by one, and each
start holds its slots and its money at every moment until its limit ends it, so a later one delays no earlier one.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from jobtree.world.snapshot import Snapshot
from planner.cutting.dating import CutDate
from planner.derive import State
from planner.filler import Learnt, Settled
from planner.forecast.calendar import Known
from planner.forecast.moments import Moment
from policies.claims import RunKey


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
        """Of a world, and the times that are known in it; of more than ``most`` the earliest.

        ``now``: its present state, where what can start now is to start now.
        """
        sources: dict[int, str] = {}
        for each in sorted(known):
            sources.setdefault(each.at, each.source)
        timeline = cls(world, most)
        timeline.moments = [Moment(at, source, world) for at, source in [*sources.items()][:most]]
        if now is not None:
            timeline.moments.insert(0, Moment.of(now, world))
        return timeline

    def date(self, key: RunKey, lasting: int | None) -> Natural | None:
        """Find a run's first start and hold it. ``lasting``: seconds that it runs at most."""
        for place, moment in enumerate(self.moments):
            found = moment.try_start(key)
            if found is None:
                continue
            end = None if lasting is None else moment.at + lasting
            if self._hold(_Dated(key, found, moment.at, end), place):
                return self._natural(moment, found)
            moment.filler.take_back([found])
            moment.filler.learnt = Learnt()
        return None

    def moment(self, at: int) -> Moment:
        """The moment at a known time."""
        return next(each for each in self.moments if each.at == at)

    def _hold(self, dated: _Dated, place: int) -> bool:
        """Hold it at all later moments too; where one of them has not the room, at none."""
        held: list[tuple[Moment, Settled]] = []
        for moment in self.moments[place + 1 :]:
            if dated.end is not None and moment.at >= dated.end:
                break
            taken = moment.take(dated.key, dated.found)
            if taken is None:
                for other, mine in held:
                    other.give_back(mine)
                return False
            held.append((moment, taken))
        self.dated.append(dated)
        if dated.end is not None:
            self._open(dated.end)
        return True

    def _open(self, at: int) -> None:
        """Look at the time at which a dated start ends, too."""
        if len(self.moments) >= self.most or any(moment.at == at for moment in self.moments):
            return
        moment = Moment(at, "end", self.world)
        for dated in self.dated:
            if dated.at <= at and (dated.end is None or at < dated.end):
                moment.take(dated.key, dated.found)
        insort(self.moments, moment, key=attrgetter("at"))

    def _natural(self, moment: Moment, found: Settled) -> Natural:
        fleet, envelopes = moment.state.fleet, moment.state.money.envelopes
        nodes = {chunk.node for piece in found.pieces for chunk in piece.chunks}
        payers = dict.fromkeys(envelope for paid in found.paid.values() for envelope in paid)
        return Natural(
            moment.at,
            moment.source,
            tuple(fleet.names[node] for node in sorted(nodes)),
            tuple((envelopes[payer].budget, envelopes[payer].name) for payer in payers),
        )
