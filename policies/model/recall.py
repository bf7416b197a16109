"""Recall: what a family shares is lent until it is wanted nearer (spec §3.8).

A claim's *level* is its place in the order of spec §3.5 at its own payer: owner 0, children 1, siblings 2, parents 3,
the rest 4, older loans 5. At a cap on the GPUs of an envelope, a subtree or an aggregate,

    Σ starts + Σ funded running claims as far as the farthest of these starts ≤ limit

Counted whatever the starts are: claims that cannot be recalled (young loans, what was admitted since the world last
changed), and every funded claim before the last of these. So ``room(k)``, what starts may take together there of which
the farthest stands at k, falls with k; a loan that starts stands farthest, and needs room beside everything. In the
model, with z_k ∈ {0, 1}: starts as far as k are allowed,

    Σ starts + Σ_k (room(k−1) − room(k))·z_k ≤ room(0)
    Σ starts at k and farther ≤ room(k)·z_k
    z_(k+1) ≤ z_k

At all other caps (lending, use caps, hours, credits) all funded claims count: ``room`` knows *contested* caps alone,
where nearer starts want more than is left beside all that runs. Stage 4 is least overdraw: Σ over envelopes of the
milli-GPUs by which what it pays itself, the starts and what was funded without them, exceeds its concurrency.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

from jobtree.world.tables import values
from jobtree.world.tables.values import Floats
from policies.caps import scopes
from policies.caps.cap import CapBook
from policies.funding.classes import OLD_LOAN, Funded, Place
from policies.funding.ledger import Spent
from policies.model.linear import INF, Model
from policies.model.payers import Payer

LEVELS: Final = OLD_LOAN + 1
FARTHEST: Final = OLD_LOAN
"""The level of a loan that starts: it recalls nobody."""

Rooms = tuple[int, ...]
"""By level k: what starts may take together of which the farthest stands there, in the cap's unit."""


class Term(NamedTuple):
    """A column of payments, what one of it weighs at a cap, and the level of what it pays for."""

    column: int
    weight: float
    level: int


class Ask(NamedTuple):
    """Runs that wait with the same payers. ``gpus``: of all of them at full width, a spare counted as one."""

    payers: tuple[Payer, ...]
    gpus: int


def last_changed(seen_world: pa.Table, given: str, ended: bool, at: int) -> int:
    """Unix second of the last cycle that saw another world: this one, if anything ``ended`` or ``given`` is another.

    Else as the last one said; never after ``at``, which is before what a cycle said whose clock ran ahead.
    """
    told = zip(values.texts(seen_world, "given"), values.ints(seen_world, "changed").tolist(), strict=True)
    return min([at, *(int(changed) for before, changed in told if before == given and not ended)])


@dataclass(frozen=True)
class Recall:
    """``room``: by contested cap; ``spare``: by envelope whose own cap is one, what starts may take of it, in
    milli-GPUs, before it is overdrawn; ``changed``: when the world last did.
    """

    room: Mapping[int, Rooms]
    spare: Mapping[int, int]
    changed: int

    @classmethod
    def of(cls, book: CapBook, running: Funded, spent: Spent, asks: Iterable[Ask], changed: int) -> "Recall":
        """Weigh running work beside what waits."""
        held = _held(book, running, changed)
        wanted = _wanted(book, held.keys(), asks)
        room: dict[int, Rooms] = {}
        for cap, mine in sorted(held.items()):
            limit = book.caps[cap].limit - spent.cap.get(cap, 0) - spent.ahead.get(cap, 0)
            rooms = _contested(limit, mine, wanted.get(cap, [0] * LEVELS))
            if rooms[0] > rooms[-1]:
                room[cap] = rooms
        return cls(room, _spare(book, running, room), changed)

    def level(self, book: CapBook, envelope: int, level: int, idle: frozenset[int] = frozenset()) -> int:
        """The nearest level that no contested cap of an envelope tells from this one; ``idle``: caps of no account."""
        contested = (cap for cap in book.of_envelope(envelope, 0) if cap in self.room and cap not in idle)
        rooms = [self.room[cap] for cap in contested]
        return next(near for near in range(level + 1) if all(mine[near] == mine[level] for mine in rooms))

    def may_lose(self, place: Place) -> bool:
        """May a funded claim that stands there lose its payer to nearer starts?"""
        return place.standing > 0 and place.admitted < self.changed

    def recalls(self, book: CapBook, payer: Payer) -> bool:
        """May a start that it pays for use more than is left beside all that runs?"""
        caps = (self.room[cap] for cap in book.of_envelope(payer.envelope, 0) if cap in self.room)
        return any(rooms[payer.level] > rooms[-1] for rooms in caps)


def rows(model: Model, cap: int, rooms: Rooms, terms: Sequence[Term], scale: int, most: int | None = None) -> None:
    """The rows of a contested cap; with ``most``, what starts could take at all, one whose limit may rise."""
    thresholds = [k for k in range(1, LEVELS) if rooms[k] < rooms[k - 1] and any(term.level >= k for term in terms)]
    allowed: list[tuple[int, float]] = []
    far: list[tuple[int, int, list[tuple[int, float]]]] = []
    for k in thresholds:
        z = model.column(("allowed", cap, k), upper=float(most is not None or rooms[k] > 0), integer=True)
        allowed.append((z, (rooms[k - 1] - rooms[k]) / scale))
        far.append((k, z, [(term.column, term.weight / scale) for term in terms if term.level >= k]))
    every = [(term.column, term.weight / scale) for term in terms]
    model.row(("cap", cap), [*every, *allowed], -INF, max(0, rooms[0]) / scale)
    for k, z, mine in far:
        model.row(("far", cap, k), [*mine, (z, -(most or max(0, rooms[k])) / scale)], -INF, 0.0)
    for (near, _), (farther, _) in pairwise(allowed):
        model.row(("allowed", cap, farther), [(farther, 1.0), (near, -1.0)], -INF, 0.0)


def complete(model: Model, point: Floats) -> None:
    """Set the columns of recall in a point of a model to what its payments make of them."""
    _, column, value, start = model.entries
    for number, (what, *_) in enumerate(model.row_keys):
        if what in ("far", "overdraw"):
            last = start[number + 1] - 1
            taken = float(value[start[number] : last] @ point[column[start[number] : last]])
            point[column[last]] = float(taken > 0) if what == "far" else max(0.0, taken - model.row_upper[number])


def overdraw(model: Model, recall: Recall, paid: Mapping[int, Sequence[tuple[int, float]]]) -> dict[int, float]:
    """Stage 4 as costs to maximise: − GPUs of overdraw. ``paid``: envelope → its payments, each with its GPUs."""
    found: dict[int, float] = {}
    for envelope, spare in sorted(recall.spare.items()):
        if terms := paid.get(envelope):
            column = model.column(("overdraw", envelope))
            model.row(("overdraw", envelope), [*terms, (column, -1.0)], -INF, spare / 1000)
            found[column] = -1.0
    return found


def _loose_caps(book: CapBook) -> set[int]:
    return {i for i, cap in enumerate(book.caps) if cap.recalls}


def _held(book: CapBook, running: Funded, changed: int) -> dict[int, list[int]]:
    """Claims by cap at which something may be recalled: by level, what funded claims hold; at 0 also all that stays."""
    bounds = _loose_caps(book)
    found: dict[int, list[int]] = defaultdict(lambda: [0] * LEVELS)
    for part, funded in zip(running.parts, running.outcome.funded, strict=True):
        if not funded:
            continue
        firm = part.place.standing <= 0 or part.place.admitted >= changed
        for cap, weight in part.touched.items():
            if cap in bounds:
                mine = found[cap]
                if not firm:
                    mine[part.place.standing] += weight
                elif part.place.standing <= 0:
                    mine[0] += weight
                else:  # whatever stands before it stays as well
                    mine[:] = [sum(mine) + weight, *[0] * (LEVELS - 1)]
    return {cap: mine for cap, mine in found.items() if any(mine[1:])}


def _wanted(book: CapBook, caps: Iterable[int], asks: Iterable[Ask]) -> dict[int, list[int]]:
    """Demand by cap and level, milli-GPUs of what waits and stands nowhere nearer there."""
    touched = frozenset(caps)
    of: dict[int, list[int]] = {}
    found: dict[int, list[int]] = {}
    for payers, gpus in asks:
        nearest: dict[int, int] = {}
        for payer in payers:
            mine = of.get(payer.envelope)
            if mine is None:
                mine = of[payer.envelope] = [cap for cap in book.of_envelope(payer.envelope, 0) if cap in touched]
            for cap in mine:
                nearest[cap] = min(payer.level, nearest.get(cap, FARTHEST))
        for cap, level in nearest.items():
            found.setdefault(cap, [0] * LEVELS)[level] += 1000 * gpus
    return found


def _contested(limit: int, held: Sequence[int], wanted: Sequence[int]) -> Rooms:
    """Room of starts by their farthest level; the same wherever all nearer ones together want no more."""
    rooms, left = [], limit
    for mine in held:
        left -= mine
        rooms.append(left)
    for k in range(LEVELS - 1, 0, -1):
        if sum(wanted[:k]) <= rooms[k]:
            rooms[:k] = [rooms[k]] * k
    return tuple(rooms)


def _spare(book: CapBook, running: Funded, room: Mapping[int, Rooms]) -> dict[int, int]:
    """Rest by envelope whose own cap is contested: its concurrency less what it pays."""
    number = {envelope.label: i for i, envelope in enumerate(book.money.envelopes)}
    own = {number[book.caps[cap].subject]: cap for cap in room if book.caps[cap].family in (scopes.OWN, scopes.SUBTREE)}
    spare = {envelope: book.caps[cap].limit for envelope, cap in sorted(own.items())}
    for part, funded in zip(running.parts, running.outcome.funded, strict=True):
        envelope = part.place.envelope
        if funded and envelope in spare:
            spare[envelope] -= part.touched[own[envelope]]
    return spare
