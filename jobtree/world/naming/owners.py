"""Whom ``--owner`` means: an owner and its descendants, or with a trailing ``:*`` its descendants alone."""

from collections.abc import Collection, Iterable
from typing import Final

from jobtree.api.values.errors import Refusal
from jobtree.api.values.nearest import nearest
from jobtree.api.values.scalars import OwnerPath
from jobtree.world.naming.kinship import Parents, family_of

BELOW: Final = ":*"
SHOWN: Final = 5
"""How many owners are named where none is near the one that was asked for."""


def with_those_above(named: Iterable[str]) -> set[str]:
    """Owners, and those above them by their paths."""
    return {each for name in named if name for each in (name, *OwnerPath(name).ancestors())}


def meant(text: str, known: Collection[str], budgets: Iterable[tuple[str, Parents]], *, missing: str) -> frozenset[str]:
    """The owners among the ``known`` that are meant.

    Descendants are those below it by their path, and those that Budgets' ``parents`` put below it. Raises Refusal for
    an owner that is not known, with the nearest that is. ``missing``: what is said then after its name.
    """
    top = text.removesuffix(BELOW)
    if top not in known:
        ends = sorted((owner for owner in known if owner.endswith(f":{top}")), key=lambda owner: (len(owner), owner))
        near = ends[0] if ends else nearest(top, known)
        hint = f"did you mean {near}{BELOW if text.endswith(BELOW) else ''}?" if near else _some(known)
        raise Refusal(f"there is no owner {top}{missing}; {hint}")
    family = family_of(budgets)

    def is_below(owner: str) -> bool:
        return owner != top and any(up == top or up.startswith(f"{top}:") for up in family.lineage(owner))

    return frozenset(owner for owner in known if is_below(owner) or (owner == top and not text.endswith(BELOW)))


def _some(known: Collection[str]) -> str:
    if not known:
        return "it has no owners yet"
    shown = sorted(known, key=lambda owner: (owner.count(":"), owner))[:SHOWN]
    return f"there are {', '.join(shown)}{', …' if len(known) > len(shown) else ''}"
