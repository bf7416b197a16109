"""What is left under every cap and quota while runs are added one by one: exact integers, nearest payers first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from planner.filling.ceilings import Ceilings
from planner.filling.ways import Ways
from planner.placement.draft import Draft, Payments
from planner.placement.place import Start
from policies.caps.leeway import Touches
from policies.inputs.claims import RunKey
from policies.inputs.money import bits
from policies.model.payers import Payer
from policies.model.problem import Candidate, Problem, RunType
from policies.model.recall import FARTHEST, LEVELS

MANY: Final = 1 << 60
"""More GPUs than anything asks for."""

Demand = dict[tuple[bool, int], int]
"""(active, region) → GPUs to be paid."""
Paid = dict[tuple[bool, int], Payments]
"""(active, region) → envelope → GPUs that it pays."""


def payers_of(paid: Paid) -> list[int]:
    """Envelopes that pay, each once, nearest first."""
    return [*dict.fromkeys(envelope for payments in paid.values() for envelope in payments)]


@dataclass
class Purses:
    """``used``: per cap of the book, by what runs and is funded and by starts; ``trees``: per quota, what it still
    leaves; ``levels``: per contested cap, what starts take by level (`policies.model.recall`); ``empty``: by purse and
    region, how many of the nearest payers had no Active GPU left when asked, which holds until one is given back.
    """

    problem: Problem
    used: list[int]
    trees: list[int]
    levels: dict[int, list[int]]
    empty: dict[tuple[int, int], int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def after(cls, problem: Problem, draft: Draft, *, run: bool = False) -> "Purses":
        """Count everything that ``draft`` starts and pays; ``run``: as a later cycle finds it, running."""
        levels = {cap: [0] * LEVELS for cap in problem.recall.room}
        purses = cls(problem, list(problem.used), [tree.left for tree in problem.trees], levels)
        purses._book(((start, draft.paid.get(start.candidate, {})) for start in draft.starts), run=run)
        return purses

    def once_changed(self, draft: Draft) -> "Purses":
        """The same in a world that has changed since: all that was admitted before may be recalled, and ``draft`` runs.

        What it starts stays, with what stands before that; nothing does before a young loan. What else is taken counts
        as taken by the farthest: those recall nobody.
        """
        problem = self.problem
        risen = Purses.after(replace(problem, recall=problem.once_changed), draft, run=True)
        for cap, taken in risen.levels.items():
            taken[FARTHEST] += self.used[cap] - risen.used[cap]
        if problem.once_changed == problem.recall and risen.levels == self.levels:
            return self
        return replace(risen, used=[*self.used], trees=[*self.trees])

    @cached_property
    def ceilings(self) -> Ceilings:
        """A quick look at what is left."""
        return Ceilings(self.problem, self.used)

    def count(self, cap: int, weight: int, level: int) -> None:
        """A start that stands there takes something more, or with a minus less, of a cap."""
        self.used[cap] += weight
        if weight < 0 and self.empty:
            self.empty.clear()
        if cap in self.levels:
            self.levels[cap][level] += weight
        if "ceilings" in self.__dict__:
            self.ceilings.changed(cap)

    def left(self, cap: int, level: int = FARTHEST) -> int:
        """Rest of a cap for one more start that stands there; by default, beside all that runs."""
        if cap not in self.levels:
            return self._limits[cap] - self.used[cap]
        taken = self.levels[cap]
        farthest = max(level, *(k for k, weight in enumerate(taken) if weight), 0)
        return self.problem.recall.room[cap][farthest] - sum(taken)

    def recalls(self, cap: int) -> bool:
        """Do starts take more of a cap than is left beside all that runs?"""
        return cap in self.levels and sum(self.levels[cap]) > self.problem.recall.room[cap][FARTHEST]

    @property
    def recalling(self) -> bool:
        """The same of any cap."""
        return any(self.recalls(cap) for cap in self.levels)

    def count_trees(self, start: Start, sign: int = 1) -> None:
        """Take a start out of the quotas of its trees, or with a minus give it back to them."""
        for i, weight in self._tree_weights(start):
            self.trees[i] -= sign * weight

    def take_back(self, starts: Iterable[tuple[Start, Paid]]) -> None:
        """Give back what these starts took of caps and trees."""
        self._book(starts, -1)

    def put_back(self, start: Start, paid: Paid) -> None:
        """Undo ``take_back``."""
        self._book([(start, paid)])

    def leave(self, start: Start, paid: Paid) -> bool:
        """Do all caps and quotas leave what a start was paid, be it by what it recalls?"""
        taken = self._taken(start, paid)
        leaves = all(weight <= self.left(cap, level) for cap, (weight, level) in taken.items())
        return leaves and self.trees_allow(start)

    def ahead(self, start: Start, paid: Paid) -> dict[int, int]:
        """What a start takes of the caps on GPU-hours and credits, by cap."""
        caps = self.problem.book.caps
        return {cap: weight for cap, (weight, _) in self._taken(start, paid).items() if caps[cap].ahead}

    def _taken(self, start: Start, paid: Paid) -> dict[int, tuple[int, int]]:
        """What it takes by cap, and the farthest level at which it stands there."""
        candidate = self.problem.candidates[start.candidate]
        taken: dict[int, tuple[int, int]] = {}
        for (active, region), payments in paid.items():
            milli = self.problem.milli(active)
            for envelope, gpus in payments.items():
                payer, touches = self.ways.of(candidate, region)[envelope]
                for cap, weight in touches:
                    before, level = taken.get(cap, (0, payer.level))
                    taken[cap] = before + weight * milli * gpus, max(level, payer.level)
        return taken

    def _book(self, starts: Iterable[tuple[Start, Paid]], sign: int = 1, *, run: bool = False) -> None:
        """Count starts that are paid, or with a minus no longer; ``run``: `after`."""
        for start, paid in starts:
            if start.candidate < 0:
                continue
            candidate = self.problem.candidates[start.candidate]
            for (active, region), payments in paid.items():
                milli = sign * self.problem.milli(active)
                for envelope, gpus in payments.items():
                    payer, touches = self.ways.of(candidate, region)[envelope]
                    level = 0 if run and self._is_contract(payer) else payer.level
                    for cap, weight in touches:
                        self.count(cap, weight * milli * gpus, level)
            self.count_trees(start, sign)

    def _is_contract(self, payer: Payer) -> bool:
        """Is what it pays a loan that stands before all other claims while it is young (spec §3.5)?"""
        return payer.loan and self.problem.book.money.envelopes[payer.envelope].is_young(0)

    def trees_allow(self, start: Start) -> bool:
        """Do the quotas above the run leave room for it?"""
        return all(self.trees[i] >= weight for i, weight in self._tree_weights(start))

    def _tree_weights(self, start: Start) -> Sequence[tuple[int, int]]:
        if not self.trees:
            return ()
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

    def most(self, touches: Touches, milli: int, level: int = FARTHEST, wanted: int = MANY) -> int:
        """GPUs, up to ``wanted``, that every cap of ``touches`` still leaves; ``milli``: what one GPU weighs.

        ``level``: where a start stands that may recall.
        """
        for cap, weight in touches:
            one = milli * weight
            left = self.left(cap, level) if cap in self.levels else self._limits[cap] - self.used[cap]
            if left < wanted * one:
                if left < one:
                    return 0
                wanted = min(wanted, left // one)
        return wanted if touches else 0

    @cached_property
    def _limits(self) -> list[int]:
        return [cap.limit for cap in self.problem.book.caps]

    @cached_property
    def ways(self) -> Ways:
        """Ways of payers, and the caps on them."""
        return Ways(self.problem)

    def could_recall(self, candidate: Candidate, sites: frozenset[int], gpus: int) -> bool:
        """A quick look: might its payers hold so many Active GPUs if farther claims were recalled?"""
        if not candidate.recalls:
            return False
        total = 0
        recalls = False
        for payer, lanes in self.ways.onto(candidate, sites):
            most = max(self.most(touches, 1000, payer.level) for touches in lanes)
            recalls = recalls or most > max(self.most(touches, 1000) for touches in lanes)
            total += most
            if total >= gpus and recalls:
                return True
        return False

    def could_pay(self, kind: RunType, gpus: int) -> bool:
        """A quick look: could the payers, each alone, together hold so many Active GPUs at all?"""
        return self.ceilings.anywhere(kind) >= gpus

    def pay(self, candidate: Candidate, demand: Demand, *, recalls: bool = False) -> Paid | None:
        """Nearest payers first for every role and region; all of it is counted, or nothing and None.

        ``recalls``: of payers' money it may have all that spec §3.8 lets such a start have.
        """
        bill = self._filled(Bill(self, candidate, recalls=recalls), demand)
        return None if bill is None else bill.paid

    def pay_for(self, start: Start, demand: Demand) -> Paid | None:
        """The same for a start, if need be by what it may recall, and counted under the quotas above it, too."""
        candidate = self.problem.candidates[start.candidate]
        paid = self.pay(candidate, demand)
        if paid is None and candidate.recalls:
            paid = self.pay(candidate, demand, recalls=True)
        if paid is not None:
            self.count_trees(start)
        return paid

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
        self._taken: list[tuple[int, int, int]] = []
        self._borrowed = 0
        self._of_envelope: dict[int, int] = {}
        self._of_use: dict[int, int] = {}

    def add(self, active: bool, region: int, gpus: int) -> bool:
        """Pay ``gpus`` in one role and region; False where not all of them find a payer."""
        purses, purse = self.purses, (self.candidate.purse, region)
        is_plain = active and not self._recalls and bool(self.candidate.payers)
        first = purses.empty.get(purse, 0) if is_plain else 0
        for payer, touches in islice(purses.ways.of(self.candidate, region).values(), first, None):
            if not gpus:
                break
            here = self._take(payer, touches, (active, region), gpus)
            gpus -= here
            if is_plain and not here and not purses.most(touches, 1000):
                first += 1
                purses.empty[purse] = first
            else:
                is_plain = False  # of the nearest alone
        return gpus == 0

    def _take(self, payer: Payer, touches: Touches, purpose: tuple[bool, int], wanted: int) -> int:
        active, region = purpose
        milli = self.purses.problem.milli(active)
        most = self.purses.most(touches, milli, payer.level if self._recalls else FARTHEST, wanted) if milli else wanted
        if not most:
            return 0
        here = min(most, self._own_limits(payer, active, milli))
        here = min([here, *self._use_limits(payer, region, milli)]) if payer.watch.each and milli else here
        if here <= 0:
            return 0
        for cap, weight in touches:
            self.purses.count(cap, weight * milli * here, payer.level)
            self._taken.append((cap, weight * milli * here, payer.level))
        self._borrowed += here if payer.loan and active else 0
        self._of_envelope[payer.envelope] = self._of_envelope.get(payer.envelope, 0) + here * milli
        for use in self._uses(payer, region) if payer.watch.each else ():
            self._of_use[use] = self._of_use.get(use, 0) + here * milli
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

    def _uses(self, payer: Payer, region: int) -> list[int]:
        """The use caps there that bound what a single run takes."""
        uses = self.purses.problem.book.money.uses
        return [i for i in bits(payer.watch.each) if region in uses[i].sites]

    def _use_limits(self, payer: Payer, region: int, milli: int) -> list[int]:
        uses = self.purses.problem.book.money.uses
        mine = self._uses(payer, region)
        return [(1000 * (uses[i].per_run_gpus or 0) - self._of_use.get(i, 0)) // milli for i in mine]

    def cancel(self) -> None:
        """Give everything back."""
        for cap, weight, level in self._taken:
            self.purses.count(cap, -weight, level)
