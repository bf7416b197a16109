"""Waiting: the first known time at which the run starts by itself.

Known times are ends by time limits, windows by which more may be paid for, maintenance that is over, and promised
starts. Cycles are planned at each of them in turn, each on what the one before has left, until the run starts. Nothing
is said where many runs wait, where it takes more than `Effort.helping.events` cycles, or where one of them does not
keep a promise that is due, be it for a draw: this is no forecast, only an exact date.
"""

from collections.abc import Iterator

from jobtree.api.values.scalars import Time
from jobtree.world.tables.after import after
from planner.advice.contenders import idle
from planner.advice.edits import suspended
from planner.dates.holding import held_state
from planner.planning import plan
from planner.remedies.bench import Bench
from planner.remedies.record import Remedy, Who
from planner.state.state import State
from policies.caps.book import windows_ease
from policies.promises.rules import read_promises


def wait(bench: Bench) -> Iterator[Remedy]:
    """The cycle that starts the run if nothing but time passes; confirmed by having planned it."""
    world, at = bench.promised, bench.at
    horizon = bench.at + int(bench.state.policy.reservations.horizon)
    for _ in range(bench.state.effort.helping.events if bench.few else 0):
        promises = [each for each in read_promises(world.tables["reservations"]) if each.stands]
        known = {*_known(held_state(world, at)), *(each.start for each in promises)}
        times = [time for time in known if at < time <= horizon]
        if not times:
            return
        at = min(times)
        state = held_state(world, at)
        found = plan(suspended(world, idle(state, state.holds.promised.all)), at)  # planned or not, those wait
        starts = {lease.run_key for lease in found.leases}
        if bench.key in starts:
            yield Remedy("wait", Who.TIME, 0, f"waiting until {Time(at)}", at=at)
            return
        if any(each.start <= at and each.run_key not in starts for each in promises):
            return
        world = after(world, found)


def _known(state: State) -> Iterator[int]:
    """Times at which something is known to change for the better."""
    yield from (end for end in state.limits.values() if end is not None)
    yield from windows_ease(state.book)
    yield from (int(window.end) for window in state.policy.maintenance)
