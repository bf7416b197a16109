"""Nodes that have failed (spec §2): deleted, tainted out of service, or NotReady longer than ``failure.notReadyAfter``.

A node is its uid: one that was made again under its name has another, and the old one was deleted.

A cordon or a blip is no failure. Where more nodes than max(1, ``failure.maxFraction`` of all) would newly fail by
NotReady in one cycle, none of these does: that is a fault of the control plane until a person says otherwise.
"""

from fractions import Fraction

import pyarrow as pa

from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.values.scalars import exact
from jobtree.world.tables import values as col

Place = tuple[str, str]
"""(node, uid) that a lease lies on; the uid is empty where the lease does not say."""


def failed(
    nodes: pa.Table, places: set[Place], unreadable: set[str], policy: PolicySpec, at: int
) -> tuple[frozenset[Place], str]:
    """Failed nodes among the ``places`` of leases, and a warning where silent nodes are too many to be believed.

    ``unreadable``: quarantined nodes, which are not gone.
    """
    names = col.texts(nodes, "name")
    uids = dict(zip(names, col.texts(nodes, "uid"), strict=True))
    remade = frozenset((name, uid) for name, uid in places if uid and uids.get(name, uid) not in ("", uid))
    holding = {name for name, _ in places - remade}
    gone = holding - uids.keys() - unreadable
    silent = set()
    for name, ready, since, out_of_service in zip(
        names,
        col.bools(nodes, "ready").tolist(),
        col.optional_ints(nodes, "not_ready_since"),
        col.bools(nodes, "out_of_service").tolist(),
        strict=True,
    ):
        if name in holding and out_of_service:
            gone.add(name)
        elif name in holding and not ready and since is not None:
            silent |= {name} if is_silent(since, policy, at) else set()
    if not is_believed(len(silent), len(names), policy):
        return remade | _places(places, gone), (
            f"{len(silent)} of {len(names)} nodes are NotReady for long, more than failure.maxFraction lets fail at"
            " once: none is taken for failed"
        )
    return remade | _places(places, gone | silent), ""


def is_silent(since: int, policy: PolicySpec, at: int) -> bool:
    """Is a node that has not been Ready ``since`` then taken for silent?"""
    return at - since > int(policy.failure.not_ready_after)


def is_believed(silent: int, nodes: int, policy: PolicySpec) -> bool:
    """Are so many silent nodes of all taken for failed?"""
    return silent <= max(Fraction(1), exact(policy.failure.max_fraction) * nodes)


def _places(places: set[Place], names: set[str]) -> frozenset[Place]:
    return frozenset(place for place in places if place[0] in names)
