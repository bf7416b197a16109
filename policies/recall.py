"""Recall: a nearer claimant's start may use quota that farther claims hold (spec §3.8).

Starts are claims admitted now. They stand in the pass of spec §3.5 after the running claims of their own nearness and
before all farther ones, which turn unfunded where they no longer fit. A loan that starts recalls nobody, and no run
recalls a claim at whose admission it waited already: they have to fit beside all that stays.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from policies.classes import Part, Sums, weigh
from policies.kinship import standing_of
from policies.problem import Candidate, Problem
from policies.yielding import Limit, takes_of, whole

Bill = tuple[Candidate, Mapping[tuple[bool, int], Mapping[int, int]]]
"""A start, and per (active, region) the GPUs that each envelope pays."""


def may_recall(standing: int, created: int, part: Part) -> bool:
    """May a part give way to a start that stands there, of a run that waits since ``created``?

    Only to a nearer one that came after it: a run that waited already when the claim was admitted lost to it then, and
    an unchanged world is to be planned to nothing.
    """
    return standing < part.place.standing and created > part.place.admitted


class _Near(NamedTuple):
    """What a start takes of a limit; ``standing``: None for a loan."""

    standing: int | None
    created: int
    weight: int

    def recalls(self, part: Part) -> bool:
        return self.standing is not None and may_recall(self.standing, self.created, part)


class Beside:
    """Running claims beside starts. ``stays``: is a running part funded; ``touched``: caps, by how many claims of
    starts take of them.
    """

    def __init__(self, problem: Problem) -> None:
        """Before anything starts."""
        self.problem = problem
        self.stays = list(problem.running.outcome.funded)
        self.touched: Counter[int] = Counter()
        self._near: dict[Limit, list[_Near]] = {}
        self._seconds: Counter[Limit] = Counter()
        """By limit on hours or credits that some start takes of: what starts take."""

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
                if standing is not None and limit in self.problem.yielding.by_limit:
                    near = self._near.setdefault(limit, [])
                    if sign > 0:
                        near.append(_Near(standing, bill[0].run.created, weight))
                    else:
                        near.pop()
        return found

    def settle(self, limits: Iterable[Limit]) -> Sums:
        """The pass over the parts that starts at ``limits`` may concern; what these take more, or less, of each cap."""
        clusters = self.problem.yielding.clusters
        change: Sums = {}
        for cluster in {id(mine): mine for limit in sorted(limits) if (mine := clusters.get(limit))}.values():
            before: dict[Limit, int] = {}
            for i in cluster:
                part = self.problem.running.parts[i]
                fits = (not part.follows or self.stays[i - 1]) and self._fits(i, before)
                if fits:
                    for limit, weight in self.problem.yielding.takes[i].items():
                        before[limit] = before.get(limit, 0) + weight
                if fits != self.stays[i]:
                    self.stays[i] = fits
                    for cap, weight in part.touched.items():
                        change[cap] = change.get(cap, 0) + (weight if fits else -weight)
        return change

    def _fits(self, i: int, before: Mapping[Limit, int]) -> bool:
        part, yielding = self.problem.running.parts[i], self.problem.yielding
        return all(
            before.get(limit, 0) + weight + sum(near.weight for near in self._near.get(limit, ()) if near.recalls(part))
            <= yielding.room[i][limit]
            for limit, weight in yielding.takes[i].items()
        )

    def lasts(self) -> bool:
        """Is the next second of all that is funded left, wherever starts take of hours or credits?"""
        return all(
            self._running(limit) + taken <= whole(self.problem.book, self.problem.spent, limit)
            for limit, taken in self._seconds.items()
            if taken
        )

    def _running(self, limit: Limit) -> int:
        takes = self.problem.yielding.takes
        return sum(takes[i].get(limit, 0) for i in self.problem.yielding.at(limit) if self.stays[i])


def taken_of(problem: Problem, bill: Bill) -> Iterable[tuple[int, int]]:
    """(cap, weight) of everything that a start takes."""
    return ((cap, weight) for _, touched, _ in _claims(problem, bill) for cap, weight in touched.items())


def _claims(problem: Problem, bill: Bill) -> list[tuple[int | None, Sums, Sums]]:
    """What a start takes, claim by claim: where it stands (None: a loan), per cap, and in its next second."""
    candidate, paid = bill
    payers = {payer.envelope: payer for payer in candidate.payers}
    claims: dict[int, tuple[Sums, Sums]] = {}
    for (active, region), payments in paid.items():
        for envelope, gpus in payments.items():
            more = weigh(problem.book, problem.lane(payers[envelope], region), problem.milli(active) * gpus)
            for total, mine in zip(claims.setdefault(envelope, ({}, {})), more, strict=True):
                for cap, weight in mine.items():
                    total[cap] = total.get(cap, 0) + weight
    return [
        (None if payers[envelope].loan else standing_of(payers[envelope].rank), *sums)
        for envelope, sums in claims.items()
    ]
