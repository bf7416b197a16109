"""Told of cuts: who may lose something for a start, how likely, and what goes."""

from collections.abc import Container, Iterator

from jobtree.api.kinds.reservation import Conflict, Remedy
from planner.cutting.least import Option, Weighing
from planner.cutting.pools import Pools
from policies.cuts.lottery import Token
from policies.cuts.order import LOTTERY, REASONS
from policies.inputs.claims import RunKey


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
    """Who may lose all that it has, with its chance; and who loses a part, with none."""
    cut = {weighing.victims[option.victim].run: 0.0 for option in chosen}
    cut |= {
        weighing.victims[option.victim].run: 1.0
        for option in chosen
        if option.what == "lost" and weighing.victims[option.victim].unfunded
    }
    cut = {run: chance for run, chance in cut.items() if run not in chances} | chances
    for run, chance in sorted(cut.items()):
        yield Conflict(run="/".join(run), kill_probability=chance)


def remedies(weighing: Weighing, chosen: frozenset[Option], chances: dict[RunKey, float]) -> Iterator[Remedy]:
    """Cuts in their order, the gentlest first; of the lottery everyone who may be drawn."""
    gpus: dict[tuple[int, RunKey], int] = {}
    for option in chosen:
        kind, victim = weighing.kinds[option], weighing.victims[option.victim]
        if option.what == "lost" and not victim.unfunded:
            continue
        size = victim.gpus if option.what == "lost" else weighing.size(option)
        gpus[-kind, victim.run] = gpus.get((-kind, victim.run), 0) + size
    for victim in weighing.victims:
        if victim.run in chances:
            gpus[0, victim.run] = victim.gpus
    for (kind, run), size in sorted(gpus.items()):
        yield Remedy(run="/".join(run), action=REASONS[-kind], gpus=size)
