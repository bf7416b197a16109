"""Which running claims may give way at all: those that what waits could ask more of than there is left (spec §3.8).

A part p of a running claim may change only where, at a limit c that it is held to,

    Σ of all that waits nearer than p, at c  >  limit − what is taken of c

or where one before it in the pass may change at a limit of its own, and so leave room there or take it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from jobtree.world import values
from policies.caps import CapBook, Lane
from policies.classes import OLD_LOAN, Funded, Part, Sums, weigh
from policies.ledger import Spent
from policies.payers import Payer


class Limit(NamedTuple):
    """What the pass holds a claim to: a cap's GPUs now, or for one on hours or credits its next ``second``."""

    cap: int
    second: bool


Takes = Mapping[Limit, int]
"""What something takes of each limit: milli-GPUs weighed, or the charge of a second."""


class Ask(NamedTuple):
    """Runs that wait with the same payers. ``gpus``: of all of them at full width, a spare counted as one."""

    payers: tuple[Payer, ...]
    gpus: int


class Right(NamedTuple):
    """That starts may recall at an envelope, by where they stand there."""

    envelope: int
    standing: int


def last_changed(seen_world: pa.Table, given: str, ended: bool, at: int) -> int:
    """When a cycle last saw the world change: this one, if anything ``ended`` or the last one had another ``given``.

    Else as the last one said; never after ``at``, which is before what a cycle said whose clock ran ahead.
    """
    told = zip(values.texts(seen_world, "given"), values.ints(seen_world, "changed").tolist(), strict=True)
    return min([at, *(int(changed) for before, changed in told if before == given and not ended)])


def takes_of(book: CapBook, touched: Sums, second: Sums) -> dict[Limit, int]:
    """What the pass holds to: look-ahead is for admissions only."""
    now = {Limit(cap, False): weight for cap, weight in touched.items() if not book.caps[cap].ahead}
    return now | {Limit(cap, True): weight for cap, weight in second.items()}


@dataclass(frozen=True)
class Yielding:
    """``parts``: those that may change, by their place in the pass; ``takes``: what each running part takes.

    ``room``: part → what each of its limits leaves to it beside charges and the parts before it that never change;
    ``running``: all parts; ``lanes``: what a GPU takes where it is paid; ``changed``: when the world
    last did.
    """

    running: Sequence[Part]
    parts: list[int]
    takes: list[dict[Limit, int]]
    room: dict[int, dict[Limit, int]]
    lanes: "LaneTakes"
    changed: int

    @classmethod
    def of(cls, book: CapBook, running: Funded, spent: Spent, asks: Iterable[Ask], changed: int) -> "Yielding":
        """Of running work beside what waits."""
        takes = [takes_of(book, part.touched, part.second) for part in running.parts]
        lanes = LaneTakes(book)
        rest = {limit: whole(book, spent, limit) for mine in takes for limit in mine}
        left = _left(rest, running, takes)
        nearer = _nearer(_wanted(lanes, asks))
        found: list[int] = []
        room: dict[int, dict[Limit, int]] = {}
        shaken: set[Limit] = set()
        for i, part in enumerate(running.parts):
            reached = part.place.admitted < changed and any(
                nearer.get((limit, part.place.standing), 0) > left[limit] for limit in takes[i]
            )
            if reached or not shaken.isdisjoint(takes[i]) or (part.follows and found and found[-1] == i - 1):
                found.append(i)
                shaken.update(takes[i])
                room[i] = {limit: rest[limit] for limit in takes[i]}
            elif running.outcome.funded[i]:
                for limit, weight in takes[i].items():
                    rest[limit] -= weight
        return cls(running.parts, found, takes, room, lanes, changed)

    def recalls(self, standing: int, part: Part) -> bool:
        """May a part give way to a start that stands there?

        To a nearer one, where the world has changed since it was admitted: those that waited then lost to it, and an
        unchanged world is to be planned to nothing.
        """
        return standing < part.place.standing and part.place.admitted < self.changed

    @cached_property
    def by_limit(self) -> dict[Limit, list[int]]:
        """Parts by what they are held to, in the order of the pass."""
        found: dict[Limit, list[int]] = {}
        for i in self.parts:
            for limit in self.takes[i]:
                found.setdefault(limit, []).append(i)
        return found

    def at(self, limit: Limit) -> list[int]:
        """All running parts that take of a limit."""
        return self._at.get(limit, [])

    @cached_property
    def _at(self) -> dict[Limit, list[int]]:
        found: dict[Limit, list[int]] = {}
        for i, mine in enumerate(self.takes):
            for limit in mine:
                found.setdefault(limit, []).append(i)
        return found

    @cached_property
    def clusters(self) -> dict[Limit, list[int]]:
        """The parts that a change at a limit may change in turn, in the order of the pass."""
        found: dict[Limit, list[int]] = {}
        for i in self.parts:
            joined = {id(mine): mine for limit in self._links(i) if (mine := found.get(limit)) is not None}
            cluster = sorted({i}.union(*joined.values()))
            found.update((limit, cluster) for part in cluster for limit in self.takes[part])
        return found

    def _links(self, i: int) -> list[Limit]:
        """Limits that tie a part to others: its own, and those of the group before it."""
        before = self.takes[i - 1] if self.running[i].follows else {}
        return [*self.takes[i], *before]

    @cached_property
    def by_cap(self) -> dict[int, list[int]]:
        """Parts by the caps that they take something of, in the order of the pass."""
        found: dict[int, list[int]] = {}
        for i in self.parts:
            for cap in self.running[i].touched:
                found.setdefault(cap, []).append(i)
        return found

    def least(self, running: Funded) -> list[int]:
        """Per cap, what running work takes at least, whatever gives way."""
        used = list(running.used)
        for i in self.parts:
            for cap, weight in running.parts[i].touched.items() if running.outcome.funded[i] else ():
                used[cap] -= weight
        return used

    def rights(self, payers: Sequence[Payer]) -> tuple[Right, ...]:
        """What starts with these payers may recall."""
        places = ((payer.envelope, payer.standing) for payer in payers)
        return tuple(right for place in places if (right := self._rights.get(place)) is not None)

    @cached_property
    def _rights(self) -> dict[tuple[int, int | None], Right]:
        """Where some part may give way to a start that stands there; (envelope, None), a loan, is never among them."""
        found: dict[tuple[int, int | None], Right] = {}
        for envelope in range(len(self.lanes.book.money.envelopes)):
            mine = {i for takes in self.lanes.of(envelope) for limit in takes for i in self.by_limit.get(limit, ())}
            for standing in range(OLD_LOAN) if mine else ():
                if any(self.recalls(standing, self.running[i]) for i in mine):
                    found[envelope, standing] = Right(envelope, standing)
        return found


class LaneTakes:
    """What a GPU of the family takes of the limits of each envelope, in each place where it may lie."""

    def __init__(self, book: CapBook) -> None:
        self.book = book
        self._known: dict[int, list[dict[Limit, int]]] = {}
        self._most: dict[int, dict[Limit, int]] = {}

    def of(self, envelope: int) -> list[dict[Limit, int]]:
        """By region of money, equal ones once. A time limit is of no account: look-ahead is no limit of the pass."""
        if envelope not in self._known:
            money = self.book.money
            found: list[dict[Limit, int]] = []
            for region in sorted({money.region[site] for site in money.pays_on[envelope]}):
                takes = takes_of(self.book, *weigh(self.book, Lane(envelope, False, region, None), 1000))
                if takes not in found:
                    found.append(takes)
            self._known[envelope] = found
        return self._known[envelope]

    def most(self, envelope: int) -> dict[Limit, int]:
        """The most of each limit that it takes, wherever it lies."""
        if envelope not in self._most:
            found = self._most[envelope] = dict[Limit, int]()
            for takes in self.of(envelope):
                for limit, weight in takes.items():
                    found[limit] = max(weight, found.get(limit, 0))
        return self._most[envelope]

    def split(self) -> tuple[list[list[tuple[Limit, int]]], list[list[tuple[Limit, int]]]]:
        """The most of each limit by envelope: where no other envelope takes of it, and where one does."""
        most = [self.most(envelope) for envelope in range(len(self.book.money.envelopes))]
        takers = Counter(limit for mine in most for limit in mine)
        own = [[(limit, weight) for limit, weight in mine.items() if takers[limit] == 1] for mine in most]
        shared = [[(limit, weight) for limit, weight in mine.items() if takers[limit] > 1] for mine in most]
        return own, shared


def whole(book: CapBook, spent: Spent, limit: Limit) -> int:
    """What a limit holds for claims, beside charges and what no claim is asked about."""
    taken = spent.cap.get(limit.cap, 0) + (0 if limit.second else spent.ahead.get(limit.cap, 0))
    return book.caps[limit.cap].limit - taken


def _left(rest: Mapping[Limit, int], running: Funded, takes: list[dict[Limit, int]]) -> dict[Limit, int]:
    """What running work leaves of each limit."""
    left = dict(rest)
    for i, funded in enumerate(running.outcome.funded):
        for limit, weight in takes[i].items() if funded else ():
            left[limit] -= weight
    return left


def _wanted(lanes: LaneTakes, asks: Iterable[Ask]) -> dict[tuple[Limit, int], int]:
    """(limit, standing) → what all that waits there could take at most."""
    own, shared = lanes.split()
    gpus_at: dict[tuple[int, int], int] = defaultdict(int)
    found: dict[tuple[Limit, int], int] = defaultdict(int)
    for payers, gpus in asks:
        most: dict[tuple[Limit, int], int] = {}
        for payer in payers:
            if (standing := payer.standing) is not None:
                gpus_at[payer.envelope, standing] += gpus
                for limit, weight in shared[payer.envelope]:
                    if weight > most.get((limit, standing), 0):
                        most[limit, standing] = weight
        for place, weight in most.items():
            found[place] += weight * gpus
    for (envelope, standing), gpus in gpus_at.items():
        for limit, weight in own[envelope]:
            found[limit, standing] += weight * gpus
    return found


def _nearer(wanted: Mapping[tuple[Limit, int], int]) -> dict[tuple[Limit, int], int]:
    """(limit, standing) → what all that waits nearer could take at most."""
    found: dict[tuple[Limit, int], int] = defaultdict(int)
    for (limit, standing), weight in wanted.items():
        for farther in range(standing + 1, OLD_LOAN + 1):
            found[limit, farther] += weight
    return found
