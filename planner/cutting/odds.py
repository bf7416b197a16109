"""Odds: each run's chance to be drawn, under the very procedure that draws (spec §6).

Exact by going through all sequences of picks, as long as these need few pools: what was drawn is told apart only as far
as anything tells the drawn ones apart. Else as often as drawn from fixed seeds, as many pools allow: with a standard
error of at most ½ / √draws.

Starts that cuts make one after another are *turns*. Whom a draw may meet hangs on whom those before it met: a run loses
what it has once. So a chance is the mean over all *courses* that the turns before may have taken, each with what was
drawn, how likely, and where what starts then lies: gone through one by one while they are few, else so many of them,
drawn by hash.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate
from typing import NamedTuple

from planner.cutting.domains import Need
from planner.cutting.least import Weighing
from planner.cutting.places import Lost
from planner.cutting.pools import Colours, Pools
from planner.cutting.trial import Members, Trial
from planner.cutting.victims import Victim
from planner.effort import USUAL, Odds
from planner.filling.filler import Settled
from policies.cuts.lottery import Token, draw
from policies.cuts.order import Cut
from policies.inputs.claims import LeaseKey, RunKey


class _TooManyError(Exception):
    """More pools than are computed."""


def odds(pools: Pools, limits: Odds = USUAL.odds, *, simulated: bool = True) -> dict[RunKey, float]:
    """Chance of each run that may be drawn, rounded to millionths; 1 for one that must.

    Without ``simulated`` ones where exact ones take too much, and estimates where ``limits.columns`` are less than one
    model's.
    """
    limit = limits.columns // max(1, len(pools.weighing.model.cost))
    if len(pools.weighing.model.cost) > limits.large or limit <= 0:
        return _estimated(pools)
    try:
        exact = _exact(pools, limit, limits.pools)
    except _TooManyError:
        return _simulated(pools, limit, limits.draws) if simulated else _estimated(pools)
    return {run: round(float(chance), 6) for run, chance in sorted(exact.items())}


def ends(pools: Pools, most: int, draws: int) -> dict[frozenset[RunKey], Fraction]:
    """All runs that a draw may take together, with the chance of that: by all sequences of picks, where these are no
    more than ``draws`` and need no more than ``most`` columns of models; else of so many draws from fixed seeds.
    """
    limit = pools.solved + most // max(1, len(pools.weighing.model.cost))
    found: dict[frozenset[RunKey], Fraction] = {}
    level: dict[frozenset[Token], Fraction] = {frozenset(): Fraction(1)}
    asked = 0
    while level:
        following: dict[frozenset[Token], Fraction] = {}
        for drawn, chance in sorted(level.items(), key=lambda item: sorted(item[0])):
            asked += 1
            if asked > draws or pools.solved > limit:
                return _drawn(pools, limit, draws)
            picks = _picks(pools, drawn)
            if not picks:
                lost = _runs(drawn)
                found[lost] = found.get(lost, Fraction(0)) + chance
            for token, part in picks.items():
                after = drawn | {token}
                following[after] = following.get(after, Fraction(0)) + chance * part
        level = following
    return found


def _exact(pools: Pools, limit: int, most: int) -> dict[RunKey, Fraction]:
    """Forward through what may have been drawn so far, one of each set that nothing tells apart, with its chance."""
    looks = dict(zip((victim.run for victim in pools.victims), Colours(pools.weighing, owners=True).of(), strict=True))
    nodes = {victim.run: frozenset(n for g in victim.groups for n, _ in g.slots) for victim in pools.victims}
    level: dict[frozenset[Token], Fraction] = {frozenset(): Fraction(1)}
    by_look: dict[object, Fraction] = {}
    asked = 0
    while level:
        following: dict[object, tuple[frozenset[Token], Fraction]] = {}
        for drawn, chance in sorted(level.items(), key=lambda item: sorted(item[0])):
            asked += 1
            if asked > most or pools.solved > limit:
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


def _simulated(pools: Pools, limit: int, draws: int) -> dict[RunKey, float]:
    chances: dict[RunKey, Fraction] = {}
    for lost, part in _drawn(pools, pools.solved + limit, draws).items():
        for run in lost:
            chances[run] = chances.get(run, Fraction(0)) + part
    return {run: round(float(chance), 6) for run, chance in sorted(chances.items())}


def _drawn(pools: Pools, limit: int, most: int) -> dict[frozenset[RunKey], Fraction]:
    """Draws from ``most`` fixed seeds, or from as many as need no more pools solved than the ``limit``."""
    counts, draws = Counter[frozenset[RunKey]](), 0
    while draws < most and (pools.solved < limit or not draws):
        picks = draw(sha256(draws.to_bytes(8, "big")).hexdigest(), pools.after)
        counts[_runs(pick.token for pick in picks)] += 1
        draws += 1
    return {lost: Fraction(count, draws) for lost, count in counts.items()}


def _runs(tokens: Iterable[Token]) -> frozenset[RunKey]:
    return frozenset((token.namespace, token.run) for token in tokens)


class Turn(NamedTuple):
    """One start. ``needs``: what its ``members`` ask for; ``victims``: who may be cut at its time, of which the trial
    then has the room; ``is_open``: may its draw meet one or another?

    What was taken of the trial for one way it may go: ``cut``, ``starts``, and of one that stands ``kept`` slots, with
    the money alone of what ``stood``.
    """

    members: Members
    needs: tuple[Need, ...]
    victims: Callable[[], list[Victim]]
    is_open: bool
    cut: Mapping[LeaseKey, Cut]
    starts: tuple[Settled, ...] = ()
    kept: tuple[Lost, ...] = ()
    stood: tuple[Settled, ...] = ()


class Course(NamedTuple):
    """Outcome of turns: with which ``chance`` they ``cut`` this, and ``starts`` lie so."""

    chance: Fraction = Fraction(1)
    cut: Mapping[LeaseKey, Cut] = {}
    starts: tuple[Settled, ...] = ()

    @property
    def left(self) -> object:
        """The same of courses that leave the same."""
        taken: dict[int, int] = {}
        for chunk in (chunk for each in self.starts for piece in each.pieces for chunk in piece.chunks):
            taken[chunk.node] = taken.get(chunk.node, 0) + chunk.count
        return frozenset(self.cut), frozenset(taken.items())


@dataclass
class Turns:
    """``now``: gives the trial the room of the present; ``most``: courses that are looked at; ``left``: columns of
    models that may still be solved for them. ``_courses``: of the first ``_gone`` turns that were ``taken``.
    """

    trial: Trial
    now: Callable[[], object]
    most: int
    left: int = field(init=False)
    taken: list[Turn] = field(default_factory=list)
    _courses: list[Course] = field(default_factory=lambda: [Course()])
    _gone: int = 0

    def __post_init__(self) -> None:
        self.left = self._limits.columns

    @property
    def _limits(self) -> Odds:
        return self.trial.state.effort.odds

    def drop(self, starts: Iterable[Settled]) -> None:
        """The last turn is not taken, if these are its starts."""
        if self.taken and self.taken[-1].starts == (*starts,) and self._gone < len(self.taken):
            self.taken.pop()

    def chances(self, turn: Turn, given: Mapping[RunKey, float]) -> dict[RunKey, float]:
        """Each run's chance to be drawn for the next turn, rounded to millionths; ``given`` what the trial cuts now.

        Just that where the turns before leave no choice, or no model may be solved any more.
        """
        if not any(each.is_open for each in self.taken) or self.most <= 1 or self.left <= 0:
            return dict(given)
        with self._aside():
            while self._gone < len(self.taken):
                self._courses = [*self._after(self.taken[self._gone])]
                self._gone += 1
            found: dict[RunKey, float] = {}
            for course, pools, most in self._weighed(turn):
                limits = replace(self._limits, columns=most)
                chances = odds(pools, limits) if pools is not None and pools.harm.lottery else {}
                for run, chance in chances.items():
                    found[run] = found.get(run, 0.0) + float(course.chance) * chance
        turn.victims()
        return {run: round(min(1.0, chance), 6) for run, chance in sorted(found.items())}

    def _after(self, turn: Turn) -> Iterable[Course]:
        """All courses once a turn is taken, those that leave the same as one."""
        found: dict[object, Course] = {}
        for course, pools, most in self._weighed(turn):
            for after in (course,) if pools is None else self._ways(turn, course, pools, most):
                before = found.get(after.left)
                found[after.left] = after if before is None else before._replace(chance=before.chance + after.chance)
        return found.values()

    def _ways(self, turn: Turn, course: Course, pools: Pools, most: int) -> Iterator[Course]:
        """Ways of a turn in a course, by all that it may draw; where nothing starts nobody is cut."""
        trial = self.trial
        for lost, part in ends(pools, most, self.most).items():
            chance = course.chance * part
            chosen = pools.weighing.chosen(pools.harm, pools.numbers(lost))
            cut = {} if chosen is None else trial.take(pools.weighing, chosen, "", {})
            starts = trial.start(turn.members, is_paid=False)
            yield Course(chance, {**course.cut, **(cut if starts else {})}, (*course.starts, *starts))
            trial.take_back(starts)
            trial.undo(cut)

    def _weighed(self, turn: Turn) -> Iterator[tuple[Course, Pools | None, int]]:
        """Courses as the trial has each, with what a turn may draw then, if it can start, and the columns of models
        that may be solved for that.
        """
        victims = turn.victims()
        cutting = self.trial.state.effort.cutting
        columns = len(Weighing.of(victims, turn.needs, self.trial.filler.room, cutting).model.cost)
        most = self.left // (self._limits.solves * max(1, columns))
        courses = _few(self._courses, max(1, min(self.most, most)))
        for number, course in enumerate(courses):
            with self._in(course):
                weighing = self.trial.weighing(turn.needs, victims)
                harm, most = weighing.least(), max(0, self.left) // (len(courses) - number)
                yield course, None if harm is None else Pools(weighing, harm), most
                self.left -= weighing.work

    @contextmanager
    def _in(self, course: Course) -> Iterator[None]:
        """The trial as a course leaves it; what ends by itself until then is free already."""
        trial, gone = self.trial, self.trial.gone
        cut = {key: each for key, each in course.cut.items() if key not in trial.slots.over}
        trial.redo(cut, gone)
        trial.put_back(course.starts)
        yield
        trial.take_back(course.starts)
        trial.undo(cut)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """The trial as if no turn had been taken."""
        trial, gone = self.trial, self.trial.gone
        self.now()
        for turn in reversed(self.taken):
            trial.take_back(turn.starts)
            trial.unbegin(turn.stood)
            trial.slots.let_go(turn.kept)
            trial.undo(turn.cut)
        yield
        self.now()
        for turn in self.taken:
            trial.redo(turn.cut, gone)
            trial.slots.keep_again(turn.kept)
            trial.begin(turn.stood)
            trial.put_back(turn.starts)


def _few(courses: list[Course], most: int) -> list[Course]:
    """Take so many courses at most, drawn by hash where there are more: one as often as it is likely."""
    if len(courses) <= most:
        return courses
    sums = [*accumulate(course.chance for course in courses)]
    counts: dict[int, int] = {}
    for number in range(most):
        word = Fraction(int.from_bytes(sha256(number.to_bytes(8, "big")).digest(), "big"), 2**256)
        place = bisect(sums, word * sums[-1])
        counts[place] = counts.get(place, 0) + 1
    return [courses[place]._replace(chance=sums[-1] * count / most) for place, count in sorted(counts.items())]
