"""The planner's front: incumbents for those with a deadline, the plan for those without."""

from collections.abc import Iterator

from jobtree.world.plan import Plan
from jobtree.world.snapshot import Snapshot
from planner import stages
from planner.assemble import assemble
from planner.derive import state_of


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
