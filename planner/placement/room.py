"""Room: which slots are free, node by node, while a plan is being made (spec §2).

Exact where the master is not: pods on single nodes, CPU, memory and pod counts, chunks of groups without pod sizes.
Every choice is made in a fixed order, so equal worlds fill equally.
"""

from bisect import insort
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from policies.inputs.claims import LeaseRow, RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.runs import RunRow
from policies.inputs.shapes import NO_LOAD, PodLoad, Shape


@dataclass(frozen=True, slots=True)
class Chunk:
    """GPUs of one group on one node: ``count`` slots in ``pods`` pods, Active or Spare."""

    group: int
    node: int
    count: int
    pods: int
    active: bool


def holding(fleet: Fleet, leases: Iterable[LeaseRow]) -> tuple[dict[int, set[int]], dict[tuple[RunKey, int, int], int]]:
    """Slots of leases by node, and Active GPUs by (run, group, node), on nodes that are there."""
    slots: dict[int, set[int]] = {}
    active: dict[tuple[RunKey, int, int], int] = {}
    for lease in leases:
        node = fleet.index.get(lease.node)
        if node is not None:
            slots.setdefault(node, set()).update(lease.ordinals)
            if lease.active:
                key = (lease.run_key, lease.group, node)
                active[key] = active.get(key, 0) + lease.gpus
    return slots, active


class Room:
    """Free slots per node; taking and giving back is exact and reversible."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        sizes = {gpus: tuple(range(gpus - 1, -1, -1)) for gpus in set(fleet.gpus.tolist())}
        self.slots: list[Sequence[int]] = [sizes[gpus] for gpus in fleet.gpus.tolist()]
        self.free: list[int] = [0] * len(fleet.names)
        self.lost: list[int] = [0] * len(fleet.names)
        """Per node, GPUs that are held but no longer there: as many have to be freed before any is free."""
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
        taken, active = holding(self.fleet, leases)
        for (run_key, _, node), gpus in active.items():
            run = runs.get(run_key)
            if run is not None:
                self._load(node, run.pods_of(gpus), run.load)
        there = [(self.fleet.index[name], other) for name, other in foreign.items() if name in self.fleet.index]
        for node, other in there:
            if other.slots:
                taken.setdefault(node, set()).update(other.slots.intersection(range(len(self.slots[node]))))
        for node, ordinals in taken.items():
            left = [slot for slot in self.slots[node] if slot not in ordinals]
            gone = len(ordinals) - (len(self.slots[node]) - len(left))
            self.slots[node] = left[gone:]  # a GPU that vanished under a lease blocks another
            self.lost[node] = max(0, gone - len(left))
        for node, other in there:
            self.lost[node] += max(0, other.gpus - len(self.slots[node]))
            self.slots[node] = self.slots[node][min(other.gpus, len(self.slots[node])) :]
            self._load(node, other.pods, PodLoad(other.cpu_milli, other.memory), each=False)
        open_for_work = self.fleet.takes_work.tolist()
        self.free = [len(slots) if takes else 0 for slots, takes in zip(self.slots, open_for_work, strict=True)]

    def after(self, ended: Iterable[LeaseRow], runs: Mapping[RunKey, RunRow]) -> "Room | None":
        """The room once these leases, which share no slot with others, have ended; None where only a count can tell."""
        other = self.copy()
        other.slots = [*self.slots]
        freed, active = holding(self.fleet, ended)
        for node, ordinals in freed.items():
            if self.lost[node]:
                return None
            other.slots[node] = sorted((*self.slots[node], *ordinals), reverse=True)
            other.free[node] = len(other.slots[node]) if self.fleet.takes_work[node] else 0
        for (run_key, _, node), gpus in active.items():
            if run_key in runs:
                other._load(node, -runs[run_key].pods_of(gpus), runs[run_key].load)
        return other

    def hold_back(self, part: Mapping[str, int]) -> None:
        """Keep so many free slots of each node for a promise."""
        for name, gpus in part.items():
            node = self.fleet.index[name]
            self.free[node] = max(0, self.free[node] - gpus)

    def copy(self) -> "Room":
        """Copy the room, to be filled apart."""
        other = copy(self)
        other.free, other.cpu, other.memory, other.pods = [*self.free], [*self.cpu], [*self.memory], [*self.pods]
        other.wanted = [*self.wanted]
        return other  # slots are only ever read once they are counted

    def _load(self, node: int, pods: int, load: PodLoad, *, each: bool = True) -> None:
        times = pods if each else 1
        self.cpu[node] -= times * load.cpu_milli
        self.memory[node] -= times * load.memory
        self.pods[node] -= pods

    def pods_that_fit(self, node: int, pod: int, load: PodLoad) -> int:
        """Count the pods of ``pod`` GPUs (0: single GPUs of one pod) that the node takes."""
        count = self.free[node] // (pod or 1)
        if not pod:
            fits = self.pods[node] >= 1 and self.cpu[node] >= load.cpu_milli and self.memory[node] >= load.memory
            return count if fits else 0
        count = min(count, max(0, self.pods[node]))
        if load.cpu_milli:
            count = min(count, max(0, self.cpu[node]) // load.cpu_milli)
        if load.memory:
            count = min(count, max(0, self.memory[node]) // load.memory)
        return count

    def eligible(self, domain: int, sites: frozenset[int], among: Container[int] | None = None) -> list[int]:
        """The domain's nodes on ``sites`` that have a free slot, in name order; of those ``among`` alone, if given."""
        mine = self.nodes_of[domain] if among is None else [n for n in self.nodes_of[domain] if n in among]
        return [n for n in mine if self.free[n] and self._sites[n] in sites]

    def capacity(self, domain: int, sites: frozenset[int], pod: int, load: PodLoad) -> int:
        """GPUs of the domain that pods of this size and load can use; pods without size (1) as single GPUs."""
        if load == NO_LOAD:
            return sum(self.free[n] // pod * pod for n in self.eligible(domain, sites))
        unit = pod if pod > 1 else 0
        return sum(pod * self.pods_that_fit(n, unit, load) for n in self.eligible(domain, sites))

    def settle(
        self,
        domain: int,
        sites: frozenset[int],
        groups: list[tuple[int, Shape]],
        load: PodLoad,
        among: Container[int] | None = None,
    ) -> list[Chunk] | None:
        """Take slots in one domain for all ``groups`` (index, shape); None, and nothing taken, where one has none.

        ``among``: on these nodes alone.

        Active pods first, with their load; spares are slots only, whole pods of them where pods have a size.
        """
        taken: list[Chunk] = []
        shelves: dict[tuple[int, bool], _Shelf] = {}
        for group, shape in groups:
            for gpus, active in ((shape.gpus, True), (shape.spare_gpus, False)):
                if not gpus:
                    continue
                if (shape.pod, active) not in shelves:
                    nodes = self.eligible(domain, sites, among)
                    shelves[shape.pod, active] = _Shelf(self, nodes, shape.pod, load if active else None)
                chosen = shelves[shape.pod, active].choose(gpus)
                if chosen is None:
                    self.give_back(taken, load)
                    return None
                chunks = [
                    Chunk(group, node, count, (count // shape.pod if shape.pod else 1) if active else 0, active)
                    for node, count in chosen
                ]
                self.take(chunks, load)
                taken += chunks
                for shelf in shelves.values():
                    shelf.refresh(node for node, _ in chosen)
        return taken

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

    def free_by_site(self) -> dict[int, int]:
        """Free GPUs per site, sites without any left out."""
        total = np.bincount(self.fleet.site, weights=self.free, minlength=self.fleet.site_count)
        return {site: int(gpus) for site, gpus in enumerate(total) if gpus}

    def domain_free(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Free GPUs per domain."""
        total = np.zeros(len(self.fleet.domains), dtype=np.int64)
        np.add.at(total, self.fleet.domain, np.asarray(self.free, dtype=np.int64))
        return total

    def rank(self, node: int) -> tuple[int, int, int]:
        """The order in which nodes are filled: those that few types of waiting runs may use, then the fullest."""
        return self.wanted[self._sites[node]], self.free[node], node


class _Shelf:
    """Nodes of one domain that still take pods of a size, in the order in which they are filled.

    ``load`` None: slots without pods.
    """

    def __init__(self, room: Room, nodes: list[int], pod: int, load: PodLoad | None) -> None:
        self._room = room
        self._pod = pod
        self._load = load
        self._items = sorted(filter(None, map(self._item, nodes)))

    def _item(self, node: int) -> tuple[tuple[int, int, int], int] | None:
        """(rank, GPUs that fit in pods) of a node, None where none does."""
        unit = self._pod or 1
        count = self._room.free[node] // unit
        if self._load is not None:
            count = self._room.pods_that_fit(node, self._pod, self._load)
        return (self._room.rank(node), unit * count) if count else None

    def refresh(self, nodes: Iterable[int]) -> None:
        """Something of these nodes was taken."""
        changed = {*nodes}
        self._items = [item for item in self._items if item[0][2] not in changed]
        for item in filter(None, map(self._item, changed)):
            insort(self._items, item)

    def choose(self, gpus: int) -> list[tuple[int, int]] | None:
        """(node, GPUs) for ``gpus`` GPUs; None where there is no room for all.

        Pods go to the fullest nodes, where the least room is lost to bigger ones. Without a size a group takes as few
        chunks as possible: the one node that fits it best, else the emptiest nodes and a best fit last.
        """
        room = [*self._items]
        if sum(fits for _, fits in room) < gpus:
            return None
        chosen: list[tuple[int, int]] = []
        while gpus:
            best = next((item for item in room if item[1] >= gpus), None)
            if best is None:
                best = room[0] if self._pod else max(room, key=_emptiest)
            rank, fits = best
            here = min(fits, gpus)
            chosen.append((rank[2], here))
            gpus -= here
            room.remove(best)
        return chosen


def _emptiest(item: tuple[tuple[int, int, int], int]) -> tuple[int, int, int]:
    (wanted, _, node), fits = item
    return -wanted, fits, node


@dataclass
class Foreign:
    """Use of one node by pods that no lease covers; ``slots``: those of Leases that cannot be read; ``own``: GPUs of
    pods of runs whose leases have ended.

    ``ending``: GPUs and needs of those of runs that are being deleted: room that is free as soon as they are gone.
    """

    gpus: int = 0
    own: int = 0
    cpu_milli: int = 0
    memory: int = 0
    pods: int = 0
    slots: set[int] = field(default_factory=set)
    ending: list[tuple[int, PodLoad]] = field(default_factory=list)
