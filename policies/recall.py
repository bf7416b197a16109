"""Recall: a nearer claimant's start may use quota that farther claims hold (spec §3.8).

Starts are claims admitted now. They stand in the pass of spec §3.5 after the running claims of their own nearness and
before all farther ones, which turn unfunded where they no longer fit (``Yielding.recalls`` says which may). A loan that
starts recalls nobody: it has to fit beside all that stays.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from policies.classes import Part, Sums, weigh
from policies.problem import Candidate, Problem
from policies.yielding import Limit, Takes, takes_of, whole

Bill = tuple[Candidate, Mapping[tuple[bool, int], Mapping[int, int]]]
"""A start, and per (active, region) the GPUs that each envelope pays."""


class Beside:
    """Running claims beside starts. ``stays``: is a running part funded; ``touched``: caps, by how many claims of
    starts take of them.

    What they hold of a cap or limit is added up once and then follows who stays: both are asked for at every start.
    """

    def __init__(self, problem: Problem) -> None:
        """Before anything starts."""
        self.problem = problem
        self.stays = list(problem.running.outcome.funded)
        self.touched: Counter[int] = Counter()
        self._near: dict[Limit, Counter[int]] = {}
        """By limit: standing → what starts there take."""
        self._seconds: Counter[Limit] = Counter()
        """By limit on hours or credits that some start takes of: what starts take."""
        self._running: dict[Limit, int] = {}
        """Of these, what is funded and runs takes."""
        self._over: set[Limit] = set()
        """Those of which both together take more than there is."""
        self._loose: dict[int, dict[int, int]] = {}
        """Cap → standing of a start → what may give way to it there."""

    def add(self, bill: Bill) -> set[Limit]:
        """Count a start; who gives way to it is for ``settle`` to say. Returns the limits that it takes of."""
        return self._count(bill, 1)

    def take_back(self, bill: Bill) -> set[Limit]:
        """Count the start that was added last no more."""
        return self._count(bill, -1)

    def _count(self, bill: Bill, sign: int) -> set[Limit]:
        found: set[Limit] = set()
        for standing, touched, second in _claims(self.problem, bill):
            self.touched.update(dict.fromkeys(touched, sign))
            for limit, weight in takes_of(self.problem.book, touched, second).items():
                found.add(limit)
                if limit.second:
                    self._seconds[limit] += sign * weight
                    self._weigh(limit)
                if standing is not None and limit in self.problem.yielding.by_limit:
                    self._near.setdefault(limit, Counter())[standing] += sign * weight
        return found

    def settle(self, limits: Iterable[Limit]) -> Sums:
        """The pass over the parts that starts at ``limits`` may concern; what these take more, or less, of each cap."""
        parts, yielding = self.problem.running.parts, self.problem.yielding
        change: Sums = {}
        for cluster in {id(mine): mine for limit in sorted(limits) if (mine := yielding.clusters.get(limit))}.values():
            before: dict[Limit, int] = {}
            for i in cluster:
                takes = yielding.takes[i]
                stays = not parts[i].follows or self.stays[i - 1]
                fits = stays and self._fits(parts[i], takes, yielding.room[i], before)
                if fits:
                    for limit, weight in takes.items():
                        before[limit] = before.get(limit, 0) + weight
                if fits != self.stays[i]:
                    self._turn(i, change)
        return change

    def _fits(self, part: Part, takes: Takes, room: Takes, before: Takes) -> bool:
        for limit, weight in takes.items():
            total = weight + before.get(limit, 0)
            for standing, taken in self._near.get(limit, {}).items():
                if self.problem.yielding.recalls(standing, part):
                    total += taken
            if total > room[limit]:
                return False
        return True

    def _turn(self, i: int, change: Sums) -> None:
        """A part that stayed goes, or the other way round: into ``change``, and into all sums."""
        self.stays[i] = stays = not self.stays[i]
        for cap, weight in self.problem.running.parts[i].touched.items():
            change[cap] = change.get(cap, 0) + (weight if stays else -weight)
            self._loose.pop(cap, None)
        for limit, weight in self.problem.yielding.takes[i].items():
            if limit in self._running:
                self._running[limit] += weight if stays else -weight
                self._weigh(limit)

    def lasts(self) -> bool:
        """Is the next second of all that is funded left, wherever starts take of hours or credits?"""
        return not self._over

    def _weigh(self, limit: Limit) -> None:
        """What is taken of a limit on hours or credits has changed."""
        if limit not in self._running:
            takes = self.problem.yielding.takes
            mine = self.problem.yielding.at(limit)
            self._running[limit] = sum(takes[i][limit] for i in mine if self.stays[i])
        taken = self._seconds[limit]
        if taken and self._running[limit] + taken > whole(self.problem.book, self.problem.spent, limit):
            self._over.add(limit)
        else:
            self._over.discard(limit)

    def loose(self, cap: int, standing: int) -> int:
        """What funded running claims hold of a cap that may give way to a start that stands there."""
        mine = self._loose.setdefault(cap, {})
        if standing not in mine:
            parts, yielding = self.problem.running.parts, self.problem.yielding
            there = (parts[i] for i in yielding.by_cap.get(cap, ()) if self.stays[i])
            mine[standing] = sum(part.touched[cap] for part in there if yielding.recalls(standing, part))
        return mine[standing]


def taken_of(problem: Problem, bill: Bill) -> Iterable[tuple[int, int]]:
    """(cap, weight) of everything that a start takes."""
    return ((cap, weight) for _, touched, _ in _claims(problem, bill) for cap, weight in touched.items())


def _claims(problem: Problem, bill: Bill) -> list[tuple[int | None, Sums, Sums]]:
    """What a start takes, claim by claim: where it stands (None: a loan), per cap, and in its next second."""
    candidate, paid = bill
    payers = problem.payers(candidate)
    claims: dict[int, tuple[Sums, Sums]] = {}
    for (active, region), payments in paid.items():
        for envelope, gpus in payments.items():
            more = weigh(problem.book, problem.lane(payers[envelope], region), problem.milli(active) * gpus)
            for total, mine in zip(claims.setdefault(envelope, ({}, {})), more, strict=True):
                for cap, weight in mine.items():
                    total[cap] = total.get(cap, 0) + weight
    return [(payers[envelope].standing, *sums) for envelope, sums in claims.items()]
