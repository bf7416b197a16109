"""Bench for changes: a run that waits, in the world as this cycle's plan leaves it.

A change is first tried on the run alone, everything else kept as the plan leaves it: a small problem, so many can be
tried. What starts the run there is then *confirmed*: the tables are edited and planned again, with all that waits, by
the planner itself,

1. in the world in which this plan has been carried out, as far as it is near (see near): the change is made after the
   cycle and the next one starts it;
2. where few runs wait (`planner.effort`), also in the world of now: the change is made before this cycle.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from msgspec import structs

from jobtree.world.plan import Plan
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from jobtree.world.tables.values import keys
from planner.advice.contenders import contenders, weighed
from planner.advice.edits import Cell, Edit, edited, unpromised
from planner.dates.holding import held_state
from planner.effort import USUAL, Effort
from planner.placement.draft import Draft
from planner.plan.assemble import beside_growth
from planner.remedies.near import near, without
from planner.search import stages
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.follow import waiting


@dataclass(frozen=True)
class Bench:
    """Bench of one run: see the module.

    ``kept``: the world as the plan leaves it, and what of it is ``near`` the run (``key``). ``state``: of the whole, in
    which the run waits alone, with its gang, without the ``others`` near it that wait, heaviest first.
    """

    snapshot: Snapshot
    plan: Plan
    key: RunKey
    kept: Snapshot = field(repr=False)
    near: Snapshot = field(repr=False)
    state: State = field(repr=False)
    others: tuple[RunKey, ...] = field(repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan, key: RunKey, effort: Effort = USUAL) -> "Bench":
        """Set it up for a run that waits under ``plan``, which was made from ``snapshot``."""
        kept = unpromised(after(snapshot, plan), [key])
        whole = held_state(kept, plan.at, effort)
        state = alone(whole, key)
        world = near(kept, whole, key)
        there = set(keys(world.tables["runs"])) - {run.key for run in state.pending}
        others = [run for run in whole.pending if run.key in there]
        others.sort(key=lambda run: (-run.weight(whole.policy, plan.at), run.created, run.key))
        return cls(snapshot, plan, key, kept, world, state, tuple(run.key for run in others))

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
        return self.state.effort.few(len(self.plan.waits))

    @cached_property
    def promised(self) -> Snapshot:
        """The near world with what the run itself is promised."""
        promises = after(self.snapshot, self.plan).tables["reservations"]
        return replace(self.near, tables={**self.near.tables, "reservations": promises})

    @cached_property
    def focus(self) -> Snapshot:
        """The near world without anything else that waits."""
        return without(self.near, self.state, frozenset(self.others))

    @cached_property
    def contest(self) -> Snapshot | None:
        """The near world with the heaviest of the others that ask for no more GPUs; None where few wait."""
        if self.few:
            return None
        runs = self.state.runs
        most = sum(run.width_min for run in self.state.pending)
        asking = [key for key in self.others if runs[key].width_min <= most and not waiting(runs[key], self._outcomes)]
        return without(
            self.near, self.state, frozenset(self.others).difference(asking[: self.state.effort.helping.field])
        )

    @cached_property
    def _outcomes(self) -> dict[RunKey, str]:
        return {key: run.outcome for key, run in self.state.runs.items()}

    def beside(self, more: Iterable[RunKey]) -> "Bench":
        """Make a bench on which ``more`` runs wait with the run."""
        keys = set(more)
        fellows = [self.state.runs[key].waiting() for key in self.others if key in keys]
        return replace(self, state=self.state.asking([*self.state.pending, *fellows]))

    def with_run(self, **fields: Any) -> State:
        """The run alone, with other fields (of `RunRow`): a world that has changed."""
        changed = structs.replace(self.run, **fields)
        pending = [changed if run.key == self.key else run for run in self.state.pending]
        runs = {**self.state.runs, self.key: changed}
        return replace(self.state.asking(pending, runs), changed=self.at)

    def within(self, edits: Iterable[Edit]) -> "Bench":
        """The bench of the same run in an edited near world."""
        changes = list(edits)
        state = alone(held_state(edited(self.focus, changes), self.at, self.state.effort), self.key)
        state = state.asking(state.pending, {**self.state.runs, **state.runs})
        return replace(self, near=edited(self.near, changes), state=state)

    def starts(self, state: State | None = None) -> bool:
        """Would the run start, alone, in this state (None: as it stands)?"""
        found = state or self.state
        return self.key in contenders(found) and self.key in _started(found, self.key)

    def instead(self, edits: Iterable[Edit]) -> list[RunKey] | None:
        """None where the run starts when the edited world is planned again, with all that waits.

        Else the runs that this would start instead, heaviest first.
        """
        changes = list(edits)
        for world in self._worlds(changes):
            state = held_state(edited(world, changes), self.at, self.state.effort)
            if not self.few:
                state = weighed(state, [self.key])
            started = _started(self._heaviest(state) if world is self.contest else state, None)
            if self.key not in started:
                new = [state.runs[key] for key in started - self._planned]
                new.sort(key=lambda run: (-run.weight(state.policy, self.at), run.created, run.key))
                return [run.key for run in new]
        return None

    def _heaviest(self, state: State) -> State:
        """Runs that wait on the bench and the heaviest of the others."""
        mine = {run.key for run in self.state.pending}
        there = {run.key for run in state.pending}
        rivals = [key for key in self.others if key in there][: self.state.effort.helping.rivals]
        return state.asking([run for run in state.pending if run.key in mine.union(rivals)])

    def _worlds(self, changes: Iterable[Edit]) -> Iterator[Snapshot]:
        """Worlds in which the run has to start, the quickest to try first."""
        if any(isinstance(edit, Cell) and (edit.table, edit.column) == ("runs", "flavor") for edit in changes):
            yield self.kept
        else:
            if self.contest is not None:
                yield self.contest
            yield self.near
        if self.few:
            yield self.snapshot

    @cached_property
    def _planned(self) -> set[RunKey]:
        return {lease.run_key for lease in self.plan.leases}


def alone(state: State, key: RunKey) -> State:
    """The state with no more waiting than the run, and its gang."""
    gang, space = state.runs[key].gang, key[0]
    mine = [run for run in state.pending if run.key == key or (gang and (run.gang, run.namespace) == (gang, space))]
    state = state.asking(mine)
    state.blocked = {k: why for k, why in state.blocked.items() if k == key}
    return state


def _started(state: State, wanted: RunKey | None) -> set[RunKey]:
    """Starts of the final plan, growth beside them; with ``wanted``, of the first incumbent that starts it."""
    problem, draft = state.problem(), Draft()
    for outcome in stages.incumbents(problem, state.room, state.policy.solver, state.effort):
        draft = outcome.draft
        if wanted in draft.started(problem):
            break
    return beside_growth(state, problem, draft).started(problem)


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
