"""Kinship: who is family, and how near (spec §1 Budget.parents, §3.1).

Owners form a DAG: an owner descends from the ``parents`` its Budgets name, or else from the longest proper prefix of
its path that has a Budget with an envelope. Two owners are relatives when they share an ancestor, themselves counted.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final

OWN: Final = 0
PARENT: Final = 1
SIBLING: Final = 2
CHILD: Final = 3
GRANDPARENT: Final = 4
COUSIN: Final = 5
SPONSOR: Final = 6

Parents = Iterable[str] | None
"""Owners that a Budget names as its own owner's parents; None where it says nothing of them."""

REST: Final = 4
"""Standing of all that are farther than a payer's parents."""

RANK_NAMES: Final = ("own", "parent", "sibling", "child", "grandparent", "cousin", "sponsor")


def standing_of(rank: int) -> int:
    """Standing of a relative's claim (see ``Family.standing``), by how near the payer is to the claimant."""
    return min(rank, REST)


class Family:
    """The DAG of owners. ``declared``: owner → the parents its Budgets name, None where they name none at all.

    ``by_path``: owners of whom others descend by their paths; all that are declared by default.
    """

    def __init__(self, declared: Mapping[str, Iterable[str] | None], by_path: Collection[str] | None = None) -> None:
        self._by_path = declared.keys() if by_path is None else frozenset(by_path)
        self._declared = {owner: None if parents is None else tuple(parents) for owner, parents in declared.items()}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._near: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        """Its parents, and theirs."""
        self._ancestors: dict[str, frozenset[str]] = {}
        self._ranks: dict[tuple[str, str], int | None] = {}

    @cached_property
    def owners(self) -> frozenset[str]:
        """Owners that have a Budget."""
        return frozenset(self._declared)

    def parents(self, owner: str) -> tuple[str, ...]:
        """The owners right above ``owner``, which need not have a Budget itself."""
        known = self._parents.get(owner)
        if known is None:
            declared = self._declared.get(owner)
            known = self._by_prefix(owner) if declared is None else tuple(sorted(set(declared)))
            self._parents[owner] = known
        return known

    def _by_prefix(self, owner: str) -> tuple[str, ...]:
        parts = owner.split(":")
        for length in range(len(parts) - 1, 0, -1):
            prefix = ":".join(parts[:length])
            if prefix in self._by_path:
                return (prefix,)
        return ()

    def lineage(self, owner: str) -> frozenset[str]:
        """``owner`` and everything above it."""
        known = self._ancestors.get(owner)
        if known is None:
            seen = {owner}
            edge = {owner}
            while edge:  # a set: there may be a great many ways to one ancestor
                edge = {up for one in edge for up in self.parents(one)} - seen
                seen |= edge
            known = self._ancestors[owner] = frozenset(seen)
        return known

    def descends(self, owner: str, ancestor: str) -> bool:
        """Is ``ancestor`` strictly above ``owner``?"""
        return owner != ancestor and ancestor in self.lineage(owner)

    def rank(self, claimant: str, payer: str) -> int | None:
        """Rank of ``payer`` to ``claimant``, OWN … COUSIN; None where they are no relatives."""
        pair = (claimant, payer)
        if pair not in self._ranks:
            self._ranks[pair] = self._rank(claimant, payer)
        return self._ranks[pair]

    def _rank(self, claimant: str, payer: str) -> int | None:
        if claimant == payer:
            return OWN
        above, farther = self._right_above(claimant)
        if payer in above:
            return PARENT
        of_payer, _ = self._right_above(payer)
        if not above.isdisjoint(of_payer):
            return SIBLING
        if claimant in of_payer:
            return CHILD
        if payer in farther:
            return GRANDPARENT
        return None if self.lineage(claimant).isdisjoint(self.lineage(payer)) else COUSIN

    def _right_above(self, owner: str) -> tuple[frozenset[str], frozenset[str]]:
        known = self._near.get(owner)
        if known is None:
            above = frozenset(self.parents(owner))
            known = self._near[owner] = above, frozenset(up for parent in above for up in self.parents(parent))
        return known

    def standing(self, claimant: str, payer: str) -> int:
        """The order in which claims on ``payer``'s envelope are honoured (spec §3.5).

        The owner itself 0, its children 1, its siblings 2, its parents 3, the rest 4.
        """
        rank = self.rank(claimant, payer)
        return REST if rank is None else standing_of(rank)


def family_of(budgets: Iterable[tuple[str, Parents]], by_path: Collection[str] | None = None) -> Family:
    """From each Budget's owner and parents; several of one owner name them together. ``by_path``: as `Family` has."""
    declared: dict[str, list[str] | None] = {}
    for owner, parents in budgets:
        known = declared.setdefault(owner, None)
        if parents is not None:
            declared[owner] = [*(known or []), *parents]
    return Family(declared, by_path)
