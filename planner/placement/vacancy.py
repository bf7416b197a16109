"""Free capacity of every domain at once, kept up to date while slots are taken."""

from functools import cached_property

import numpy as np

from jobtree.world.tables.values import Ints
from planner.placement.room import Room
from policies.inputs.shapes import NO_LOAD, PodLoad

Need = tuple[frozenset[int], int, PodLoad]
"""(sites, pod size, load of a pod)."""


class Vacancies:
    """GPUs per domain that pods of a size and load can use on some sites; computed once, then per changed domain."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._known: dict[Need, Ints] = {}
        self._log: list[int] = []  # domains, as they changed
        self._seen: dict[Need, int] = {}  # how much of the log each answer knows of
        self._cells: dict[int, dict[tuple[int, int, PodLoad], int]] = {}  # domain → (site, pod, load) → GPUs
        self._counted: Ints | None = None  # free slots per node, once they were asked for
        self._stale: set[int] = set()  # domains that changed since then

    def of(self, sites: frozenset[int], pod: int, load: PodLoad) -> Ints:
        """One value per domain, in domain order. Pods without a size count as pods of one GPU."""
        need = (sites, max(1, pod), load)
        known = self._known.get(need)
        if known is None:
            known = self._known[need] = self._everywhere(need)
        else:
            for domain in {*self._log[self._seen[need] :]}:
                known[domain] = self._capacity(domain, need)
        self._seen[need] = len(self._log)
        return known

    def changed(self, domain: int) -> None:
        """Slots of ``domain`` were taken or given back."""
        self._log.append(domain)
        self._stale.add(domain)
        self._cells.pop(domain, None)

    @property
    def changes(self) -> int:
        """How often slots were taken or given back."""
        return len(self._log)

    def _capacity(self, domain: int, need: Need) -> int:
        """Site by site: needs that differ in their sites share what they have in common."""
        sites, pod, load = need
        cells = self._cells.setdefault(domain, {})
        total = 0
        for site in self._sites[domain]:
            if site in sites:
                cell = (site, pod, load)
                if cell not in cells:
                    cells[cell] = self._room.capacity(domain, frozenset((site,)), pod, load)
                total += cells[cell]
        return total

    @cached_property
    def _sites(self) -> dict[int, list[int]]:
        """The sites of each domain's nodes."""
        fleet = self._room.fleet
        found: dict[int, list[int]] = {}
        for domain, site in np.unique(np.stack([fleet.domain, fleet.site], axis=1), axis=0).tolist():
            found.setdefault(domain, []).append(site)
        return found

    def _everywhere(self, need: Need) -> Ints:
        sites, pod, load = need
        fleet = self._room.fleet
        if load != NO_LOAD:
            return np.asarray([self._room.capacity(d, *need) for d in range(len(fleet.domains))], dtype=np.int64)
        usable = np.zeros(fleet.site_count, dtype=np.bool_)
        usable[sorted(sites)] = True
        free = np.where(usable[fleet.site], self.free(), 0) // pod * pod
        return np.bincount(fleet.domain, weights=free, minlength=len(fleet.domains)).astype(np.int64)

    def free(self) -> Ints:
        """Free slots per node, (nodes,); not to be written to."""
        if self._counted is None:
            self._counted = np.asarray(self._room.free, dtype=np.int64)
        else:
            nodes = [node for domain in sorted(self._stale) for node in self._room.nodes_of[domain]]
            self._counted[nodes] = [self._room.free[node] for node in nodes]
        self._stale.clear()
        return self._counted
