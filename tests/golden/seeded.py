"""Worlds that a number names: hypothesis' strategies drawn with dice of our own.

Elsewhere hypothesis now and then draws a constant that it has read in the sources under test, so that a change of those
would change the worlds too; here it never does.
"""

from random import Random

from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import HypothesisProvider

from tests.reference.worlds import World, worlds


class _Dice(HypothesisProvider):
    def _maybe_draw_constant(self, *_args: object, **_kwargs: object) -> None:
        return None


def world(kind: str, seed: int) -> World:
    """The world of one of `tests.reference.worlds.KINDS` that this seed draws."""
    found: World = ConjectureData(prefix=(), random=Random(seed), provider=_Dice).draw(worlds(kind))
    return found
