"""Recall in large models: nearer claimants' payments, told apart where running claims may give way to them.

Large models count payments by envelope, whoever they are for (``policies.flows``). What is recalled depends on who pays
nearest, so there payments are told apart by the *rights* of the runs, and so is where runs of one type lie, in GPUs (a
spare counts its discount):

    Σ_envelopes near(rights, envelope, region, ports) ≤ Σ_types of these ports lies(type, rights, region)
    Σ_regions lies(type, rights, region)       ≤ what of the type starts with these rights
    Σ_rights lies(type, rights, region)        ≤ what of the type lies in the region
    Σ_rights, regions, ports near(rights, envelope, ·, ·) ≤ what the envelope pays
    Σ_rights, envelopes, regions near(rights, envelope, ·, these ports or some of them)
        ≤ Σ what flows from the envelopes' hubs to these ports           envelopes: all with just these hubs

The rows of ``policies.recall_rows`` over the near payments then say which claims stay.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from policies import recall_rows
from policies.caps import Lane
from policies.classes import weigh
from policies.demand import Starts
from policies.model import INF, Model
from policies.payments import Terms
from policies.places import Kind, usable
from policies.problem import Problem
from policies.recall_held import Held, Payment
from policies.shapes import Shape
from policies.yielding import takes_of


class Hub(NamedTuple):
    """Envelopes that pay together; ``flows``: port → what flows there, in weighed GPUs."""

    envelopes: frozenset[int]
    flows: dict[int, Terms]


class Network(NamedTuple):
    """``paid``: envelope → its payments in weighed GPUs; ``doors``: (type, region) → ports where what lies there is
    paid for.
    """

    paid: dict[int, Terms]
    hubs: list[Hub]
    doors: Mapping[tuple[int, int], frozenset[int]]


Served = tuple[int, frozenset[int]]
"""A region, and the ports where what lies there is paid for."""
Lies = dict[tuple[int, int, int], int]
"""(type, rights, region) → column of GPUs."""


@dataclass
class _Columns:
    """``near``: (rights, envelope, region, ports) → payments, in thousandths of a GPU as ``unit`` says by rights."""

    unit: dict[int, int]
    near: dict[tuple[int, int, int, frozenset[int]], int] = field(default_factory=dict)
    lies: Lies = field(default_factory=dict)


def rows(model: Model, problem: Problem, kinds: list[Kind], starts: Starts, network: Network, held: Held) -> Lies:
    """Near payments, and who stays beside them."""
    there = _there(problem, kinds, starts)
    members = _members(problem, starts)
    columns = _Columns(_units(problem, members))
    payments = _payments(model, problem, members, there, network, columns)
    _lie(model, problem, starts, members, there, columns)
    of_envelope: dict[int, Terms] = defaultdict(list)
    for (number, envelope, *_), column in columns.near.items():
        of_envelope[envelope].append((column, columns.unit[number] / 1000))
    for envelope, terms in sorted(of_envelope.items()):
        model.row(("near-paid", envelope), [*terms, *((c, -gpus) for c, gpus in network.paid[envelope])], -INF, 0.0)
    _flow(model, network, columns)
    held.near.update({column: number for (number, *_), column in columns.near.items()})
    held.lies.update({column: number for (_, number, _), column in columns.lies.items()})
    recall_rows.rows(model, held, payments)
    return columns.lies


def _units(problem: Problem, members: Mapping[tuple[int, int], list[int]]) -> dict[int, int]:
    """By rights, what every payment is a multiple of, in thousandths of a GPU."""
    found: dict[int, int] = {}
    for kind, number in members:
        spares = problem.milli(active=False) if problem.types[kind].lowered.spares else 0
        found[number] = gcd(found.get(number, 1000), spares)
    return found


def _members(problem: Problem, starts: Starts) -> dict[tuple[int, int], list[int]]:
    """(type, rights) → candidates that have a place to be in, where they have rights."""
    found: dict[tuple[int, int], list[int]] = {}
    for index in starts.start:
        candidate = problem.candidates[index]
        if candidate.rights:
            found.setdefault((candidate.type, candidate.rights), []).append(index)
    return dict(sorted(found.items()))


def _there(problem: Problem, kinds: list[Kind], starts: Starts) -> dict[int, dict[int, Terms]]:
    """Type → region → weighed GPUs of its groups there, as far as they may lie there."""
    region = problem.book.money.region
    found: dict[int, dict[int, Terms]] = defaultdict(lambda: defaultdict(list))
    for (kind, shape, place), column in starts.groups.items():
        for where in {region[site] for site in usable(kinds[place], problem.types[kind].sites)}:
            found[kind][where].append((column, _weighed(problem, [(shape, 1)])))
    return found


def _payments(
    model: Model,
    problem: Problem,
    members: Mapping[tuple[int, int], list[int]],
    there: Mapping[int, Mapping[int, Terms]],
    network: Network,
    columns: _Columns,
) -> list[Payment]:
    """Columns of near payments and of where their runs lie, and the rows between them."""
    types: dict[int, list[int]] = defaultdict(list)
    for kind, number in members:
        types[number].append(kind)
    payments: list[Payment] = []
    for number, mine in sorted(types.items()):
        unit = columns.unit[number]
        most = _most(problem, [c for kind in mine for c in members[kind, number]]) // unit
        near: dict[Served, Terms] = defaultdict(list)
        served = _served(mine, there, network)
        for right in problem.rights[number]:
            pays_on = problem.book.money.pays_on[right.envelope] if right.envelope in network.paid else ()
            for region, ports in served:
                if region in pays_on:
                    key = (number, right.envelope, region, ports)
                    column = columns.near[key] = model.column(("near", *key[:3], len(columns.near)))
                    near[region, ports].append((column, unit / 1000))
                    takes = takes_of(problem.book, *weigh(problem.book, _lane(right.envelope, region), unit))
                    payments.append(Payment(column, takes, right.standing, number, most))
        for (region, ports), terms in near.items():
            for kind in served[region, ports]:
                column = columns.lies[kind, number, region] = model.column(("lies-near", kind, number, region))
                terms.append((column, -1.0))
            model.row(("near-regions", number, region, min(served[region, ports])), terms, -INF, 0.0)
    return payments


def _served(
    types: Sequence[int], there: Mapping[int, Mapping[int, Terms]], network: Network
) -> dict[Served, list[int]]:
    """(region, ports) → the types that are paid for there through these ports."""
    found: dict[Served, list[int]] = defaultdict(list)
    for kind in types:
        for region in sorted(there[kind]):
            if (kind, region) in network.doors:
                found[region, network.doors[kind, region]].append(kind)
    return dict(sorted(found.items(), key=lambda each: (each[0][0], each[1])))


def _lie(
    model: Model,
    problem: Problem,
    starts: Starts,
    members: Mapping[tuple[int, int], list[int]],
    there: Mapping[int, Mapping[int, Terms]],
    columns: _Columns,
) -> None:
    """What lies somewhere has started, and lies there."""
    started: dict[tuple[int, int], Terms] = defaultdict(list)
    in_region: dict[tuple[int, int], Terms] = defaultdict(list)
    for (kind, number, region), column in columns.lies.items():
        started[kind, number].append((column, 1.0))
        in_region[kind, region].append((column, 1.0))
    for (kind, number), terms in started.items():
        model.row(("near-starts", kind, number), [*terms, *_started(problem, starts, members[kind, number])], -INF, 0.0)
    for (kind, region), terms in in_region.items():
        groups = [(column, -gpus) for column, gpus in there[kind][region]]
        model.row(("near-groups", kind, region), [*terms, *groups], -INF, 0.0)


def _flow(model: Model, network: Network, columns: _Columns) -> None:
    """What is paid for runs with rights flows to the ports that serve them."""
    hubs: dict[int, list[int]] = defaultdict(list)
    for index, hub in enumerate(network.hubs):
        for envelope in hub.envelopes:
            hubs[envelope].append(index)
    near: dict[tuple[int, ...], dict[frozenset[int], Terms]] = defaultdict(lambda: defaultdict(list))
    for (number, envelope, _, ports), column in columns.near.items():
        near[tuple(hubs[envelope])][ports].append((column, columns.unit[number] / 1000))
    for group, by_ports in sorted(near.items()):
        for ports in sorted(by_ports, key=sorted):
            terms = [each for others, mine in by_ports.items() if others <= ports for each in mine]
            flows = [
                (column, -gpus)
                for hub in group
                for port, mine in network.hubs[hub].flows.items()
                if port in ports
                for column, gpus in mine
            ]
            model.row(("near-flow", min(network.hubs[group[0]].envelopes), *sorted(ports)), [*terms, *flows], -INF, 0.0)


def _lane(envelope: int, region: int) -> Lane:
    return Lane(envelope, False, region, None)


def _started(problem: Problem, starts: Starts, members: list[int]) -> Terms:
    """− weighed GPUs that start, in terms of the columns of these candidates."""
    terms: Terms = []
    for index in members:
        kind = problem.types[problem.candidates[index].type]
        terms.append((starts.start[index], -_weighed(problem, kind.pieces)))
        if index in starts.steps:
            terms.append((starts.steps[index], -_weighed(problem, kind.step_pieces)))
    return terms


def _most(problem: Problem, members: list[int]) -> int:
    """Milli-GPUs of these candidates at full width."""
    runs = (problem.candidates[c].run for c in members)
    return sum(1000 * run.total + run.spare_gpus * problem.milli(active=False) for run in runs)


def _weighed(problem: Problem, pieces: list[tuple[Shape, int]]) -> float:
    return sum(times * (shape.gpus + shape.spare_gpus * problem.milli(active=False) / 1000) for shape, times in pieces)
