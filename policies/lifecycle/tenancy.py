"""Tenancy: which namespaces may charge as which owner (spec §1 Budget.namespaces).

An owner that lists none inherits its nearest ancestor's list; an own list replaces it. Where nobody above lists any,
the owner is bound nowhere: allowed, unless ``tenancy.requireBinding``.
"""

from jobtree.api.values.counted import named
from policies.inputs.money import Money


def refusal(money: Money, owner: str, namespace: str) -> str:
    """Say why runs of ``owner`` may not come from ``namespace``; empty if they may."""
    bound = _bound(money, owner)
    if bound is None:
        if money.policy.tenancy.require_binding:
            return f"{owner} is bound to no namespace, and the Policy's tenancy.requireBinding asks for one"
        return ""
    if namespace in bound:
        return ""
    return f"{owner} may be charged from {named(sorted(bound))}, not from {namespace}"


def _bound(money: Money, owner: str) -> frozenset[str] | None:
    """The nearest list: breadth first upwards; several parents at one distance are taken together."""
    seen = {owner}
    level = [owner]
    while level:
        lists = [spaces for one in level if (spaces := money.namespaces.get(one)) is not None]
        if lists:
            return frozenset(space for spaces in lists for space in spaces)
        level = sorted({up for one in level for up in money.family.parents(one)} - seen)
        seen.update(level)
    return None
