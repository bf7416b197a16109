"""A large master solved once more, near what its first solution has come to: where starts found no place, or no payer.

The second model tells apart what the first does not: domains of a kind in which some group found no place, as far as
they had GPUs left. It is small by what it leaves as it is: how far starts are allowed where claims may be recalled, as
the first solution has it; in domains of such a kind that were full, and wherever the relaxation has as many, the groups
that lie there; and what its reduced costs say is far from the optimum.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jobtree.world.tables.values import Floats
from planner.effort import Effort
from planner.placement.draft import Draft
from planner.placement.room import Room
from planner.solver.highs import NOISE, Settings, Solution
from planner.solver.relaxed import Relaxed
from planner.solver.rest import solve_rest
from policies.inputs.places import kinds
from policies.model import demand
from policies.model.master import Master, build


class Again(NamedTuple):
    """A master, and a point of it; its bound holds for such points only."""

    master: Master
    solution: Solution


class First(NamedTuple):
    """First solution, and what it has come to.

    ``values``: of the master; ``draft``: finished, without what was lost; ``worth``: what it reaches of the objective;
    ``failed``: domains of kinds in which some piece found no place; ``left``: those that had GPUs left.
    """

    master: Master
    values: Floats
    draft: Draft
    worth: float
    failed: frozenset[int]
    left: frozenset[int]


def solve_again(first: First, room: Room, settings: Settings, effort: Effort, *, unfunded: bool) -> Again | None:
    """A point that may come to more than the first one's draft; None: none is found.

    ``room``: before anything starts; ``unfunded``: which starts the objective counts.
    """
    problem = first.master.problem
    places = kinds(problem.fleet, room.free, first.failed & first.left)
    master = build(problem, places, room.capacity)
    fixed = _decided(first, master)
    master.model.maximise(demand.objective(problem, master.starts, unfunded=unfunded))
    found = _solve(first, master, fixed, settings, effort)
    return None if found is None else Again(master, found)


def _solve(
    first: First, master: Master, fixed: Mapping[int, float], settings: Settings, effort: Effort
) -> Solution | None:
    """The best whole point near the relaxation's and the draft's; ``fixed``: columns, and what they stay at."""
    model = master.model
    full, others = _lies(first, master)
    relaxed = Relaxed(model, settings)
    relaxed.only({column: (value, value) for column, value in (*fixed.items(), *full.items())})
    point, value = relaxed.best()
    if point is None or value <= first.worth:
        return None
    free = np.abs(relaxed.reduced()) <= effort.dear * (value - first.worth)
    free[[*fixed, *full, *(column for column, count in others.items() if abs(point[column] - count) < NOISE)]] = False
    found = solve_rest(model, point, free, settings | {"mip_max_nodes": effort.rest_nodes})
    return None if found.values is None else found


def _decided(first: First, master: Master) -> dict[int, float]:
    """Columns of how far starts are allowed, as the first solution has them."""
    known = dict(zip(first.master.model.column_keys, first.values.tolist(), strict=True))
    keys = enumerate(master.model.column_keys)
    return {column: float(round(known[key])) for column, key in keys if key[0] == "allowed"}


def _lies(first: First, master: Master) -> tuple[dict[int, float], dict[int, float]]:
    """Columns of groups in kinds that the first master had → how many the draft has there: where the domains were full,
    so that they stay for sure, and elsewhere.

    Without runs that lie in one domain at any width: their groups are counted in another way there.
    """
    problem = master.problem
    of = {domain: kind.index for kind in master.kinds for domain in kind.domains}
    there = Counter((problem.candidates[p.candidate].type, p.shape, of[p.domain]) for p in first.draft.pieces)
    full: dict[int, float] = {}
    others: dict[int, float] = {}
    for (kind, shape, place), column in master.starts.groups.items():
        lowered, domains = problem.types[kind].lowered, first.failed.intersection(master.kinds[place].domains)
        if not (lowered.together and lowered.steps) and domains.isdisjoint(first.left):
            (full if domains else others)[column] = float(there[kind, shape, place])
    return full, others
