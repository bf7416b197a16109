"""Stages 8 and 9: fewest domains per run, then the largest holes (spec §4). Tie-breaks, made by construction.

    stage 8:  least Σ over starts of the domains they use
    stage 9:  most  Σ over domains of (free GPUs)², so that what is free lies together

As objective terms they would cost the solver many times what the rest costs; placement fills the run's own domains
first and then the tightest fit, and the plan states what that comes to.
"""

from collections.abc import Iterable

from jobtree.world.tables.values import Ints


def domains_used(places: Iterable[tuple[int, int]]) -> int:
    """Stage 8: distinct (run, domain) pairs."""
    return len(set(places))


def holes(free: Ints) -> int:
    """Stage 9: Σ free² over domains, from free GPUs per domain."""
    return int((free * free).sum())
