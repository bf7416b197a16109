"""The planner's front: incumbents for those with a deadline, the plan for those without."""

from collections.abc import Iterator

from jobtree.world.plan import Plan
from jobtree.world.snapshot import Snapshot
from planner import stages
from planner.assemble import assemble
from planner.derive import state_of
from planner.master import Master, build
from policies import demand
from policies.model import INF
from policies.places import kinds


def incumbents(snapshot: Snapshot, at: int) -> Iterator[Plan]:
    """Better and better plans for the cycle at ``at`` (Unix seconds): first the greedy one, last the final one."""
    state = state_of(snapshot, at)
    problem = state.problem()
    solver = state.policy.solver
    for outcome in stages.incumbents(problem, state.room, float(solver.gap), solver.seed):
        yield assemble(snapshot, state, problem, outcome)


def plan(snapshot: Snapshot, at: int) -> Plan:
    """The final plan: the same bytes for the same snapshot, time and version."""
    *_, last = incumbents(snapshot, at)
    return last


def master_of(snapshot: Snapshot, at: int, *, last: bool = True) -> Master:
    """The master as it is solved first, or with ``last`` as it is solved last; objective: stage ``starts``.

    The last one tells apart most, and no bound of the plan is below its optimum.
    """
    state = state_of(snapshot, at)
    problem = state.problem()
    solver = state.policy.solver
    master = None
    if last:
        *_, outcome = stages.incumbents(problem, state.room, float(solver.gap), solver.seed)
        master = outcome.master
    if master is None:
        room = state.room()
        places = kinds(problem.fleet, room.free, frozenset())
        master = build(problem, places, room.capacity, merged=not problem.exact)
    for row, (what, *_) in enumerate(master.model.row_keys):
        if what == "stage":  # what was reached is no rule
            master.model.row_lower[row] = -INF
    master.model.maximise(demand.objective(problem, master.starts, unfunded=False))
    return master
