"""Money in large models: the rows of ``policies.payments``, with everything taken together that no row tells apart.

A *lane class* is an envelope, a role, and the caps that such a payment touches: wherever it lies, for whatever time, as
a loan or not, payments that touch the same caps with the same weights are one column. What the very same lane classes
may pay for comes together in one *port*; lane classes that the very same ports reach are one *hub*:

    Σ to be paid at a port   ≤ Σ_hubs flow(port, hub)
    Σ_ports flow(port, hub)  ≤ Σ payments of its lane classes
    Σ weight × payments      ≤ limit − used                    for every cap that could bind

Where running claims may give way to payments (``policies.recall_flows``) both rows are equations: who pays for nothing
recalls nothing.

Any flow in that network is a sum of single payments, and the other way round, so nothing is lost by it. Envelopes that
differ only in how much they hold, by one cap of their own, pay as one *wallet*: together what they hold together.
Limits of the single run are bounds on what flows from a purse of its own.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from policies import recall_flows
from policies.demand import Starts
from policies.leeway import Touches
from policies.model import INF, Model
from policies.payers import Source
from policies.payments import Purse, Terms, limits_runs, per_region
from policies.places import Kind
from policies.problem import Problem
from policies.recall_flows import Hub, Near, Network
from policies.recall_held import Held


class LaneClass(NamedTuple):
    """Payments from an envelope that no cap tells apart."""

    envelope: int
    active: bool
    touches: Touches


@dataclass
class _Port:
    """``terms``: what is to be paid, in GPUs; ``name``: a purse, role and region that it comes from."""

    number: int
    name: tuple[int, bool, int]
    terms: Terms = field(default_factory=list)


@dataclass
class _Ports:
    """By role and the lane classes that may pay there.

    ``lanes``: of a source's payments, where it can pay; ``reaches``: of some sources together; ``doors``: (purse,
    region) → ports of what lies there; ``lent``: likewise, columns of what sponsors pay as far as a run limits it, in
    weighed GPUs.
    """

    model: Model
    problem: Problem
    exact: bool
    by_reach: dict[tuple[bool, frozenset[LaneClass]], _Port] = field(default_factory=dict)
    lanes: dict[tuple[bool, int], dict[Source, LaneClass | None]] = field(default_factory=dict)
    reaches: dict[tuple[tuple[Source, ...], bool, int], frozenset[LaneClass]] = field(default_factory=dict)
    doors: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    lent: dict[tuple[int, int], Terms] = field(default_factory=dict)

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
        if region not in self.problem.book.money.pays_on[source.envelope]:
            return None
        touches = self.problem.leeway.touches(self.problem.lane(source, region), self.problem.milli(active))
        return None if touches is None else LaneClass(source.envelope, active, touches)

    def add(self, name: tuple[int, bool, int], reach: frozenset[LaneClass], terms: Terms) -> None:
        """GPUs that any of these lane classes may pay for; where there is none, nothing may lie.

        One that touches no cap that binds pays for everything, unless it matters who pays (``exact``).
        """
        if not reach and all(gpus > 0 for _, gpus in terms):
            for column, _ in terms:
                self.model.upper[column] = 0.0
        elif self.exact or all(lane.touches for lane in reach):
            port = self.by_reach.setdefault((name[1], reach), _Port(len(self.by_reach), name))
            port.terms.extend(terms)
            self.doors.setdefault((name[0], name[2]), set()).add(port.number)


class Flows(NamedTuple):
    """``merged``: by the row of a cap, the other caps whose money it holds; ``near``: what starts pay that recall."""

    merged: dict[int, list[int]]
    near: Near | None


def rows(model: Model, problem: Problem, kinds: list[Kind], purses: list[Purse], starts: Starts, held: Held) -> Flows:
    """All columns and rows of money; ``held``: what running work holds beside them, and may lose."""
    ports = _Ports(model, problem, bool(held.stays))
    for purse in purses:
        demand = sorted(per_region(model, purse).items())
        if limits_runs(purse.sources, purse.max_borrow):
            _limited(model, ports, purse, demand)
            continue
        for (active, region), terms in demand:
            ports.add((purse.index, active, region), ports.reach(purse.sources, active, region), terms)
    network, merged = _network(model, problem, ports, held)
    if not held.stays:
        return Flows(merged, None)
    types = {purse.index: purse.types for purse in purses}
    doors = {
        (kind, region): frozenset(ports.doors[purse.index, region])
        for purse in purses
        for kind in purse.types
        for region in sorted(set(problem.book.money.region))
        if (purse.index, region) in ports.doors
    }
    lent = {(kind, region): terms for (purse, region), terms in ports.lent.items() for kind in types[purse]}
    network = network._replace(doors=doors, lent=lent)
    return Flows(merged, recall_flows.rows(model, problem, kinds, starts, network, held))


def _limited(model: Model, ports: _Ports, purse: Purse, demand: list[tuple[tuple[bool, int], Terms]]) -> None:
    """What limits of the single run bound flows in columns of its own; other payers pay for the rest.

    Σ_sponsors pay (Active) ≤ maxBorrowGPUs × starts;   Σ pay from e ≤ perRun.maxGPUs × starts
    """
    lent = [s for s in purse.sources if s.loan and purse.max_borrow is not None]
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
            if group[0] in lent:
                weight = ports.problem.milli(active) / 1000
                ports.lent.setdefault((purse.index, region), []).append((column, weight))
                if active:
                    borrowed.append((column, 1.0))
            if group[0].run_gpus is not None:
                weight = ports.problem.milli(active) / 1000
                taken.setdefault(group[0].envelope, []).append((column, weight))
        if columns:
            model.row(("own", *name), [*columns, *((column, -gpus) for column, gpus in terms)], -INF, 0.0)
        ports.add(name, ports.reach(rest, active, region), [*terms, *((column, -1.0) for column, _ in columns)])
    if purse.max_borrow is not None and borrowed:
        starts = [(column, -float(purse.max_borrow)) for column in purse.starts]
        model.row(("borrow", purse.index), [*borrowed, *starts], -INF, 0.0)
    for source in alone:
        if source.envelope in taken and source.run_gpus is not None:
            starts = [(column, -float(source.run_gpus)) for column in purse.starts]
            model.row(("per-run", purse.index, source.envelope), [*taken[source.envelope], *starts], -INF, 0.0)


def _network(model: Model, problem: Problem, ports: _Ports, held: Held) -> tuple[Network, dict[int, list[int]]]:
    """Ports, hubs, and the rows of caps; and what ``Flows`` calls merged."""
    reaching: dict[LaneClass, list[int]] = {}
    for number, (_, reach) in enumerate(ports.by_reach):
        for lane in sorted(reach):
            reaching.setdefault(lane, []).append(number)
    hubs: dict[tuple[int, ...], list[LaneClass]] = {}
    for lane in sorted(reaching):
        hubs.setdefault(tuple(reaching[lane]), []).append(lane)
    wallets = _Wallets.of(problem, hubs, held)
    doors = list(ports.by_reach.values())
    flows: list[Terms] = [[] for _ in doors]
    least = 0.0 if ports.exact else -INF
    caps: dict[int, Terms] = {}
    network = Network({}, [], {}, {}, fine=len(problem.types) <= recall_flows.FINE)
    for numbers, lanes in hubs.items():
        payments: Terms = []
        weight_of_gpu = problem.milli(lanes[0].active) / 1000
        for lane in lanes:
            if lane.envelope not in wallets.paying:
                continue
            milli = problem.milli(lane.active)
            column = model.column(("wallet", lane.active, lane.envelope))
            model.integer[column] = any(cap in wallets.halves or cap in held.terms for cap, _ in lane.touches)
            payments.append((column, -1.0))
            here = network.paid.setdefault(lane.envelope, {}).setdefault(len(network.hubs), [])
            here.append((column, milli / 1000))
            for cap, weight in lane.touches:
                caps.setdefault(cap, []).append((column, float(weight * milli)))
        hub = Hub(frozenset(lane.envelope for lane in lanes), {})
        network.hubs.append(hub)
        if len(numbers) == 1:
            flows[numbers[0]] += payments
            hub.flows[numbers[0]] = [(column, -weight_of_gpu * minus) for column, minus in payments]
            continue
        inflow: Terms = []
        for number in numbers:
            column = model.column(("flow", *doors[number].name, lanes[0].envelope))
            inflow.append((column, 1.0))
            flows[number].append((column, -1.0))
            hub.flows[number] = [(column, weight_of_gpu)]
        model.row(("hub", lanes[0].active, lanes[0].envelope), [*inflow, *payments], least, 0.0)
    for port, flow in zip(doors, flows, strict=True):
        model.row(("port", *port.name), [*port.terms, *flow], least, 0.0)
    for cap in sorted({*caps, *held.terms}):
        if cap in held.terms:
            held.cap_row(model, cap, caps.get(cap, []))
        else:
            scale = problem.book.caps[cap].measure.scale
            terms = [(column, weight / scale) for column, weight in caps[cap]]
            model.row(("cap", cap), terms, -INF, wallets.left[cap] / scale)
    return network, wallets.merged


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
    def of(cls, problem: Problem, hubs: dict[tuple[int, ...], list[LaneClass]], held: Held) -> "_Wallets":
        sharing: dict[int, set[int]] = {}
        lanes: dict[int, list[tuple[int, LaneClass]]] = {}
        weights: dict[int, set[int]] = {}
        for number, members in enumerate(hubs.values()):
            for lane in members:
                lanes.setdefault(lane.envelope, []).append((number, lane))
                for cap, weight in lane.touches:
                    sharing.setdefault(cap, set()).add(lane.envelope)
                    weights.setdefault(cap, set()).add(weight * problem.milli(lane.active))
        left = {
            cap: max(0, problem.room_of(cap))
            // (min(mine) if len(mine) == 1 else 1)
            * (min(mine) if len(mine) == 1 else 1)
            for cap, mine in weights.items()
        }
        first: dict[object, tuple[int, int]] = {}
        paying: set[int] = set()
        merged: dict[int, list[int]] = {}
        for envelope, mine in sorted(lanes.items()):
            own = sorted({cap for _, lane in mine for cap, _ in lane.touches if len(sharing[cap]) == 1})
            if len(own) != 1 or not held.terms.keys().isdisjoint(cap for _, lane in mine for cap, _ in lane.touches):
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
