"""Standing promises on a timeline: each keeps its time and its slice as long as these hold (spec §5).

First all of them are held where they stand; then those that have lost their slice, on another one at the same time.
Only what finds neither is dated anew, so nothing moves because something else did.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from planner.forecast.natural import Lasting, Natural, Timeline, together
from planner.state.derive import State
from policies.inputs.claims import RunKey
from policies.promises.rules import Promise


@dataclass
class Standing:
    """``promises``: by run; ``spans``: seconds that runs expect to take; ``starts``: those that are held as they stand.

    ``state``: of the world that the timeline is of; ``waiting``: who may start with others of its gang.
    """

    timeline: Timeline
    state: State
    promises: Mapping[RunKey, Promise]
    waiting: Container[RunKey]
    spans: Mapping[RunKey, int]
    starts: dict[RunKey, Natural] = field(default_factory=dict)

    def hold(self, keys: Iterable[RunKey]) -> None:
        """Hold the promises of these runs, in this order, as far as they stand."""
        asked: set[RunKey] = set()
        lost: list[Lasting] = []
        for key in keys:
            if key not in asked:
                mine = self.mine(key)
                asked |= mine.keys()
                lost += [mine] if self._is_plain(mine) and not self._stand(mine, self._where(mine)) else []
        for mine in lost:
            self._stand(mine, None)

    def sooner(self, key: RunKey, before: int) -> dict[RunKey, Natural]:
        """Move what a run and those that start with it hold to a time before ``before`` (Unix seconds).

        Where there is none it is held as it was, and nothing is returned.
        """
        mine = self.mine(key)
        gone = self.timeline.release(mine.keys())
        found = self.timeline.date(mine, before)
        self.starts |= found
        if not found:
            self.timeline.restore(gone)
        return found

    def mine(self, key: RunKey) -> Lasting:
        """A run and those that start with it."""
        return together(self.state, key, self.waiting, self.spans)

    def _stand(self, mine: Lasting, where: Mapping[RunKey, frozenset[int]] | None) -> bool:
        """Hold them at their time, on their nodes or anywhere; what stays where it is is told as it was."""
        at = min(self.promises[key].start for key in mine)
        if where is None:
            found = self.timeline.stand(mine, at, {})
        elif all(where.values()):
            found = self.timeline.stand(mine, at, where)
            found = {key: each._replace(nodes=self.promises[key].nodes) for key, each in found.items()}
        else:
            return False
        self.starts |= found
        return bool(found)

    def _where(self, mine: Lasting) -> dict[RunKey, frozenset[int]]:
        """The nodes of each, none where one is gone."""
        index = self.state.fleet.index
        nodes = {key: self.promises[key].nodes for key in mine}
        return {
            key: frozenset(index[n] for n in names if all(n in index for n in names)) for key, names in nodes.items()
        }

    def _is_plain(self, mine: Lasting) -> bool:
        """Is one time to come promised to all of them, and no cut counted on?"""
        told = [self.promises[key] for key in mine if key in self.promises]
        starts = {each.start for each in told}
        if len(told) < len(mine) or len(starts) > 1 or any(each.is_by_cuts for each in told):
            return False
        return min(starts) > self.state.at
