"""Who is family, and how near (spec §1 Budget ``parents``, §3.1, §3.5).

An owner descends from the parents that its Budgets name, else from the longest proper prefix of its path that has a
Budget with an envelope. Relatives share an ancestor, each counting as its own.
"""

from collections.abc import Collection, Iterable

from jobtree.check.case.accounts import Budget

SPONSOR = 6
"""The rank of a payer that is no relative."""


class Kin:
    """The family DAG of a snapshot's Budgets. ``by_path``: owners from whom others descend by path; None: all."""

    def __init__(self, budgets: Iterable[Budget], by_path: Collection[str] | None = None) -> None:
        self._named: dict[str, set[str] | None] = {}
        for budget in budgets:
            named = self._named.setdefault(budget.owner, None)
            if budget.parents is not None:
                self._named[budget.owner] = (named or set()) | set(budget.parents)
        self._by_path = self._named.keys() if by_path is None else by_path
        self._parents: dict[str, frozenset[str]] = {}
        self._line: dict[str, frozenset[str]] = {}
        self._ranks: dict[tuple[str, str], int | None] = {}
        self._standings: dict[tuple[str, str], int] = {}

    def parents(self, owner: str) -> frozenset[str]:
        """The owners right above; an owner without a Budget has them too."""
        if owner not in self._parents:
            named = self._named.get(owner)
            self._parents[owner] = self._by_prefix(owner) if named is None else frozenset(named)
        return self._parents[owner]

    def _by_prefix(self, owner: str) -> frozenset[str]:
        prefix, cut, _ = owner.rpartition(":")
        while cut:
            if prefix in self._by_path:
                return frozenset([prefix])
            prefix, cut, _ = prefix.rpartition(":")
        return frozenset()

    def line(self, owner: str) -> frozenset[str]:
        """The owner and everyone above it."""
        if owner not in self._line:
            found = {owner}
            todo = [owner]
            while todo:
                above = self.parents(todo.pop()) - found
                found |= above
                todo += sorted(above)
            self._line[owner] = frozenset(found)
        return self._line[owner]

    def rank(self, claimant: str, payer: str) -> int | None:
        """Own 0, parents 1, siblings 2, children 3, grandparents 4, any further relative 5; None for strangers."""
        pair = (claimant, payer)
        if pair not in self._ranks:
            self._ranks[pair] = self._rank(claimant, payer)
        return self._ranks[pair]

    def _rank(self, claimant: str, payer: str) -> int | None:
        above = self.parents(claimant)
        kinds = (
            claimant == payer,
            payer in above,
            bool(above & self.parents(payer)),
            claimant in self.parents(payer),
            any(payer in self.parents(parent) for parent in above),
            bool(self.line(claimant) & self.line(payer)),
        )
        return next((rank for rank, holds in enumerate(kinds) if holds), None)

    def standing(self, claimant: str, payer: str) -> int:
        """The place of a claimant at a payer's envelope: the owner 0, its children, siblings, parents, the rest 4."""
        pair = (claimant, payer)
        if pair not in self._standings:
            self._standings[pair] = self._standing(claimant, payer)
        return self._standings[pair]

    def _standing(self, claimant: str, payer: str) -> int:
        above = self.parents(payer)
        kinds = (
            claimant == payer,
            payer in self.parents(claimant),
            bool(above & self.parents(claimant)),
            claimant in above,
        )
        return next((place for place, holds in enumerate(kinds) if holds), 4)
