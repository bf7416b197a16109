"""The master MILP: every waiting run at once, groups per kind of domain, payments per purse (ARCHITECTURE.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.inputs.places import Capacity, Kind, usable
from policies.model import capacity, demand, flows, gangs, payments, seats, trees
from policies.model.demand import Starts
from policies.model.linear import INF, Model
from policies.model.payments import PayKey, Purse
from policies.model.problem import Problem
from policies.model.seats import Seat, Seating


@dataclass
class Master:
    """The model and its columns by meaning.

    ``pay``: single payments, on exact problems; ``seats``: pods on nodes, where the model goes down to them;
    ``overdraw``: stage 4, as costs to maximise; ``merged``: in large models, by the row of a cap the other caps whose
    money it holds.
    """

    problem: Problem
    kinds: list[Kind]
    model: Model
    starts: Starts
    purses: list[Purse]
    pay: dict[PayKey, int]
    seats: dict[Seat, int]
    overdraw: dict[int, float]
    merged: dict[int, list[int]]

    @property
    def integers(self) -> int:
        """Number of integer columns."""
        return sum(self.model.integer)


def purse_index(problem: Problem) -> dict[int, int]:
    """Type → purse: types with equal payers share one, unless a limit of the single run keeps them apart."""
    found: dict[object, int] = {}
    index: dict[int, int] = {}
    for kind in problem.types:
        if kind.unfunded:
            continue
        own = payments.limits_runs(kind.sources, kind.max_borrow)
        example = problem.candidates[kind.members[0]]
        payers = example.payers if problem.exact else kind.sources
        key = (payers, kind.index if own else -1)
        index[kind.index] = found.setdefault(key, len(found))
    return index


def build(
    problem: Problem, kinds: list[Kind], room: Capacity, *, seatings: Sequence[Seating] = (), most: float = INF
) -> Master:
    """Columns and rows of all rule families, in a fixed order; no objective yet.

    ``seatings``: the nodes, where the model is to say which pod lies on which. Raises TooLargeError beyond ``most``
    terms.
    """
    model = Model(most=most)
    starts = demand.columns(model, problem, kinds)
    pieces = capacity.gather(model, starts.pieces)
    for kind in kinds:
        capacity.rows(model, kind, pieces.get(kind.index, []), room)
    seated = seats.columns(model, problem, kinds, starts, seatings) if seatings else {}
    purses = _purses(problem, kinds, starts, seated, {seating.node: seating.site for seating in seatings})
    pay: dict[PayKey, int] = {}
    merged: dict[int, list[int]] = {}
    if problem.exact:
        pay, overdraw = payments.rows(model, problem, purses, whole=bool(seated))
    else:
        merged, overdraw = flows.rows(model, problem, purses)
    trees.rows(model, problem.trees, demand.widths(problem, starts), int(problem.book.money.policy.accounting_period))
    gangs.rows(model, problem.gangs, demand.by_run(problem, starts))
    return Master(problem, kinds, model, starts, purses, pay, seated, overdraw, merged)


def _purses(
    problem: Problem, kinds: list[Kind], starts: Starts, seated: Mapping[Seat, int], sites: Mapping[int, int]
) -> list[Purse]:
    index = purse_index(problem)
    region = problem.book.money.region
    purses: dict[int, Purse] = {}
    for kind in problem.types:
        if kind.index in index and kind.members[0] in starts.start:
            fresh = Purse(index[kind.index], kind.members[0], kind.sources, kind.max_borrow)
            purse = purses.setdefault(fresh.index, fresh)
            purse.starts += [starts.start[c] for c in kind.members]
            purse.types.append(kind.index)
    for seat, column in seated.items():
        kind = problem.types[seat.type]
        if not kind.unfunded:
            purses[index[kind.index]].add_seats(seat, region[sites[seat.node]], seats.unit(kind), column)
    for (type_index, shape, place), column in starts.groups.items():
        kind = problem.types[type_index]
        if not kind.unfunded and not seated:
            place_kind = kinds[place]
            regions = frozenset(region[site] for site in usable(place_kind, kind.sites))
            purses[index[type_index]].add(place_kind, regions, shape, column)
    return [purses[i] for i in sorted(purses)]
