"""Slots that stay free: a quick look over all moments at once, before a start is sought at one of them.

A start holds its slots from its moment to its end, so that is sought only where they are free for so long:

    max over domains  Σ over its nodes on the run's sites  min over moments from then to its end  free in whole pods
        ≥  GPUs of its largest piece at its least width

Whether they are paid, and whether they are those that it would be laid on, is not asked: no start is passed over.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from jobtree.world.tables.values import Ints
from planner.cutting.told import Lasting
from planner.forecast.calendar import FAR
from planner.forecast.moments import Moment, gpus_of
from planner.forecast.starts import Dated
from policies.inputs.claims import RunKey


@dataclass
class Slots:
    """``moments``: those of a timeline, in order; more may come. ``_free``: (moments × nodes), as counted so far;
    ``_beside``: the same with what some starts hold, of these starts.
    """

    moments: list[Moment]
    _free: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _counted: list[int] = field(default_factory=list)
    _beside: tuple[Sequence[Dated], Ints] | None = None

    def might(self, moment: Moment, together: Lasting, mine: Sequence[Dated] = ()) -> bool:
        """Are there slots for all of them, each for as long as it lasts? ``mine``: what they hold, free for them."""
        free = self._now()
        if mine:
            if self._beside is None or self._beside[0] is not mine:
                free, (_, *where, gpus) = free.copy(), self._held(mine)
                np.add.at(free, tuple(where), gpus)
                self._beside = mine, free
            free = self._beside[1]
        return self._has(free, moment, together)

    def beside(self, aside: Sequence[Dated], order: Sequence[Container[RunKey]], together: Lasting, before: int) -> int:
        """How many of an ``order``, the first, leave slots for a start earlier than ``before``, where they hold what is
        set ``aside``; not all of them.
        """
        place = [next(n for n, keys in enumerate(order) if dated.key in keys) for dated in aside]
        free, (number, *where, gpus) = self._now(), self._held(aside)
        holder = np.array(place, np.int64)[number]

        def lack(count: int) -> bool:
            held, left = holder < count, free.copy()
            np.subtract.at(left, tuple(each[held] for each in where), gpus[held])
            return not any(self._has(left, moment, together) for moment in self.moments if moment.at < before)

        last = len(order) - 1
        return bisect_left(range(1, last), 1, key=lack) if last and lack(last) else last

    def over(self, end: int | None) -> int:
        """Place of the first moment by which what ends then (Unix seconds; None: never) is over."""
        return len(self.moments) if end is None else bisect_left(self.moments, end, key=attrgetter("since"))

    def _has(self, free: Ints, moment: Moment, together: Lasting) -> bool:
        first = bisect_left(self.moments, moment.at, key=attrgetter("at"))
        for key, lasting in together.items():
            over = self.over(None if lasting is None else moment.at + lasting)
            if not moment.could_lie(key, free[first : max(over, first + 1)].min(axis=0)):
                return False
        return True

    def _now(self) -> Ints:
        """Free slots (moments × nodes), any at times that are not looked at yet; not to be written to."""
        if len(self._counted) < len(self.moments):
            self._free = np.full((len(self.moments), len(self.moments[0].later.now.fleet.names)), FAR)
            self._counted, self._beside = [0] * len(self.moments), None
        changes = [moment.changes for moment in self.moments]
        if changes != self._counted:
            for row, moment in enumerate(self.moments):
                if changes[row] > self._counted[row]:
                    self._free[row] = moment.free
            self._counted, self._beside = changes, None
        return self._free

    def _held(self, starts: Iterable[Dated]) -> Ints:
        """What starts hold, a column each: number of the start, of the moment, and of the node, and GPUs."""
        place = {id(moment): row for row, moment in enumerate(self.moments)}
        found = [
            (number, place[id(moment)], node, gpus)
            for number, dated in enumerate(starts)
            for node, gpus in gpus_of(dated.found).items()
            for moment in (dated.moment, *(moment for moment, _ in dated.held))
        ]
        return np.array(found, np.int64).reshape(-1, 4).T
