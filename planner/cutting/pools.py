"""Pools: who may be drawn, before each pick (spec §6).

In the pool is every token that belongs to some set of victims with the least harm and whose room the start would use:
its group is forced into a set, and the set still has the least harm. After each pick those sets alone count that hold
what was drawn; when these need nobody else, the pool is empty.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from planner.cutting.least import Option, Weighing
from planner.cutting.victims import Victim
from policies.cuts.lottery import Pool, Token, pool_of
from policies.cuts.order import Harm
from policies.inputs.claims import RunKey


@dataclass
class Pools:
    """The pools of one need. ``harm``: the least; ``solved``: models so far. What was asked once is remembered."""

    weighing: Weighing
    harm: Harm
    solved: int = 0
    _known: dict[frozenset[RunKey], Pool] = field(default_factory=dict, repr=False)
    _answers: dict[object, dict[object, bool]] = field(default_factory=dict, repr=False)

    @property
    def victims(self) -> Sequence[Victim]:
        """All that may be cut."""
        return self.weighing.victims

    def after(self, drawn: Iterable[Token]) -> Pool:
        """Pool after these were drawn; nobody is in it once no other has to be."""
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
        answers = self._answers.setdefault(self._kind(gone), {})
        if gone and "complete" not in answers:
            self.solved += 1
            answers["complete"] = self.weighing.least(lost=gone, spare_others=True) == self.harm
        return {} if answers.get("complete") else pool_of(self._tokens(gone, answers))

    def _kind(self, gone: list[int]) -> object:
        """The same for sets of lost victims that nothing tells apart, whoever owns them."""
        if not all(_is_plain(self.victims[number]) for number in gone):
            return tuple(gone)
        looks = colours(self.weighing, gone)
        return tuple(sorted(repr(looks[number]) for number in gone))

    def _tokens(self, gone: list[int], answers: dict[object, bool]) -> Iterator[tuple[str, Token]]:
        """(owner, token) of each that may be drawn; tokens that nothing tells apart are asked for once."""
        colour = colours(self.weighing, gone)
        for number, victim in enumerate(self.victims):
            if number in gone or victim.unfunded or Option(number, "lost") not in self.weighing.columns:
                continue
            for group in victim.groups:
                key = (colour[number], group.number)
                if key not in answers:
                    self.solved += 1
                    with_it = self.weighing.could_draw(self.harm, number, group.number, gone)
                    answers |= {(colour[other], at): True for other, at in with_it if other not in gone}
                    answers.setdefault(key, False)
                if answers[key]:
                    yield victim.owner, Token(*victim.run, group.number)


def colours(weighing: Weighing, gone: Iterable[int] = (), *, owners: bool = False) -> list[object]:
    """The same for victims that nothing tells apart, with ``owners`` not even whose they are.

    Nodes of one domain with as much room, whose victims are alike and each of one group on that node alone, may change
    places whole: so may their victims.
    """
    victims, room, lost = weighing.victims, weighing.room, {*gone}
    fleet = room.fleet
    at: dict[int, list[int]] = {}
    for number, victim in enumerate(victims):
        for node in {*_nodes(victim)}:
            at.setdefault(node, []).append(number)
    alike: dict[int, object] = {}
    for node, here in at.items():
        if all(_is_plain(victims[number]) for number in here):
            looks = sorted(repr((_looks(victims[number], owners=owners), number in lost)) for number in here)
            place = int(fleet.domain[node]), int(fleet.site[node]), node in weighing.placed
            left = room.free[node], room.cpu[node], room.memory[node], room.pods[node]
            alike[node] = (place, left, tuple(looks))
    found: list[object] = []
    for number, victim in enumerate(victims):
        node = next(iter(_nodes(victim)), -1)
        plain = _is_plain(victim) and node in alike
        found.append((alike[node], _looks(victim, owners=owners), number in lost) if plain else number)
    return found


def _nodes(victim: Victim) -> Iterator[int]:
    yield from (node for group in victim.groups for node, _ in group.slots)
    yield from (spare.node for spare in victim.spares)


def _is_plain(victim: Victim) -> bool:
    """Is it one group on one node, without spares, with nothing that could go alone?"""
    return len(victim.groups) == 1 and len(victim.groups[0].slots) == 1 and not victim.spares and not victim.surplus


def _looks(victim: Victim, *, owners: bool) -> tuple[object, ...]:
    looks = victim.gpus, victim.pod, victim.load, victim.losable, victim.unfunded
    return (*looks, victim.owner) if owners else looks
