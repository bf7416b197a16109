"""What is to be said of a search while it goes on: a few words for whoever waits. No plan depends on them."""

from collections.abc import Callable
from typing import Final

import msgspec

from exporters.plans.summary import gap
from jobtree.world.plan import Stage

OnNews = Callable[[str], None]

FIRST: Final = "1 found, looking for a better one"
"""How far the order by age is from what the free GPUs could hold says nothing."""
WRITING: Final = "writing the best one down"
LATE: Final = f"the time is up, {WRITING}"


class _Found(msgspec.Struct):
    """Of an incumbent its certificates; the rest is the planner's own."""

    stages: list[Stage]


def found(incumbent: bytes, number: int) -> str:
    """How many plans are found, and how far the last is from the bound of its first stage:
    ``2 found, 0.0210% from the bound``.
    """
    stages = msgspec.msgpack.decode(incumbent, type=_Found).stages
    distance = next((f", {gap(stage)} from the bound" for stage in stages if stage.proven), "")
    return f"{number} found{distance}"
