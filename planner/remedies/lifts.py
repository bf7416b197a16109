"""Lifts: what may give way in a model of relief, by how much, at which price (see relief).

cap, tree, per-run, use-run, borrow   a limit is raised, in the unit that people read
free      GPUs of a node are freed, by whoever holds them
back      a node out of work is put back to work
own, end  a run that holds GPUs is suspended: one of the same owner, or of another
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from jobtree.api.values.scalars import GIB, HOUR
from jobtree.world.tables import values
from jobtree.world.tables.values import Floats
from planner.placement.room import Room
from planner.reasons.missing import BORROW_PRICE, RUN_PRICE
from planner.remedies.bench import Bench
from policies.caps.cap import HOUR_MILLI
from policies.caps.scopes import OWN, SUBTREE
from policies.funding.ledger import lane_of
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey
from policies.lifecycle.endings import limit_end, started
from policies.model.linear import INF
from policies.model.master import Master
from policies.model.payers import Payer
from policies.model.seats import Seating

TIES: Final = 1e-3
"""Of a GPU: what decides between equal prices."""


class Lift(NamedTuple):
    """``what``: see the module; ``subject``: number of a cap or node, or the key of a run."""

    what: str
    subject: Any


@dataclass(frozen=True)
class _Lever:
    """``column``: how much; ``used``: whether, 0 or 1; ``most``: upper bound."""

    column: int
    used: int
    price: float
    most: float


class Lifts:
    """The lifts of one model of relief, whose rows they are added to."""

    def __init__(self, bench: Bench, master: Master, room: Room, nodes: list[Seating]) -> None:
        self._bench = bench
        self._master = master
        self._rows = {key: row for row, key in enumerate(master.model.row_keys)}
        self._levers: dict[Lift, _Lever] = {}
        self._terms: dict[int, list[tuple[int, float]]] = {}
        self._limits()
        self._nodes(room, nodes)
        self._runs(nodes)
        master.model.lift(self._terms)
        used = sorted({lever.used for lever in self._levers.values()})
        self._one = master.model.row(("one",), [(column, 1.0) for column in used], -INF, INF)

    def allow(self, kinds: Collection[str], *, one: bool) -> None:
        """Only lifts of these kinds, at their prices; with ``one`` only one of them."""
        model = self._master.model
        for lift, lever in self._levers.items():
            model.upper[lever.column] = lever.most if lift.what in kinds else 0.0
        model.row_upper[self._one] = 1.0 if one else INF
        model.maximise({lever.column: -lever.price for lever in self._levers.values()})

    def read(self, found: Floats) -> dict[Lift, int]:
        """The lifts that a solution uses, with their numbers."""
        numbers = {lift: round(float(found[lever.column])) for lift, lever in self._levers.items()}
        return {lift: number for lift, number in numbers.items() if number}

    def _add(self, lift: Lift, price: float, most: float, rows: Mapping[int, float], *, choice: bool = False) -> None:
        """A lift that takes ``rows`` (row → per unit) up; ``choice``: it is 0 or 1 already."""
        model = self._master.model
        column = model.column(("lift", *lift), upper=most, integer=True)
        used = column
        if not choice:
            used = model.column(("lifted", *lift), upper=1.0, integer=True)
            model.row(("lifted", *lift), [(column, 1.0), (used, -most)], -INF, 0.0)
        self._levers[lift] = _Lever(column, used, price, most)
        for row, amount in rows.items():
            self._terms.setdefault(row, []).append((column, -amount))

    def _limits(self) -> None:
        """Rises of what bounds payments and widths. No rise is of use beyond what all of the runs' GPUs weigh."""
        model, problem = self._master.model, self._master.problem
        period = int(problem.book.money.policy.accounting_period) / HOUR
        near = _places(problem.candidates[c].payers for c in problem.ways.get(self._bench.key, ()))
        gpus = sum(sum(s.size for s in problem.types[c.type].lowered.pieces()) for c in problem.candidates)
        per_run: dict[Lift, dict[int, float]] = {}
        left = {(*tree.root, tree.hours): tree.left for tree in problem.trees}
        for key, row in list(self._rows.items()):
            weights = [abs(w) for w in model.values[model.starts[row] : model.starts[row + 1]]]
            most = float(math.ceil(gpus * max(weights, default=0.0)))
            if key[0] == "cap":
                cap = problem.book.caps[key[1]]
                price = cap.family.price + TIES * min((near[e] for e in cap.pool.envelopes if e in near), default=1.0)
                per_gpu = max(weights, default=1.0) if cap.ahead else 1.0
                most += self._owed(row, -problem.room_of(key[1]) / cap.measure.scale, most)
                self._add(Lift("cap", key[1]), price / per_gpu, min(most, self._window(key[1])), {row: 1.0})
            elif key[0] == "tree":
                price, scale = (1 / period, HOUR_MILLI) if key[3] else (1.0, 1)
                most += self._owed(row, -left[key[1:]] / scale, most)
                self._add(Lift("tree", key[1:]), price, most, {row: 1.0})
            elif key[0] in ("per-run", "use-run"):
                per_run.setdefault(Lift(key[0], key[2]), {})[row] = 1.0
        for lift, rows in per_run.items():
            self._add(lift, RUN_PRICE, float(gpus), rows)
        borrow = {self._rows["borrow", number]: 1.0 for number in self._own() if ("borrow", number) in self._rows}
        if borrow:
            self._add(Lift("borrow", self._bench.key), BORROW_PRICE, float(gpus), borrow)

    def _owed(self, row: int, debt: float, most: float) -> float:
        """Make a row that is overdrawn ask for its debt, too, as soon as anything counts in it; that debt, rounded up.

        ``most``: that what counts in it may come to.
        """
        model = self._master.model
        if debt <= 0 or model.row_upper[row] > 0:
            return 0.0
        span = slice(model.starts[row], model.starts[row + 1])
        terms = [(column, abs(value)) for column, value in zip(model.indices[span], model.values[span], strict=True)]
        most = min(most, sum(value * model.upper[column] for column, value in terms))
        opened = model.column(("opened", row), upper=1.0, integer=True)
        model.row(("opened", row), [*terms, (opened, -most)], -INF, 0.0)
        self._terms.setdefault(row, []).append((opened, debt))
        return math.ceil(debt)

    def _heaviest(self, row: int) -> float:
        model = self._master.model
        return max(abs(value) for value in model.values[model.starts[row] : model.starts[row + 1]])

    def _own(self) -> list[int]:
        """Purses of the run itself, not of others that start with it."""
        starts = self._master.starts.start
        mine = {starts[c] for c in self._master.problem.ways.get(self._bench.key, ()) if c in starts}
        return [purse.index for purse in self._master.purses if mine.intersection(purse.starts)]

    def _window(self, number: int) -> float:
        """With a window, hours are at most concurrency × window (spec §1): no rise goes beyond."""
        book = self._bench.state.book
        cap = book.caps[number]
        start, end = cap.pool.since, cap.pool.end
        if cap.measure.name != "hours" or cap.family not in (OWN, SUBTREE) or start is None or end is None:
            return INF
        return float(max(0, (1000 * (cap.pool.concurrency or 0) * (end - start) - cap.limit) // cap.measure.scale))

    def _nodes(self, room: Room, nodes: list[Seating]) -> None:
        fleet = self._bench.state.fleet
        table = self._bench.focus.tables["nodes"]
        gone = values.bools(table, "out_of_service") | values.bools(table, "deleting")
        for place, seating in enumerate(nodes):
            row = self._rows.get(("node", "gpus", seating.node))
            if row is None:
                continue
            tie = TIES * place / len(nodes)
            self._master.model.row_upper[row] = float(room.free[seating.node])
            slots = len(room.slots[seating.node])
            loads = {"pods": seating.pods, "cpu": seating.cpu_milli, "memory": seating.memory / GIB}
            for other, has in loads.items():
                if (where := self._rows.get(("node", other, seating.node))) is not None:
                    self._owed(where, -has, seating.free * self._heaviest(where))
            if fleet.takes_work[seating.node]:
                most = float(seating.free - room.free[seating.node])
                most += self._owed(row, room.lost[seating.node], seating.free)
                self._add(Lift("free", seating.node), 1.0 + tie, most, {row: 1.0})
            elif slots and fleet.flavor[seating.node] and not gone[seating.node]:
                self._add(Lift("back", seating.node), slots + tie, 1.0, {row: float(slots)}, choice=True)

    def _runs(self, nodes: list[Seating]) -> None:
        """Holdings of runs in the model's rows, cheapest to end first among equals: unfunded, then the youngest."""
        state = self._bench.state
        here = {state.fleet.names[seating.node]: seating.node for seating in nodes}
        held = {key: leases for key, leases in state.held.items() if key in state.runs}
        order = sorted(held, key=lambda key: (self._funded(held[key]), -min(x.start for x in held[key]), key))
        for place, key in enumerate(order):
            rows: dict[int, float] = {}
            for row, amount in self._holds(key, held[key], here):
                rows[row] = rows.get(row, 0.0) + amount
            if rows:
                gpus = sum(lease.gpus for lease in held[key])
                what = "own" if state.runs[key].owner == self._bench.run.owner else "end"
                self._add(Lift(what, key), gpus + TIES * place / len(order), 1.0, rows, choice=True)

    def _funded(self, leases: list[LeaseRow]) -> bool:
        classes = self._bench.state.funded.classes
        return any(classes[lease.namespace, lease.name] != UNFUNDED for lease in leases)

    def _holds(self, key: RunKey, leases: list[LeaseRow], here: Mapping[str, int]) -> Iterator[tuple[int, float]]:
        """(row, how much of it) for what a run's leases hold."""
        state, book = self._bench.state, self._bench.state.book
        run = state.runs[key]
        end = limit_end(started(run, leases), run.limit)
        left = None if end is None else max(0, end - state.at)
        chunks: dict[tuple[int, int], int] = {}
        for lease in leases:
            node = here.get(lease.node)
            if node is not None and state.fleet.takes_work[node]:
                yield from self._row(("node", "gpus", node), lease.gpus)
                chunks[lease.group, node] = chunks.get((lease.group, node), 0) + (lease.gpus if lease.active else 0)
            if lease.envelope >= 0 and state.funded.classes[lease.namespace, lease.name] != UNFUNDED:
                for cap, weight in book.touches(lane_of(state.money, lease, state.node_site, left)):
                    amount = weight * lease.milli(state.policy) / book.caps[cap].measure.scale
                    yield from self._row(("cap", cap), amount)
        for (_, node), gpus in chunks.items():
            pods = run.pods_of(gpus) if gpus else 0
            yield from self._row(("node", "pods", node), pods)
            yield from self._row(("node", "cpu", node), pods * run.pod_cpu_milli)
            yield from self._row(("node", "memory", node), pods * run.pod_memory / GIB)
        for tree in self._master.problem.trees:
            if key in tree.members:
                active = sum(lease.gpus for lease in leases if lease.active)
                held = active * tree.weight(run, int(state.policy.accounting_period))
                yield from self._row(("tree", *tree.root, tree.hours), held / (HOUR_MILLI if tree.hours else 1))

    def _row(self, key: tuple[Any, ...], amount: float) -> Iterator[tuple[int, float]]:
        if key in self._rows and amount:
            yield self._rows[key], float(amount)


def _places(payers: Iterable[Sequence[Payer]]) -> dict[int, float]:
    """Envelope → how far it stands in the run's order of payers, from 0 to 1."""
    found: dict[int, float] = {}
    for order in payers:
        for place, payer in enumerate(order):
            found.setdefault(payer.envelope, place / len(order))
    return found
