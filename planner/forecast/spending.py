"""GPU-hours and credits that starts to come take: they do not come back with the slots (spec §3.4, §5).

At each moment its caps count what runs and is held then. What starts have taken that are over by then is charged beside
it, at the moments that are asked alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from planner.forecast.moments import Moment


class Spending(NamedTuple):
    """What a start takes, by cap: at a ``moment``, ``at`` its time, and for good from its ``end`` on (Unix seconds)."""

    moment: Moment
    at: int
    end: int | None
    spent: Mapping[int, int]


def charge(moment: Moment, at: int, spending: Iterable[Spending], more: Mapping[int, int] | None = None) -> bool:
    """Charge at a moment what is over by then, and ``more``. Is enough left?"""
    charged = Counter(more)
    for each in spending:
        if each.end is not None and each.end <= at:
            charged.update(each.spent)
    return moment.charge(charged) if charged or moment.charged else True


def leaves(asked: Mapping[int, int], at: int, spending: Sequence[Spending]) -> bool:
    """Is what is ``asked`` left beside all that is to start ``at`` a time or later?"""
    later = [each for each in spending if each.at >= at and not asked.keys().isdisjoint(each.spent)]
    return all(charge(each.moment, each.at, spending, asked) for each in later)


def ahead(first: Moment, now: int, spending: Sequence[Spending]) -> dict[int, int]:
    """How much more of a cap is taken at some start after ``now`` (Unix seconds) than at the ``first`` moment."""
    found: dict[int, int] = {}
    for moment, at, _, spent in spending:
        if at > now:
            charge(moment, at, spending)
            used, before = moment.filler.purses.used, first.filler.purses.used
            found |= {cap: max(found.get(cap, 0), used[cap] - before[cap]) for cap in spent}
    return {cap: more for cap, more in found.items() if more > 0}
