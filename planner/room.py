"""Room: which slots are free, node by node, while a plan is being made (spec §2).

Exact where the master is not: pods on single nodes, CPU, memory and pod counts, chunks of groups without pod sizes.
Every choice is made in a fixed order, so equal worlds fill equally.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from policies.claims import LeaseRow, RunKey
from policies.fleet import Fleet
from policies.runs import RunRow
from policies.shapes import NO_LOAD, PodLoad, Shape


@dataclass(frozen=True, slots=True)
class Chunk:
    """GPUs of one group on one node: ``count`` slots in ``pods`` pods, Active or Spare."""

    group: int
    node: int
    count: int
    pods: int
    active: bool


class Room:
    """Free slots per node; taking and giving back is exact and reversible."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.slots: list[list[int]] = [list(range(int(gpus) - 1, -1, -1)) for gpus in fleet.gpus]
        self.free: list[int] = [0] * len(fleet.names)
        self.cpu: list[int] = fleet.cpu_milli.tolist()
        self.memory: list[int] = fleet.memory.tolist()
        self.pods: list[int] = fleet.max_pods.tolist()
        self.nodes_of: dict[int, list[int]] = {}
        for node, domain in enumerate(fleet.domain.tolist()):
            self.nodes_of.setdefault(domain, []).append(node)
        self._sites: list[int] = fleet.site.tolist()
        self.wanted: list[int] = [0] * fleet.site_count
        """Per site, how many types of waiting runs may use it; sites that few may use are filled first."""

    def occupy(
        self, leases: Iterable[LeaseRow], runs: Mapping[RunKey, RunRow], foreign: Mapping[str, "Foreign"]
    ) -> None:
        """Take out what open leases and foreign pods hold, then count what is free for new work."""
        taken: dict[int, set[int]] = {}
        for lease in leases:
            node = self.fleet.index.get(lease.node)
            if node is None:
                continue
            taken.setdefault(node, set()).update(lease.ordinals)
            run = runs.get(lease.run_key)
            if run is not None and lease.active:
                pods = lease.gpus // run.pod if run.pod else 1
                self._load(node, pods, PodLoad(run.pod_cpu_milli, run.pod_memory))
        for node, ordinals in taken.items():
            self.slots[node] = [slot for slot in self.slots[node] if slot not in ordinals]
        for name, other in foreign.items():
            node = self.fleet.index.get(name)
            if node is not None:
                self.slots[node] = self.slots[node][min(other.gpus, len(self.slots[node])) :]
                self._load(node, other.pods, PodLoad(other.cpu_milli, other.memory), each=False)
        open_for_work = self.fleet.takes_work.tolist()
        self.free = [len(slots) if takes else 0 for slots, takes in zip(self.slots, open_for_work, strict=True)]

    def _load(self, node: int, pods: int, load: PodLoad, *, each: bool = True) -> None:
        times = pods if each else 1
        self.cpu[node] -= times * load.cpu_milli
        self.memory[node] -= times * load.memory
        self.pods[node] -= pods

    def pods_that_fit(self, node: int, pod: int, load: PodLoad) -> int:
        """How many pods of ``pod`` GPUs (0: single-GPU pieces of a chunk) the node takes."""
        count = self.free[node] // (pod or 1)
        if pod:
            count = min(count, max(0, self.pods[node]))
            if load.cpu_milli:
                count = min(count, max(0, self.cpu[node]) // load.cpu_milli)
            if load.memory:
                count = min(count, max(0, self.memory[node]) // load.memory)
        elif self.pods[node] < 1 or self.cpu[node] < load.cpu_milli or self.memory[node] < load.memory:
            count = 0
        return count

    def eligible(self, domain: int, sites: frozenset[int]) -> list[int]:
        """The domain's nodes on ``sites`` that have a free slot, in name order."""
        return [n for n in self.nodes_of[domain] if self.free[n] and self._sites[n] in sites]

    def capacity(self, domain: int, sites: frozenset[int], pod: int, load: PodLoad) -> int:
        """GPUs of the domain that pods of this size and load can use; pods without size (1) as single GPUs."""
        if load == NO_LOAD:
            return sum(self.free[n] // pod * pod for n in self.eligible(domain, sites))
        unit = pod if pod > 1 else 0
        return sum(pod * self.pods_that_fit(n, unit, load) for n in self.eligible(domain, sites))

    def settle(
        self, domain: int, sites: frozenset[int], groups: list[tuple[int, Shape]], load: PodLoad
    ) -> list[Chunk] | None:
        """Take slots in one domain for all ``groups`` (index, shape); None, and nothing taken, where one has none."""
        taken: list[Chunk] = []
        for group, shape in groups:
            nodes = self.eligible(domain, sites)
            fits = self._fit_pods if shape.pod else self._fit_chunks
            chunks = fits(nodes, group, shape, load)
            if chunks is None:
                self.give_back(taken, load)
                return None
            self.take(chunks, load)
            taken += chunks
        return taken

    def _fit_pods(self, nodes: list[int], group: int, shape: Shape, load: PodLoad) -> list[Chunk] | None:
        """Pods onto the nodes with the least room that is of no use to bigger pods; fullest nodes first."""
        room = [(n, fits) for n in nodes if (fits := self.pods_that_fit(n, shape.pod, load))]
        room.sort(key=lambda item: (self._wanted(item[0]), self.free[item[0]], item[0]))
        need = shape.pods
        if sum(fits for _, fits in room) < need:
            return None
        chosen: list[tuple[int, int]] = []
        for node, fits in _exact_first(room, need):
            here = min(fits, need)
            chosen.append((node, here))
            need -= here
            if not need:
                break
        return _split(group, chosen, shape.gpus // shape.pod, shape.pod)

    def _fit_chunks(self, nodes: list[int], group: int, shape: Shape, load: PodLoad) -> list[Chunk] | None:
        """As few chunks as possible: the one node that it fits best, else the emptiest nodes and a best fit last."""
        room = [(n, fits) for n in nodes if (fits := self.pods_that_fit(n, 0, load))]
        need = shape.size
        if sum(fits for _, fits in room) < need:
            return None
        room.sort(key=lambda item: (self._wanted(item[0]), item[1], item[0]))
        chosen: list[tuple[int, int]] = []
        left = room
        while need:
            best = next((item for item in left if item[1] >= need), None)
            node, fits = best if best is not None else max(left, key=lambda i: (-self._wanted(i[0]), i[1], i[0]))
            here = min(fits, need)
            chosen.append((node, here))
            need -= here
            left = [item for item in left if item[0] != node]
        return _split(group, chosen, shape.gpus, 1, pods_counted=False)

    def _wanted(self, node: int) -> int:
        return self.wanted[self._sites[node]]

    def take(self, chunks: Iterable[Chunk], load: PodLoad) -> None:
        """Use up the slots."""
        for chunk in chunks:
            self.free[chunk.node] -= chunk.count
            self._load(chunk.node, chunk.pods, load)

    def give_back(self, chunks: Iterable[Chunk], load: PodLoad) -> None:
        """Undo ``take``."""
        for chunk in chunks:
            self.free[chunk.node] += chunk.count
            self._load(chunk.node, -chunk.pods, load)

    def domain_free(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Free GPUs per domain."""
        total = np.zeros(len(self.fleet.domains), dtype=np.int64)
        np.add.at(total, self.fleet.domain, np.asarray(self.free, dtype=np.int64))
        return total


@dataclass
class Foreign:
    """What pods that Jobtree does not own use of one node."""

    gpus: int = 0
    cpu_milli: int = 0
    memory: int = 0
    pods: int = 0


def _exact_first(room: list[tuple[int, int]], need: int) -> list[tuple[int, int]]:
    """Fullest nodes first, but a single node that takes all of it before any split."""
    whole = next((item for item in room if item[1] >= need), None)
    return room if whole is None else [whole]


def _split(
    group: int, chosen: list[tuple[int, int]], active: int, unit: int, *, pods_counted: bool = True
) -> list[Chunk]:
    """``active`` units as Active first, the rest as spares, along the chosen nodes."""
    chunks: list[Chunk] = []
    for node, count in chosen:
        here = min(active, count)
        if here:
            chunks.append(Chunk(group, node, here * unit, here if pods_counted else 1, active=True))
        if count > here:
            chunks.append(
                Chunk(group, node, (count - here) * unit, (count - here) if pods_counted else 1, active=False)
            )
        active -= here
    return chunks
