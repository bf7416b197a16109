"""Room that is missing: the GPUs to be freed for the cheapest placement of a run (spec §5 Deficit).

CPU, memory and pod counts are left aside here: a deficit is of GPUs.

Pods are weighed one by one: the k-th pod of p GPUs on a node costs what it needs beyond the free GPUs that the ones
before have left, max(0, k·p − free) − max(0, (k−1)·p − free); what a node will never have counts for nothing. A group
takes the cheapest pods of one domain.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobtree.world.values import Ints
from policies.fleet import Fleet
from policies.problem import RunType
from policies.shapes import Shape

_NEVER = np.int64(1 << 40)


@dataclass(frozen=True)
class Space:
    """Room for one run.

    ``deficit``: GPUs to be freed for its cheapest placement; ``domains``: where that is; ``missing``: GPUs for which
    there are no nodes at all, and how many ``pods`` those are; ``largest``: GPUs of the largest domain.
    """

    deficit: int
    domains: tuple[int, ...]
    missing: int
    pods: int
    largest: int


class Spaces:
    """Deficits of run types against one room; what types share is computed once.

    ``free``, ``movable``: per node, GPUs that are free, and those that are free or could be had one day.
    """

    def __init__(self, fleet: Fleet, free: Ints, movable: Ints) -> None:
        self._fleet = fleet
        self._free = free
        self._movable = movable
        self._prices: dict[tuple[frozenset[int], int], npt.NDArray[np.int64]] = {}
        self._known: dict[tuple[frozenset[int], tuple[Shape, ...]], Space] = {}

    def of(self, kind: RunType) -> Space:
        """For the least width of a type's runs."""
        key = (kind.sites, tuple(sorted(kind.lowered.pieces(), key=lambda s: (-s.size, s))))
        if key not in self._known:
            self._known[key] = self._space(*key)
        return self._known[key]

    def _space(self, sites: frozenset[int], shapes: tuple[Shape, ...]) -> Space:
        if not self._fleet.domains:
            return Space(0, (), sum(s.size for s in shapes), sum(s.pods for s in shapes), 0)
        done: dict[int, Ints] = {}
        used = np.zeros(len(self._fleet.domains), dtype=np.bool_)
        deficit = missing = pods = 0
        domains: list[int] = []
        for shape in shapes:
            prices = self._price(sites, shape.pod)
            taken = done.setdefault(shape.pod, np.zeros(len(used), dtype=np.int64))
            units = shape.pods if shape.pod else shape.size
            last = prices.shape[1] - 1
            cost = prices[np.arange(len(used)), np.minimum(taken + units, last)] - prices[np.arange(len(used)), taken]
            cost[taken + units > last] = _NEVER
            domain = int(np.lexsort((np.arange(len(used)), ~used, cost))[0])
            if cost[domain] >= _NEVER:
                spare = (prices < _NEVER).sum(axis=1) - 1 - taken
                domain = int(np.argmax(spare))
                lacking = units - int(spare[domain])
                taken[domain] += int(spare[domain])
                missing += lacking * (shape.pod or 1)
                pods += lacking if shape.pod else 0
                continue
            taken[domain] += units
            deficit += int(cost[domain])
            if not used[domain]:
                used[domain] = True
                domains.append(domain)
        return Space(deficit, tuple(domains), missing, pods, self._largest(sites))

    def _nodes(self, sites: frozenset[int]) -> npt.NDArray[np.bool_]:
        return np.isin(self._fleet.site, sorted(sites))

    def _largest(self, sites: frozenset[int]) -> int:
        gpus = np.where(self._nodes(sites), self._movable, 0)
        return int(np.bincount(self._fleet.domain, weights=gpus, minlength=1).max())

    def _price(self, sites: frozenset[int], pod: int) -> npt.NDArray[np.int64]:
        """Per domain and number of pods (GPUs, where pods have no size): the least GPUs to be freed for them."""
        key = (sites, pod)
        if key not in self._prices:
            nodes = np.flatnonzero(self._nodes(sites))
            free, movable = self._free[nodes], self._movable[nodes]
            domain = self._fleet.domain[nodes]
            if pod:
                steps = [
                    (np.maximum(0, k * pod - free) - np.maximum(0, (k - 1) * pod - free), movable >= k * pod)
                    for k in range(1, int(movable.max(initial=0)) // pod + 1)
                ]
                cost = np.concatenate([step[fits] for step, fits in steps] or [np.zeros(0, np.int64)])
                where = np.concatenate([domain[fits] for _, fits in steps] or [np.zeros(0, np.int64)])
            else:
                here = np.minimum(free, movable)
                cost = np.concatenate(
                    [np.zeros(int(here.sum()), np.int64), np.ones(int((movable - here).sum()), np.int64)]
                )
                where = np.concatenate([np.repeat(domain, here), np.repeat(domain, movable - here)])
            self._prices[key] = _ladders(cost, where, len(self._fleet.domains))
        return self._prices[key]


def _ladders(cost: Ints, where: Ints, domains: int) -> npt.NDArray[np.int64]:
    """Running sums of each domain's costs, cheapest first, as rows padded with _NEVER."""
    order = np.lexsort((cost, where))
    counts = np.bincount(where, minlength=domains)
    table = np.full((domains, int(counts.max(initial=0)) + 1), _NEVER, dtype=np.int64)
    table[:, 0] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    for domain in np.flatnonzero(counts).tolist():
        mine = cost[order[starts[domain] : starts[domain + 1]]]
        table[domain, 1 : len(mine) + 1] = np.cumsum(mine)
    return table
