"""Standing promises on a timeline: each keeps its time and its slice as long as these hold (spec §5).

First all of them are held where they stand; then those that have lost their slice, on another one at the same time.
Where one finds none while others would start wider than they must, all are held at their least widths, for no width is
promised. What finds neither, or is due and has not started, is dated anew, the oldest first; and no younger promise
puts it off: where it would have an earlier time without these, it has that, and as few of the youngest as make that
room are held after it in the same way. So nothing moves because something else did, but for an older promise; and that
moves the youngest.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cutting.told import Lasting
from planner.forecast.calendar import FAR
from planner.forecast.natural import Timeline
from planner.forecast.starts import Natural, together
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.promises.rules import Promise


@dataclass
class Standing:
    """``promises``: by run; ``spans``: seconds that runs expect to take; ``starts``: those that are held as they stand;
    ``overtaken``: runs whose room an older one was given, and which.

    ``state``: of the world that the timeline is of; ``waiting``: who may start with others of its gang.
    """

    timeline: Timeline
    state: State
    promises: Mapping[RunKey, Promise]
    waiting: Container[RunKey]
    spans: Mapping[RunKey, int]
    starts: dict[RunKey, Natural] = field(default_factory=dict)
    overtaken: dict[RunKey, RunKey] = field(default_factory=dict)

    def hold(self, keys: Iterable[RunKey]) -> None:
        """Hold the promises of these runs, the oldest first, as far as they stand or can be dated anew."""
        asked: set[RunKey] = set()
        order: list[Lasting] = []
        for key in keys:
            if key not in asked:
                mine = self.mine(key)
                asked |= mine.keys()
                order += [mine] if self._is_plain(mine) else []
        lost = self._keep(order)
        if lost and any(each.found.start.steps for each in self.timeline.dated):
            self.timeline.release({key for mine in order for key in mine})
            lost = self._keep(order, least=True)
        for place, mine in enumerate(order):
            if mine in lost:
                self.starts |= self.timeline.date(mine)
                gone = self._overtake(mine, order[place + 1 :])
                self.overtaken |= dict.fromkeys((key for each in gone for key in each), min(mine))
                lost = [*(each for each in lost if each not in gone), *self._keep(gone)]

    def _keep(self, order: Iterable[Lasting], *, least: bool = False) -> list[Lasting]:
        """Hold what stands, at the ``least`` widths or the widest that can be; returns the rest."""
        lost = [mine for mine in order if not self._stand(mine, self._where(mine), least=least)]
        return [mine for mine in lost if self._is_due(mine) or not self._stand(mine, None, least=least)]

    def _overtake(self, mine: Lasting, younger: Sequence[Lasting]) -> Sequence[Lasting]:
        """Give a promise the earliest time that it has without the younger ones, where that is before its own.

        As many of the youngest as that takes are put off for it; those that find no room or money any more where they
        were are returned, and held no longer. None where it stays.
        """
        before = min((self.starts[key].at for key in mine if key in self.starts), default=FAR)
        if before <= self.timeline.moments[0].at:
            return ()
        stood = self.timeline.release(mine.keys())
        first = self._without(younger, mine, before)
        if not first:
            self.timeline.without(())
            self.timeline.restore(stood)
            return ()
        self.timeline.release(mine.keys())
        until = min(each.at for each in first.values()) + 1
        stay = self._stay(younger, mine, until)
        found = self._without(younger[stay:], mine, until)
        lost = self.timeline.back()
        gone = [each for each in younger[stay:] if not lost.isdisjoint(each)]
        keys = {key for each in gone for key in each}
        self.timeline.release(keys)
        self.starts = {key: each for key, each in self.starts.items() if key not in keys} | found
        return gone

    def _stay(self, younger: Sequence[Lasting], mine: Lasting, before: int) -> int:
        """How many of the younger, the oldest, leave a promise a start before a time: as many as leave it slots, if
        these are what it lacks beside more; else as many as a search finds.
        """
        most = self.timeline.beside(younger, mine, before)
        if 0 < most < len(younger) - 1 and self._could_without(younger[most:], mine, before):
            return most
        return _last(most + 1, lambda n: self._could_without(younger[n:], mine, before))

    def _without(self, others: Iterable[Lasting], mine: Lasting, before: int) -> dict[RunKey, Natural]:
        """Hold the first start before a time that runs have while others are set aside; empty where there is none."""
        aside = self.timeline.without({key for each in others for key in each})
        return self.timeline.date(mine, before) if aside else {}

    def _could_without(self, others: Iterable[Lasting], mine: Lasting, before: int) -> bool:
        """Is there one? Nothing is held."""
        found = self._without(others, mine, before)
        self.timeline.release(mine.keys())
        return bool(found)

    def by_cuts(self, key: RunKey) -> bool:
        """Hold what cuts are to start, and its gang, where they stand, in the room of all that may be cut for them.

        What is due is held from now on, where the present is looked at: younger ones leave it its money.

        False where that cannot be: then nothing is held.
        """
        mine = self.mine(key)
        if self.timeline.is_cut_for(key):
            return True
        if any(other not in self.promises for other in mine):
            return False
        told = [self.promises[other] for other in mine]
        at, where = max(self.state.at, min(each.start for each in told)), self._where(mine)
        is_known = at > self.state.at or any(moment.at == at for moment in self.timeline.moments)
        if not is_known or not all(where.values()):
            return False
        nodes = {node for each in told for node in each.nodes}
        named = {each.run for promise in told if (f := promise.told.forecast) for each in f.conflict_set}
        leases = [
            lease
            for other, held in sorted(self.state.held.items())
            if "/".join(other) in named
            for lease in held
            if lease.node in nodes
        ]
        found = self.timeline.find(at, where, leases)
        return bool(found) and self.timeline.cut(at, found, mine, leases, is_free=not named)

    def sooner(self, key: RunKey, before: int) -> dict[RunKey, Natural]:
        """Move what a run and those that start with it hold to a time before ``before`` (Unix seconds).

        Where there is none it is held as it was, and nothing is returned.
        """
        found = self.timeline.sooner(self.mine(key), before)
        self.starts |= found
        return found

    def mine(self, key: RunKey) -> Lasting:
        """A run and those that start with it."""
        return together(self.state, key, self.waiting, self.spans)

    def _stand(self, mine: Lasting, where: Mapping[RunKey, frozenset[int]] | None, *, least: bool) -> bool:
        """Hold them at their time, on their nodes or anywhere; what stays where it is is told as it was.

        What is due is held from now on, where the present is looked at.
        """
        at = max(self.state.at, min(self.promises[key].start for key in mine))
        if where is None:
            found = self.timeline.stand(mine, at, {}, least=least)
        elif all(where.values()):
            found = self.timeline.stand(mine, at, where, least=least)
            found = {key: each._replace(nodes=self.promises[key].nodes) for key, each in found.items()}
            if not found and len(mine) == 1 and self._may_be_unfunded:
                return self.by_cuts(*mine)
        else:
            return False
        self.starts |= found
        return bool(found)

    @property
    def _may_be_unfunded(self) -> bool:
        """May a promise be kept where nobody pays?"""
        return self.state.policy.reservations.on_budget_shortfall == "startUnfunded"

    def _where(self, mine: Lasting) -> dict[RunKey, frozenset[int]]:
        """The nodes of each, none where one is gone."""
        index = self.state.fleet.index
        nodes = {key: self.promises[key].nodes for key in mine}
        return {
            key: frozenset(index[n] for n in names if all(n in index for n in names)) for key, names in nodes.items()
        }

    def _is_plain(self, mine: Lasting) -> bool:
        """Is one time promised to all of them, and no cut counted on?"""
        told = [self.promises[key] for key in mine if key in self.promises]
        starts = {each.start for each in told}
        return len(told) == len(mine) and len(starts) == 1 and not any(each.is_by_cuts for each in told)

    def _is_due(self, mine: Lasting) -> bool:
        """Was one promised a start by now?"""
        return any(self.promises[key].start <= self.state.at for key in mine)


def _last(count: int, works: Callable[[int], bool]) -> int:
    """The last number below ``count`` that works, as 0 does and all up to it; small ones are tried first."""
    low, high = 0, 1
    while high < count and works(high):
        low, high = high, 2 * high
    return low + bisect_left(range(low + 1, min(high, count)), 1, key=lambda n: not works(n))
