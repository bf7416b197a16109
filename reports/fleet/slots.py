"""Who holds each GPU of a fleet: slots as rows, from a snapshot's tables and, if given, a plan made on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from exporters.plans.nodelist import by_names, natural
from jobtree.world.naming.domains import Domain, domain_names
from jobtree.world.plan import Plan

State = Literal["running", "new", "spare", "foreign", "free"]


class Slot(NamedTuple):
    """One GPU. ``owner``: of the run that holds it, empty where nobody of ours does."""

    state: State
    owner: str


_NODE_COLUMNS: Final = [
    "name", "region", "cluster", "domain", "flavor", "gpus", "ready", "unschedulable", "out_of_service"
]  # fmt: skip
_LEASE_COLUMNS: Final = ["namespace", "name", "node", "role", "run_owner", "ordinals", "closed"]
FREE: Final = Slot("free", "")
FOREIGN: Final = Slot("foreign", "")


@dataclass(frozen=True)
class NodeSlots:
    """A node's GPUs by ordinal. ``usable``: it takes new work (not cordoned, Ready)."""

    name: str
    usable: bool
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class DomainSlots:
    """A domain and its nodes by name. ``name``: what people call it, see `jobtree.world.naming.domains`."""

    region: str
    cluster: str
    name: str
    flavor: str
    nodes: tuple[NodeSlots, ...]


def fleet_slots(tables: Mapping[str, pa.Table], plan: Plan | None = None) -> list[DomainSlots]:
    """Every domain, sorted by region, cluster and name, 2 before 10. With ``plan`` as it is once that is carried out.

    An Active lease shows before a Spare on the same slot. Pods that are not ours take the last slots that no lease
    holds: Kubernetes does not say which GPUs they have.
    """
    held = _held(tables["leases"], plan)
    foreign = _foreign(tables["pods"])
    found: dict[Domain, list[tuple[str, NodeSlots]]] = {}
    for row in tables["nodes"].select(_NODE_COLUMNS).to_pylist():
        slots = [held.get((row["name"], ordinal), FREE) for ordinal in range(row["gpus"])]
        left = foreign.get(row["name"], 0)
        for ordinal in reversed(range(row["gpus"])):
            if left and slots[ordinal] == FREE:
                slots[ordinal], left = FOREIGN, left - 1
        usable = row["ready"] and not row["unschedulable"] and not row["out_of_service"]
        key = Domain(row["region"] or "", row["cluster"] or "", row["domain"] or row["name"], not row["domain"])
        found.setdefault(key, []).append((row["flavor"] or "", NodeSlots(row["name"], usable, tuple(slots))))
    for rows in found.values():
        rows.sort(key=lambda row: natural(row[1].name))
    names = domain_names(found)
    return [
        DomainSlots(key.region, key.cluster, names[key], found[key][0][0], tuple(node for _, node in found[key]))
        for key in sorted(found, key=lambda key: (by_names(key[:3]), key.alone))
    ]


def _held(leases: pa.Table, plan: Plan | None) -> dict[tuple[str, int], Slot]:
    ended = {(c.namespace, c.name) for c in plan.closures} if plan else set()
    held: dict[tuple[str, int], Slot] = {}
    for row in leases.select(_LEASE_COLUMNS).to_pylist():
        if not row["closed"] and (row["namespace"], row["name"]) not in ended:
            slot = Slot("running" if row["role"] == "Active" else "spare", row["run_owner"])
            _put(held, row["node"], row["ordinals"], slot)
    for lease in plan.leases if plan else ():
        role = lease.spec.slice.role
        slot = Slot("new" if role == "Active" else "spare", str(lease.spec.run_owner))
        _put(held, lease.spec.node, lease.spec.ordinals, slot)
    return held


def _put(held: dict[tuple[str, int], Slot], node: str, ordinals: Sequence[int], slot: Slot) -> None:
    for ordinal in ordinals:
        there = held.get((node, ordinal))
        if there is None or there.state == "spare":
            held[node, ordinal] = slot


def _foreign(pods: pa.Table) -> dict[str, int]:
    """GPUs per node of pods that are no run's."""
    taken: dict[str, int] = {}
    for row in pods.select(["node", "run", "gpus"]).to_pylist():
        if row["run"] is None and row["node"] is not None:
            taken[row["node"]] = taken.get(row["node"], 0) + row["gpus"]
    return taken
