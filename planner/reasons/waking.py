"""Running work that nobody pays now, and that a higher cap would pay before any start (spec §3.5)."""

from collections.abc import Mapping
from dataclasses import replace

from planner.filling.claims import claims
from planner.placement.draft import Draft
from policies.funding.classes import honour
from policies.model.problem import Problem

Woken = frozenset[int]
"""Numbers of the parts of running claims that are paid once some caps are higher."""


class Waking:
    """Running work that would be paid first if caps were higher, beside what ``draft`` starts."""

    def __init__(self, problem: Problem, draft: Draft) -> None:
        self._problem = problem
        parts = [*problem.running.parts, *(part for _, part in claims(problem, draft))]
        self._order = sorted(range(len(parts)), key=lambda i: parts[i].place)
        self._parts = [parts[i] for i in self._order]
        self._asleep = {i for i, funded in enumerate(problem.running.outcome.funded) if not funded}

    def woken(self, rises: Mapping[int, int]) -> Woken:
        """Parts that are paid with these rises (cap → weighed units) and are not now."""
        if not self._asleep or not rises:
            return frozenset()
        problem = self._problem
        caps = [replace(cap, limit=cap.limit + rises.get(i, 0)) for i, cap in enumerate(problem.book.caps)]
        funded = honour(replace(problem.book, caps=caps), problem.spent, self._parts).funded
        return frozenset(i for i, paid in zip(self._order, funded, strict=True) if paid and i in self._asleep)

    def weight(self, woken: Woken, cap: int, level: int) -> int:
        """Weigh what they take of a cap from a start of that level, which recalls what stands farther (spec §3.8)."""
        recall = self._problem.recall
        may_recall = self._problem.book.caps[cap].recalls
        total = 0
        for part in (self._problem.running.parts[i] for i in sorted(woken)):
            gone = may_recall and part.place.standing > level and recall.may_lose(part.place)
            total += 0 if gone else part.touched.get(cap, 0)
        return total
