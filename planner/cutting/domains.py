"""Domains that are weighed for a start: those where it would fit if all went, of many those with most free room."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from planner.cutting.victims import Victim
from planner.effort import Cutting
from planner.placement.room import Room
from policies.inputs.shapes import PodLoad, Shape


class Need(NamedTuple):
    """A part of a start: groups of one shape. ``sites``: where they may lie; ``load``: of a pod."""

    shape: Shape
    groups: int
    sites: frozenset[int]
    load: PodLoad


def weighed(victims: Sequence[Victim], needs: Sequence[Need], room: Room, limits: Cutting) -> dict[int, int]:
    """Node → domain, of domains where some group would fit if all went; of many, those with most free room."""
    fleet = room.fleet
    going: dict[int, int] = {}
    for victim in victims:
        for node, gpus in victim.slots():
            going[node] = going.get(node, 0) + gpus
    sites = fleet.site.tolist()
    works = fleet.takes_work.tolist()
    wanted = {site for need in needs for site in need.sites}
    least = sorted({(need.shape.size, need.shape.pod or 1) for need in needs})
    unit = least[-1][1]
    by_domain: dict[int, list[int]] = {}
    for node in sorted({*going, *(n for n, free in enumerate(room.free) if free)}):
        if works[node] and sites[node] in wanted and not room.lost[node]:
            by_domain.setdefault(int(fleet.domain[node]), []).append(node)
    fits = {
        domain: nodes
        for domain, nodes in by_domain.items()
        if any(sum((room.free[n] + going.get(n, 0)) // pod * pod for n in nodes) >= size for size, pod in least)
    }
    order = sorted(fits, key=lambda domain: (-sum(room.free[n] // unit * unit for n in fits[domain]), domain))
    needed = sum(need.shape.size * need.groups for need in needs)
    groups, chosen = _groups_at(victims), []
    found = held = 0
    for domain in order[: limits.domains]:
        if held >= limits.groups and found >= needed:
            break
        chosen.append(domain)
        held += sum(groups.get(node, 0) for node in fits[domain])
        found += sum((room.free[node] + going.get(node, 0)) // unit * unit for node in fits[domain])
    return {node: domain for domain in chosen for node in fits[domain]}


def _groups_at(victims: Iterable[Victim]) -> Mapping[int, int]:
    """Node → groups of victims with slots there."""
    return Counter(node for victim in victims for group in victim.groups for node, _ in group.slots)
