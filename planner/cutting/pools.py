"""Pools: who may be drawn, before each pick (spec §6).

In the pool is every token that belongs to some set of victims with the least harm and whose room the start would use:
its group is forced into a set, and the set still has the least harm. After each pick those sets alone count that hold
what was drawn; when these need nobody else, the pool is empty.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from planner.cutting.least import Option, Weighing
from planner.cutting.victims import Victim
from policies.claims import RunKey
from policies.cuts.lottery import Pool, Token, pool_of
from policies.cuts.order import Harm


@dataclass
class Pools:
    """The pools of one need. ``harm``: the least. What was asked once is remembered."""

    weighing: Weighing
    harm: Harm
    _known: dict[frozenset[RunKey], Pool] = field(default_factory=dict, repr=False)

    @property
    def victims(self) -> Sequence[Victim]:
        """All that may be cut."""
        return self.weighing.victims

    def after(self, drawn: Iterable[Token]) -> Pool:
        """Who may be drawn after these were; nobody once no other has to be."""
        lost = frozenset((token.namespace, token.run) for token in drawn)
        if lost not in self._known:
            self._known[lost] = self._pool(lost)
        return self._known[lost]

    def numbers(self, lost: Iterable[RunKey]) -> list[int]:
        """Victims by their runs."""
        wanted = {*lost}
        return [number for number, victim in enumerate(self.victims) if victim.run in wanted]

    def _pool(self, lost: frozenset[RunKey]) -> Pool:
        if not self.harm.lottery:
            return {}
        gone = self.numbers(lost)
        if gone and self.weighing.least(lost=gone, spare_others=True) == self.harm:
            return {}
        return pool_of(self._tokens(gone))

    def _tokens(self, gone: list[int]) -> Iterator[tuple[str, Token]]:
        """(owner, token) of each that may be drawn; tokens that nothing tells apart are asked for once."""
        answers: dict[object, bool] = {}
        colours = _colours(self.victims, gone)
        for number, victim in enumerate(self.victims):
            if number in gone or victim.unfunded or Option(number, "lost") not in self.weighing.columns:
                continue
            for group in victim.groups:
                key = (colours[number], group.number, len(victim.groups))
                if key not in answers:
                    answers[key] = self.weighing.could_draw(self.harm, number, group.number, gone)
                if answers[key]:
                    yield victim.owner, Token(*victim.run, group.number)


def _colours(victims: Sequence[Victim], gone: Iterable[int]) -> list[object]:
    """The same for victims that nothing tells apart: each is of one group on one node, and so are others there.

    Two of them on one node may change places, with their sizes and all that can be cut of them equal.
    """
    lost = {*gone}
    alone: dict[int, bool] = {}
    for number, victim in enumerate(victims):
        nodes = {node for group in victim.groups for node, _ in group.slots} | {each.node for each in victim.spares}
        for node in nodes:
            alone[node] = alone.get(node, True) and len(nodes) == 1 and number not in lost
    found: list[object] = []
    for number, victim in enumerate(victims):
        where = [node for group in victim.groups for node, _ in group.slots]
        plain = len(victim.groups) == 1 and not victim.spares and not victim.surplus
        if plain and len(where) == 1 and alone[where[0]]:
            found.append((where[0], victim.gpus, victim.pod, victim.load, victim.losable, victim.unfunded))
        else:
            found.append(number)
    return found
