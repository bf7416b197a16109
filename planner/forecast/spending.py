"""GPU-hours and credits that starts to come take: they do not come back with the slots (spec §3.4, §5).

At each moment its caps count what runs and is held then. What starts have taken that are over by then is charged beside
it, for as long as a moment is asked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from planner.forecast.moments import Moment


class Spending(NamedTuple):
    """What a start takes, by cap: at a ``moment``, ``at`` its time, and for good from its ``end`` on (Unix seconds)."""

    moment: Moment
    at: int
    end: int | None
    spent: Mapping[int, int]


def ended(at: int, spending: Iterable[Spending]) -> Counter[int]:
    """What starts have taken that are over by a time (Unix seconds), by cap."""
    found = Counter[int]()
    for each in spending:
        if each.end is not None and each.end <= at:
            found.update(each.spent)
    return found


@contextmanager
def charging(moment: Moment, charged: Mapping[int, int]) -> Iterator[None]:
    """Charge that at a moment for a while."""
    before = moment.charged
    moment.charge(charged)
    yield
    moment.charge(before)


def leaves(asked: Mapping[int, int], at: int, spending: Sequence[Spending]) -> bool:
    """Is what is ``asked`` left beside all that starts ``at`` a time or later? Other caps may be overdrawn then."""
    for each in spending:
        if each.at >= at and not asked.keys().isdisjoint(each.spent):
            with charging(each.moment, ended(each.at, spending) + Counter(asked)):
                if any(each.moment.filler.purses.left(cap) < 0 for cap in asked):
                    return False
    return True


def to_spend(first: Moment, now: int, spending: Sequence[Spending]) -> dict[int, int]:
    """How much more of a cap is taken at some start after ``now`` (Unix seconds) than at the ``first`` moment."""
    found: dict[int, int] = {}
    for moment, at, _, spent in spending:
        if at > now:
            with charging(moment, ended(at, spending)):
                used, before = moment.filler.purses.used, first.filler.purses.used
                found |= {cap: max(found.get(cap, 0), used[cap] - before[cap]) for cap in spent}
    return {cap: more for cap, more in found.items() if more > 0}
