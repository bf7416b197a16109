"""Why a promise moves: one sentence that its history, Events, `explain` and `watch` say (spec §5).

A later time, or another place, has the first of these causes that the facts show; where they show none, a general one:

what this cycle may not cut for it  ≻  a lottery that may not draw yet  ≻  a node of it that is gone or takes no work
≻  an older run that was given its room  ≻  a run that did not end on its nodes when it was expected to, unless money
alone puts it off  ≻  at its time, why the plan does not start it
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from jobtree.api.values.scalars import Time
from jobtree.world.plan import Wait
from jobtree.world.tables import values as col
from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import overdue
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.promises.rules import Promise

SOONER: Final = "Room or money comes free earlier."
ELSEWHERE: Final = "Its place was taken or lost."
LATER: Final = "What it waits for ends later than was known, or room or money was lost."


@dataclass
class Causes:
    """``state``: of the ``world`` as the plan leaves it; ``since``: the last cycle, Unix seconds; ``put_off``: runs for
    which it may cut nothing, and why; ``overtaken``: those whose room an older run was given in this cycle, and which.
    """

    world: Snapshot
    state: State
    since: int | None
    put_off: Mapping[RunKey, str]
    overtaken: Mapping[RunKey, RunKey]

    def of(self, promise: Promise, start: int, wait: Wait) -> str:
        """Why it moves to ``start``, Unix seconds; ``wait``: why its run does not start in this plan."""
        if start < promise.start:
            return SOONER
        is_later = start > promise.start
        if is_later and promise.run_key in self.put_off:
            return self.put_off[promise.run_key]
        if is_later and promise.is_by_cuts and promise.start < (draws := self.state.protection.draws) <= start:
            return f"Nobody is drawn before {Time(draws)}: the lottery has a new chain of secrets."
        return next(self._known(promise, wait, is_later=is_later), LATER if is_later else ELSEWHERE)

    def _known(self, promise: Promise, wait: Wait, *, is_later: bool) -> Iterator[str]:
        yield from (f"Node {node} {lost}." for node in promise.nodes if (lost := self._lost(node)))
        if promise.run_key in self.overtaken:
            yield f"Its room was given to {'/'.join(self.overtaken[promise.run_key])}, which is older."
        if not is_later or any(short.rule == "capacity" for short in wait.shorts):  # else money puts it off
            yield from self._staying(promise)
        if is_later and promise.start <= self.state.at:
            yield f"It could not start at its time: {wait.message}"

    def _lost(self, node: str) -> str:
        """Why a node can start nothing, as the rest of a sentence; empty where it can."""
        place = self.state.fleet.index.get(node)
        if place is None or node not in self._nodes:
            return "is gone"
        is_ready, is_cordoned, is_deleted = self._nodes[node]
        why = "is being deleted" if is_deleted else "is cordoned" if is_cordoned else "" if is_ready else "is not Ready"
        return "" if self.state.fleet.takes_work[place] else why or "takes no work"

    @cached_property
    def _nodes(self) -> Mapping[str, tuple[bool, bool, bool]]:
        table = self.world.tables["nodes"]
        facts = zip(*(col.bools(table, each).tolist() for each in ("ready", "unschedulable", "deleting")), strict=True)
        return dict(zip(col.texts(table, "name"), facts, strict=True))

    def _staying(self, promise: Promise) -> Iterator[str]:
        """Runs on its nodes that were to end by its time, as the last cycle expected, and did not."""
        for key, end in sorted(self._overdue.items()):
            on = sorted({lease.node for lease in self.state.held[key]}.intersection(promise.nodes))
            if on and end <= promise.start:
                yield f"{'/'.join(key)} was expected to end at {Time(end)} and is still on {on[0]}."

    @cached_property
    def _overdue(self) -> Mapping[RunKey, int]:
        return {} if self.since is None else overdue(self.world, self.state, self.since)
