"""Recall in large models: nearer claimants' payments, told apart where running claims may give way to them.

Large models count payments by envelope, whoever they are for (``policies.flows``). What is recalled depends on who pays
nearest, so there payments are told apart by the *rights* of the runs. A *cell* is a region and the ports where what
lies there is paid for, and of models with up to FINE types the type. In weighed GPUs (a spare counts its discount):

    Σ_cells, envelopes near(rights, envelope, cell) ≤ what starts with these rights     for cells that some type joins
    Σ_rights, envelopes near(rights, envelope, cell) ≤ what lies in the cell − what sponsors pay there
                                                           (of runs that limit it)
    Σ_envelopes near(rights, envelope, cell) ≤ what lies there of types that have such runs   (beyond FINE types)
    Σ_rights, cells near(rights, envelope, cell) ≤ what the envelope pays into the hubs that reach one of these cells
    Σ_rights, envelopes, regions near(rights, envelope, ·, these ports or some of them)
        ≤ Σ what flows from the envelopes' hubs to these ports           envelopes: all with just these hubs

The rows of ``policies.recall_rows`` over the near payments then say which claims stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import gcd
from typing import Final, NamedTuple

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
from policies.yielding import Takes, takes_of

FINE: Final = 500
"""Most types of a model in which near payments are told apart by type."""


class Hub(NamedTuple):
    """Envelopes that pay together; ``flows``: port → what flows there, in weighed GPUs."""

    envelopes: frozenset[int]
    flows: dict[int, Terms]


class Cell(NamedTuple):
    """Where runs are paid for alike: a region, the ports of what lies there, and in a fine model the type (else -1)."""

    region: int
    ports: frozenset[int]
    kind: int

    @property
    def name(self) -> tuple[int, ...]:
        """What tells it apart in a row's key."""
        return self.region, self.kind, *sorted(self.ports)


class Network(NamedTuple):
    """``paid``: envelope → hub → its payments there in weighed GPUs; ``doors``: (type, region) → ports where what lies
    there is paid for; ``lent``: likewise, what sponsors pay for runs that limit it, in weighed GPUs; ``fine``: types
    that are paid for through the same ports are told apart.
    """

    paid: dict[int, dict[int, Terms]]
    hubs: list[Hub]
    doors: Mapping[tuple[int, int], frozenset[int]]
    lent: Mapping[tuple[int, int], Terms]
    fine: bool

    def cell(self, kind: int, region: int) -> Cell | None:
        """Where a type is paid for in a region, if it can be."""
        ports = self.doors.get((kind, region))
        return None if ports is None else Cell(region, ports, kind if self.fine else -1)

    def cells(self, types: Iterable[int], there: Mapping[int, Mapping[int, Terms]]) -> dict[Cell, list[int]]:
        """Cells in which some of these types may lie, with those that may."""
        found: dict[Cell, list[int]] = defaultdict(list)
        for kind in types:
            for region in sorted(there[kind]):
                if (cell := self.cell(kind, region)) is not None:
                    found[cell].append(kind)
        return dict(sorted(found.items(), key=lambda each: each[0].name))


class Near:
    """What starts pay that recall.

    ``columns``: cell → rights → payments in weighed GPUs; ``key``: column → (rights, envelope, cell); ``unit``: by
    rights, what such a column counts, in thousandths of a GPU; ``types``: rights → cell → types of such runs that may
    lie there; ``there``: type → region → weighed GPUs of its groups there.
    """

    def __init__(self, problem: Problem, kinds: list[Kind], starts: Starts, network: Network) -> None:
        self.problem, self.network = problem, network
        self.there = _there(problem, kinds, starts)
        self._starts, self._members = starts, _members(problem, starts)
        self.unit = _units(problem, self._members)
        self.key: dict[int, tuple[int, int, Cell]] = {}
        self.columns: dict[Cell, dict[int, Terms]] = defaultdict(lambda: defaultdict(list))
        types: dict[int, list[int]] = defaultdict(list)
        for kind, number in self._members:
            types[number].append(kind)
        self.types = {number: network.cells(mine, self.there) for number, mine in sorted(types.items())}

    def started(self, kind: int, number: int) -> Terms:
        """− weighed GPUs of the type that start with these rights."""
        problem, starts = self.problem, self._starts
        of = problem.types[kind]
        base, step = -weighed(problem, of.pieces), -weighed(problem, of.step_pieces)
        terms: Terms = []
        for index in self._members[kind, number]:
            terms.append((starts.start[index], base))
            if index in starts.steps:
                terms.append((starts.steps[index], step))
        return terms

    def lying(self, kind: int, region: int) -> Terms:
        """− weighed GPUs of the type that lie in a region."""
        return [(column, -gpus) for column, gpus in self.there[kind][region]]

    def of_rights(self, model: Model, number: int) -> list[Payment]:
        """Columns of payments for runs with these rights, wherever they may lie."""
        problem, unit, cells = self.problem, self.unit[number], self.types[number]
        types = {kind for mine in cells.values() for kind in mine}
        most = _most(problem, [c for kind in types for c in self._members[kind, number]]) // unit
        found = []
        regions = sorted({cell.region for cell in cells})
        for right in problem.rights[number]:
            pays_on = problem.book.money.pays_on[right.envelope] if right.envelope in self.network.paid else ()
            takes = {region: self._takes(right.envelope, region, unit) for region in regions if region in pays_on}
            for cell in cells:
                if cell.region in takes:
                    column = model.column(("near", number, right.envelope, cell.region, len(self.key)))
                    self.key[column] = number, right.envelope, cell
                    self.columns[cell][number].append((column, unit / 1000))
                    found.append(Payment(column, takes[cell.region], right.standing, number, most))
        return found

    def _takes(self, envelope: int, region: int, unit: int) -> Takes:
        book = self.problem.book
        return takes_of(book, *weigh(book, Lane(envelope, False, region, None), unit))


def rows(model: Model, problem: Problem, kinds: list[Kind], starts: Starts, network: Network, held: Held) -> Near:
    """Near payments, and who stays beside them."""
    near = Near(problem, kinds, starts, network)
    payments: list[Payment] = []
    for number in near.types:
        payments += near.of_rights(model, number)
        _start(model, near, number)
        if not network.fine:
            _lie_by_rights(model, near, number)
    _lie(model, near)
    _pay(model, near)
    _flow(model, near)
    held.near.extend(near.key)
    recall_rows.rows(model, held, payments)
    return near


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
            found[kind][where].append((column, weighed(problem, [(shape, 1)])))
    return found


def _start(model: Model, near: Near, number: int) -> None:
    """What is paid for runs with these rights has started: in all cells together that the same types may lie in."""
    joined: list[tuple[set[int], list[Cell]]] = []
    for cell, types in near.types[number].items():
        meeting = [each for each in joined if not each[0].isdisjoint(types)]
        joined = [each for each in joined if each[0].isdisjoint(types)]
        joined.append((set(types).union(*(t for t, _ in meeting)), [*(c for _, mine in meeting for c in mine), cell]))
    for types_, mine in joined:
        terms = [term for cell in mine for term in near.columns[cell][number]]
        if terms:
            for kind in sorted(types_):
                terms += near.started(kind, number)
            model.row(("near-starts", min(types_), number), terms, -INF, 0.0)


def _lie_by_rights(model: Model, near: Near, number: int) -> None:
    """Of the types in a cell those that have runs with these rights lie there."""
    for cell, types in near.types[number].items():
        terms = list(near.columns[cell][number])
        if terms:
            terms += [term for kind in types for term in near.lying(kind, cell.region)]
            model.row(("near-regions", number, *cell.name), terms, -INF, 0.0)


def _lie(model: Model, near: Near) -> None:
    """What is paid for somewhere lies there, and no sponsor pays for it."""
    cells = near.network.cells(near.there, near.there)
    for cell, by_rights in near.columns.items():
        terms = [term for mine in by_rights.values() for term in mine]
        for kind in cells[cell]:
            terms += near.lying(kind, cell.region) + near.network.lent.get((kind, cell.region), [])
        model.row(("near-groups", *cell.name), terms, -INF, 0.0)


def _pay(model: Model, near: Near) -> None:
    """What an envelope pays for runs with rights, as one of their owners' or on loan, goes where it reaches them."""
    paid, hubs = near.network.paid, near.network.hubs
    terms: dict[int, Terms] = defaultdict(list)
    ports: dict[int, set[int]] = defaultdict(set)
    for column, (number, envelope, cell) in near.key.items():
        terms[envelope].append((column, near.unit[number] / 1000))
        ports[envelope] |= cell.ports
    for envelope, mine in sorted(terms.items()):
        for hub, payments in sorted(paid[envelope].items()):
            if not ports[envelope].isdisjoint(hubs[hub].flows):
                mine += [(column, -gpus) for column, gpus in payments]
        model.row(("near-paid", envelope), mine, -INF, 0.0)


def _flow(model: Model, near: Near) -> None:
    """What is paid for runs with rights flows to the ports that serve them."""
    network = near.network
    hubs: dict[int, list[int]] = defaultdict(list)
    for index, hub in enumerate(network.hubs):
        for envelope in hub.envelopes:
            hubs[envelope].append(index)
    paid: dict[tuple[int, ...], dict[frozenset[int], Terms]] = defaultdict(lambda: defaultdict(list))
    for column, (number, envelope, cell) in near.key.items():
        paid[tuple(hubs[envelope])][cell.ports].append((column, near.unit[number] / 1000))
    for group, by_ports in sorted(paid.items()):
        for ports in sorted(by_ports, key=sorted):
            terms = [each for others, mine in by_ports.items() if others <= ports for each in mine]
            flows = [
                (column, -gpus)
                for hub in group
                for port, mine in network.hubs[hub].flows.items()
                if port in ports
                for column, gpus in mine
            ]
            payer = min(network.hubs[group[0]].envelopes)
            model.row(("near-flow", payer, *sorted(ports)), [*terms, *flows], -INF, 0.0)


def _most(problem: Problem, members: list[int]) -> int:
    """Milli-GPUs of these candidates at full width."""
    runs = (problem.candidates[c].run for c in members)
    return sum(1000 * run.total + run.spare_gpus * problem.milli(active=False) for run in runs)


def weighed(problem: Problem, pieces: Iterable[tuple[Shape, int]]) -> float:
    """Weighed GPUs of so many of each shape: a spare counts its discount."""
    return sum(times * (shape.gpus + shape.spare_gpus * problem.milli(active=False) / 1000) for shape, times in pieces)
