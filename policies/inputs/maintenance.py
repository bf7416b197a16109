"""Maintenance (spec §1 Policy.maintenance, §2): a node has no capacity then, so what starts there must end before.

a run may use a node  ⇔  for every window [start, end) of the node:  at ≥ end  or  at + time limit ≤ start
"""

from jobtree.api.kinds.policy import Maintenance
from policies.inputs.fleet import Selector


def selector(window: Maintenance) -> Selector:
    """The labels of the nodes it concerns."""
    return tuple(sorted(window.selector.items()))


def in_the_way(windows: tuple[Maintenance, ...], at: int, limit: int | None) -> tuple[Selector, ...]:
    """Selectors of the windows that a run starting at ``at`` could meet; ``limit``: its time limit in seconds."""
    met = [w for w in windows if at < int(w.end) and (limit is None or at + limit > int(w.start))]
    return tuple(sorted({selector(window) for window in met}))
