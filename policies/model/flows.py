"""Money in large models: the rows of ``model.payments``, with everything taken together that no row tells apart.

A *lane class* is an envelope, a role, the caps that such a payment touches, and how near it stands where that matters
to recall (`model.recall`): wherever it lies, for whatever time, as a loan or not, payments that touch the same caps
with the same weights are one column. What the very same lane classes may pay for comes together in one *port*; lane
classes that the very same ports reach are one *hub*:

    Σ to be paid at a port   ≤ Σ_hubs flow(port, hub)
    Σ_ports flow(port, hub)  ≤ Σ payments of its lane classes
    Σ weight × payments      ≤ limit − used                    for every cap that could bind

Any flow in that network is a sum of single payments, and the other way round, so nothing is lost by it. Envelopes that
differ only in how much they hold, by one cap of their own, pay as one *wallet*: together what they hold together.
Limits of the single run are bounds on what flows from a purse of its own.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from policies.caps.leeway import Touches
from policies.model import recall
from policies.model.linear import INF, Model
from policies.model.payers import Source
from policies.model.payments import Purse, Terms, cap_rows, limits_runs, per_region, run_rows, use_rows
from policies.model.problem import Problem
from policies.model.recall import Term


class LaneClass(NamedTuple):
    """Payments from an envelope that no cap tells apart."""

    envelope: int
    active: bool
    touches: Touches
    level: int


@dataclass
class _Port:
    """``terms``: what is to be paid, in GPUs; ``name``: a purse, role and region that it comes from."""

    name: tuple[int, bool, int]
    terms: Terms = field(default_factory=list)


@dataclass
class _Ports:
    """Ports by role and the lane classes that may pay there.

    ``lanes``: of a source's payments, where it can pay; ``reaches``: of some sources together.
    """

    model: Model
    problem: Problem
    by_reach: dict[tuple[bool, frozenset[LaneClass]], _Port] = field(default_factory=dict)
    lanes: dict[tuple[bool, int], dict[Source, LaneClass | None]] = field(default_factory=dict)
    reaches: dict[tuple[tuple[Source, ...], bool, int], frozenset[LaneClass]] = field(default_factory=dict)

    def reach(self, sources: tuple[Source, ...], active: bool, region: int) -> frozenset[LaneClass]:
        """The lane classes of these sources there."""
        asked = sources, active, region
        found = self.reaches.get(asked)
        if found is None:
            known = self.lanes.setdefault((active, region), {})
            for source in sources:
                if source not in known:
                    known[source] = self._lane(source, active, region)
            found = frozenset(lane for source in sources if (lane := known[source]) is not None)
            self.reaches[asked] = found
        return found

    def _lane(self, source: Source, active: bool, region: int) -> LaneClass | None:
        if region not in self.problem.pays_on(source):
            return None
        touches = self.problem.leeway.touches(self.problem.lane(source, region), self.problem.milli(active))
        return None if touches is None else LaneClass(source.envelope, active, touches, source.level)

    def add(self, name: tuple[int, bool, int], reach: frozenset[LaneClass], terms: Terms) -> None:
        """GPUs that any of these lane classes may pay for; where there is none, nothing may lie.

        One that touches no cap that binds pays for everything.
        """
        if not reach and all(gpus > 0 for _, gpus in terms):
            for column, _ in terms:
                self.model.upper[column] = 0.0
        elif all(lane.touches for lane in reach):
            port = self.by_reach.setdefault((name[1], reach), _Port(name))
            port.terms.extend(terms)


class Flows(NamedTuple):
    """``merged``: by the row of a cap, other caps whose money it holds; ``overdraw``: stage 4, costs to maximise."""

    merged: dict[int, list[int]]
    overdraw: dict[int, float]


def rows(model: Model, problem: Problem, purses: list[Purse]) -> Flows:
    """All columns and rows of money."""
    ports = _Ports(model, problem)
    for purse in purses:
        demand = sorted(per_region(model, purse).items())
        if limits_runs(purse.sources, purse.max_borrow):
            _limited(model, ports, purse, demand)
            continue
        for (active, region), terms in demand:
            ports.add((purse.index, active, region), ports.reach(purse.sources, active, region), terms)
    return _network(model, problem, ports)


def _limited(model: Model, ports: _Ports, purse: Purse, demand: list[tuple[tuple[bool, int], Terms]]) -> None:
    """Flows in columns of their own, which limits of the single run bound (`run_rows`); others pay for the rest."""
    lent = [s for s in purse.sources if s.loan and purse.max_borrow is not None]
    use_rows(model, ports.problem, purse, demand)
    alone = [s for s in purse.sources if s.run_gpus is not None]
    groups = [(s,) for s in alone] + [tuple(s for s in lent if s not in alone)]
    rest = tuple(s for s in purse.sources if s not in lent and s not in alone)
    borrowed: Terms = []
    taken: dict[int, Terms] = {}
    for (active, region), terms in demand:
        name = (purse.index, active, region)
        columns: Terms = []
        for group in groups:
            reach = ports.reach(group, active, region)
            if not reach:
                continue
            column = model.column(("pay", *name, group[0].envelope))
            columns.append((column, 1.0))
            ports.add(name, reach, [(column, 1.0)])
            if active and group[0] in lent:
                borrowed.append((column, 1.0))
            if group[0].run_gpus is not None:
                weight = ports.problem.milli(active) / 1000
                taken.setdefault(group[0].envelope, []).append((column, weight))
        if columns:
            model.row(("own", *name), [*columns, *((column, -gpus) for column, gpus in terms)], -INF, 0.0)
        ports.add(name, ports.reach(rest, active, region), [*terms, *((column, -1.0) for column, _ in columns)])
    run_rows(model, purse, borrowed or None, taken)


def _network(model: Model, problem: Problem, ports: _Ports) -> Flows:
    """Ports, hubs, and the rows of caps."""
    reaching: dict[LaneClass, list[int]] = {}
    for number, (_, reach) in enumerate(ports.by_reach):
        for lane in sorted(reach):
            reaching.setdefault(lane, []).append(number)
    hubs: dict[tuple[int, ...], list[LaneClass]] = {}
    for lane in sorted(reaching):
        hubs.setdefault(tuple(reaching[lane]), []).append(lane)
    wallets = _Wallets.of(problem, hubs)
    doors = list(ports.by_reach.values())
    flows: list[Terms] = [[] for _ in doors]
    caps: dict[int, list[Term]] = {}
    paid: dict[int, Terms] = {}
    for numbers, lanes in hubs.items():
        payments: Terms = []
        for lane in lanes:
            if lane.envelope not in wallets.paying:
                continue
            milli = problem.milli(lane.active)
            column = model.column(("wallet", lane.active, lane.envelope, lane.level))
            model.integer[column] = any(cap in wallets.halves for cap, _ in lane.touches)
            payments.append((column, -1.0))
            paid.setdefault(lane.envelope, []).append((column, milli / 1000))
            for cap, weight in lane.touches:
                caps.setdefault(cap, []).append(Term(column, float(weight * milli), lane.level))
        if len(numbers) == 1:
            flows[numbers[0]] += payments
            continue
        inflow: Terms = []
        for number in numbers:
            column = model.column(("flow", *doors[number].name, lanes[0].envelope))
            inflow.append((column, 1.0))
            flows[number].append((column, -1.0))
        model.row(("hub", lanes[0].active, lanes[0].envelope), [*inflow, *payments], -INF, 0.0)
    for port, flow in zip(doors, flows, strict=True):
        model.row(("port", *port.name), [*port.terms, *flow], -INF, 0.0)
    for cap, terms in sorted(caps.items()):
        if cap in problem.recall.room:
            cap_rows(model, problem, cap, terms)
        else:
            scale = problem.book.caps[cap].measure.scale
            every = [(term.column, term.weight / scale) for term in terms]
            model.row(("cap", cap), every, -INF, wallets.left[cap] / scale)
    return Flows(wallets.merged, recall.overdraw(model, problem.recall, paid))


@dataclass
class _Wallets:
    """``paying``: envelopes that have columns; ``left``: per cap, what it leaves for all that pay as one with its own.

    ``halves``: caps that spares and GPUs count against, so that half a GPU could be left over; ``merged``: cap → others
    whose rest is in what it leaves.
    """

    paying: set[int]
    left: dict[int, int]
    halves: set[int]
    merged: dict[int, list[int]]

    @classmethod
    def of(cls, problem: Problem, hubs: dict[tuple[int, ...], list[LaneClass]]) -> "_Wallets":
        """Merge envelopes that no row of the ``hubs`` tells apart."""
        sharing: dict[int, set[int]] = {}
        lanes: dict[int, list[tuple[int, LaneClass]]] = {}
        weights: dict[int, set[int]] = {}
        for number, members in enumerate(hubs.values()):
            for lane in members:
                lanes.setdefault(lane.envelope, []).append((number, lane))
                for cap, weight in lane.touches:
                    sharing.setdefault(cap, set()).add(lane.envelope)
                    weights.setdefault(cap, set()).add(weight * problem.milli(lane.active))
        units = {cap: min(mine) if len(mine) == 1 else 1 for cap, mine in weights.items()}
        left = {cap: max(0, problem.room_of(cap)) // unit * unit for cap, unit in units.items()}
        contested = problem.recall.room.keys()
        first: dict[object, tuple[int, int]] = {}
        paying: set[int] = set()
        merged: dict[int, list[int]] = {}
        for envelope, mine in sorted(lanes.items()):
            own = sorted({cap for _, lane in mine for cap, _ in lane.touches if len(sharing[cap]) == 1})
            if len(own) != 1 or not contested.isdisjoint(cap for _, lane in mine for cap, _ in lane.touches):
                paying.add(envelope)
                continue
            alike = tuple((hub, tuple((-1 if c == own[0] else c, w) for c, w in lane.touches)) for hub, lane in mine)
            leader, cap = first.setdefault(alike, (envelope, own[0]))
            if leader == envelope:
                paying.add(envelope)
            else:
                left[cap] += left[own[0]]
                merged.setdefault(cap, []).append(own[0])
        return cls(paying, left, {cap for cap, mine in weights.items() if len(mine) > 1}, merged)
