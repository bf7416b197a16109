"""Memory of what follows from values that never change, kept from cycle to cycle: a world at rest is worked out once.

Whether a value is the same is told by its identity, so that asking costs nothing. Who makes the values sees to it that
what has not changed is the same object (`jobtree.world.reading.intake.Known`).
"""

from collections.abc import Callable
from functools import wraps
from operator import is_
from typing import TypeVar, TypeVarTuple

Given = TypeVarTuple("Given")
Made = TypeVar("Made")


def kept(make: Callable[[*Given], Made]) -> Callable[[*Given], Made]:
    """``make``, which answers as the last time as long as it is given the very same objects.

    For functions of values that nobody changes; what is answered may not be changed either.
    """
    last: tuple[tuple[*Given], Made] | None = None

    @wraps(make)
    def again(*given: *Given) -> Made:
        nonlocal last
        before = last
        if before is None or len(before[0]) != len(given) or not all(map(is_, before[0], given)):
            before = last = given, make(*given)
        return before[1]

    return again
