"""What is left under every cap and quota while runs are added one by one: exact integers, nearest payers first."""

from dataclasses import dataclass, field

from planner.draft import Draft, Payments
from planner.place import Start
from policies.caps import Lane
from policies.payers import Payer
from policies.problem import Candidate, Problem, RunType

Demand = dict[tuple[bool, int], int]
"""(active, region) → GPUs to be paid."""
Paid = dict[tuple[bool, int], Payments]


@dataclass
class Purses:
    """``used``: per cap of the book; ``trees``: per quota, what it still leaves.

    ``_ceiling``: (pool, sites) → Active GPUs that its payers could hold when last asked; it only ever falls.
    """

    problem: Problem
    used: list[int]
    trees: list[int]
    _ceiling: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)

    @classmethod
    def after(cls, problem: Problem, draft: Draft) -> "Purses":
        """With everything counted that ``draft`` starts and pays."""
        purses = cls(problem, list(problem.used), [tree.left for tree in problem.trees])
        for start in draft.starts:
            purses.count_trees(start)
            payers = {payer.envelope: payer for payer in problem.candidates[start.candidate].payers}
            for (active, region), payments in draft.paid.get(start.candidate, {}).items():
                for envelope, gpus in payments.items():
                    lane = problem.lane(payers[envelope], region)
                    for cap, weight in problem.book.touches(lane):
                        purses.used[cap] += weight * gpus * problem.milli(active)
        return purses

    def count_trees(self, start: Start) -> None:
        """Take a start out of the quotas of its trees."""
        for i, weight in self._tree_weights(start):
            self.trees[i] -= weight

    def trees_allow(self, start: Start) -> bool:
        """Do the quotas above the run leave room for it?"""
        return all(self.trees[i] >= weight for i, weight in self._tree_weights(start))

    def _tree_weights(self, start: Start) -> list[tuple[int, int]]:
        candidate = self.problem.candidates[start.candidate]
        kind = self.problem.types[candidate.type]
        gpus = kind.base_gpus + start.steps * kind.step_gpus
        period = int(self.problem.book.money.policy.accounting_period)
        return [
            (i, tree.weight(candidate.run, period) * gpus)
            for i, tree in enumerate(self.problem.trees)
            if candidate.run.key in tree.members
        ]

    def most(self, lane: Lane, milli: int) -> int:
        """GPUs that every cap on ``lane`` still leaves; ``milli``: what one GPU weighs."""
        rooms = [
            max(0, self.problem.book.caps[cap].limit - self.used[cap]) // (milli * weight)
            for cap, weight in self.problem.book.touches(lane)
        ]
        return min(rooms, default=0)

    def could_pay(self, kind: RunType, gpus: int) -> bool:
        """A quick look: could the payers, each alone, together hold so many Active GPUs at all?"""
        key = (kind.pool, kind.sites)
        if gpus > self._ceiling.get(key, gpus):
            return False
        total = 0
        for source in kind.sources:
            sites = self.problem.book.money.pays_on[source.envelope] & kind.sites
            lanes = {self.problem.lane(source, site) for site in sites}
            total += max((self.most(lane, 1000) for lane in lanes), default=0)
            if total >= gpus:
                return True
        self._ceiling[key] = total
        return False

    def pay(self, candidate: Candidate, demand: Demand) -> Paid | None:
        """Nearest payers first for every role and region; all of it is counted, or nothing and None."""
        bill = _Bill(self, candidate)
        for (active, region), gpus in sorted(demand.items(), key=lambda d: (not d[0][0], d[0][1])):
            if not bill.add(active, region, gpus):
                bill.cancel()
                return None
        return bill.paid


class _Bill:
    """One run's payments while they are put together."""

    def __init__(self, purses: Purses, candidate: Candidate) -> None:
        self.purses = purses
        self.candidate = candidate
        self.paid: Paid = {}
        self._taken: list[tuple[int, int]] = []
        self._borrowed = 0
        self._of_envelope: dict[int, int] = {}

    def add(self, active: bool, region: int, gpus: int) -> bool:
        """Pay ``gpus`` in one role and region; False where not all of them find a payer."""
        money = self.purses.problem.book.money
        for payer in self.candidate.payers:
            if not gpus:
                break
            if region in money.pays_on[payer.envelope]:
                gpus -= self._take(payer, active, region, gpus)
        return gpus == 0

    def _take(self, payer: Payer, active: bool, region: int, wanted: int) -> int:
        problem = self.purses.problem
        milli = problem.milli(active)
        lane = problem.lane(payer, region)
        here = min(wanted, self.purses.most(lane, milli) if milli else wanted, self._own_limits(payer, active, milli))
        if here <= 0:
            return 0
        for cap, weight in problem.book.touches(lane):
            self.purses.used[cap] += weight * milli * here
            self._taken.append((cap, weight * milli * here))
        self._borrowed += here if payer.loan and active else 0
        self._of_envelope[payer.envelope] = self._of_envelope.get(payer.envelope, 0) + here * milli
        payments = self.paid.setdefault((active, region), {})
        payments[payer.envelope] = payments.get(payer.envelope, 0) + here
        return here

    def _own_limits(self, payer: Payer, active: bool, milli: int) -> int:
        """The run's borrow limit, and the envelope's limit on a single run."""
        most = 1 << 60
        if payer.loan and active and self.candidate.run.max_borrow is not None:
            most = self.candidate.run.max_borrow - self._borrowed
        if payer.run_gpus is not None and milli:
            most = min(most, (1000 * payer.run_gpus - self._of_envelope.get(payer.envelope, 0)) // milli)
        return most

    def cancel(self) -> None:
        """Give everything back."""
        for cap, weight in self._taken:
            self.purses.used[cap] -= weight
