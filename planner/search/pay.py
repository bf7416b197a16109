"""Payers once the starts lie on nodes: stages 4 and 7, as a small model; then whole GPUs run by run.

    min overdraw (stage 4), then Σ rank × milli-GPUs, ties by the payers' order;  every GPU of a kept start is paid,
    every cap holds

Where the starts cannot all be paid (the master knows sites, not nodes), the most valuable set that can is kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from jobtree.world.tables.values import Floats
from planner.effort import USUAL, Effort
from planner.filling.filler import demand
from planner.filling.purses import Demand
from planner.placement.draft import Draft, Payments
from planner.placement.place import by_candidate
from planner.placement.room import Room
from planner.solver.blocks import blocks
from planner.solver.highs import FEW_CUTS, LEAN, Settings, integer_bound, only_integer, solve
from planner.solver.relaxed import relax_both
from planner.solver.rest import beside, fractional, made_whole, solve_rest, tight
from policies.model import payments, recall
from policies.model.linear import Model
from policies.model.payers import Source
from policies.model.payments import PayKey, Purse, limits_runs
from policies.model.problem import Problem

OVERDRAW: Final = 100.0
"""What a GPU of overdraw counts on large problems, as ranks of a GPU's payer: those go before it."""


@dataclass
class _PayModel:
    """``keep``: candidate → column; ``needs``: what it has to be paid for; ``purse``: its purse; ``overdraw``: stage 4,
    costs to maximise.
    """

    model: Model
    keep: dict[int, int]
    needs: dict[int, Demand]
    purse: dict[int, int]
    purses: list[Purse]
    pay: dict[PayKey, int]
    overdraw: dict[int, float]


def pay(
    problem: Problem, room: Room, draft: Draft, settings: Settings, effort: Effort = USUAL, *, settled: bool = False
) -> tuple[list[int], int]:
    """Fill ``draft.paid`` with payments of least overdraw, then of the nearest payers; on exact problems, of equally
    near ones the first.

    ``settled``: it holds payments of all starts already, which stay where no better ones are found.

    Returns candidates that cannot be paid (the caller takes them out), and the least Σ rank × milli-GPUs of the others.
    """
    built = _build(problem, room, draft)
    if not built.keep:
        return [], 0
    model = built.model
    for column in built.keep.values():
        model.lower[column] = 1.0
    values, nearest = _nearest(problem, built, settings, effort, paid=_paid(built, draft) if settled else None)
    lost: list[int] = []
    if values is None and settled:
        return [], nearest
    if values is None:
        kept = _kept(problem, built, settings, effort)
        lost = [c for c, column in built.keep.items() if kept is None or kept[column] < 0.5]
        for candidate, column in built.keep.items():
            model.lower[column] = model.upper[column] = 0.0 if candidate in lost else 1.0
        values, nearest = _nearest(problem, built, settings, effort, paid=kept)
    if values is None:
        return list(built.keep), 0
    _hand_out(problem, built, values, [c for c in built.keep if c not in lost], draft)
    return lost, nearest


def _paid(built: _PayModel, draft: Draft) -> Floats:
    """The draft's payments as a point of the model."""
    point = np.zeros(len(built.model.cost))
    for candidate, keep in built.keep.items():
        point[keep] = 1.0
        for (active, region), mine in draft.paid[candidate].items():
            for envelope, gpus in mine.items():
                point[built.pay[built.purse[candidate], active, region, envelope]] += gpus
    recall.complete(built.model, point)
    return point


def _worth(problem: Problem, candidate: int) -> float:
    kind = problem.type_of(candidate)
    return float(kind.base_gpus) * problem.candidates[candidate].weight


def _build(problem: Problem, room: Room, draft: Draft) -> _PayModel:
    model = Model()
    pieces = by_candidate(draft.pieces)
    built = _PayModel(model, {}, {}, {}, [], {}, {})
    numbers: dict[object, int] = {}
    known: dict[int, tuple[Source, ...]] = {}
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        if problem.types[candidate.type].unfunded:
            continue
        sources = known.get(candidate.purse)
        if sources is None:
            sources = known[candidate.purse] = tuple(payer.source for payer in candidate.payers)
        own = limits_runs(sources, candidate.run.max_borrow)
        number = numbers.setdefault((candidate.payers, start.candidate if own else -1), len(numbers))
        if number == len(built.purses):
            built.purses.append(Purse(number, start.candidate, sources, candidate.run.max_borrow))
        column = model.column(("keep", start.candidate), upper=1.0, integer=True)
        purse = built.purses[number]
        purse.starts.append(column)
        built.keep[start.candidate], built.purse[start.candidate] = column, number
        needs = built.needs[start.candidate] = demand(problem, room, pieces[start.candidate])
        for (active, region), gpus in needs.items():
            purse.add_start(active, region, gpus, column)
    built.pay, built.overdraw = payments.rows(model, problem, built.purses, whole=True)
    return built


def _kept(problem: Problem, built: _PayModel, settings: Settings, effort: Effort) -> Floats | None:
    """Payments of the most valuable starts that can be paid together."""
    model = built.model
    for column in built.keep.values():
        model.lower[column] = 0.0
    worth = {column: _worth(problem, candidate) for candidate, column in built.keep.items()}
    limits = effort.paying
    if len(model.cost) > limits.in_parts and not problem.exact:
        found = _kept_in_parts(problem, built, worth, settings, effort)
        enough = found is not None and _of(worth, found) >= (1 - limits.much) * sum(worth.values())
        if found is not None and (enough or len(model.cost) > limits.whole):
            return found
    model.maximise(worth)
    return solve(model, settings if problem.exact else _quick(settings, effort)).values


def _quick(settings: Settings, effort: Effort) -> Settings:
    """Settings with which payers of problems that are not exact are searched for."""
    return settings | LEAN | FEW_CUTS | {"mip_max_nodes": effort.paying.nodes}


def _rest(settings: Settings, effort: Effort) -> Settings:
    """Settings with which the rest of a model is solved where most of it stays."""
    return settings | {"mip_max_nodes": effort.rest_nodes}


def _kept_in_parts(
    problem: Problem, built: _PayModel, worth: dict[int, float], settings: Settings, effort: Effort
) -> Floats | None:
    """The same where what the relaxation keeps is kept, by payers nearly as near as can be."""
    model = built.model
    little = effort.paying.near * float(problem.book.money.policy.age.unit)
    ranks = payments.objective(problem, built.purses, built.pay)
    model.maximise(worth | {column: little * cost for column, cost in ranks.items()})
    relaxed = _with_levels(model, _quick(settings, effort))
    if relaxed is None:
        return None
    off = fractional(model, relaxed)
    for cap in tight(model, off):
        mine = beside(model, cap, equal=True)
        off[[c for _, c in sorted((worth[c], c) for c in worth if mine[c])[: effort.paying.light]]] = True
    return solve_rest(model, relaxed, beside(model, off, equal=True), _rest(settings, effort)).values


def _with_levels(model: Model, settings: Settings) -> Floats | None:
    """The best point at which nothing is whole but how far starts are allowed at contested caps (`model.recall`).

    Families that share no cap are blocks of their own: apart they take a third of the time.
    """
    allowed = model.columns_named("allowed")
    point = np.zeros(len(allowed))
    with only_integer(model, allowed):
        for block in blocks(model):
            found = solve(block.model, settings).values
            if found is None:
                return None
            point[block.columns] = found
    return point


def _nearest(
    problem: Problem, built: _PayModel, settings: Settings, effort: Effort, paid: Floats | None = None
) -> tuple[Floats | None, int]:
    """Least overdraw, then least Σ rank × milli, then on exact problems the earliest payers in each purse's order.

    None: not all can be paid. ``paid``: whole payments that are known. Returns payments, and the bound of the second
    objective in milli-GPUs × rank.
    """
    model = built.model
    ranks = payments.objective(problem, built.purses, built.pay)
    order = payments.order(problem, built.purses, built.pay)
    if not problem.exact:
        return _nearly_nearest(built, ranks, order, settings, effort, paid)
    if built.overdraw:
        model.maximise(built.overdraw)
        least = solve(model, settings)
        if least.values is None:
            return None, 0
        model.keep(("overdraw",), built.overdraw, least.objective)
    model.maximise(ranks)
    first = solve(model, settings)
    if first.values is None:
        return paid, 0
    nearest = integer_bound(1000 * first.bound, least=True) if math.isfinite(first.bound) else 0
    reached = sum(cost * round(float(first.values[column])) for column, cost in ranks.items())
    model.keep(("nearest",), ranks, reached)
    model.maximise(order)
    second = solve(model, settings)
    return first.values if second.values is None else second.values, nearest


def _nearly_nearest(
    built: _PayModel,
    ranks: Mapping[int, float],
    order: Mapping[int, float],
    settings: Settings,
    effort: Effort,
    paid: Floats | None,
) -> tuple[Floats | None, int]:
    """The same of large problems: a network but for spares, which count half, once it is decided how far starts are
    allowed at contested caps; mostly its relaxation is whole.
    """
    model, most, quick = built.model, effort.paying.whole, _quick(settings, effort)
    costs = {**ranks, **{column: OVERDRAW * cost for column, cost in built.overdraw.items()}}
    least = 0
    if built.overdraw:
        model.maximise(ranks)
        bound = solve(model, settings, relaxed=True)
        least = integer_bound(1000 * bound.bound, least=True) if bound.optimal else 0
        model.maximise(costs)
        point = _with_levels(model, quick)
        if point is None:
            return paid, least
        for column in np.flatnonzero(model.columns_named("allowed")).tolist():
            model.lower[column] = model.upper[column] = round(float(point[column]))
    near, relaxed = relax_both(model, costs, order, settings)
    if near.infeasible:
        return paid, least
    if near.optimal and not built.overdraw:
        least = integer_bound(1000 * near.bound, least=True)
    model.maximise(costs)
    if relaxed.values is not None:
        whole = made_whole(model, relaxed.values, _rest(settings, effort), most=most)
        if whole is not None or len(model.cost) > most:
            return paid if whole is None else whole, least
    found = solve(model, quick).values
    return paid if found is None else found, least


def _of(costs: Mapping[int, float], point: Floats) -> float:
    return sum(cost * float(point[column]) for column, cost in costs.items())


def _hand_out(problem: Problem, built: _PayModel, values: Floats, candidates: list[int], draft: Draft) -> None:
    """Whole GPUs from purses to runs: heaviest runs first, nearest payers first."""
    purse_left: dict[tuple[int, bool, int], list[list[int]]] = {}
    for (purse, active, site, envelope), column in built.pay.items():
        amount = round(float(values[column]))
        if amount:
            purse_left.setdefault((purse, active, site), []).append([envelope, amount])
    for candidate in sorted(candidates, key=lambda c: problem.candidates[c].order):
        paid: dict[tuple[bool, int], Payments] = {}
        for (active, site), gpus in sorted(built.needs[candidate].items()):
            queue = purse_left.get((built.purse[candidate], active, site), [])
            paid[active, site] = _draw(queue, gpus)
        draft.paid[candidate] = paid


def _draw(queue: list[list[int]], gpus: int) -> Payments:
    taken: Payments = {}
    while gpus and queue:
        envelope, left = queue[0]
        here = min(gpus, left)
        taken[envelope] = taken.get(envelope, 0) + here
        gpus -= here
        queue[0][1] -= here
        if not queue[0][1]:
            queue.pop(0)
    return taken
