"""Recall: a nearer claimant's start may use quota that farther claims hold (spec §3.8).

Starts are claims admitted now. They stand in the pass of spec §3.5 after the running claims of their own nearness and
before all farther ones, which turn unfunded where they no longer fit. A loan that starts recalls nobody, and no run
recalls a claim at whose admission it waited already: they have to fit beside all that stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.classes import Part, Place, Sums, weigh
from policies.kinship import standing_of
from policies.problem import Candidate, Problem

Bill = tuple[Candidate, Mapping[tuple[bool, int], Mapping[int, int]]]
"""A start, and per (active, region) the GPUs that each envelope pays."""


class Limit(NamedTuple):
    """What the pass holds a claim to: a cap's GPUs now, or for one on hours or credits its next ``second``."""

    cap: int
    second: bool


@dataclass(frozen=True)
class After:
    """Running claims beside starts. ``used``: per cap; ``stays``: by running part; ``holds``: all starts are funded."""

    used: list[int]
    stays: list[bool]
    holds: bool


def takes_of(problem: Problem, touched: Sums, second: Sums) -> dict[Limit, int]:
    """What the pass holds to: look-ahead is for admissions only."""
    caps = problem.book.caps
    now = {Limit(cap, False): weight for cap, weight in touched.items() if not caps[cap].ahead}
    return now | {Limit(cap, True): weight for cap, weight in second.items()}


def may_recall(standing: int, created: int, part: Part) -> bool:
    """May a part give way to a start that stands there, of a run that waits since ``created``?

    Only to a nearer one that came after it: a run that waited already when the claim was admitted lost to it then, and
    an unchanged world is to be planned to nothing.
    """
    return standing < part.place.standing and created > part.place.admitted


def after(problem: Problem, bills: Sequence[Bill]) -> After:
    """The pass with starts in it. A running part that no start may recall stays, and then the starts do not hold."""
    running = problem.running
    starts, loans = _parts(problem, bills)
    if not starts and not loans:
        return After(list(running.used), running.outcome.funded, holds=True)
    taken = _Taken.of(problem, starts)
    caps = problem.book.caps
    touched: set[int] = set()
    for start in (*(start.part for start in starts), *loans):
        touched.update(start.touched)
        taken.count(start)
    fits = all(taken.used[cap] <= caps[cap].limit for cap in touched)
    lasts = all(problem.spent.cap.get(cap, 0) + charge <= caps[cap].limit for cap, charge in taken.seconds.items())
    return After(taken.used, taken.stays, fits and lasts)


class _Start(NamedTuple):
    part: Part
    created: int


class _Taken:
    """The pass over running parts, each after the starts that may recall it."""

    def __init__(self, problem: Problem, starts: list[_Start]) -> None:
        self.problem = problem
        self.starts = starts
        self.used = problem.spent.used(len(problem.book.caps))
        self.seconds: Sums = {}
        self.stays: list[bool] = []

    @classmethod
    def of(cls, problem: Problem, starts: list[_Start]) -> "_Taken":
        """Of the running parts as the starts leave them: where claims are not told apart, as they are."""
        taken = cls(problem, starts)
        if problem.exact:
            for part in problem.running.parts:
                taken.add(part)
        else:
            taken.used, taken.stays = list(problem.running.used), problem.running.outcome.funded
        return taken

    def add(self, part: Part) -> None:
        """The next part of the pass: it stays if it fits."""
        fits = (not part.follows or self.stays[-1]) and self._fits(part)
        self.stays.append(fits)
        if fits:
            self.count(part)

    def count(self, part: Part) -> None:
        """Take what the part takes."""
        for cap, weight in part.touched.items():
            self.used[cap] += weight
        for cap, charge in part.second.items():
            self.seconds[cap] = self.seconds.get(cap, 0) + charge

    def _fits(self, part: Part) -> bool:
        caps, spent = self.problem.book.caps, self.problem.spent.cap
        near = [s.part for s in self.starts if may_recall(s.part.place.standing, s.created, part)]
        for cap, weight in part.touched.items():
            before = self.used[cap] + sum(start.touched.get(cap, 0) for start in near)
            if not caps[cap].ahead and before + weight > caps[cap].limit:
                return False
        for cap, charge in part.second.items():
            before = self.seconds.get(cap, 0) + sum(start.second.get(cap, 0) for start in near)
            if spent.get(cap, 0) + before + charge > caps[cap].limit:
                return False
        return True


def _parts(problem: Problem, bills: Sequence[Bill]) -> tuple[list[_Start], list[Part]]:
    """What starts take, as claims: of the family, and loans."""
    starts: list[_Start] = []
    loans: list[Part] = []
    for candidate, paid in bills:
        ranks = {payer.envelope: payer for payer in candidate.payers}
        claims: dict[int, tuple[Sums, Sums]] = {}
        for (active, region), payments in paid.items():
            for envelope, gpus in payments.items():
                more = weigh(problem.book, problem.lane(ranks[envelope], region), problem.milli(active) * gpus)
                for total, mine in zip(claims.setdefault(envelope, ({}, {})), more, strict=True):
                    for cap, weight in mine.items():
                        total[cap] = total.get(cap, 0) + weight
        for envelope, (touched, second) in claims.items():
            place = Place(standing_of(ranks[envelope].rank), problem.book.money.at, candidate.run.key, envelope)
            part = Part(place, False, touched, second, (), ranks[envelope].loan)
            if part.loan:
                loans.append(part)
            else:
                starts.append(_Start(part, candidate.run.created))
    return starts, loans
