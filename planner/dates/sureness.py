"""How sure a start without cuts is: whether it hangs on ends that are only estimated, and when these are nine in ten.

    p90 = max(start, end of nine in ten of every run that it hangs on)

It hangs on a run whose end is estimated no later than it starts where, with that run still there, its nodes would have
too few GPUs; where it has enough on all of them, on those whose estimated end is its start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import estimates
from planner.forecast.estimates import Spans
from planner.forecast.starts import Natural
from planner.placement.room import Chunk
from planner.state.state import State
from policies.inputs.claims import LeaseRow, RunKey


@dataclass
class Sureness:
    """``world``: as the plan leaves it, ``state``: derived from it; ``ends``: of runs, in nine cases of ten."""

    world: Snapshot
    state: State
    ends: Spans

    def of(self, start: Natural, chunks: Iterable[Chunk]) -> Natural:
        """The start with by when it is nine times of ten, where it is an estimate; ``chunks``: its slots."""
        if start.source != "estimate":
            return start
        late = [end for key in self._hangs_on(start, chunks) if (end := self.ends.get(key)) is not None]
        return start._replace(p90=max([start.at, *late]))

    def _hangs_on(self, start: Natural, chunks: Iterable[Chunk]) -> set[RunKey]:
        asked: dict[str, int] = {}
        for chunk in chunks:
            name = self.state.fleet.names[chunk.node]
            asked[name] = asked.get(name, 0) + chunk.count
        found: set[RunKey] = set()
        for node, gpus in asked.items():
            early = {lease.run_key for lease in self.state.leases_on(node) if self._is_guessed(lease, start.at)}
            if early and gpus > self._free(node, start.at):
                found |= early
        if not found:
            found = {key for key, end in self._guessed.items() if end == start.at}
        return found

    def _is_guessed(self, lease: LeaseRow, at: int) -> bool:
        """Is it gone by then only if its run ends as it expects?"""
        limit, guess = self._limits.get(lease.run_key), self._guessed.get(lease.run_key)
        return guess is not None and guess <= at and (limit is None or limit > at)

    def _free(self, node: str, at: int) -> int:
        """GPUs of a node that are surely nobody's then."""
        limits, there = self._limits, self.state.leases_on(node)
        lasting = (each for each in there if (end := limits.get(each.run_key)) is None or end > at)
        return self.state.left_on(node, lasting)

    @cached_property
    def _limits(self) -> Mapping[RunKey, int | None]:
        return self.state.limits

    @cached_property
    def _guessed(self) -> Mapping[RunKey, int]:
        return estimates(self.world, self.state)
