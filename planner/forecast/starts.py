"""Starts to come: what a run is told, and what it holds at every moment until it ends."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from jobtree.api.kinds.reservation import Conflict
from planner.cutting.told import CutDate, Lasting
from planner.filling.filler import Settled
from planner.forecast.moments import Cut, Moment
from planner.state.state import State
from policies.inputs.claims import LeaseRow, RunKey


class Natural(NamedTuple):
    """A start to come. ``nodes``: where, by name; ``payers``: (budget, envelope), nearest first; ``source``: what makes
    its time known; ``cut``: what goes for it; ``p90``: by when it is in nine cases of ten, if later.
    """

    at: int
    source: str
    nodes: tuple[str, ...]
    payers: tuple[tuple[str, str], ...]
    cut: CutDate | None = None
    p90: int | None = None

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Runs that may lose all for it."""
        return self.cut.conflicts if self.cut else ()


class Dated(NamedTuple):
    """A start that holds what it has ``found`` at a moment, from ``at`` to ``end`` (Unix seconds; None: for good).

    ``held``: the same at later moments; ``spent``: what it takes of hours and credits, by cap, which is gone once it
    has ended.
    """

    key: RunKey
    found: Settled
    moment: Moment
    at: int
    end: int | None
    held: list[tuple[Moment, Settled]]
    spent: Mapping[int, int]

    def let_go(self) -> None:
        """Hold nothing, for now."""
        self.moment.give_back(self.found)
        for other, taken in self.held:
            other.give_back(taken)

    def at_moment(self, moment: Moment) -> list[Settled]:
        """What it holds at a moment."""
        return [taken for other, taken in ((self.moment, self.found), *self.held) if other is moment]

    def fits(self) -> bool:
        """Is what it held free again, slot by slot and payer by payer?"""
        return all(moment.fits(taken) for moment, taken in ((self.moment, self.found), *self.held))

    def put_back(self) -> None:
        """Undo `let_go`."""
        self.moment.put_back(self.found)
        for other, taken in self.held:
            other.put_back(taken)


def given_up(dated: Iterable[Dated], moment: Moment, at: int) -> list[tuple[Dated, Settled]]:
    """Let go what is held at a moment and ends by a time that it stands for (Unix seconds); returns that."""
    over: list[tuple[Dated, Settled]] = []
    for each in dated if moment.since < at else ():
        if each.end is not None and moment.since < each.end <= at:
            over += [(each, taken) for other, taken in each.held if other is moment]
            each.held[:] = [pair for pair in each.held if pair[0] is not moment]
    for _, taken in over:
        moment.give_back(taken)
    return over


class ByCuts(NamedTuple):
    """Starts from ``at`` to their ``ends`` in the room of ``leases`` that are cut for them, or in room that ``is_free``
    where nobody pays; ``spent``: by run; see `Dated`.
    """

    at: int
    starts: Mapping[RunKey, Settled]
    ends: Lasting
    leases: Sequence[LeaseRow]
    held: list[tuple[Moment, Cut]]
    spent: dict[RunKey, Mapping[int, int]]
    is_free: bool

    def undo(self) -> None:
        """Hold nothing."""
        for moment, cut in self.held:
            moment.undo(cut)

    @property
    def admitted(self) -> bool:
        """May its runs start on their nodes at its time?"""
        return all(moment.admits(self.starts) for moment, _ in self.held[:1])

    @property
    def taken(self) -> dict[RunKey, Settled]:
        """What is held of its runs at its time, or at the moment that stands for it, by which some may have ended."""
        return self._at(*self.held[0])

    def _at(self, moment: Moment, cut: Cut) -> dict[RunKey, Settled]:
        return dict(zip(self.then(moment.at), cut.taken, strict=True))

    def unpaid(self, moment: Moment, cut: Cut) -> dict[RunKey, Settled]:
        """Of what a moment holds of it those that are paid at their time, and not there."""
        paid = {key for key, found in self.starts.items() if found.paid}
        paid |= {key for key, taken in self.taken.items() if taken.paid}
        return {key: taken for key, taken in self._at(moment, cut).items() if key in paid and not taken.paid}

    def spend(self) -> None:
        """Note what is ``spent``, once it is held at its time."""
        moment, _ = self.held[0]
        found = ((key, moment.ahead(taken)) for key, taken in self.taken.items())
        self.spent.update((key, spent) for key, spent in found if spent)

    def then(self, at: int) -> dict[RunKey, Settled]:
        """Those that are held at a time, by when what is cut for them is gone for good."""
        return {key: each for key, each in self.starts.items() if (end := self.ends[key]) is None or at < end}


@dataclass
class Sure:
    """A moment as it is if nothing ends by an estimate, and what it holds, in the order in which that was taken."""

    moment: Moment
    taken: list[tuple[Dated, Settled | None]] = field(default_factory=list)

    def lets(self, keys: Sequence[RunKey], lasting: Sequence[Dated]) -> bool:
        """Could these runs start beside ``lasting``? Who could not were nothing held is not asked again."""
        if not self.taken and not self.moment.lets(keys):
            return False
        self.hold(lasting)
        return self.moment.lets(keys)

    def hold(self, lasting: Sequence[Dated]) -> None:
        """Hold these starts alone, as if each had been taken in this order; what it holds of them already stays."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0][0] is pair[1], zip(self.taken, lasting, strict=False)))
        for _, taken in reversed(self.taken[same:]):
            if taken is not None:
                self.moment.give_back(taken)
        del self.taken[same:]
        for each in lasting[same:]:
            self.taken.append((each, self.moment.take(each.key, each.found, anyway=True)))


def together(
    state: State, key: RunKey, waiting: Container[RunKey], expected: Mapping[RunKey, int] | None = None
) -> dict[RunKey, int | None]:
    """A run, or those of its gang that are ``waiting``, with the seconds that each lasts at most, if that is known."""
    run = state.runs[key]
    mine = [run]
    if run.gang:
        same = (each for each in state.runs.values() if (each.namespace, each.gang) == (run.namespace, run.gang))
        mine = [each for each in same if each.key in waiting]
    return {each.key: each.limit or (expected or {}).get(each.key) for each in mine}
