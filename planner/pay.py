"""Payers once the starts lie on nodes: stage 7, nearest payers, as a small model; then whole GPUs run by run.

    min Σ rank × milli-GPUs, ties by the payers' order;  every GPU of a kept start is paid, every cap holds

Where the starts cannot all be paid (the master knows sites, not nodes), the most valuable set that can is kept.
"""

import math
from dataclasses import dataclass

import numpy as np

from planner.draft import Draft, Payments
from planner.greedy import demand
from planner.place import Piece
from planner.room import Room
from planner.solver import Floats, Settings, integer_bound, solve
from policies.model import INF, Model
from policies.problem import Problem


@dataclass
class _PayModel:
    """``keep``: candidate → column; ``pay``: (purse, active, region, envelope) → column; ``purse``: by candidate."""

    model: Model
    keep: dict[int, int]
    pay: dict[tuple[int, bool, int, int], int]
    needs: dict[int, dict[tuple[bool, int], int]]
    purse: dict[int, int]


def pay(problem: Problem, room: Room, draft: Draft, settings: Settings) -> tuple[list[int], int]:
    """Fill ``draft.paid`` with nearest payers.

    Returns candidates that cannot be paid (the caller takes them out), and the least Σ rank × milli-GPUs of the others.
    """
    model = _build(problem, room, draft)
    funded = list(model.keep)
    model.model.cost = [0.0] * len(model.model.cost)
    for column in model.keep.values():
        model.model.lower[column] = 1.0
    ranked = _nearest(problem, model, settings)
    lost: list[int] = []
    if ranked is None:
        for candidate, column in model.keep.items():
            model.model.lower[column] = 0.0
            kind = problem.types[problem.candidates[candidate].type]
            model.model.cost[column] = float(kind.base_gpus) * problem.candidates[candidate].weight
        best = solve(model.model, settings)
        kept = best.values
        lost = [c for c, column in model.keep.items() if kept is None or kept[column] < 0.5]
        for candidate, column in model.keep.items():
            model.model.lower[column] = model.model.upper[column] = 0.0 if candidate in lost else 1.0
        ranked = _nearest(problem, model, settings)
    if ranked is None:
        return funded, 0
    values, nearest = ranked
    _hand_out(problem, model, values, [c for c in funded if c not in lost], draft)
    return lost, nearest


def _build(problem: Problem, room: Room, draft: Draft) -> _PayModel:
    model = Model()
    pieces: dict[int, list[Piece]] = {}
    for piece in draft.pieces:
        pieces.setdefault(piece.candidate, []).append(piece)
    built = _PayModel(model, {}, {}, {}, _purses(problem, draft))
    wanted: dict[tuple[int, bool, int], list[tuple[int, float]]] = {}
    members: dict[int, list[int]] = {}
    for start in draft.starts:
        kind = problem.types[problem.candidates[start.candidate].type]
        if kind.unfunded:
            continue
        built.keep[start.candidate] = model.column(("keep", start.candidate), upper=1.0, integer=True)
        built.needs[start.candidate] = demand(problem, room, pieces[start.candidate])
        purse = built.purse[start.candidate]
        members.setdefault(purse, []).append(start.candidate)
        for (active, site), gpus in built.needs[start.candidate].items():
            terms = wanted.setdefault((purse, active, site), [])
            terms.append((built.keep[start.candidate], -float(gpus)))
    _payments(problem, built, wanted, members)
    return built


def _purses(problem: Problem, draft: Draft) -> dict[int, int]:
    """Candidate → purse: starts with the same payers in the same order share one, unless limits of their own bind."""
    found: dict[object, int] = {}
    index: dict[int, int] = {}
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        capped = candidate.run.max_borrow is not None or any(p.run_gpus is not None for p in candidate.payers)
        key = (candidate.payers, start.candidate if capped else -1)
        index[start.candidate] = found.setdefault(key, len(found))
    return index


def _payments(
    problem: Problem,
    built: _PayModel,
    wanted: dict[tuple[int, bool, int], list[tuple[int, float]]],
    members: dict[int, list[int]],
) -> None:
    """Rows as in policies.payments, over starts that have nodes."""
    caps: dict[int, list[tuple[int, float]]] = {}
    discount = problem.milli(active=False)
    for (purse, active, site), terms in sorted(wanted.items()):
        columns = []
        for payer in problem.candidates[members[purse][0]].payers:
            if site in problem.book.money.pays_on[payer.envelope]:
                key = (purse, active, site, payer.envelope)
                column = built.pay[key] = built.model.column(("pay", *key), integer=True)
                columns.append((column, 1.0))
                for cap, weight in problem.book.touches(problem.lane(payer, site)):
                    caps.setdefault(cap, []).append((column, float(weight * problem.milli(active))))
        built.model.row(("paid", purse, active, site), [*columns, *terms], 0.0, 0.0)
    for cap, terms in sorted(caps.items()):
        scale = problem.book.caps[cap].measure.scale
        left = max(0, problem.room_of(cap)) / scale
        built.model.row(("cap", cap), [(c, w / scale) for c, w in terms], -INF, left)
    for purse, candidates in sorted(members.items()):
        payers, run = problem.candidates[candidates[0]].payers, problem.candidates[candidates[0]].run
        limited = run.max_borrow is not None or any(p.run_gpus is not None for p in payers)
        mine = {key: column for key, column in built.pay.items() if key[0] == purse} if limited else {}
        loans = {payer.envelope for payer in payers if payer.loan}
        if run.max_borrow is not None and loans:
            terms = [(column, 1.0) for key, column in mine.items() if key[1] and key[3] in loans]
            built.model.row(("borrow", purse), terms, -INF, float(run.max_borrow))
        for payer in payers:
            if payer.run_gpus is not None:
                terms = [(c, 1.0 if k[1] else discount / 1000) for k, c in mine.items() if k[3] == payer.envelope]
                built.model.row(("per-run", purse, payer.envelope), terms, -INF, float(payer.run_gpus))


def _nearest(problem: Problem, built: _PayModel, settings: Settings) -> tuple[Floats, int] | None:
    """Least Σ rank × milli, then the earliest payers in each purse's order. None where not all can be paid.

    Returns payments, and the bound of the first objective in milli-GPUs × rank.
    """
    discount = problem.milli(active=False)
    ranks = [0.0] * len(built.model.cost)
    orders = [0.0] * len(built.model.cost)
    by_purse: dict[int, dict[int, tuple[int, int]]] = {}
    for candidate in built.keep:
        places = by_purse.setdefault(built.purse[candidate], {})
        for place, payer in enumerate(problem.candidates[candidate].payers):
            places.setdefault(payer.envelope, (payer.rank, place))
    for (purse, active, _, envelope), column in built.pay.items():
        rank, place = by_purse[purse][envelope]
        milli = 1.0 if active else discount / 1000
        ranks[column] = -rank * milli
        orders[column] = -place * milli
    built.model.cost = ranks
    first = solve(built.model, settings)
    if first.values is None:
        return None
    reached = float(np.dot(np.asarray(ranks), np.round(first.values)))
    built.model.keep(("nearest",), {column: cost for column, cost in enumerate(ranks) if cost}, reached)
    built.model.cost = orders
    second = solve(built.model, settings)
    values = first.values if second.values is None else second.values
    return values, integer_bound(1000 * first.bound, least=True) if math.isfinite(first.bound) else 0


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
