"""Standbys: pods' worth of spare slots, and which of them take the places of lost pods (spec §7).

All failures of a cycle are repaired together. With use[s] ∈ {0, 1} by standby and reclaim[t] ∈ {0, 1} by tenant, which
is unfunded work on slots of standbys,

    min Σ GPUs(t) × reclaim[t]    Σ use[s] over standbys of a group = its lost pods    use[s] ≤ reclaim[t], t on s
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.solver.highs import options, solve
from policies.inputs.claims import LeaseRow, RunKey
from policies.model.linear import INF, Model


class Tenant(NamedTuple):
    """Unfunded work that goes together: a fixed run, or a group (``group``; −1: all of it) of a malleable one."""

    run: RunKey
    group: int


class Standby(NamedTuple):
    """Slots for one pod on a node, or for one GPU where pods have no size. ``leases``: by ordinal, whose they are."""

    node: str
    ordinals: tuple[int, ...]
    tenants: frozenset[Tenant]
    leases: tuple[LeaseRow, ...]


@dataclass
class Want:
    """A group that lost ``pods`` pods (GPUs, where pods have no size), and the standbys that it has."""

    run: RunKey
    group: int
    pods: int
    standbys: list[Standby]
    squatted: list[LeaseRow] = field(default_factory=list)
    """Its spare leases on whose slots funded work is."""

    @property
    def is_met(self) -> bool:
        """Are there enough?"""
        return len(self.standbys) >= self.pods


def standbys_of(
    spares: Iterable[LeaseRow], unit: int, tenants: Mapping[tuple[str, int], frozenset[Tenant]]
) -> list[Standby]:
    """Whole standbys of ``unit`` GPUs in spare leases of one group: never a part of one.

    ``tenants``: by slot, of the slots that may be used. Those without tenants come first on each node.
    """
    slots: dict[str, list[tuple[int, LeaseRow]]] = {}
    for lease in spares:
        for ordinal in lease.ordinals:
            if (lease.node, ordinal) in tenants:
                slots.setdefault(lease.node, []).append((ordinal, lease))
    found = []
    for node in sorted(slots):
        mine = sorted(slots[node], key=lambda slot: (sorted(tenants[node, slot[0]]), slot[0]))
        for first in range(0, len(mine) // unit * unit, unit):
            part = mine[first : first + unit]
            there = frozenset[Tenant]().union(*(tenants[node, ordinal] for ordinal, _ in part))
            found.append(Standby(node, tuple(ordinal for ordinal, _ in part), there, tuple(lease for _, lease in part)))
    return found


def reclaimed(wants: Sequence[Want], gpus: Mapping[Tenant, int], nodes: int) -> frozenset[Tenant]:
    """The tenants of fewest GPUs without whom every group of ``wants`` has its standbys. ``gpus``: what each holds;
    ``nodes``: most branch-and-bound nodes.

    Of equal ones the first by name go: their places count together less than half a GPU.
    """
    if not any(standby.tenants for want in wants for standby in want.standbys):
        return frozenset()
    model = Model()
    costs: dict[int, float] = {}
    column: dict[Tenant, int] = {}
    for place, tenant in enumerate(sorted(gpus)):
        column[tenant] = model.column(("reclaim", tenant), upper=1.0, integer=True)
        costs[column[tenant]] = -(gpus[tenant] + place / len(gpus) ** 2)
    for number, want in enumerate(wants):
        uses = []
        for place, standby in enumerate(want.standbys):
            use = model.column(("use", number, place), upper=1.0, integer=True)
            uses.append((use, 1.0))
            for tenant in sorted(standby.tenants):
                model.row(("reclaimed", number, place, tenant), [(use, 1.0), (column[tenant], -1.0)], -INF, 0.0)
        model.row(("pods", number), uses, float(want.pods), float(want.pods))
    model.maximise(costs)
    values = solve(model, options(0, 0.0, nodes)).values
    gone = {t for t, place in column.items() if values is None or values[place] > 0.5}
    for tenant in sorted(gone, key=lambda t: (-gpus[t], t)):  # a search that was cut short may have taken too many
        if all(_is_met(want, gone - {tenant}) for want in wants):
            gone.discard(tenant)
    return frozenset(gone)


def _is_met(want: Want, without: Set[Tenant]) -> bool:
    """Has a group its standbys once these tenants are gone?"""
    return sum(standby.tenants <= without for standby in want.standbys) >= want.pods


def taken(want: Want, without: frozenset[Tenant]) -> list[Standby]:
    """The standbys that a group takes once the tenants ``without`` whom it is are gone: on as few nodes as may be."""
    by_node: dict[str, list[Standby]] = {}
    for standby in want.standbys:
        if standby.tenants <= without:
            by_node.setdefault(standby.node, []).append(standby)
    chosen: list[Standby] = []
    while len(chosen) < want.pods:
        left = want.pods - len(chosen)
        enough = [node for node, mine in by_node.items() if len(mine) >= left]
        best = min(
            enough or by_node, key=lambda node: (-len(by_node[node]) if not enough else len(by_node[node]), node)
        )
        chosen += by_node.pop(best)[:left]
    return chosen
