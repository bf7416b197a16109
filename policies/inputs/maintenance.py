"""Maintenance (spec §1 Policy.maintenance, §2): a node has no capacity then, so what starts there must end before.

a run may use a node  ⇔  for every window [start, end) of the node:  at ≥ end  or  at + time limit ≤ start
"""

from collections.abc import Iterable
from typing import Final

from jobtree.api.kinds.policy import Maintenance
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Selector

HELD: Final = "held-by"
"""The label that tells nodes apart which a promise holds (`policies.promises.holds`): keys of a cluster's nodes have a
dot, so no node has it."""


def selector(window: Maintenance) -> Selector:
    """The labels of the nodes it concerns."""
    return tuple(sorted(window.selector.items()))


def in_the_way(windows: tuple[Maintenance, ...], at: int, limit: int | None) -> tuple[Selector, ...]:
    """Selectors of the windows that a run starting at ``at`` could meet; ``limit``: its time limit in seconds."""
    met = [w for w in windows if at < int(w.end) and (limit is None or at + limit > int(w.start))]
    return tuple(sorted({selector(window) for window in met}))


def is_hold(selector: Selector) -> bool:
    """Is this what a promise keeps, and no maintenance?"""
    return any(label == HELD for label, _ in selector)


def is_own(selector: Iterable[tuple[str, str]], key: RunKey) -> bool:
    """Is this a hold of the run's own promise?"""
    return any(label == HELD and "/".join(key) in value.split(" ")[1:] for label, value in selector)
