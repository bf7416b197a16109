"""Told of cuts: who may lose something for a start, how likely, and what goes."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtree.api.kinds.reservation import Conflict, Remedy
from planner.cutting.least import Option, Weighing
from planner.cutting.pools import Pools
from planner.cutting.victims import Victim
from planner.filling.filler import Settled
from planner.placement.room import Chunk
from policies.cuts.lottery import Token
from policies.cuts.order import LOTTERY, REASONS
from policies.inputs.claims import LeaseRow, RunKey

Lasting = Mapping[RunKey, int | None]
"""Runs that may start together, with the seconds that each lasts at most, if that is known."""


class CutDate(NamedTuple):
    """A start that cuts make. ``at``: Unix seconds; ``nodes``: where it would lie, ``payers``: (budget, envelope);
    ``conflicts``: who may lose all, ``remedies``: what is cut or drawn; ``starts``: what starts together then, in the
    room of ``leases``, one set of those that may be cut.
    """

    at: int
    nodes: tuple[str, ...]
    payers: tuple[tuple[str, str], ...]
    conflicts: tuple[Conflict, ...]
    remedies: tuple[Remedy, ...]
    starts: Mapping[RunKey, Settled]
    leases: tuple[LeaseRow, ...]

    def draws(self, warned: Collection[RunKey]) -> bool:
        """May it draw a run that is not among those that were ``warned``?"""
        told = {"/".join(run) for run in warned}
        return any(each.kill_probability and each.run not in told for each in self.conflicts)


class Kept(NamedTuple):
    """Slots of a start that needs no cuts, from ``at`` to ``end`` (Unix seconds; None: for good): nobody is cut for who
    would delay it.
    """

    key: RunKey
    found: Settled
    at: int
    end: int | None

    @property
    def chunks(self) -> list[Chunk]:
        """The slots."""
        return [chunk for piece in self.found.pieces for chunk in piece.chunks]


class Freed(NamedTuple):
    """Slots that cuts for one start free at a time: who else starts there then counts on them, too, and no sooner.

    ``most``: GPUs that go for it at most, whoever is drawn.
    """

    at: int
    nodes: frozenset[str]
    runs: frozenset[str]
    leases: tuple[LeaseRow, ...]
    most: int

    @classmethod
    def of(cls, at: int, leases: tuple[LeaseRow, ...], most: int) -> "Freed":
        """Make it of leases that go."""
        nodes, runs = {each.node for each in leases}, {"/".join(each.run_key) for each in leases}
        return cls(at, frozenset(nodes), frozenset(runs), leases, most)


def completed(pools: Pools, nodes: Container[int]) -> list[RunKey]:
    """Runs of one set with the least harm: the first token of each pool, of those on these ``nodes`` if there are."""
    away = {v.run: not any(node in nodes for node, _ in v.slots()) for v in pools.victims}
    drawn: list[Token] = []
    while pool := {owner: tokens for owner, tokens in pools.after(drawn).items() if tokens}:
        left = (token for tokens in pool.values() for token in tokens)
        drawn.append(min(left, key=lambda token: (away[token.namespace, token.run], token)))
    return sorted({(token.namespace, token.run) for token in drawn})


def one_set(pools: Pools) -> list[RunKey]:
    """Runs of one set with the least harm, whichever the solver finds: one model instead of one for each token."""
    some = pools.weighing.some(pools.harm)
    lost = {each.victim for each in some if each.what == "lost" and pools.weighing.kinds[each] == LOTTERY}
    return sorted(pools.victims[number].run for number in lost)


def conflicts(weighing: Weighing, chosen: frozenset[Option], chances: dict[RunKey, float]) -> Iterator[Conflict]:
    """Runs that may lose all that they have, with their chances; and those that lose a part, with none."""
    cut = {weighing.victims[option.victim].run: 0.0 for option in chosen}
    cut |= {
        weighing.victims[option.victim].run: 1.0
        for option in chosen
        if option.what == "lost" and weighing.victims[option.victim].unfunded
    }
    cut = {run: chance for run, chance in cut.items() if run not in chances} | chances
    for run, chance in sorted(cut.items()):
        yield Conflict(run="/".join(run), kill_probability=chance)


def remedies(
    weighing: Weighing, chosen: frozenset[Option], chances: dict[RunKey, float], victims: Iterable[Victim]
) -> Iterator[Remedy]:
    """Cuts in their order, the gentlest first; of the lottery everyone of the ``victims`` who may be drawn."""
    gpus: dict[tuple[int, RunKey], int] = {}
    for option in chosen:
        kind, victim = weighing.kinds[option], weighing.victims[option.victim]
        if option.what == "lost" and not victim.unfunded:
            continue
        size = victim.gpus if option.what == "lost" else weighing.size(option)
        gpus[-kind, victim.run] = gpus.get((-kind, victim.run), 0) + size
    for victim in victims:
        if victim.run in chances:
            gpus[0, victim.run] = victim.gpus
    for (kind, run), size in sorted(gpus.items()):
        yield Remedy(run="/".join(run), action=REASONS[-kind], gpus=size)
