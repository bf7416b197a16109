"""Odds: each run's chance to be drawn, under the very procedure that draws (spec §6).

Exact by going through all sequences of picks, where their sets are few; else as often as drawn from fixed seeds, with a
standard error of at most ½ / √draws.
"""

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Final

from planner.cutting.pools import Pools
from policies.claims import RunKey
from policies.cuts.lottery import Token, draw

SETS: Final = 64
"""Most sets of runs after which the pool is computed for exact odds."""
DRAWS: Final = 400
"""Draws of simulated odds: a standard error of at most 0.025."""


class _TooManyError(Exception):
    """More sets than are gone through."""


def odds(pools: Pools) -> dict[RunKey, float]:
    """Chance of each run that may be drawn, rounded to millionths; 1 for one that must."""
    try:
        exact = _exact(pools)
    except _TooManyError:
        return _simulated(pools)
    return {run: round(float(chance), 6) for run, chance in sorted(exact.items())}


def _exact(pools: Pools) -> dict[RunKey, Fraction]:
    """Forward through the sets of runs drawn so far, each with the chance that it comes about."""
    level: dict[frozenset[Token], Fraction] = {frozenset(): Fraction(1)}
    found: dict[RunKey, Fraction] = {}
    asked = 0
    while level:
        following: dict[frozenset[Token], Fraction] = {}
        for drawn, chance in sorted(level.items(), key=lambda item: sorted(item[0])):
            asked += 1
            if asked > SETS:
                raise _TooManyError
            for token, part in _picks(pools, drawn).items():
                run = (token.namespace, token.run)
                found[run] = found.get(run, Fraction(0)) + chance * part
                after = drawn | {token}
                following[after] = following.get(after, Fraction(0)) + chance * part
        level = following
    return found


def _picks(pools: Pools, drawn: frozenset[Token]) -> Mapping[Token, Fraction]:
    """The next pick: first an owner, then one of its tokens."""
    pool = pools.after(sorted(drawn))
    owners = [tokens for tokens in pool.values() if tokens]
    return {token: Fraction(1, len(owners) * len(tokens)) for tokens in owners for token in tokens}


def _simulated(pools: Pools) -> dict[RunKey, float]:
    counts: dict[RunKey, int] = {}
    for number in range(DRAWS):
        for pick in draw(sha256(number.to_bytes(8, "big")).hexdigest(), pools.after):
            run = (pick.token.namespace, pick.token.run)
            counts[run] = counts.get(run, 0) + 1
    return {run: count / DRAWS for run, count in sorted(counts.items())}
