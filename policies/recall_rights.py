"""Recall in large models: groups of a type told apart by the rights of their runs.

A large model counts the groups of a type in a region, not whose they are. So near payments of one run may ask for a
part of a group there, and those of another for the rest of it. With groups(type, shape, rights, regions) whole, of the
kinds of domains whose nodes lie in these regions:

    Σ_regions groups(type, shape, rights, ·) ≤ what starts of the type with these rights
    Σ_rights groups(type, shape, ·, regions) ≤ what lies of the type there
    Σ_envelopes near(rights, envelope, the type's cell in a region) ≤ Σ weighed GPUs × groups(type, shape, rights, ·)

Every plan has such groups. They are many, so a model gets them only where it is solved again (planner.mend), and only
for ``near`` that can be a reason for something.
"""

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import NamedTuple

from policies.demand import Starts
from policies.model import INF, Model
from policies.payments import Terms
from policies.places import Kind, usable
from policies.problem import Problem, RunType
from policies.recall_flows import Near, weighed
from policies.shapes import Shape


class _Spot(NamedTuple):
    """Where groups of a type are not told apart by place: kinds of domains whose nodes lie in these regions."""

    shape: Shape
    regions: frozenset[int]


def rows(model: Model, problem: Problem, kinds: list[Kind], starts: Starts, near: Near, idle: Set[int]) -> None:
    """Tell groups apart of types of which not all runs may recall the same.

    ``near``: of a model that tells types apart; ``idle``: columns of it that are no reason for anything.
    """
    asked: dict[int, dict[int, dict[int, Terms]]] = defaultdict(lambda: defaultdict(dict))
    for cell, by_rights in near.columns.items():
        for rights, terms in by_rights.items():
            if any(column not in idle for column, _ in terms):
                asked[cell.kind][rights][cell.region] = terms
    for index, mine in sorted(asked.items()):
        kind = problem.types[index]
        if len({problem.candidates[c].rights for c in kind.members}) > 1:
            _type(model, problem, kind, _lying(problem, kind, kinds, starts), mine, starts)


def _lying(problem: Problem, kind: RunType, kinds: list[Kind], starts: Starts) -> dict[_Spot, Terms]:
    """− groups of the type, by where they lie."""
    region = problem.book.money.region
    found: dict[_Spot, Terms] = {}
    for shape in dict.fromkeys(shape for shape, _ in (*kind.pieces, *kind.step_pieces)):
        for place in kinds:
            column = starts.groups.get((kind.index, shape, place.index))
            if column is not None:
                spot = _Spot(shape, frozenset(region[site] for site in usable(place, kind.sites)))
                found.setdefault(spot, []).append((column, -1.0))
    return found


def _type(
    model: Model,
    problem: Problem,
    kind: RunType,
    lying: Mapping[_Spot, Terms],
    asked: Mapping[int, Mapping[int, Terms]],
    starts: Starts,
) -> None:
    """``asked``: rights → region → near payments there."""
    there: dict[_Spot, Terms] = defaultdict(list)
    for rights, payments in sorted(asked.items()):
        groups: dict[_Spot, int] = {}
        for spot in lying:
            if not spot.regions.isdisjoint(payments):
                regions = sorted(spot.regions)
                column = model.column(("groups-by-rights", kind.index, spot.shape, rights, *regions), integer=True)
                groups[spot] = column
                there[spot].append((column, 1.0))
        mine = [c for c in kind.members if problem.candidates[c].rights == rights and c in starts.start]
        for shape in dict.fromkeys(spot.shape for spot in groups):
            terms = [(column, 1.0) for spot, column in groups.items() if spot.shape == shape]
            terms += _started(kind, shape, mine, starts)
            model.row(("groups-start", kind.index, shape, rights), terms, -INF, 0.0)
        for region, paid in sorted(payments.items()):
            here = [(c, -weighed(problem, [(spot.shape, 1)])) for spot, c in groups.items() if region in spot.regions]
            model.row(("near-by-rights", kind.index, rights, region), [*paid, *here], -INF, 0.0)
    for spot, terms in there.items():
        regions = sorted(spot.regions)
        model.row(("groups-lie", kind.index, spot.shape, *regions), [*terms, *lying[spot]], -INF, 0.0)


def _started(kind: RunType, shape: Shape, members: list[int], starts: Starts) -> Terms:
    """− groups of a shape that start with these candidates."""
    base = sum(times for other, times in kind.pieces if other == shape)
    step = sum(times for other, times in kind.step_pieces if other == shape)
    terms: Terms = [(starts.start[c], -float(base)) for c in members if base]
    return terms + [(starts.steps[c], -float(step)) for c in members if step and c in starts.steps]
