"""The planner's front: a search that hands out incumbents, and the Plan of any of them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import msgspec
import numpy as np

from jobtree.world.collector import collector_paused
from jobtree.world.plan import Plan, Prices
from jobtree.world.tables.snapshot import Snapshot
from planner.cutting.deciding import Decision, with_cuts
from planner.dates.front import dated
from planner.dates.holding import held_state
from planner.effort import USUAL, Effort
from planner.plan.assemble import assemble
from planner.plan.prices import prices_of
from planner.search import stages
from planner.search.certificates import Outcome
from planner.search.incumbent import Incumbent
from planner.state.lower import Waiting
from planner.state.state import State
from policies.inputs.places import kinds
from policies.model import demand
from policies.model.linear import INF
from policies.model.master import Master, build
from policies.model.problem import Problem


class Planning:
    """The planning of one cycle: of a snapshot, at a Unix second. Nothing is computed before it is asked for."""

    def __init__(self, snapshot: Snapshot, at: int, effort: Effort = USUAL) -> None:
        """``at``: the cycle's time, the planner's only clock."""
        self.effort = effort
        self.snapshot = snapshot
        self.at = at

    @cached_property
    def state(self) -> State:
        """State that the snapshot means at the cycle's time."""
        with collector_paused():
            return self.decision.state

    @cached_property
    def decision(self) -> Decision:
        """State, and what was drawn for it."""
        with collector_paused():
            return with_cuts(self.snapshot, held_state(self.snapshot, self.at, self.effort))

    @cached_property
    def waiting(self) -> Waiting:
        """Runs that wait and may start, before they are lowered."""
        with collector_paused():
            return self.state.waiting()

    @cached_property
    def problem(self) -> Problem:
        """Problem of the runs that wait and may start."""
        with collector_paused():
            return self.state.lowered(self.waiting)

    @cached_property
    def prices(self) -> Future[Prices | None]:
        """Prices, found by a thread beside the search and the words, from what both only read."""
        state, waiting = self.state, self.waiting
        state.room()  # counted here, once
        thread = ThreadPoolExecutor(1)
        found = thread.submit(prices_of, state, waiting)
        thread.shutdown(wait=False)
        return found

    def incumbents(self) -> Iterator[Incumbent]:
        """Better and better ones, first the greedy one, last the final one."""
        for outcome in self.outcomes():
            yield Incumbent.of(outcome)
            _ = self.prices  # the first one does not wait for them

    def outcomes(self) -> Iterator[Outcome]:
        """Incumbents as the search has them."""
        return stages.incumbents(self.problem, self.state.room, self.state.policy.solver, self.effort)

    def finish(self, incumbent: Incumbent) -> Plan:
        """The Plan of an incumbent: the same bytes whether this search or another one of the same cycle found it."""
        with collector_paused():
            plan = msgspec.structs.replace(self.undated(incumbent), lottery=self.decision.lottery)
            return dated(self.snapshot, plan, self.effort, self.decision)

    def undated(self, incumbent: Incumbent) -> Plan:
        """Plan of an incumbent without promises and estimates."""
        with collector_paused():
            return assemble(self.snapshot, self.state, self.problem, incumbent, self.prices)


def plan(snapshot: Snapshot, at: int, effort: Effort = USUAL) -> Plan:
    """The final plan: the same bytes for the same snapshot, time, effort and version."""
    planning = Planning(snapshot, at, effort)
    with collector_paused():
        *_, last = planning.incumbents()
        return planning.finish(last)


def master_of(snapshot: Snapshot, at: int, effort: Effort = USUAL, *, last: bool) -> Master:
    """The master as it is solved first, or with ``last`` as it is solved last; objective: stage ``starts``.

    The last one tells apart most, and no bound of the plan is below its optimum.
    """
    planning = Planning(snapshot, at, effort)
    problem = planning.problem
    master = None
    if last:
        *_, outcome = planning.outcomes()
        master = outcome.master
    if master is None:
        room = planning.state.room()
        places = kinds(problem.fleet, room.free, frozenset())
        master = build(problem, places, room.capacity)
    for row in np.flatnonzero(master.model.rows_named("stage")).tolist():  # what was reached is no rule
        master.model.row_lower[row] = -INF
    master.model.maximise(demand.objective(problem, master.starts, unfunded=False))
    return master
