"""Pods for which nodes have GPUs but no CPU, memory or place left (spec §2, §3.9): what is short, on which node.

All of a run lies where GPUs are free already, and where most of its pods find what else they need; the others go to as
few nodes as can be, those first that lack least. What is short is what these nodes would have to have more.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import GIB, MIB, Memory
from jobtree.world.plan import Short
from jobtree.world.tables.values import Ints
from policies.caps.cap import amount
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import Shape
from policies.model.problem import RunType

SAID: Final = 3
"""Most shortages, envelopes or domains that words name; `short:` has all of them."""


class Crowded(NamedTuple):
    """Need of pods on a node beside GPUs, and what it has left. ``what``: 0 CPU (milli), 1 memory (bytes), 2 pods."""

    node: str
    what: int
    needs: int
    free: int

    @property
    def short(self) -> Short:
        """Shortage in whole CPUs, GiB or pods."""
        unit, scale = (("CPU", 1000), ("GiB", GIB), ("pod", 1))[self.what]
        rule = ("cpu", "memory", "pods")[self.what]
        return Short(rule=rule, subject=f"node={self.node}", amount=-(-(self.needs - self.free) // scale), unit=unit)

    @property
    def words(self) -> str:
        """A clause."""
        lacking = self._said(self.needs - self.free)
        noun = f"{lacking} of memory" if self.what == 1 else counted(lacking, ("CPU", "", "pod")[self.what])
        free = self._said(max(0, self.free))
        return f"{noun} short on node {self.node} ({self._said(self.needs)} needed, {free} free)"

    def _said(self, value: int) -> str:
        """The number, memory in whole Mi."""
        if self.what == 1:
            return str(Memory(-(-value // MIB) * MIB))
        return amount(value, 1000) if self.what == 0 else str(value)


def clauses(found: list[Crowded]) -> list[str]:
    """Words of the largest few, and how many more there are."""
    said = [each.words for each in found[:SAID]]
    more = f"{len(found) - SAID} more such shortages on other nodes"
    return [*said, *([more] if len(found) > SAID else [])]


@dataclass
class Crowding:
    """Nodes while a run is laid on them: ``free`` GPUs, and what is ``left`` of CPU, memory and pods."""

    fleet: Fleet
    free: Ints
    left: Ints

    def of(self, kind: RunType, sites: frozenset[int]) -> list[Crowded]:
        """Find what nodes lack for a type's least width; nothing where GPUs are short as well, or nothing is."""
        free, left = self.free.copy(), self.left.copy()
        needs = np.asarray([kind.load.cpu_milli, kind.load.memory, 1], dtype=np.int64)
        here = np.flatnonzero(self.fleet.is_on(sites) & (free > 0))
        domains = sorted(set(self.fleet.domain[here].tolist()))
        touched: set[int] = set()
        for shape in sorted(kind.lowered.pieces(), key=lambda s: (-s.size, s)):
            laid = [_Laid.of(here[self.fleet.domain[here] == d], shape, free, left, needs) for d in domains]
            best = min((each for each in laid if each is not None), key=lambda each: each.lacks, default=None)
            if best is None:
                return []
            free[best.nodes] -= best.gpus
            left[best.nodes] -= best.pods[:, None] * needs
            touched.update(best.nodes[best.pods > 0].tolist())
        return [
            Crowded(self.fleet.names[node], what, int(self.left[node, what] - left[node, what]), has)
            for node in sorted(touched)
            for what in range(3)
            if left[node, what] < 0 and left[node, what] < (has := int(self.left[node, what]))
        ]


@dataclass(frozen=True)
class _Laid:
    """A group on the ``nodes`` of a domain: GPUs and pods on each; ``lacks``: pods that find too little, and nodes."""

    nodes: Ints
    gpus: Ints
    pods: Ints
    lacks: tuple[int, int]

    @classmethod
    def of(cls, nodes: Ints, shape: Shape, free: Ints, left: Ints, needs: Ints) -> "_Laid | None":
        """The cheapest way, None where there are too few GPUs. Pods without a size are one per node."""
        unit = shape.unit
        most = free[nodes] // unit
        wanted, spare = shape.gpus // unit, shape.spare_gpus // unit
        if int(most.sum()) < wanted + spare:
            return None
        asked = np.maximum(needs, 1)
        rest = np.where(needs > 0, left[nodes] // asked, most[:, None].max(initial=0))
        fits = np.clip(rest.min(axis=1), 0, most if shape.pod else np.minimum(1, most))
        room = fits if shape.pod else np.where(fits > 0, most, 0)
        lacking = np.maximum(0.0, (needs - np.maximum(left[nodes], 0)) / asked).sum(axis=1)
        seats = np.zeros(len(nodes), dtype=np.int64)
        crowded: set[int] = set()
        first = np.lexsort((-room, room == 0))
        for place in first.tolist():
            seats[place] = min(wanted, room[place])
            wanted -= int(seats[place])
        extra = 0
        for place in np.lexsort((np.arange(len(nodes)), -most, lacking)).tolist():
            more = min(wanted, int(most[place] - seats[place]))
            if more:
                crowded.add(place)
                seats[place] += more
                extra += more
                wanted -= more
        pods = seats if shape.pod else np.minimum(1, seats)
        gpus = seats * unit
        for place in np.argsort(most - seats, kind="stable").tolist():
            held = min(spare, int(most[place] - seats[place]))
            gpus[place] += held * unit
            spare -= held
        return cls(nodes, gpus, pods, (extra, len(crowded)))
