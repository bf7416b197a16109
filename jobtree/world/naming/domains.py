"""People's names for a domain, which is the triple (region, cluster, domain label) (spec §2)."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple


class Domain(NamedTuple):
    """``label``: the domain label; where a node has none it is ``alone``, and this is the node's name."""

    region: str
    cluster: str
    label: str
    alone: bool


def _label(domain: Domain) -> str:
    return domain.label


def _path(domain: Domain) -> str:
    return "/".join(part for part in domain[:3] if part)


def _full(domain: Domain) -> str:
    """No label and no name of a node has a slash or a colon in it, so this is no other domain's name."""
    return f"{domain.region}/{domain.cluster}/{'node:' if domain.alone else ''}{domain.label}"


_NAMES: Final[tuple[Callable[[Domain], str], ...]] = (_label, _path, _full)
"""Shortest first."""


def domain_names(domains: Iterable[Domain]) -> dict[Domain, str]:
    """A name of each that no other has: the label; where several have that, with the region and cluster that are there;
    where two are still alike, with empty parts too and ``node:`` before a node's name.
    """
    found: dict[Domain, str] = {}
    left = set(domains)
    for spelled in _NAMES:
        times = Counter(spelled(domain) for domain in left)
        found |= {domain: spelled(domain) for domain in left if times[spelled(domain)] == 1}
        left = {domain for domain in left if times[spelled(domain)] > 1}
    return found
