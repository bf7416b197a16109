"""Kinds of domains: places that the model need not tell apart (ARCHITECTURE.md, the model).

Domains whose free nodes lie on the same set of sites are one *kind*. A kind that placement could not follow is split:
each of its domains becomes a kind of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from policies.inputs.fleet import Fleet
from policies.inputs.shapes import NO_LOAD, PodLoad, Shape

Capacity = Callable[[int, frozenset[int], int, PodLoad], int]
"""(domain, sites, pod size, load) → GPUs that pods of that size and load, alone, can use there now."""


@dataclass(frozen=True)
class Kind:
    """``sites`` of its free nodes; ``domains`` in order."""

    index: int
    sites: frozenset[int]
    domains: tuple[int, ...]


def kinds(fleet: Fleet, free: list[int], split: frozenset[int]) -> list[Kind]:
    """Kinds of the domains that have free slots; the domains in ``split`` each stand alone."""
    sites: dict[int, set[int]] = {}
    for node, count in enumerate(free):
        if count:
            sites.setdefault(int(fleet.domain[node]), set()).add(int(fleet.site[node]))
    grouped: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for domain in sorted(sites):
        grouped.setdefault((tuple(sorted(sites[domain])), domain if domain in split else -1), []).append(domain)
    return [Kind(i, frozenset(key[0]), tuple(members)) for i, (key, members) in enumerate(sorted(grouped.items()))]


def usable(kind: Kind, sites: frozenset[int]) -> frozenset[int]:
    """The part of a kind that work bound to ``sites`` may use."""
    return kind.sites & sites


def pod_units(shape: Shape, pod: int, load: PodLoad) -> int:
    """GPUs that a shape takes of the capacity for pods of ``pod`` GPUs.

    Its pods of at least that size, each rounded down to multiples of it; where nodes bound the load of pods (``load``),
    each Active pod counts once, however big: a spare is held slots, without a pod.
    """
    if load != NO_LOAD:
        return shape.gpus if pod <= 1 else shape.gpus // shape.pod * pod if shape.pod >= pod else 0
    if pod <= 1:
        return shape.size
    return shape.pods * (shape.pod // pod) * pod if shape.pod >= pod else 0
