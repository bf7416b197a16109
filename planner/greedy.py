"""Starting one run after another: the first incumbent, and the fill that makes a plan maximal (spec §4).

Heaviest (oldest) first; each takes the nearest payers that still have room, then slots. Nothing is ever taken back, so
a run type that once did not fit will not fit later in the same pass, and is skipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.place import Piece, Start, pieces_of
from planner.room import Room
from policies.claims import RunKey
from policies.places import Kind, usable
from policies.problem import Candidate, Problem, RunType
from policies.shapes import PodLoad

Payments = dict[int, int]
"""Envelope → GPUs, for one (role, region) of one run."""


@dataclass
class Draft:
    """A plan in the making: which runs start, where, and what is paid.

    ``paid``: candidate → (active, region) → payments.
    """

    starts: list[Start] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    paid: dict[int, dict[tuple[bool, int], Payments]] = field(default_factory=dict)

    def started(self, problem: Problem) -> set[RunKey]:
        """Keys of the runs that start."""
        return {problem.candidates[start.candidate].run.key for start in self.starts}


@dataclass
class Purses:
    """What is left under every cap and quota while runs are added; taking is exact integers."""

    problem: Problem
    used: list[int]
    trees: list[int]

    @classmethod
    def fresh(cls, problem: Problem) -> "Purses":
        """Nothing added yet."""
        return cls(problem, list(problem.used), [tree.left for tree in problem.trees])

    def add(self, draft: Draft) -> None:
        """Count everything a draft starts and pays."""
        for start in draft.starts:
            self.count_trees(start)
            payers = {payer.envelope: payer for payer in self.problem.candidates[start.candidate].payers}
            for (active, site), payments in draft.paid.get(start.candidate, {}).items():
                for envelope, gpus in payments.items():
                    lane = self.problem.lane(payers[envelope], site)
                    for cap, weight in self.problem.book.touches(lane):
                        self.used[cap] += weight * gpus * self._milli(active)

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

    def _milli(self, active: bool) -> int:
        return 1000 if active else self.problem.book.money.policy.spares.discount_milli

    def pay(self, candidate: Candidate, demand: dict[tuple[bool, int], int]) -> dict[tuple[bool, int], Payments] | None:
        """Nearest payers first for every (role, site); all of it is counted, or nothing and None."""
        taken: dict[int, int] = {}
        paid: dict[tuple[bool, int], Payments] = {}
        borrowed = 0
        run_milli: dict[int, int] = {}
        for (active, site), gpus in sorted(demand.items(), key=lambda d: (not d[0][0], d[0][1])):
            left = gpus
            for payer in candidate.payers:
                if not left:
                    break
                if site not in self.problem.book.money.pays_on[payer.envelope]:
                    continue
                lane = self.problem.lane(payer, site)
                most = left
                for cap, weight in self.problem.book.touches(lane):
                    room = self.problem.book.caps[cap].limit - self.used[cap] - taken.get(cap, 0)
                    most = min(
                        most, max(0, room) // (weight * self._milli(active)) if weight * self._milli(active) else most
                    )
                if payer.loan and active and candidate.run.max_borrow is not None:
                    most = min(most, candidate.run.max_borrow - borrowed)
                if payer.run_gpus is not None and self._milli(active):
                    room = 1000 * payer.run_gpus - run_milli.get(payer.envelope, 0)
                    most = min(most, max(0, room) // self._milli(active))
                if most <= 0:
                    continue
                for cap, weight in self.problem.book.touches(lane):
                    taken[cap] = taken.get(cap, 0) + weight * self._milli(active) * most
                run_milli[payer.envelope] = run_milli.get(payer.envelope, 0) + most * self._milli(active)
                borrowed += most if payer.loan and active else 0
                paid.setdefault((active, site), {})[payer.envelope] = most
                left -= most
            if left:
                return None
        for cap, weight in taken.items():
            self.used[cap] += weight
        return paid


def fill(problem: Problem, room: Room, kinds: list[Kind], purses: Purses, draft: Draft, order: Iterable[int]) -> None:
    """Add to ``draft`` whatever still fits, candidates in ``order``; gangs are left to the master."""
    in_gang = {key for gang in problem.gangs for key in gang}
    started = draft.started(problem)
    hopeless: set[tuple[int, int]] = set()
    filler = _Filler(problem, room, kinds, purses)
    for index in order:
        candidate = problem.candidates[index]
        kind = problem.types[candidate.type]
        if candidate.run.key in started or candidate.run.key in in_gang:
            continue
        for steps in range(kind.lowered.steps, -1, -1):
            if (kind.index, steps) in hopeless:
                continue
            start = Start(index, steps)
            pieces = filler.try_start(kind, start)
            if pieces is None:
                hopeless.add((kind.index, steps))
                continue
            draft.starts.append(start)
            draft.pieces += pieces[0]
            draft.paid[index] = pieces[1]
            started.add(candidate.run.key)
            break


class _Filler:
    """Tries single starts against what is left."""

    def __init__(self, problem: Problem, room: Room, kinds: list[Kind], purses: Purses) -> None:
        self.problem = problem
        self.room = room
        self.kinds = kinds
        self.purses = purses
        self.kind_of = {domain: kind for kind in kinds for domain in kind.domains}
        self._left: dict[int, dict[tuple[frozenset[int], int, PodLoad], int]] = {}

    def try_start(self, kind: RunType, start: Start) -> tuple[list[Piece], dict[tuple[bool, int], Payments]] | None:
        """Place and pay one start; None, with nothing taken, where either fails."""
        if not self.purses.trees_allow(start) or not self._money_anywhere(kind, start):
            return None
        for sites in self._parts(kind):
            placed = self._settle(start, kind, sites)
            paid = self._pay(start, placed) if placed else None
            if placed and paid is not None:
                self.purses.count_trees(start)
                return placed, paid
            self._give_back(placed)
        return None

    def _parts(self, kind: RunType) -> list[frozenset[int]]:
        """Where to try: anywhere it may be, then in each region of money alone (nodes do not know who pays)."""
        region = self.problem.book.money.region
        regions = sorted({region[site] for site in kind.sites})
        if kind.unfunded or len(regions) == 1:
            return [kind.sites]
        return [kind.sites, *(frozenset(s for s in kind.sites if region[s] == r) for r in regions)]

    def _settle(self, start: Start, kind: RunType, sites: frozenset[int]) -> list[Piece]:
        """Slots for every piece of a start; an empty list, with nothing taken, where one finds none."""
        pieces = pieces_of(self.problem, start)
        placed: list[Piece] = []
        mine: set[int] = set()
        for i, piece in enumerate(pieces):
            piece.sites = sites
            if not self._place(piece, kind, mine, len(pieces) - i):
                self._give_back(placed)
                return []
            placed.append(piece)
            mine.add(piece.domain)
        return placed

    def _give_back(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self.room.give_back(piece.chunks, piece.load)
            self._forget(piece.domain)

    def _money_anywhere(self, kind: RunType, start: Start) -> bool:
        """A quick look before placing: could the payers together hold the run's Active GPUs at all?"""
        if kind.unfunded:
            return True
        need = kind.base_gpus + start.steps * kind.step_gpus
        for payer in kind.sources:
            sites = self.problem.book.money.pays_on[payer.envelope] & kind.sites
            need -= max((self._most(self.problem.lane(payer, site)) for site in sorted(sites)), default=0)
            if need <= 0:
                return True
        return False

    def _most(self, lane: object) -> int:
        book = self.problem.book
        rooms = [
            max(0, book.caps[cap].limit - self.purses.used[cap]) // (1000 * weight)
            for cap, weight in book.touches(lane)  # type: ignore[arg-type]
        ]
        return min(rooms, default=0)

    def _place(self, piece: Piece, kind: RunType, mine: set[int], rest: int) -> bool:
        options = []
        for domain, place in self.kind_of.items():
            part = usable(place, piece.sites)
            if not part:
                continue
            left = self._capacity(domain, part, max(1, piece.shape.pod), piece.load)
            if left >= piece.shape.size:
                options.append(((domain not in mine, -min(rest, left // piece.shape.size), left, domain), domain))
        for _, domain in sorted(options):
            chunks = self.room.settle(domain, piece.sites, list(piece.groups), kind.load)
            if chunks is not None:
                piece.domain = domain
                piece.chunks = chunks
                self._forget(domain)
                return True
        return False

    def _capacity(self, domain: int, part: frozenset[int], pod: int, load: PodLoad) -> int:
        known = self._left.setdefault(domain, {})
        key = (part, pod, load)
        if key not in known:
            known[key] = self.room.capacity(domain, part, pod, load)
        return known[key]

    def _forget(self, domain: int) -> None:
        self._left.pop(domain, None)

    def _pay(self, start: Start, pieces: list[Piece]) -> dict[tuple[bool, int], Payments] | None:
        candidate = self.problem.candidates[start.candidate]
        if self.problem.types[candidate.type].unfunded:
            return {}
        return self.purses.pay(candidate, demand(self.problem, self.room, pieces))


def demand(problem: Problem, room: Room, pieces: Iterable[Piece]) -> dict[tuple[bool, int], int]:
    """GPUs to be paid per (active, region)."""
    region = problem.book.money.region
    total: dict[tuple[bool, int], int] = {}
    for piece in pieces:
        for chunk in piece.chunks:
            key = (chunk.active, region[int(room.fleet.site[chunk.node])])
            total[key] = total.get(key, 0) + chunk.count
    return total
