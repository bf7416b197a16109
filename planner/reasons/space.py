"""Room that is missing: the GPUs to be freed for the cheapest placement of a run (spec §5 Deficit).

Pods are weighed one by one: the k-th pod of p GPUs on a node costs what it needs beyond the free GPUs that the ones
before have left, max(0, k·p − free) − max(0, (k−1)·p − free), or more where pods there must go for their CPU, memory or
number (`reasons.loads`); what a node will never have counts for nothing. A group takes the cheapest pods of one domain,
and groups go one by one to the cheapest domain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from jobtree.world.tables.values import Bools, Ints
from planner.reasons.loads import NEVER, Loads
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import PodLoad, Shape
from policies.model.problem import RunType


class Lot(NamedTuple):
    """Equal groups in a domain."""

    domain: int
    shape: Shape
    groups: int


@dataclass(frozen=True)
class Space:
    """Room for one run.

    ``deficit``: GPUs to be freed for its cheapest placement; ``lots``: where that is; ``missing``: GPUs for which
    there are no nodes at all, and how many ``pods`` those are; ``lacks``: the same by domain, of each group
    where that lacks least; ``largest``: GPUs of the largest domain.
    """

    deficit: int
    lots: tuple[Lot, ...]
    missing: int
    pods: int
    lacks: tuple[tuple[int, int], ...]
    largest: int

    @property
    def domains(self) -> tuple[int, ...]:
        """Domains where it is, each once."""
        return tuple(dict.fromkeys(lot.domain for lot in self.lots))


class Spaces:
    """Deficits of run types against one room; what types share is computed once.

    ``free``, ``movable``: per node, GPUs that are free (less than none where some are held that are no longer there),
    and those that are free or could be had one day; ``loads``: what else pods need.
    """

    def __init__(self, fleet: Fleet, free: Ints, movable: Ints, loads: Loads) -> None:
        self._fleet = fleet
        self._free = free
        self._movable = movable
        self._loads = loads
        self._prices: dict[tuple[frozenset[int], int, int, PodLoad], _Prices] = {}
        self._tight: dict[tuple[frozenset[int], int, PodLoad], bool] = {}
        self._shapes: dict[int, tuple[Shape, ...]] = {}
        self._groups: dict[tuple[frozenset[int], Shape, PodLoad], _Groups] = {}
        self._fits: dict[int, bool] = {}
        self._homes: dict[frozenset[int], Ints] = {}
        self._largest: dict[frozenset[int], int] = {}
        self._known: dict[tuple[frozenset[int], tuple[Shape, ...], PodLoad], Space] = {}

    def of(self, kind: RunType, sites: frozenset[int] | None = None, load: PodLoad | None = None) -> Space:
        """Room for a type's runs at their least width; on ``sites`` and with ``load`` in place of its own, if given."""
        key = (kind.sites if sites is None else sites, self._pieces(kind), kind.load if load is None else load)
        if key not in self._known:
            self._known[key] = self._space(*key)
        return self._known[key]

    def deficit(self, kind: RunType, sites: frozenset[int]) -> int | None:
        """GPUs to be freed on ``sites`` for the least width of a type's runs, None where there is no room for it."""
        shapes = self._pieces(kind)
        if shapes[0] != shapes[-1] or not self._fleet.domains:
            space = self.of(kind, sites)
            return None if space.missing else space.deficit
        sums = self._alike(sites, shapes[0], kind.load).sums
        return int(sums[len(shapes)]) if len(shapes) < len(sums) else None

    def fits(self, kind: RunType) -> bool:
        """Is there room for the least width of a type's runs, whatever would have to be freed?"""
        if kind.index not in self._fits:
            self._fits[kind.index] = self._has_room(kind)
        return self._fits[kind.index]

    def _has_room(self, kind: RunType) -> bool:
        shapes = self._pieces(kind)
        if shapes[0] != shapes[-1] or not self._fleet.domains:
            return not self.of(kind).missing
        units = shapes[0].pods if shapes[0].pod else shapes[0].size
        counts = self._price(kind.sites, shapes[0], kind.load).counts
        return int((counts // units).sum()) >= len(shapes)

    def _alike(self, sites: frozenset[int], shape: Shape, load: PodLoad) -> "_Groups":
        key = (sites, shape, load)
        if key not in self._groups:
            units = shape.pods if shape.pod else shape.size
            self._groups[key] = self._price(sites, shape, load).groups(units)
        return self._groups[key]

    def _pieces(self, kind: RunType) -> tuple[Shape, ...]:
        """Pieces that must find room, biggest first."""
        if kind.index not in self._shapes:
            self._shapes[kind.index] = tuple(sorted(kind.lowered.pieces(), key=lambda s: (-s.size, s)))
        return self._shapes[kind.index]

    def homes(self, sites: frozenset[int], region: list[int]) -> Ints:
        """The region of money of each domain, of several the one where most is free on ``sites``; -1 where none is."""
        if sites not in self._homes:
            here = np.flatnonzero(self._on(sites) & (self._movable > 0))
            where, count = self._fleet.domain[here], max(region, default=0) + 1
            room = np.zeros((len(self._fleet.domains), count), dtype=np.int64)
            regions = np.asarray(region, dtype=np.int64)[self._fleet.site[here]]
            np.add.at(room, (where, regions), 1 + (np.maximum(self._free[here], 0) << 20))
            self._homes[sites] = np.where(room.any(axis=1), room.argmax(axis=1), -1)
        return self._homes[sites]

    def _space(self, sites: frozenset[int], shapes: tuple[Shape, ...], load: PodLoad) -> Space:
        if not self._fleet.domains:
            return Space(0, (), sum(s.size for s in shapes), sum(s.pods for s in shapes), (), 0)
        lots: list[Lot] = []
        lacks: dict[int, int] = {}
        deficit = missing = pods = 0
        taken = np.zeros(len(self._fleet.domains), dtype=np.int64)
        for shape, same in groupby(shapes):
            prices = self._price(sites, shape, load)
            units = shape.pods if shape.pod else shape.size
            left = len(list(same))
            if not lots and not taken.any():
                found = self._alike(sites, shape, load)
                deficit += int(found.sums[min(left, len(found.domains))])
                counts = np.bincount(found.domains[:left], minlength=len(taken))
                lots += [Lot(domain, shape, int(counts[domain])) for domain in np.flatnonzero(counts).tolist()]
                taken += units * counts
                left -= int(counts.sum())
            for _ in range(left):
                cost = prices.next(taken, units)
                used = np.isin(np.arange(len(taken)), [lot.domain for lot in lots])
                domain = int(np.lexsort((~used, cost))[0])
                if cost[domain] >= NEVER:
                    spare = prices.counts - taken
                    domain = int(np.argmax(spare))
                    lacking = units - int(spare[domain])
                    taken[domain] += int(spare[domain])
                    missing += lacking * shape.unit
                    lacks[domain] = lacks.get(domain, 0) + lacking * shape.unit
                    pods += lacking if shape.pod else 0
                    continue
                taken[domain] += units
                deficit += int(cost[domain])
                lots.append(Lot(domain, shape, 1))
        return Space(deficit, tuple(lots), missing, pods, tuple(sorted(lacks.items())), self._largest_on(sites))

    def _on(self, sites: frozenset[int]) -> Bools:
        return self._fleet.is_on(sites)

    def _largest_on(self, sites: frozenset[int]) -> int:
        """GPUs of the largest domain there."""
        if sites not in self._largest:
            gpus = np.where(self._on(sites), self._movable, 0)
            self._largest[sites] = int(np.bincount(self._fleet.domain, weights=gpus, minlength=1).max())
        return self._largest[sites]

    def _price(self, sites: frozenset[int], shape: Shape, load: PodLoad) -> "_Prices":
        share = shape.pod or shape.size  # most GPUs of a pod; its size matters where nodes lack more than GPUs
        if not shape.pod and not self._binds(sites, share, load):
            share = 0
        key = (sites, shape.pod, share, load)
        if key not in self._prices:
            costs = self._costs(np.flatnonzero(self._on(sites)), shape.unit, share, load)
            self._prices[key] = _Prices.of(costs, self._fleet.domain, len(self._fleet.domains))
        return self._prices[key]

    def _binds(self, sites: frozenset[int], share: int, load: PodLoad) -> bool:
        """Could nodes lack more than GPUs for pods of at most so many GPUs?"""
        key = (sites, share, load)
        if key not in self._tight:
            nodes = np.flatnonzero(self._on(sites))
            self._tight[key] = self._loads.bind(nodes, -(-self._movable[nodes] // share), load)
        return self._tight[key]

    def _costs(self, nodes: Ints, unit: int, share: int, load: PodLoad) -> Iterator[tuple[Ints, Ints]]:
        """For the first pod on each node (GPU, where pods have no size), the next, ...: nodes with room, and costs.

        ``share``: most GPUs of one pod, 0 where nodes lack no more than GPUs.
        """
        free, movable = self._free[nodes], self._movable[nodes]
        binds = share > 0 and self._loads.bind(nodes, -(-movable // share), load)
        before = np.zeros(len(nodes), dtype=np.int64)
        for k in range(1, int(movable.max(initial=0)) // unit + 1):
            total = np.maximum(0, k * unit - free)
            fits = movable >= k * unit
            if binds:
                relief = self._loads.relief(nodes, -(-k * unit // share), load)
                total = np.maximum(total, relief)
                fits &= relief < NEVER
            yield nodes[fits], (total - before)[fits]
            before = total


@dataclass(frozen=True)
class _Groups:
    """The cheapest places for equal groups, one after the other: ``sums``: what so many of them cost together."""

    sums: Ints
    domains: Ints


@dataclass
class _Prices:
    """``table``: per domain and number of pods the least GPUs to be freed for them, NEVER where there are too few;
    ``counts``: how many there are.
    """

    table: Ints
    counts: Ints

    @classmethod
    def of(cls, costs: Iterator[tuple[Ints, Ints]], domain: Ints, domains: int) -> "_Prices":
        """``costs``: see `Spaces._costs`. The cheapest pods of a domain come first, a node's own in their order."""
        steps = list(costs)
        nodes = np.concatenate([np.zeros(0, np.int64), *(node for node, _ in steps)])
        cost = np.concatenate([np.zeros(0, np.int64), *(each for _, each in steps)])
        worst = np.zeros(len(domain), dtype=np.int64)
        ranks = []
        for node, each in steps:  # a pod is no earlier in its turn than the one before it on its node
            worst[node] = np.maximum(worst[node], each)
            ranks.append(worst[node])
        rank = np.concatenate([np.zeros(0, np.int64), *ranks])
        where = domain[nodes]
        order = np.lexsort((nodes, rank, where))
        counts = np.bincount(where, minlength=domains)
        table = np.full((domains, int(counts.max(initial=0)) + 1), NEVER, dtype=np.int64)
        table[:, 0] = 0
        sums = np.cumsum(cost[order])
        ends = np.cumsum(counts)
        column = np.arange(len(order)) - np.repeat(ends - counts, counts) + 1
        base = np.concatenate([[0], sums])[ends - counts]
        table[where[order], column] = sums - base[where[order]]
        return cls(table, counts)

    def next(self, taken: Ints, units: int) -> Ints:
        """Per domain, what a group of so many pods more costs."""
        rows = np.arange(len(taken))
        after = np.minimum(taken + units, self.table.shape[1] - 1)
        cost = self.table[rows, after] - self.table[rows, taken]
        return np.where(taken + units > self.counts, NEVER, cost)

    def groups(self, units: int) -> _Groups:
        """Places for groups of so many pods, cheapest first, a domain's one after the other."""
        if units not in self._by_units:
            steps = self.table[:, ::units]
            costs = np.diff(steps, axis=1)
            there = np.arange(1, steps.shape[1]) * units <= self.counts[:, None]
            domains, column = np.nonzero(there)
            rank = np.maximum.accumulate(np.where(there, costs, 0), axis=1)[domains, column]
            order = np.argsort(rank, kind="stable")  # of equal ones the first domain's first
            sums = np.cumsum(costs[domains, column][order])
            self._by_units[units] = _Groups(np.append(np.int64(0), sums), domains[order])
        return self._by_units[units]

    @cached_property
    def _by_units(self) -> dict[int, _Groups]:
        return {}
