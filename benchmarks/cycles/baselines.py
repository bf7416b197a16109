"""What simple schedulers reach on the same world, under the same rules.

``python -m benchmarks.cycles.baselines STATE AT`` prints it.

Each takes the runs one at a time in an order of its own, starts those that fit in money and room at their widest, with
the planner's own payers, slots and exact sums, and never takes one back:

    by age     the oldest (heaviest GPU) first: a queue with backfill
    density    most weight per GPU first, a GPU costing what its room and its payers' money are contended:
               GPUs wanted over GPUs left, of both
    smallest   the fewest GPUs first
    best fit   the most GPUs first, each in the domains that it leaves least of: best-fit decreasing

Prints a JSON list of `Baseline`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from jobtree.cluster.statefile import StateFile
from jobtree.world.tables.snapshot import Snapshot, take
from planner import Planning
from planner.filling import greedy
from planner.filling.filler import Filler
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.search.objective import value_of
from policies.model.problem import Problem, RunType

Order = Callable[[Problem, Room], list[int]]
"""(problem, what is free) → candidates in the order in which they are tried."""


class Baseline(msgspec.Struct, frozen=True):
    """What an order reaches of stage ``starts``, in its unit, and how many CPU seconds that took."""

    name: str
    runs: int
    gpus: int
    value: int
    cpu: float


def measure(snapshot: Snapshot, at: int) -> list[Baseline]:
    """All orders on one snapshot, by name."""
    planning = Planning(snapshot, at)
    return [_one(planning.problem, name, order, planning.state.room) for name, order in ORDERS.items()]


def _one(problem: Problem, name: str, order: Order, new_room: Callable[[], Room]) -> Baseline:
    began = time.process_time()
    room = new_room()
    for kind in problem.types:
        for site in kind.sites:
            room.wanted[site] += 1
    draft = Draft()
    greedy.fill(Filler(problem, room, Purses.after(problem, draft)), draft, order(problem, room))
    return Baseline(
        name=name,
        runs=len(draft.starts),
        gpus=sum(_gpus(problem, start.candidate, start.steps) for start in draft.starts),
        value=value_of(problem, draft, unfunded=False),
        cpu=round(time.process_time() - began, 2),
    )


def _gpus(problem: Problem, candidate: int, steps: int = 0) -> int:
    kind = problem.type_of(candidate)
    return kind.base_gpus + steps * kind.step_gpus


def _funded(problem: Problem) -> list[int]:
    mine = [i for i, c in enumerate(problem.candidates) if not problem.types[c.type].unfunded]
    return sorted(mine, key=lambda i: problem.candidates[i].order)


def by_age(problem: Problem, _: Room) -> list[int]:
    """The oldest first."""
    return _funded(problem)


def smallest(problem: Problem, _: Room) -> list[int]:
    """The fewest GPUs first, then the oldest."""
    return sorted(_funded(problem), key=lambda i: _gpus(problem, i))


def best_fit(problem: Problem, _: Room) -> list[int]:
    """The most GPUs first, then the oldest."""
    return sorted(_funded(problem), key=lambda i: -_gpus(problem, i))


def density(problem: Problem, room: Room) -> list[int]:
    """Most weight per contended GPU first."""
    purses = Purses.after(problem, Draft())
    money: dict[int, float] = {}
    space: dict[frozenset[int], float] = {}
    for kind in problem.types:
        if not kind.unfunded:
            wanted = float(kind.base_gpus * len(kind.members))
            money[kind.pool] = money.get(kind.pool, 0.0) + wanted
            space[kind.sites] = space.get(kind.sites, 0.0) + wanted
    free = np.asarray(room.free)
    left = {sites: float(free[np.isin(room.fleet.site, sorted(sites))].sum()) for sites in space}
    price: dict[int, float] = {}
    for kind in problem.types:
        if not kind.unfunded:
            price[kind.index] = money[kind.pool] / max(1.0, _payable(problem, purses, kind))
            price[kind.index] += space[kind.sites] / max(1.0, left[kind.sites])
    return sorted(_funded(problem), key=lambda i: -problem.candidates[i].weight / price[problem.candidates[i].type])


def _payable(problem: Problem, purses: Purses, kind: RunType) -> float:
    """GPUs that the payers of a type could hold, each alone."""
    lanes = (
        [problem.book.touches(problem.lane(source, site)) for site in sorted(problem.pays_on(source) & kind.sites)]
        for source in kind.sources
    )
    return float(sum(max((purses.most(touches, 1000) for touches in mine), default=0) for mine in lanes))


ORDERS: Final[dict[str, Order]] = {"by age": by_age, "density": density, "smallest": smallest, "best fit": best_fit}


def main() -> None:
    """Entry point of the process."""
    path, at = Path(sys.argv[1]), int(sys.argv[2])
    sys.stdout.buffer.write(msgspec.json.encode(measure(take(StateFile(path, at).read()), at)))


if __name__ == "__main__":
    main()
