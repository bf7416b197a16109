"""Where changes are tried: a run that waits, in the world as this cycle's plan leaves it.

A change is first tried on the run alone, everything else kept as the plan leaves it: a small problem, so many can be
tried. What starts the run there is then *confirmed*: the tables are edited and planned again, with all that waits, by
the planner itself,

1. in the world in which this plan has been carried out: the change is made after the cycle and the next one starts it;
2. where few runs wait (`planner.lower.few`), also in the world of now: the change is made before this cycle.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from msgspec import structs

from jobtree.world.after import after
from jobtree.world.plan import Plan
from jobtree.world.snapshot import Snapshot
from planner import stages
from planner.contenders import contenders, weighed
from planner.derive import State, state_of
from planner.edits import Edit, edited, suspended
from planner.lower import few
from policies.claims import RunKey
from policies.runs import RunRow

HOUR_MILLI: Final = 3_600_000
"""Milli-GPU-seconds in a GPU-hour."""


@dataclass(frozen=True)
class Bench:
    """See the module.

    ``state``: of ``kept``, in which the run (``key``) waits alone, with its gang, without the ``others`` that wait.
    """

    snapshot: Snapshot
    plan: Plan
    key: RunKey
    kept: Snapshot = field(repr=False)
    state: State = field(repr=False)
    others: frozenset[RunKey] = field(repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan, key: RunKey) -> "Bench":
        """For a run that waits under ``plan``, which was made from ``snapshot``."""
        kept = after(snapshot, plan)
        whole = state_of(kept, plan.at)
        state = alone(whole, key)
        others = {run.key for run in whole.pending} - {run.key for run in state.pending}
        return cls(snapshot, plan, key, kept, state, frozenset(others))

    @property
    def at(self) -> int:
        """The cycle's time."""
        return self.plan.at

    @property
    def run(self) -> RunRow:
        """The run as it stands."""
        return self.state.runs[self.key]

    @cached_property
    def few(self) -> bool:
        """Do so few runs wait that a remedy is confirmed in the world of now, too?"""
        return few(len(self.plan.waits))

    @cached_property
    def focus(self) -> Snapshot:
        """The kept world without anything else that waits."""
        return suspended(self.kept, self.others)

    def with_run(self, **fields: Any) -> State:
        """The run alone, with other fields (of `RunRow`)."""
        changed = structs.replace(self.run, **fields)
        pending = [changed if run.key == self.key else run for run in self.state.pending]
        runs = {**self.state.runs, self.key: changed}
        return replace(self.state, runs=runs, pending=pending, blocked=dict(self.state.blocked))

    def within(self, edits: Iterable[Edit]) -> "Bench":
        """The bench of the same run in an edited world."""
        changes = list(edits)
        state = alone(state_of(edited(self.focus, changes), self.at), self.key)
        return Bench(
            edited(self.snapshot, changes), self.plan, self.key, edited(self.kept, changes), state, self.others
        )

    def starts(self, state: State | None = None) -> bool:
        """Would the run start, alone, in this state (None: as it stands)?"""
        found = state or self.state
        return self.key in contenders(found) and self.key in _started(found, self.key)

    def instead(self, edits: Iterable[Edit]) -> list[RunKey] | None:
        """None where the run starts when the edited world is planned again, with all that waits.

        Else the runs that this would start instead, heaviest first.
        """
        changes = list(edits)
        for world in [self.kept, self.snapshot] if self.few else [self.kept]:
            state = state_of(edited(world, changes), self.at)
            started = _started(weighed(state, [self.key]), None)
            if self.key not in started:
                new = [state.runs[key] for key in started - self._planned]
                new.sort(key=lambda run: (-run.weight(state.policy, self.at), run.created, run.key))
                return [run.key for run in new]
        return None

    @cached_property
    def _planned(self) -> set[RunKey]:
        return {lease.run_key for lease in self.plan.leases}


def alone(state: State, key: RunKey) -> State:
    """The state with no more waiting than the run, and its gang."""
    gang, space = state.runs[key].gang, key[0]
    mine = [run for run in state.pending if run.key == key or (gang and (run.gang, run.namespace) == (gang, space))]
    return replace(state, pending=mine, blocked={k: why for k, why in state.blocked.items() if k == key})


def _started(state: State, wanted: RunKey | None) -> set[RunKey]:
    """What the final plan starts; with ``wanted``, of the first incumbent that starts it."""
    problem = state.problem()
    solver = state.policy.solver
    started: set[RunKey] = set()
    for outcome in stages.incumbents(problem, state.room, float(solver.gap), solver.seed):
        started = outcome.draft.started(problem)
        if wanted in started:
            break
    return started


def largest(most: int, works: Callable[[int], bool]) -> int:
    """The largest number from 1 to ``most`` that works, 0 where none does; whatever is smaller than one works too."""
    if most < 1 or works(most):
        return max(0, most)
    if most == 1 or not works(1):
        return 0
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low
