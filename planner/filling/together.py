"""Runs that start together, tried as one against what is left (spec §1 Run.gang): all that it takes, or none.

A gang's place in the order is what a GPU of it weighs on average, over the heaviest of its members that it takes:

    Σ GPUs × weight / Σ GPUs,    ties by the heaviest member's own place

so it is tried before the members that it leaves over; these follow one by one, each in its own place.

Members are tried one by one, each at its least width, as single runs are. Where one does not fit another does in its
stead, until too few are left; then everything is taken back, and they are tried in another order. Once enough have
started they grow, the heaviest first, each as far as the others leave room and money.
"""

from collections import Counter
from collections.abc import Container, Hashable, Iterator, Sequence

from planner.filling.filler import Filler, Settled
from planner.placement.place import Start
from policies.inputs.claims import RunKey
from policies.model.gangs import Gang
from policies.model.problem import Candidate, Problem

Place = tuple[int, int, int, RunKey]
"""What comes first in the order is least: minus the weight, when it was created, and its name."""


class Together:
    """The gangs of one pass, whose members may start as one of ``order``, or beside others as one of ``before``."""

    def __init__(self, problem: Problem, filler: Filler, order: Sequence[int], before: Sequence[int]) -> None:
        self._problem = problem
        self._filler = filler
        self._turns_over = bool(before)  # of members that may start as one of those
        self._ways: dict[RunKey, list[int]] = {}
        self._gangs: list[Gang] = []
        self._hopeless: set[Hashable] = set()
        here = set(order) if problem.gangs else set()
        known = here.union(before)
        for gang in problem.gangs if here else ():
            ways = {key: [c for c in problem.ways.get(key, ()) if c in known] for key in gang}
            some = {key: sorted(mine, key=here.__contains__) for key, mine in ways.items() if mine}
            if len(some) >= gang.least and any(c in here for mine in some.values() for c in mine):
                self._gangs.append(gang)
                self._ways |= some

    def places(self, waiting: Container[RunKey]) -> list[tuple[Place, Gang]]:
        """The gangs whose members are ``waiting``, in the order in which they are tried."""
        gangs = {self._place(gang): gang for gang in self._gangs if any(key in waiting for key in gang)}
        return sorted(gangs.items())

    def _place(self, gang: Gang) -> Place:
        first = sorted(map(self._candidate, self._members(gang)), key=lambda each: each.order)[: gang.least]
        gpus = sum(candidate.run.total for candidate in first)
        mean = sum(candidate.run.total * candidate.weight for candidate in first) // gpus
        turn, _, created, key = first[0].order
        return turn, -mean, created, key

    def try_start(self, gang: Gang, *, least: bool = False) -> list[Settled]:
        """Start as many as it takes, and those that have no turn of their own any more; an empty list, with nothing
        taken, where too few can. ``least``: each stays at its least width.
        """
        asks = [self._asks(key) for key in self._members(gang)]
        case = gang.least, frozenset(Counter(asks).items())
        if case in self._hopeless:
            return []
        members = [key for key in self._members(gang) if self._might_start(key)]
        if len(members) >= gang.least:
            for attempt in self._attempts(members, gang.least):
                found = self._try_members(attempt, gang)
                if found:
                    return found if least else self._filler.widen(found)
        self._hopeless.add(case)
        return []

    def _attempts(self, members: list[RunKey], least: int) -> Iterator[list[RunKey]]:
        """Orders in which to try members: the heaviest first, those that ask for least, those with the fewest ways
        and payers, those with the fewest places.

        Of those that it takes the largest come first, for they find a place hardest.
        """
        heaviest = sorted(members, key=lambda key: self._candidate(key).order)
        smallest = sorted(heaviest, key=self._gpus)
        orders = [[*sorted(each[:least], key=self._bulk), *each[least:]] for each in (heaviest, smallest)]
        orders += [sorted(orders[0], key=self._payers), sorted(orders[0], key=self._sites)]
        return (order for n, order in enumerate(orders) if order not in orders[:n])

    def _try_members(self, members: list[RunKey], gang: Gang) -> list[Settled]:
        filler, least, place = self._filler, gang.least, self._place(gang)
        found: list[Settled] = []
        learnt = filler.learnt
        for n, key in enumerate(members):
            if len(found) + len(members) - n < least:
                break
            if len(found) >= least and self._candidate(key).order > place and not self._turns_over:
                continue  # its own turn comes
            one = self._try_member(key)
            if one is not None:
                if not found:
                    filler.learnt = learnt.copy()  # what is learnt beside this member may not hold without it
                found.append(one)
        if len(found) >= least:
            return found
        filler.take_back(found)
        filler.learnt = learnt
        return []

    def _try_member(self, key: RunKey) -> Settled | None:
        found = (self._filler.try_start(self._problem.type_of(c), Start(c, 0)) for c in self._ways[key])
        return next((each for each in found if each is not None), None)

    def _members(self, gang: Gang) -> list[RunKey]:
        """Those that can start in some way at all."""
        return [key for key in gang if key in self._ways]

    def _might_start(self, key: RunKey) -> bool:
        return any(self._filler.might_start(self._problem.type_of(c), Start(c, 0)) for c in self._ways[key])

    def _asks(self, key: RunKey) -> Hashable:
        """Equal for members of which the same can be said, whatever they weigh."""
        run, quotas = self._candidate(key).run, self._filler.purses.quotas_above(key)
        ways = []
        for index in self._ways[key]:
            candidate, kind = self._problem.candidates[index], self._problem.type_of(index)
            ways.append((kind.sites, kind.lowered, kind.load, kind.unfunded, candidate.purse))
        return run.max_borrow, tuple(quotas), run.limit if quotas else None, tuple(ways)

    def _gpus(self, key: RunKey) -> int:
        """All that it asks for at its least width, spares too."""
        kind = self._problem.type_of(self._ways[key][0])
        return kind.base_gpus + kind.lowered.spare_gpus

    def _bulk(self, key: RunKey) -> tuple[int, int]:
        """Least for the largest group, then for the most GPUs."""
        pieces = self._problem.type_of(self._ways[key][0]).lowered.pieces()
        return -max(piece.size for piece in pieces), -self._gpus(key)

    def _payers(self, key: RunKey) -> tuple[int, int]:
        """Count the ways in which it may start, and who may pay."""
        return len(self._ways[key]), sum(len(self._problem.type_of(c).sources) for c in self._ways[key])

    def _sites(self, key: RunKey) -> int:
        return len(self._problem.type_of(self._ways[key][0]).sites)

    def _candidate(self, key: RunKey) -> Candidate:
        return self._problem.candidates[self._ways[key][0]]
