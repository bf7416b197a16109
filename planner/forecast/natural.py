"""Natural starts: the first known time at which a run fits in room and money, beside what is promised before it.

Conservative backfill (Mu'alem and Feitelson, 2001) on the planner's own rules: runs are dated one by one, and each
start holds its slots and its money at every moment until its limit ends it, so a later one delays no earlier one.
"""

from bisect import bisect_right, insort
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from planner.cutting.places import Place
from planner.cutting.told import Kept, Lasting
from planner.filling.filler import Settled
from planner.filling.purses import payers_of
from planner.forecast.calendar import FAR, Known, last_of_shares
from planner.forecast.later import Later
from planner.forecast.moments import Cut, Moment, gpus_of
from planner.forecast.slots import Slots
from planner.forecast.spending import Spending, charging, ended, leaves, to_spend
from planner.forecast.starts import ByCuts, Dated, Natural, Sure, given_up
from planner.state.state import State
from policies.inputs.claims import LeaseRow, RunKey

Where = Mapping[RunKey, frozenset[int]]
"""Nodes that are asked for, by run."""


class _Lifted(NamedTuple):
    """Holdings that are given up at a moment for a start ``at`` a time that it stands for: ``over`` by then."""

    moment: Moment
    at: int
    over: list[tuple[Dated, Settled]]


@dataclass
class Timeline:
    """Starts to come on known times. ``most``: moments that may be looked at in all; ``tells``: whether it is told what
    makes a start known; ``guesses``: runs whose start is an estimate then; ``sure``: moments, nothing guessed.
    """

    later: Later
    most: int
    tells: bool = True
    moments: list[Moment] = field(default_factory=list)
    dated: list[Dated] = field(default_factory=list)
    by_cuts: list[ByCuts] = field(default_factory=list)
    guesses: set[RunKey] = field(default_factory=set)
    sure: dict[int, Sure] = field(default_factory=dict)
    _aside: list[Dated] = field(default_factory=list)
    _lifted: "_Lifted | None" = None

    @classmethod
    def of(cls, later: Later, known: Iterable[Known], most: int, now: State | None = None) -> "Timeline":
        """Make it of a world, and the times that are known in it; of more than ``most`` the last of equal shares of
        them, and those of promises: where many wait of these, too, no more than the last of as many shares.

        ``now``: its present state, where what can start now is to start now; then nobody is told of these starts.
        """
        sources: dict[int, str] = {}
        promised: set[int] = set()
        for each in sorted(known, key=lambda each: (each.at, each.source == "promise", each.source)):
            sources.setdefault(each.at, each.source)
            promised |= {each.at} if each.source == "promise" else set()
        times = [*sources]
        if len(times) > most:
            # of the others alone: promises must not change which of these are looked at, or dates would move by them
            shares = last_of_shares([at for at, source in sources.items() if source != "promise"], most)
            shares |= promised if later.now.few else last_of_shares(sorted(promised), most)
            times = [at for at in times if at in shares]
        timeline = cls(later, most, tells=now is None)
        stands = sorted(promised)
        for at in times:
            first = bisect_right(stands, timeline.moments[-1].at if timeline.moments else 0)
            since = stands[first] if first < len(stands) and stands[first] < at else at
            timeline.moments.append(Moment(at, sources[at], later, since=since))
        if now is not None:
            timeline.moments.insert(0, Moment.of(now, later))
        return timeline

    def date(self, together: Lasting, before: int = FAR) -> dict[RunKey, Natural]:
        """Find the first start of runs that start together, if any before a time (Unix seconds), and hold it."""
        for moment in self.moments:
            if moment.at >= before:
                break
            if self._might(moment, together) and (found := self._start(moment, together, {})):
                return found
            self.guesses -= together.keys()
        return {}

    def sooner(self, together: Lasting, before: int) -> dict[RunKey, Natural]:
        """Move what runs that start together hold to the first start that they have before a time (Unix seconds).

        Empty, with all held as it was, where there is none. What they hold from that time on is let go only once they
        could start at an earlier one: it is not in their way there.
        """
        mine = [dated for dated in self.dated if dated.key in together]
        stood = self.release(together) if any(dated.at < before for dated in mine) else None
        for moment in self.moments:
            if moment.at >= before:
                break
            if stood is None and self._might(moment, together, mine) and moment.lets(together):
                stood = self.release(together)
            if stood is not None and self._might(moment, together) and (found := self._start(moment, together, {})):
                return found
            self.guesses -= together.keys()
        still = mine if stood is None else []  # moved to the end, as if let go and held again
        self.dated = [*(dated for dated in self.dated if dated.key not in together), *still]
        self.restore(stood or ())
        return {}

    def stand(self, together: Lasting, at: int, where: Where, *, least: bool) -> dict[RunKey, Natural]:
        """Hold starts at a known time, on the nodes that are given for a run, at the ``least`` widths or the widest
        that can be; empty where none can.
        """
        moment = self._standing_for(at)
        return {} if moment is None else self._start(moment, together, where, at, least=least)

    def cut(
        self, at: int, starts: Mapping[RunKey, Settled], lasting: Lasting, leases: Sequence[LeaseRow], *, is_free: bool
    ) -> bool:
        """Hold starts that cuts make like any other, or where room ``is_free`` those without money; False, with nothing
        held, where some moment has no room, or has promised their money to others.
        """
        self._whole()
        self._open(at, always=True)
        ends = {key: None if (span := lasting.get(key)) is None else at + span for key in starts}
        mine = ByCuts(at, starts, ends, leases, [], {}, is_free)
        for moment in self.moments:
            if moment.at >= at:
                with charging(moment, ended(moment.at, self._spending())):
                    held = moment.cut(mine.then(moment.at), leases)
                    if held is not None:
                        mine.held.append((moment, held))
                    if held is None or self._has_promised_money(moment, mine, held):
                        mine.undo()
                        return False
        mine.spend()
        asked = [(spent, end) for key, spent in mine.spent.items() if (end := ends[key]) is not None]
        if not (mine.admitted and all(leaves(spent, end, [*self._spending()]) for spent, end in asked)):
            mine.undo()
            return False
        self.by_cuts.append(mine)
        for end in ends.values():
            self._open(end)
        return True

    def _has_promised_money(self, moment: Moment, mine: ByCuts, held: Cut) -> bool:
        """Are starts that are paid at their time not paid at a moment for what is held there for others?"""
        unpaid = mine.unpaid(moment, held)
        if not unpaid:
            return False
        others = [taken for dated in self.dated for taken in dated.at_moment(moment)]
        others += [taken for each in self.by_cuts for other, cut in each.held if other is moment for taken in cut.taken]
        return any(moment.keeps_money(others, key, taken, mine.leases) for key, taken in unpaid.items())

    def find(self, at: int, where: Where, leases: Sequence[LeaseRow]) -> dict[RunKey, Settled]:
        """Slots that starts at a time would have on their nodes, were these leases cut; empty where one has none."""
        self._whole()
        self._open(at, always=True)
        return self.moment(at).find(where, leases)

    def is_dated(self, key: RunKey) -> bool:
        """Is a start of the run held that needs no cuts?"""
        return any(each.key == key for each in self.dated)

    def is_cut_for(self, key: RunKey) -> bool:
        """Is a start of the run held that cuts make?"""
        return any(key in each.starts for each in self.by_cuts)

    def uncut(self, key: RunKey) -> None:
        """Hold no longer what cuts are to start, of a run and those that start with it."""
        self._whole()
        for each in [each for each in self.by_cuts if key in each.starts]:
            each.undo()
            self.by_cuts.remove(each)

    def paid(self, keys: Collection[RunKey], first: int, last: int) -> int | None:
        """The first time from ``first`` to ``last`` (Unix seconds) at which money pays for runs, wherever they lie.

        Money is at any time what it is at the last known time by then.
        """
        self._whole()
        place = bisect_right(self.moments, first, key=attrgetter("at")) - 1
        for moment in self.moments[max(0, place) :]:
            if moment.at > last:
                break
            with charging(moment, ended(moment.at, self._spending())):
                if moment.pays(keys):
                    return max(first, moment.at)
        return None

    def to_spend(self, now: int) -> dict[int, int]:
        """How much more of a cap on hours or credits is taken at some start after ``now`` (Unix seconds) than is now,
        the first of the moments.
        """
        self._whole()
        return to_spend(self.moments[0], now, [*self._spending()])

    def kept(self) -> list[Kept]:
        """Starts that need no cuts, be it that they need no money."""
        return self._held(each for each in self.by_cuts if each.is_free)

    def held(self) -> list[Kept]:
        """All starts that are held, with the payers that they find at their time."""
        return self._held(self.by_cuts)

    def _held(self, by_cuts: Iterable[ByCuts]) -> list[Kept]:
        mine = ((each, {**each.starts, **each.taken}) for each in by_cuts)
        cut = (Kept(key, taken, each.at, each.ends[key]) for each, starts in mine for key, taken in starts.items())
        return [*(Kept(each.key, each.found, each.at, each.end) for each in self.dated), *cut]

    def release(self, keys: Container[RunKey]) -> list[Dated]:
        """Hold no longer what these runs hold; returns that."""
        self._whole()
        gone = [dated for dated in self.dated if dated.key in keys]
        self.dated = [dated for dated in self.dated if dated.key not in keys]
        for dated in gone:
            dated.let_go()
        return gone

    def restore(self, gone: Iterable[Dated]) -> None:
        """Undo `release`."""
        self._whole()
        for dated in gone:
            dated.put_back()
            self.dated.append(dated)

    def without(self, keys: Container[RunKey]) -> list[Dated]:
        """Hold everything but what these runs hold, until another call says otherwise; returns what is set aside."""
        self._whole()
        everything = [*self.dated, *self._aside]
        aside = [dated for dated in everything if dated.key in keys]
        for dated in self._aside:
            if dated.key not in keys:
                dated.put_back()
        for dated in self.dated:
            if dated.key in keys:
                dated.let_go()
        self.dated, self._aside = [dated for dated in everything if dated.key not in keys], aside
        return aside

    def back(self) -> set[RunKey]:
        """Hold again what is set aside, as it was held; returns whose that has no room or money any more."""
        self._whole()
        lost = set()
        for dated in self._aside:
            if dated.fits():
                dated.put_back()
                self.dated.append(dated)
            else:
                lost.add(dated.key)
        self._aside = []
        return lost

    def beside(self, order: Sequence[Container[RunKey]], together: Lasting, before: int) -> int:
        """At most how many of those set aside, the first in an ``order``, let runs start earlier than ``before``."""
        self._whole()
        return self.slots.beside(self._aside, order, together, before)

    @cached_property
    def slots(self) -> Slots:
        """A quick look at all moments."""
        return Slots(self.moments)

    def _start(
        self, moment: Moment, together: Lasting, where: Where, at: int | None = None, *, least: bool = False
    ) -> dict[RunKey, Natural]:
        """Start all of them at a moment, or ``at`` a time that it stands for, and hold them at all later ones; where
        one cannot be, none is.

        At their least widths where several would start and not all can at the widest: they grow once they have started.
        """
        at = moment.at if at is None else at
        self._lift(moment, at)
        starts = [] if least else self._laid(moment, together, where, at, least=False)
        if not starts and (least or len(together) > 1):
            starts = self._laid(moment, together, where, at, least=True)
        self.dated += starts
        for dated in starts:
            self._open(dated.end)
        guess = self.tells and bool(starts) and self._is_guess(starts)
        self.guesses -= together.keys()
        self.guesses |= together.keys() if guess else set()
        return {dated.key: self._natural(dated, guess=guess) for dated in starts}

    def _might(self, moment: Moment, together: Lasting, mine: Sequence[Dated] = ()) -> bool:
        """A quick look at what no more than `slots` tells, where what ends by then is held no longer."""
        self._lift(moment, moment.at)
        return self.slots.might(moment, together, mine)

    def _laid(self, moment: Moment, together: Lasting, where: Where, at: int, *, least: bool) -> list[Dated]:
        starts: list[Dated] = []
        for key, lasting in together.items():
            found = moment.lay(key, where[key], least=least) if key in where else moment.try_start(key, least=least)
            if found is not None:
                end = None if lasting is None else at + lasting
                starts.append(Dated(key, found, moment, at, end, [], moment.ahead(found)))
            if found is None or not self._hold(starts[-1]):
                for dated in starts:
                    dated.let_go()
                return []
        return starts

    def _lift(self, moment: Moment, at: int) -> None:
        """Hold no longer at a moment what ends ``at`` the latest among the times that it stands for, until `_whole`."""
        if self._lifted is None or self._lifted.moment is not moment or self._lifted.at != at:
            self._whole()
            self._lifted = _Lifted(moment, at, given_up(self.dated, moment, at))
        moment.charge(ended(at, self._spending()))

    def _spending(self) -> Iterator[Spending]:
        """All that is held and takes hours or credits."""
        for each in self.dated:
            if each.spent:
                yield Spending(each.moment, each.at, each.end, each.spent)
        for cuts in self.by_cuts:
            for key, spent in cuts.spent.items():
                yield Spending(cuts.held[0][0], cuts.at, cuts.ends[key], spent)

    def _whole(self) -> None:
        """Hold again what `_lift` let go: who has the slots next is in the way of all who would be there longer."""
        lifted, self._lifted = self._lifted, None
        if lifted is None:
            return
        lifted.moment.charge({})
        for dated, taken in lifted.over:
            again = lifted.moment.take(dated.key, taken, anyway=True)
            dated.held.extend([] if again is None else [(lifted.moment, again)])

    def found(self, key: RunKey) -> Settled:
        """Slots that a dated run has found."""
        return next(dated.found for dated in self.dated if dated.key == key)

    def moment(self, at: int) -> Moment:
        """The moment at a known time, or the one that stands for it."""
        self._whole()
        return next(each for each in self.moments if each.since <= at <= each.at)

    def _standing_for(self, at: int) -> Moment | None:
        return next((each for each in self.moments if each.since <= at <= each.at), None)

    def _hold(self, dated: Dated) -> bool:
        """Hold it at all later moments; False where one has no room or money for it."""
        if self._lifted is not None and self._lifted.moment.at > dated.moment.at:
            self._whole()
        first = bisect_right(self.moments, dated.moment.at, key=attrgetter("at"))
        over = self.slots.over(dated.end)
        needed = gpus_of(dated.found)
        if not all(moment.has(needed) for moment in self.moments[first:over]):  # a quick look before it is paid
            return False
        for moment in self.moments[first:over]:
            taken = moment.take(dated.key, dated.found, keeps=dated.moment is self.moments[0])
            if taken is None:
                return False
            dated.held.append((moment, taken))
        return dated.end is None or leaves(dated.spent, dated.end, [*self._spending()])

    def _open(self, at: int | None, *, always: bool = False) -> None:
        """Look at the time at which a dated start ends, too; slots that are promised are held then, whoever pays."""
        if at is None or self._standing_for(at) is not None:
            return
        if len(self.moments) >= self.most and not always:
            return
        moment = Moment(at, "end", self.later)
        for dated in self.dated:
            if dated.at <= at and (dated.end is None or at < dated.end):
                starts = dated.moment is self.moments[0]
                taken = moment.take(dated.key, dated.found, anyway=True, keeps=starts)
                dated.held.extend([] if taken is None else [(moment, taken)])  # in maintenance nobody starts there
        for mine in self.by_cuts:
            held = moment.cut(mine.then(at), mine.leases) if at >= mine.at else None
            mine.held.extend([] if held is None else [(moment, held)])
        insort(self.moments, moment, key=attrgetter("at"))

    def _natural(self, dated: Dated, *, guess: bool) -> Natural:
        moment, found = dated.moment, dated.found
        source = "estimate" if guess else moment.source if dated.at == moment.at else "promise"
        return Natural(dated.at, source, *Place.of(moment.state, found.nodes, payers_of(found.paid)))

    def _is_guess(self, starts: Sequence[Dated]) -> bool:
        """Would these, which are held, not start then if nothing ended before that only an estimate ends?"""
        at = starts[0].moment.at
        others = [each for each in self.dated if each not in starts and each.at <= at]
        lasting = [each for each in others if each.end is None or at < each.end or self._ends_by_guess(each)]
        if not self.later.guesses(at) and all(each.end is None or at < each.end for each in lasting):
            return starts[0].moment.source == "estimate"
        sure = self.sure.setdefault(at, Sure(Moment(at, "end", self.later.sure)))
        return not sure.lets([each.key for each in starts], lasting)

    def _ends_by_guess(self, dated: Dated) -> bool:
        return dated.key in self.guesses or dated.moment.state.runs[dated.key].limit is None
