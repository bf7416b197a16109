"""Odds: each run's chance to be drawn, under the very procedure that draws (spec §6).

Exact by going through all sequences of picks, as long as these need few pools: what was drawn is told apart only as far
as anything tells the drawn ones apart. Else as often as drawn from fixed seeds, as many pools allow: with a standard
error of at most ½ / √draws.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Final

from planner.cutting.pools import Pools, colours
from policies.cuts.lottery import Token, draw
from policies.inputs.claims import RunKey

POOLS: Final = 256
"""Most pools that are gone through for exact odds."""
SOLVED: Final = 12_000
"""Most columns of all the models that are solved for exact odds, and again for simulated ones."""
LARGE: Final = 3_000
"""Most columns of a model for which more than the first pool is computed: beyond, chances are estimates."""
DRAWS: Final = 400
"""Draws of simulated odds where their pools allow so many: a standard error of at most 0.025."""


class _TooManyError(Exception):
    """More pools than are computed."""


def odds(pools: Pools, most: int = SOLVED, *, simulated: bool = True) -> dict[RunKey, float]:
    """Chance of each run that may be drawn, rounded to millionths; 1 for one that must.

    ``most``: columns of models that may be solved for exact odds, and again for ``simulated`` ones; 0: neither.
    """
    limit = most // max(1, len(pools.weighing.model.cost))
    if len(pools.weighing.model.cost) > LARGE or not limit:
        return _estimated(pools)
    try:
        exact = _exact(pools, limit)
    except _TooManyError:
        return _simulated(pools, limit) if simulated else _estimated(pools)
    return {run: round(float(chance), 6) for run, chance in sorted(exact.items())}


def _exact(pools: Pools, limit: int) -> dict[RunKey, Fraction]:
    """Forward through what may have been drawn so far, one of each set that nothing tells apart, with its chance."""
    looks = dict(zip((victim.run for victim in pools.victims), colours(pools.weighing, owners=True), strict=True))
    nodes = {victim.run: frozenset(n for g in victim.groups for n, _ in g.slots) for victim in pools.victims}
    level: dict[frozenset[Token], Fraction] = {frozenset(): Fraction(1)}
    by_look: dict[object, Fraction] = {}
    asked = 0
    while level:
        following: dict[object, tuple[frozenset[Token], Fraction]] = {}
        for drawn, chance in sorted(level.items(), key=lambda item: sorted(item[0])):
            asked += 1
            if asked > POOLS or pools.solved > limit:
                raise _TooManyError
            for token, part in sorted(_picks(pools, drawn).items()):
                look = looks[token.namespace, token.run]
                by_look[look] = by_look.get(look, Fraction(0)) + chance * part
                after = drawn | {token}
                key = _kind(after, looks, nodes)
                first, before = following.get(key, (after, Fraction(0)))
                following[key] = first, before + chance * part
        level = dict(following.values())
    alike = Counter(looks.values())
    return {run: by_look[look] / alike[look] for run, look in looks.items() if look in by_look}


def _estimated(pools: Pools) -> dict[RunKey, float]:
    """Chances of the first pick, times as many picks as the mean width of the pool's runs asks for."""
    widths = {victim.run: victim.gpus for victim in pools.victims}
    first: dict[RunKey, Fraction] = {}
    for token, part in _picks(pools, frozenset()).items():
        run = (token.namespace, token.run)
        first[run] = first.get(run, Fraction(0)) + part
    mean = sum(widths[run] * part for run, part in first.items()) or 1
    picks = pools.harm.lottery / mean
    return {run: round(float(min(Fraction(1), part * picks)), 6) for run, part in sorted(first.items())}


def _kind(drawn: frozenset[Token], looks: Mapping[RunKey, object], nodes: Mapping[RunKey, frozenset[int]]) -> object:
    """The same for drawn sets that nothing tells apart: how their runs look, node by node."""
    there: dict[frozenset[int], list[str]] = {}
    for token in drawn:
        run = (token.namespace, token.run)
        there.setdefault(nodes[run], []).append(f"{looks[run]!r}#{token.group}")
    return tuple(sorted(tuple(sorted(each)) for each in there.values()))


def _picks(pools: Pools, drawn: frozenset[Token]) -> Mapping[Token, Fraction]:
    """The next pick: first an owner, then one of its tokens."""
    pool = pools.after(sorted(drawn))
    owners = [tokens for tokens in pool.values() if tokens]
    return {token: Fraction(1, len(owners) * len(tokens)) for tokens in owners for token in tokens}


def _simulated(pools: Pools, limit: int) -> dict[RunKey, float]:
    counts: dict[RunKey, int] = {}
    limit, draws = pools.solved + limit, 0
    while draws < DRAWS and (pools.solved < limit or not draws):
        for pick in draw(sha256(draws.to_bytes(8, "big")).hexdigest(), pools.after):
            run = (pick.token.namespace, pick.token.run)
            counts[run] = counts.get(run, 0) + 1
        draws += 1
    return {run: round(count / draws, 6) for run, count in sorted(counts.items())}
