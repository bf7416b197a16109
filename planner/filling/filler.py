"""One start at a time against what is left: slots where its pieces fit, then the nearest payers that still have room.

A start that fails takes nothing; one that was made can be taken back, and put back as it was, to the last GPU.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from planner.filling.purses import MANY, Demand, Paid, Purses
from planner.placement.place import Piece, Start, pieces_of
from planner.placement.room import Room
from planner.placement.vacancy import Vacancies
from policies.model.problem import Problem, RunType

_Part = tuple[frozenset[int], int]
"""Sites, and the Active GPUs that may lie there."""


class Settled(NamedTuple):
    """A start with the slots and payers that it has taken."""

    start: Start
    pieces: list[Piece]
    paid: Paid

    @property
    def nodes(self) -> list[int]:
        """The nodes that its slots lie on, ascending."""
        return sorted({chunk.node for piece in self.pieces for chunk in piece.chunks})


class _Need(NamedTuple):
    """What asks for payers in one region beside its Active GPUs: whose money, how much of it lent, spare GPUs."""

    purse: int
    max_borrow: int | None
    spares: int
    region: int


@dataclass
class Learnt:
    """Lessons of tries; they hold while room and money only ever get less.

    ``unpaid``: the least Active GPUs that found no payers; ``unreached``: nor by recall; ``cramped``: types and steps
    whose largest piece no domain has room for.
    """

    unpaid: dict[_Need, int] = field(default_factory=dict)
    unreached: dict[_Need, int] = field(default_factory=dict)
    cramped: set[tuple[int, int]] = field(default_factory=set)

    @property
    def is_any(self) -> bool:
        """Has anything been learnt?"""
        return bool(self.unpaid or self.unreached or self.cramped)

    def copy(self) -> "Learnt":
        """The same, to be added to apart."""
        return Learnt(dict(self.unpaid), dict(self.unreached), set(self.cramped))


class Filler:
    """Tries single starts against what is left; where they are not ``is_paid``, against room alone."""

    def __init__(self, problem: Problem, room: Room, purses: Purses, *, is_paid: bool = True) -> None:
        self.problem = problem
        self.is_paid = is_paid
        self.room = room
        self.purses = purses
        self.vacancies = Vacancies(room)
        self.learnt = Learnt()
        self._mixed: dict[frozenset[int], bool] = {}
        self._largest: dict[tuple[int, int], int] = {}
        """By type and steps, GPUs of the largest piece."""

    def forget(self) -> None:
        """Room or money has become more: what tries have shown holds no longer."""
        if self.learnt.is_any:
            self.learnt = Learnt()

    def might_start(self, kind: RunType, start: Start) -> bool:
        """A quick look: is there a place for its largest piece, and money that might be enough?"""
        return (
            self.purses.trees_allow(start)
            and self._has_room(kind, start)
            and next(self._ways(kind, start), None) is not None
        )

    def try_start(self, kind: RunType, start: Start) -> Settled | None:
        """Place and pay one start; None, with nothing taken, where either fails."""
        if not self.purses.trees_allow(start) or not self._has_room(kind, start):
            return None
        region = self.problem.book.money.region
        gpus = kind.gpus(start.steps)
        crowded: list[frozenset[int]] = []
        unpaid: list[set[int]] = []
        for parts in self._ways(kind, start):
            together = frozenset(site for sites, _ in parts for site in sites)
            if any(together <= other for other in crowded):
                continue  # less of the fleet will not hold it either
            where = {region[site] for site in together}
            alone = len(where) == 1 and self.is_paid and not kind.unfunded
            if where in unpaid or (alone and self._is_unreached(start, min(where), gpus)):
                continue  # wherever it lies in a single region, it asks for the same payers there
            placed = self._settle(start, parts)
            if not placed:
                crowded += [together] if len(parts) == 1 else []
                continue
            needed = demand(self.problem, self.room, placed)
            regions = {there for _, there in needed}
            paid = self._pay(start, needed) if regions not in unpaid else None
            if paid is not None:
                self.purses.count_trees(start)
                return Settled(start, placed, paid)
            self.give_back(placed)
            unpaid += [regions] if len(regions) == 1 else []
        return None

    def start_on(self, start: Start, nodes: Collection[int]) -> Settled | None:
        """Place and pay one start on these nodes alone; None, with nothing taken, where either fails."""
        return self.pay(start, self.place_on(start, nodes) if self.purses.trees_allow(start) else [])

    def place_on(self, start: Start, nodes: Collection[int]) -> list[Piece]:
        """Slots on these nodes for all of its pieces; empty, with nothing taken, where one has none."""
        placed = list[Piece]()
        domains = sorted({int(self.room.fleet.domain[node]) for node in nodes})
        for piece in pieces_of(self.problem, start):
            if not any(self.place(piece, domain, nodes) for domain in domains):
                self.give_back(placed)
                return []
            placed.append(piece)
        return placed

    def place(self, piece: Piece, domain: int, nodes: Collection[int] | None = None) -> bool:
        """Slots for a piece in a domain, on these nodes alone where they are given; False where it has none."""
        chunks = self.room.settle(domain, piece.sites, list(piece.groups), piece.load, nodes)
        if chunks is None:
            return False
        piece.domain, piece.chunks = domain, chunks
        self.vacancies.changed(domain)
        return True

    def pay(self, start: Start, placed: list[Piece]) -> Settled | None:
        """The start on the slots of its pieces; None, with these given back, where nobody pays or it has none."""
        paid = self._pay(start, demand(self.problem, self.room, placed)) if placed else None
        if paid is None:
            self.give_back(placed)
            return None
        self.purses.count_trees(start)
        return Settled(start, placed, paid)

    def take_back(self, starts: Sequence[Settled]) -> None:
        """Undo these starts."""
        for each in starts:
            self.give_back(each.pieces)
        self.purses.take_back((each.start, each.paid) for each in starts)

    def put_back(self, each: Settled) -> None:
        """Start again what was taken back last, on the same slots and by the same payers."""
        for piece in each.pieces:
            self.room.take(piece.chunks, piece.load)
            self.vacancies.changed(piece.domain)
        self.purses.put_back(each.start, each.paid)

    def widen(self, starts: Iterable[Settled]) -> list[Settled]:
        """Let starts grow, those first in order first, each as far as the others leave room and money."""
        found, candidates = [*starts], self.problem.candidates
        for n in sorted(range(len(found)), key=lambda n: candidates[found[n].start.candidate].order):
            found[n] = self._wider(found[n])
        return found

    def _wider(self, one: Settled) -> Settled:
        """The start as wide as it can be beside all others; as it was where nothing is wider."""
        candidate, steps = one.start.candidate, one.start.steps
        kind = self.problem.type_of(candidate)
        if kind.lowered.steps == steps:
            return one
        learnt, self.learnt = self.learnt, Learnt()
        self.take_back([one])
        for more in range(kind.lowered.steps, steps, -1):
            found = self.try_start(kind, Start(candidate, more))
            if found is not None:
                self.learnt = Learnt()  # where it lay there is room now
                return found
        self.put_back(one)
        self.learnt = learnt
        return one

    def _has_room(self, kind: RunType, start: Start) -> bool:
        """A quick look: is there a domain for its largest piece, whoever pays? What has none will have none."""
        case = (kind.index, start.steps)
        if case in self.learnt.cramped:
            return False
        if case not in self._largest:
            self._largest[case] = kind.lowered.largest(start.steps)
        left = self.vacancies.of(kind.sites, kind.lowered.pod, kind.load)
        if int(left.max(initial=0)) >= self._largest[case]:
            return True
        self.learnt.cramped.add(case)
        return False

    def _ways(self, kind: RunType, start: Start) -> Iterator[list[_Part]]:
        """Parts of the fleet to try, to be filled one after the other.

        Wherever one region's money may be enough for all of it: together, then one by one, since nodes do not know who
        pays. Then region by region, richest first, each as far as its money may go. Last where farther claims may be
        recalled.
        """
        gpus = kind.gpus(start.steps)
        if kind.unfunded or not self.is_paid:
            yield [(kind.sites, gpus)]
            return
        ceilings = self.purses.ceilings.by_region(kind)
        rich = [r for r, most in ceilings.items() if most >= gpus and not self._is_unpaid(start, r, gpus)]
        if rich:
            yield [(self._sites(kind, rich), gpus)]
        if len(rich) > 1:
            yield from ([(self._sites(kind, [r]), gpus)] for r in rich)
        if len(ceilings) > 1 and self.purses.could_pay(kind, gpus):
            order = sorted(ceilings, key=lambda r: (-ceilings[r], r))
            yield [(self._sites(kind, [r]), ceilings[r]) for r in order if ceilings[r]]
            if self._mixes(kind.sites):
                yield [(kind.sites, gpus)]
        if self._could_recall(start, kind.sites, gpus):
            yield [(kind.sites, gpus)]
            alone = (self._sites(kind, [r]) for r in ceilings)
            yield from ([(sites, gpus)] for sites in alone if self._could_recall(start, sites, gpus))

    def _sites(self, kind: RunType, regions: list[int]) -> frozenset[int]:
        region = self.problem.book.money.region
        return frozenset(site for site in kind.sites if region[site] in regions)

    def _mixes(self, sites: frozenset[int]) -> bool:
        """Has some domain nodes of several regions of money, so that a single group may need them all?"""
        if sites not in self._mixed:
            fleet = self.room.fleet
            region = np.asarray(self.problem.book.money.region, dtype=np.int64)[fleet.site]
            here = fleet.is_on(sites)
            pairs = np.unique(np.stack([fleet.domain[here], region[here]], axis=1), axis=0)
            self._mixed[sites] = len(np.unique(pairs[:, 0])) < len(pairs)
        return self._mixed[sites]

    def _settle(self, start: Start, parts: list[_Part]) -> list[Piece]:
        """Slots for every piece of a start; an empty list, with nothing taken, where one finds none."""
        placed: list[Piece] = []
        rest = pieces_of(self.problem, start)
        for sites, most in parts:
            left, waiting, rest = most, rest, []
            while waiting:
                shape = waiting[0].shape
                alike = next(list(same) for _, same in groupby(waiting, key=attrgetter("shape")))
                here = self._place(alike[: left // shape.gpus], sites, {piece.domain for piece in placed})
                placed += here
                left -= len(here) * shape.gpus
                rest += [] if here else alike
                waiting = waiting[len(here or alike) :]
            if not rest:
                return placed
        self.give_back(placed)
        return []

    def give_back(self, pieces: Iterable[Piece]) -> None:
        """Undo `place`."""
        for piece in pieces:
            self.room.give_back(piece.chunks, piece.load)
            self.vacancies.changed(piece.domain)

    def _place(self, pieces: list[Piece], sites: frozenset[int], mine: set[int]) -> list[Piece]:
        """Settle as many of some equal pieces as one domain takes, and return them; none where no domain takes any.

        The run's own domains first, then one that takes most of them, then the tightest fit.
        """
        if not pieces:
            return []
        shape, load = pieces[0].shape, pieces[0].load
        left = self.vacancies.of(sites, shape.pod, load)
        options = np.flatnonzero(left >= shape.size)
        if not len(options):
            return []
        room = left[options]
        fits = np.minimum(room // shape.size, len(pieces))
        keys = (options, room, -fits) + ((~np.isin(options, list(mine)),) if mine else ())
        for place in np.lexsort(keys).tolist():
            domain = int(options[place])
            for many in sorted({int(fits[place]), 1}, reverse=True):
                if self._settle_in(domain, sites, pieces[:many]):
                    return pieces[:many]
        return []

    def _settle_in(self, domain: int, sites: frozenset[int], pieces: list[Piece]) -> bool:
        groups = [group for piece in pieces for group in piece.groups]
        chunks = self.room.settle(domain, sites, groups, pieces[0].load)
        if chunks is None:
            return False
        owner = {group: piece for piece in pieces for group, _ in piece.groups}
        for piece in pieces:
            piece.domain, piece.sites = domain, sites
        for chunk in chunks:
            owner[chunk.group].chunks.append(chunk)
        self.vacancies.changed(domain)
        return True

    def _pay(self, start: Start, needed: Demand) -> Paid | None:
        candidate = self.problem.candidates[start.candidate]
        if self.problem.types[candidate.type].unfunded or not self.is_paid:
            return {}
        paid = self.purses.pay(candidate, needed)
        if paid is None:
            self._learn(self.learnt.unpaid, start, needed)
            if candidate.recalls:
                paid = self.purses.pay(candidate, needed, recalls=True)
                if paid is None:
                    self._learn(self.learnt.unreached, start, needed)
        return paid

    def _learn(self, failed: dict[_Need, int], start: Start, needed: Demand) -> None:
        """Learn that ``needed`` did not find payers; of several regions nothing is learnt."""
        regions = {region for _, region in needed}
        if len(regions) == 1:
            key = self._need(start, *regions)
            failed[key] = min(needed[True, key.region], failed.get(key, MANY))

    def _is_unpaid(self, start: Start, region: int, gpus: int) -> bool:
        """Did so many GPUs, or fewer, of a run like this find no payers there before? Money only ever gets less."""
        return gpus >= self.learnt.unpaid.get(self._need(start, region), MANY)

    def _could_recall(self, start: Start, sites: frozenset[int], gpus: int) -> bool:
        return self.purses.could_recall(self.problem.candidates[start.candidate], sites, gpus)

    def _is_unreached(self, start: Start, region: int, gpus: int) -> bool:
        """The same by recall."""
        return gpus >= self.learnt.unreached.get(self._need(start, region), MANY)

    def _need(self, start: Start, region: int) -> _Need:
        candidate = self.problem.candidates[start.candidate]
        lowered = self.problem.types[candidate.type].lowered
        spares = lowered.spares * (lowered.pod or 1) * len(lowered.groups(start.steps))
        return _Need(candidate.purse, candidate.run.max_borrow, spares, region)


def demand(problem: Problem, room: Room, pieces: Iterable[Piece]) -> Demand:
    """GPUs to be paid per (active, region)."""
    region = problem.book.money.region
    total: Demand = {}
    for piece in pieces:
        for chunk in piece.chunks:
            key = (chunk.active, region[int(room.fleet.site[chunk.node])])
            total[key] = total.get(key, 0) + chunk.count
    return total
