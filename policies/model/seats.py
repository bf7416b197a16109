"""Seats: pods on single nodes, for small worlds that the rows of ``capacity`` do not describe exactly (spec §2).

For a type, a domain and a role (Active or Spare), and for a node:

    Σ_nodes seats(type, node, role) = Σ_shapes pods of that role in the shape × groups(type, shape, domain)
    Σ_types pod × seats ≤ free GPUs,   Σ_types CPU (memory, 1) × Active seats ≤ CPU (memory, pods) that are free

A seat is a pod; where pods have no size it is a GPU, and one pod per node and type carries up to the largest group:
that is exact while a type has one such group in a domain. Pods of one type are alike, so any division of a domain's
seats among its groups is as good as another: with all domains split, seats leave nothing to placement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jobtree.api.values.scalars import GIB
from policies.inputs.places import Kind
from policies.inputs.shapes import Shape
from policies.model.demand import Starts
from policies.model.linear import INF, Model
from policies.model.problem import Problem, RunType


@dataclass(frozen=True)
class Seating:
    """A node with free slots: what it has for new work."""

    node: int
    site: int
    domain: int
    free: int
    cpu_milli: int
    memory: int
    pods: int


class Seat(NamedTuple):
    """Key of a column: how many pods (GPUs) of a type and role sit on a node of a kind."""

    type: int
    kind: int
    active: bool
    node: int


def unit(kind: RunType) -> int:
    """GPUs of one seat."""
    return kind.lowered.pod or 1


def wanted(shape: Shape, *, active: bool) -> int:
    """Seats of one role in a group of this shape."""
    return (shape.gpus if active else shape.spare_gpus) // shape.unit


def count(problem: Problem, seatings: Iterable[Seating]) -> int:
    """Most columns that `columns` makes."""
    return sum(2 for seating in seatings for kind in problem.types if seating.site in kind.sites)


def columns(
    model: Model, problem: Problem, kinds: list[Kind], starts: Starts, seatings: Sequence[Seating]
) -> dict[Seat, int]:
    """Seats and their rows. ``kinds``: one per domain."""
    shapes: dict[tuple[int, int], list[tuple[Shape, int]]] = {}
    for (type_index, shape, place), column in starts.groups.items():
        shapes.setdefault((type_index, place), []).append((shape, column))
    seats: dict[Seat, int] = {}
    load = _Load(model, {seating.node: seating for seating in seatings})
    for (type_index, place), groups in sorted(shapes.items()):
        kind = problem.types[type_index]
        nodes = [s for s in seatings if s.domain in kinds[place].domains and s.site in kind.sites]
        for active in (True, False):
            if not any(wanted(shape, active=active) for shape, _ in groups):
                continue
            mine = []
            for seating in nodes:
                seat = Seat(type_index, place, active, seating.node)
                most = float(seating.free // unit(kind))
                seats[seat] = model.column(("seat", *seat), upper=most, integer=True)
                load.add(kind, seat, seats[seat], max(shape.gpus for shape, _ in groups))
                mine.append((seats[seat], 1.0))
            terms = [(column, -float(wanted(shape, active=active))) for shape, column in groups]
            model.row(("seats", type_index, place, active), [*mine, *terms], 0.0, 0.0)
    load.rows()
    return seats


class _Load:
    """Load of each node, and the rows that bound it."""

    def __init__(self, model: Model, seatings: dict[int, Seating]) -> None:
        self.model = model
        self.seatings = seatings
        self.terms: dict[tuple[str, int], list[tuple[int, float]]] = {}

    def add(self, kind: RunType, seat: Seat, column: int, largest: int) -> None:
        """Count a column of seats on its node."""
        self._term("gpus", seat.node, column, unit(kind))
        if not seat.active:
            return  # a spare is held slots, without a pod
        pods = column
        if not kind.lowered.pod:
            pods = self.model.column(("chunks", *seat), integer=True)
            self.model.row(("chunks", *seat), [(column, 1.0), (pods, -float(largest))], -INF, 0.0)
        self._term("pods", seat.node, pods, 1)
        self._term("cpu", seat.node, pods, kind.load.cpu_milli)
        self._term("memory", seat.node, pods, kind.load.memory)

    def _term(self, what: str, node: int, column: int, weight: int) -> None:
        if weight:
            self.terms.setdefault((what, node), []).append((column, float(weight)))

    def rows(self) -> None:
        """Σ weight × column ≤ what the node has; memory in GiB."""
        for (what, node), terms in sorted(self.terms.items()):
            seating = self.seatings[node]
            scale = float(GIB) if what == "memory" else 1.0
            has = {"gpus": seating.free, "pods": seating.pods, "cpu": seating.cpu_milli, "memory": seating.memory}[what]
            self.model.row(("node", what, node), [(c, w / scale) for c, w in terms], -INF, max(0, has) / scale)
