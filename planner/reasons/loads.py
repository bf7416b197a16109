"""CPU, memory and pod counts of nodes (spec §2): the GPUs that have to be freed so that more pods find their share."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from jobtree.world.tables.values import Bools, Ints
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import PodLoad

NEVER: Final = np.int64(1 << 40)
"""GPUs to be freed where freeing would not help."""


class Tenant(NamedTuple):
    """A pod on a node, with what would be free without it."""

    node: int
    gpus: int
    load: PodLoad


@dataclass(frozen=True)
class Loads:
    """``left``: per node, milli-CPUs, bytes and pods that nobody uses; ``tenants``: pods that could be made to go.

    Where pods have to go those go first that free most CPU per GPU, then most memory: on nodes whose pods are of one
    kind, and for a single pod's need of CPU among few, that is the cheapest way.
    """

    left: Ints
    tenants: list[Tenant]

    @classmethod
    def empty(cls, fleet: Fleet) -> "Loads":
        """Loads of the fleet with nothing on it."""
        return cls(np.stack([fleet.cpu_milli, fleet.memory, fleet.max_pods], axis=1), [])

    @classmethod
    def plenty(cls, fleet: Fleet) -> "Loads":
        """Loads of nodes that lack nothing but GPUs."""
        return cls(np.full((len(fleet.names), 3), NEVER), [])

    def bind(self, nodes: Ints, most: Ints, load: PodLoad) -> bool:
        """Could more than GPUs be short on these nodes, each with at most so many pods of that load?"""
        return bool((self.left[nodes] < most[:, None] * _needs(load)).any())

    def relief(self, nodes: Ints, pods: int, load: PodLoad) -> Ints:
        """GPUs to be freed on each of the nodes so that ``pods`` more pods find CPU, memory and their number."""
        gpus, freed = self._freed
        needs = _needs(load)
        asked = needs > 0
        enough: Bools = self.left[nodes][:, None, asked] + freed[nodes][:, :, asked] >= pods * needs[asked]
        there = np.all(enough, axis=2)
        found = gpus[nodes, there.argmax(axis=1)]
        return np.where(there.any(axis=1), found, NEVER)

    @property
    def emptied(self) -> Ints:
        """Room that would be left if all tenants went."""
        found = self.left.copy()
        for tenant in self.tenants:
            found[tenant.node] += (tenant.load.cpu_milli, tenant.load.memory, 1)
        return found

    @cached_property
    def _freed(self) -> tuple[Ints, Ints]:
        """Per node and number of pods gone: GPUs, and milli-CPUs, bytes and pods that are free then."""
        by_node: dict[int, list[Tenant]] = {}
        for tenant in sorted(self.tenants, key=_order):
            by_node.setdefault(tenant.node, []).append(tenant)
        most = max(map(len, by_node.values()), default=0)
        each = np.zeros((len(self.left), most + 1, 4), dtype=np.int64)
        for node, tenants in by_node.items():
            each[node, 1 : len(tenants) + 1] = [(t.gpus, t.load.cpu_milli, t.load.memory, 1) for t in tenants]
        total = each.cumsum(axis=1)
        return total[:, :, 0], total[:, :, 1:]


def _needs(load: PodLoad) -> Ints:
    return np.asarray([load.cpu_milli, load.memory, 1], dtype=np.int64)


def _order(tenant: Tenant) -> tuple[int, int, int]:
    return -(tenant.load.cpu_milli // tenant.gpus), -(tenant.load.memory // tenant.gpus), tenant.gpus


def pods_of(node: int, gpus: int, size: int, load: PodLoad) -> Iterable[Tenant]:
    """The pods of a group's GPUs on a node: of ``size`` GPUs each, or one for all where pods have no size."""
    return [Tenant(node, size or gpus, load)] * (gpus // size if size else 1)
