"""Pools: who may be drawn, before each pick (spec §6).

In the pool is every token that belongs to some set of victims with the least harm and whose room the start would use:
its group is forced into a set, and the set still has the least harm. After each pick those sets alone count that hold
what was drawn; when these need nobody else, the pool is empty.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from planner.cutting.least import Option, Weighing
from planner.cutting.victims import Victim
from policies.cuts.lottery import Pool, Token, pool_of
from policies.cuts.order import Harm
from policies.inputs.claims import RunKey


class Colours:
    """Colours of a weighing's victims: the same number for those that nothing tells apart, with ``owners`` not even
    whose they are.

    Nodes of one domain with as much room, whose victims are alike and each of one group on that node alone, may change
    places whole: so may their victims.
    """

    def __init__(self, weighing: Weighing, *, owners: bool = False) -> None:
        self._weighing = weighing
        self._looks = [repr(_looks(victim, owners=owners)) for victim in weighing.victims]
        self._on: dict[int, list[int]] = {}
        for number, victim in enumerate(weighing.victims):
            for node in {*_nodes(victim)}:
                self._on.setdefault(node, []).append(number)
        mixed = {number for number, victim in enumerate(weighing.victims) if not _is_plain(victim)}
        alike = {node for node, here in self._on.items() if mixed.isdisjoint(here)}
        self._node = {number: node for node in alike for number in self._on[node]}
        self._kinds: dict[object, int] = {}
        self._numbers: dict[object, int] = {}
        self._all_there = {node: self._kind(node, frozenset()) for node in alike}

    def of(self, gone: Iterable[int] = ()) -> list[int]:
        """One per victim, where some are ``gone``."""
        lost, numbers = frozenset(gone), self._numbers
        kinds = self._all_there | {
            node: self._kind(node, lost) for node in {self._node[number] for number in lost if number in self._node}
        }
        return [
            numbers.setdefault(
                (kinds[self._node[number]], looks, number in lost) if number in self._node else number, len(numbers)
            )
            for number, looks in enumerate(self._looks)
        ]

    def _kind(self, node: int, lost: frozenset[int]) -> int:
        """The same of nodes that may change places."""
        room, fleet = self._weighing.room, self._weighing.room.fleet
        victims = tuple(sorted((self._looks[number], number in lost) for number in self._on[node]))
        place = int(fleet.domain[node]), int(fleet.site[node]), node in self._weighing.placed
        left = room.free[node], room.cpu[node], room.memory[node], room.pods[node]
        return self._kinds.setdefault((place, left, victims), len(self._kinds))


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
        colours = self._colours.of(gone)
        answers = self._answers.setdefault(self._kind(gone, colours), {})
        if gone and "complete" not in answers:
            self.solved += 1
            answers["complete"] = self.weighing.least(lost=gone, spare_others=True) == self.harm
        return {} if answers.get("complete") else pool_of(self._tokens(gone, colours, answers))

    @cached_property
    def _colours(self) -> Colours:
        return Colours(self.weighing)

    def _kind(self, gone: list[int], colours: Sequence[int]) -> object:
        """The same for sets of lost victims that nothing tells apart, whoever owns them."""
        if not all(_is_plain(self.victims[number]) for number in gone):
            return tuple(gone)
        return "plain", *sorted(colours[number] for number in gone)

    def _tokens(
        self, gone: list[int], colours: Sequence[int], answers: dict[object, bool]
    ) -> Iterator[tuple[str, Token]]:
        """(owner, token) of each that may be drawn; tokens that nothing tells apart are asked for once."""
        for number, victim in enumerate(self.victims):
            if number in gone or victim.unfunded or Option(number, "lost") not in self.weighing.columns:
                continue
            for group in victim.groups:
                key = (colours[number], group.number)
                if key not in answers:
                    self.solved += 1
                    with_it = self.weighing.could_draw(self.harm, number, group.number, gone)
                    answers |= {(colours[other], at): True for other, at in with_it if other not in gone}
                    answers.setdefault(key, False)
                if answers[key]:
                    yield victim.owner, Token(*victim.run, group.number)


def _nodes(victim: Victim) -> Iterator[int]:
    yield from (node for group in victim.groups for node, _ in group.slots)
    yield from (spare.node for spare in victim.spares)


def _is_plain(victim: Victim) -> bool:
    """Is it one group on one node, without spares, with nothing that could go alone?"""
    return len(victim.groups) == 1 and len(victim.groups[0].slots) == 1 and not victim.spares and not victim.surplus


def _looks(victim: Victim, *, owners: bool) -> tuple[object, ...]:
    looks = victim.gpus, victim.pod, victim.load, victim.losable, victim.unfunded
    return (*looks, victim.owner) if owners else looks
