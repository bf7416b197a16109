"""The master MILP: every waiting run at once, groups per kind of domain, payments per purse (ARCHITECTURE.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies import capacity, demand, flows, gangs, payments, recall_held, seats, trees
from policies.demand import Starts
from policies.flows import Flows
from policies.model import INF, Model
from policies.payments import Purse
from policies.places import Capacity, Kind, usable
from policies.problem import Problem
from policies.recall_held import Held, PayKey
from policies.seats import Seat, Seating


@dataclass
class Master:
    """The model and its columns by meaning.

    ``pay``: single payments, on exact problems; ``seats``: pods on nodes, where the model goes down to them; ``flows``:
    what large models keep of their money.
    """

    problem: Problem
    kinds: list[Kind]
    model: Model
    starts: Starts
    purses: list[Purse]
    pay: dict[PayKey, int]
    seats: dict[Seat, int]
    held: Held
    flows: Flows

    @property
    def integers(self) -> int:
        """How many columns are integer."""
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
        key = (payers, example.rights, kind.index if own else -1)
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
    held = recall_held.columns(model, problem)
    pay: dict[PayKey, int] = {}
    money = Flows({}, None)
    if problem.exact:
        pay = payments.rows(model, problem, purses, held, whole=bool(seated))
    else:
        money = flows.rows(model, problem, kinds, purses, starts, held)
    trees.rows(model, problem, starts)
    gangs.rows(model, problem, starts)
    return Master(problem, kinds, model, starts, purses, pay, seated, held, money)


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
