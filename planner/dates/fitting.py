"""Dates that do not fit one another: what is promised on nodes at a time, against the room there then (spec §5).

    Σ GPUs promised on some nodes at t  ≤  Σ GPUs of these nodes − what lasts until t and is not cut for these promises

The timeline sees to it. A date that was not looked at anew in this cycle may still be one that holds no more; the
youngest goes then, told why, since no single date may keep a cycle from being written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobtree.api.values.counted import counted
from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import FAR, estimates, expected
from planner.state.state import State
from policies.inputs.claims import RunKey


class Date(NamedTuple):
    """A promise to come. ``start``: Unix seconds; ``cut``: runs that may be cut for it, as namespace/name."""

    run: RunKey
    start: int
    nodes: tuple[str, ...]
    cut: frozenset[str]


@dataclass
class Fitting:
    """``world``: as the plan leaves it, ``state``: derived from it."""

    world: Snapshot
    state: State

    def __post_init__(self) -> None:
        """Find when everything ends."""
        guesses = estimates(self.world, self.state)
        limits = self.state.limits
        self._ends = {key: min(limits.get(key) or FAR, guesses.get(key, FAR)) for key in self.state.held}
        self._spans = expected(self.world)

    def unfit(self, dates: Iterable[Date]) -> dict[RunKey, str]:
        """Those that go, the youngest where several do not fit one another, and why, as a sentence."""
        left, gone = {date.run: date for date in dates if date.start > self.state.at}, dict[RunKey, str]()
        while found := self._first(list(left.values())):
            mine, why = found
            youngest = max(mine, key=lambda date: (self.state.runs[date.run].created, date.run))
            gone[youngest.run] = why
            del left[youngest.run]
        return gone

    def _first(self, dates: Sequence[Date]) -> tuple[list[Date], str] | None:
        for start in sorted({date.start for date in dates}):
            for mine in _sharing([date for date in dates if date.start <= start < self._end(date)]):
                nodes = sorted({node for date in mine for node in date.nodes if node in self.state.fleet.index})
                cut = {run for date in mine for run in date.cut}
                asked = sum(self.state.runs[date.run].width_min for date in mine)
                room = sum(self._room(node, start, cut) for node in nodes)
                if asked > room:
                    where = counted(len(nodes), "node")
                    return mine, f"{counted(asked, 'GPU')} would be promised on {where} with room for {max(0, room)}."
        return None

    def _room(self, node: str, start: int, cut: set[str]) -> int:
        there = (lease for lease in self.state.leases_on(node) if lease.active and "/".join(lease.run_key) not in cut)
        return self.state.left_on(node, (lease for lease in there if self._ends[lease.run_key] > start))

    def _end(self, date: Date) -> int:
        span = self.state.runs[date.run].limit or self._spans.get(date.run)
        return FAR if span is None else date.start + span


def _sharing(dates: Iterable[Date]) -> list[list[Date]]:
    """Those that have nodes in common, directly or by others between them."""
    found: list[tuple[set[str], list[Date]]] = []
    for date in dates:
        with_it = [group for group in found if not group[0].isdisjoint(date.nodes)]
        found = [group for group in found if group[0].isdisjoint(date.nodes)]
        nodes = {*date.nodes}.union(*(group[0] for group in with_it))
        found.append((nodes, [date, *(each for group in with_it for each in group[1])]))
    return [mine for _, mine in found]
