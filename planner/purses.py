"""What is left under every cap and quota while runs are added one by one: exact integers, nearest payers first."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from planner.ceilings import Ceilings
from planner.draft import Draft, Payments
from planner.place import Start
from planner.ways import Ways
from policies.claims import RunKey
from policies.leeway import Touches
from policies.payers import Payer
from policies.problem import Candidate, Problem, RunType
from policies.recall import Beside, taken_of
from policies.yielding import Limit

MANY: Final = 1 << 60
"""More GPUs than anything asks for."""

Demand = dict[tuple[bool, int], int]
"""(active, region) → GPUs to be paid."""
Paid = dict[tuple[bool, int], Payments]


@dataclass
class Purses:
    """``used``: per cap of the book; ``trees``: per quota, what it still leaves; ``beside``: running claims."""

    problem: Problem
    used: list[int]
    trees: list[int]
    beside: Beside

    @classmethod
    def after(cls, problem: Problem, draft: Draft) -> "Purses":
        """With everything counted that ``draft`` starts and pays."""
        purses = cls(problem, list(problem.used), [tree.left for tree in problem.trees], Beside(problem))
        starts = ((start, draft.paid.get(start.candidate, {})) for start in draft.starts)
        purses._settle(purses._book(starts, 1))
        return purses

    @property
    def stays(self) -> list[bool]:
        """By part of running claims: is it funded?"""
        return self.beside.stays

    @cached_property
    def ceilings(self) -> Ceilings:
        """A quick look at what is left."""
        return Ceilings(self.problem, self.used)

    def count(self, cap: int, weight: int) -> None:
        """Something more, or with a minus less, is taken of a cap."""
        self.used[cap] += weight
        if "ceilings" in self.__dict__:
            self.ceilings.changed(cap)

    def count_trees(self, start: Start, sign: int = 1) -> None:
        """Take a start out of the quotas of its trees, or with a minus give it back to them."""
        for i, weight in self._tree_weights(start):
            self.trees[i] -= sign * weight

    def take_back(self, starts: Iterable[tuple[Start, Paid]]) -> None:
        """As if these starts had not been paid, nor counted in their trees; who gave way to them alone stays."""
        self._settle(self._book(starts, -1))

    def put_back(self, start: Start, paid: Paid) -> None:
        """Undo ``take_back``."""
        self._settle(self._book([(start, paid)], 1))

    def _book(self, starts: Iterable[tuple[Start, Paid]], sign: int) -> set[Limit]:
        """Count starts, or with a minus no longer; returns the limits that they take of."""
        limits: set[Limit] = set()
        for start, paid in starts:
            bill = (self.problem.candidates[start.candidate], paid)
            limits |= self.beside.add(bill) if sign > 0 else self.beside.take_back(bill)
            for cap, weight in taken_of(self.problem, bill):
                self.count(cap, sign * weight)
            self.count_trees(start, sign)
        return limits

    def trees_allow(self, start: Start) -> bool:
        """Do the quotas above the run leave room for it?"""
        return all(self.trees[i] >= weight for i, weight in self._tree_weights(start))

    def _tree_weights(self, start: Start) -> list[tuple[int, int]]:
        candidate = self.problem.candidates[start.candidate]
        above = self.quotas_above(candidate.run.key)
        if not above:
            return []
        kind = self.problem.types[candidate.type]
        gpus = kind.gpus(start.steps)
        period = int(self.problem.book.money.policy.accounting_period)
        return [(i, self.problem.trees[i].weight(candidate.run, period) * gpus) for i in above]

    def quotas_above(self, run: RunKey) -> list[int]:
        """The quotas that a run counts against."""
        return self._trees_above.get(run, [])

    @cached_property
    def _trees_above(self) -> dict[RunKey, list[int]]:
        found: dict[RunKey, list[int]] = {}
        for i, tree in enumerate(self.problem.trees):
            for key in tree.members:
                found.setdefault(key, []).append(i)
        return found

    def most(self, touches: Touches, milli: int, recalls: int | None = None, wanted: int = MANY) -> int:
        """GPUs, up to ``wanted``, that every cap of ``touches`` still leaves; ``milli``: what one GPU weighs.

        ``recalls``: of a start; what may give way to it counts as left.
        """
        for cap, weight in touches:
            one = milli * weight
            left = self._limits[cap] - self.used[cap]
            if left < wanted * one:
                left += self.loose(cap, recalls)
                if left < one:
                    return 0
                wanted = min(wanted, left // one)
        return wanted if touches else 0

    @cached_property
    def _limits(self) -> list[int]:
        return [cap.limit for cap in self.problem.book.caps]

    @cached_property
    def ways(self) -> Ways:
        """Where payers pay, and under what caps."""
        return Ways(self.problem)

    def loose(self, cap: int, recalls: int | None) -> int:
        """What running claims hold of a cap that may give way to such a start."""
        return 0 if recalls is None else self.beside.loose(cap, recalls)

    def could_recall(self, candidate: Candidate, sites: frozenset[int], gpus: int) -> bool:
        """A quick look: might its payers hold so many Active GPUs if farther claims gave way?"""
        if not candidate.rights:
            return False
        total = 0
        recalls = False
        for payer, lanes in self.ways.onto(candidate, sites):
            near = payer.standing
            most = max(self.most(touches, 1000, near) for touches in lanes)
            recalls = recalls or (near is not None and most > max(self.most(touches, 1000) for touches in lanes))
            total += most
            if total >= gpus and recalls:
                return True
        return False

    def could_pay(self, kind: RunType, gpus: int) -> bool:
        """A quick look: could the payers, each alone, together hold so many Active GPUs at all?"""
        return self.ceilings.anywhere(kind) >= gpus

    def pay(self, candidate: Candidate, demand: Demand) -> Paid | None:
        """Nearest payers first for every role and region; all of it is counted, or nothing and None."""
        bill = self._filled(Bill(self, candidate), demand)
        if bill is None:
            return None
        self.beside.add((candidate, bill.paid))
        return bill.paid

    def draw(self, candidate: Candidate, demand: Demand) -> "Bill | None":
        """The same with all that farther claims might leave; None, with nothing counted, where that is not enough.

        It is to be followed by `recall`.
        """
        return self._filled(Bill(self, candidate, recalls=True), demand)

    def recall(self, bill: "Bill") -> Paid | None:
        """What was drawn, where the pass lets farther claims go for it (spec §3.8); else None, with nothing counted."""
        start = (bill.candidate, bill.paid)
        self._settle(self.beside.add(start))
        if self.hold():
            return bill.paid
        self._settle(self.beside.take_back(start))
        bill.cancel()
        return None

    def hold(self) -> bool:
        """Are all starts funded beside the claims that stay, in the next second too?"""
        caps = self.problem.book.caps
        return self.beside.lasts() and all(
            self.used[c] <= caps[c].limit for c, starts in self.beside.touched.items() if starts
        )

    def _settle(self, limits: set[Limit]) -> None:
        for cap, weight in self.beside.settle(limits).items():
            self.count(cap, weight)

    def _filled(self, bill: "Bill", demand: Demand) -> "Bill | None":
        for (active, region), gpus in sorted(demand.items(), key=lambda d: (not d[0][0], d[0][1])):
            if not bill.add(active, region, gpus):
                bill.cancel()
                return None
        return bill


class Bill:
    """One run's payments while they are put together."""

    def __init__(self, purses: Purses, candidate: Candidate, *, recalls: bool = False) -> None:
        self.purses = purses
        self.candidate = candidate
        self._recalls = recalls
        self.paid: Paid = {}
        self._taken: list[tuple[int, int]] = []
        self._borrowed = 0
        self._of_envelope: dict[int, int] = {}

    def add(self, active: bool, region: int, gpus: int) -> bool:
        """Pay ``gpus`` in one role and region; False where not all of them find a payer."""
        for payer, touches in self.purses.ways.of(self.candidate, region):
            if not gpus:
                break
            gpus -= self._take(payer, touches, (active, region), gpus)
        return gpus == 0

    def _take(self, payer: Payer, touches: Touches, purpose: tuple[bool, int], wanted: int) -> int:
        active, _ = purpose
        milli = self.purses.problem.milli(active)
        recalls = payer.standing if self._recalls else None
        most = self.purses.most(touches, milli, recalls, wanted) if milli else wanted
        if not most:
            return 0
        here = min(most, self._own_limits(payer, active, milli))
        if here <= 0:
            return 0
        for cap, weight in touches:
            self.purses.count(cap, weight * milli * here)
            self._taken.append((cap, weight * milli * here))
        self._borrowed += here if payer.loan and active else 0
        self._of_envelope[payer.envelope] = self._of_envelope.get(payer.envelope, 0) + here * milli
        payments = self.paid.setdefault(purpose, {})
        payments[payer.envelope] = payments.get(payer.envelope, 0) + here
        return here

    def _own_limits(self, payer: Payer, active: bool, milli: int) -> int:
        """The run's borrow limit, and the envelope's limit on a single run."""
        most = MANY
        if payer.loan and active and self.candidate.run.max_borrow is not None:
            most = self.candidate.run.max_borrow - self._borrowed
        if payer.run_gpus is not None and milli:
            most = min(most, (1000 * payer.run_gpus - self._of_envelope.get(payer.envelope, 0)) // milli)
        return most

    def cancel(self) -> None:
        """Give everything back."""
        for cap, weight in self._taken:
            self.purses.count(cap, -weight)
