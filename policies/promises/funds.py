"""The money that promises keep for themselves (spec §5: a promise holds money as it holds slots).

Of each envelope and of each use cap, in milli-GPUs of its concurrency, what promises need at some time beyond what ends
by then:

    held = max over times t of  Σ promised at t − Σ of what runs now and surely ends, or may be recalled, by t

A run that is not promised may use it only if it surely ends before the first of these times. Of each cap on hours or
credits, which do not come back, what is taken then beyond what is taken now:

    held = max over promised times t of  (spent, provided for and promised by t)  −  (spent and provided for now)
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from policies.caps.cap import CapBook, Lane
from policies.caps.lending import LENDING
from policies.caps.uses import USE
from policies.funding.classes import Funded
from policies.funding.ledger import Spent
from policies.inputs.money import bits


class Need(NamedTuple):
    """Milli-GPUs that a promise takes of money from ``at`` to ``end`` (Unix seconds; None: for good)."""

    lane: Lane
    milli: int
    at: int
    end: int | None


class Freed(NamedTuple):
    """Milli-GPUs that are paid for now and given up for promises from ``at`` (Unix seconds) on."""

    lane: Lane
    milli: int
    at: int


class HeldMoney(NamedTuple):
    """Money that promises hold of a holder: ``milli``-GPUs, from ``start`` on at the earliest."""

    milli: int
    start: int


class Kept(NamedTuple):
    """Money that holders keep for promises of ``later``, beside what promised runs take as they start ``now``
    (milli-GPUs).
    """

    later: Mapping[int, HeldMoney]
    now: Mapping[int, int]


class Held(NamedTuple):
    """Money that promises hold: by envelope, by use cap (its place in the book), and by cap on hours and credits what
    they have ``to_spend``.
    """

    envelopes: Kept
    uses: Kept
    to_spend: Mapping[int, int]


NOTHING: Final = Held(Kept({}, {}), Kept({}, {}), {})


class Closed(NamedTuple):
    """From when on (Unix seconds) promises alone have what is left: of envelopes, and of use caps by their number."""

    envelopes: Mapping[int, int]
    uses: Mapping[int, int]

    @property
    def asked(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The same as a key of memory."""
        return tuple(self.envelopes.items()), tuple(self.uses.items())


OPEN: Final = Closed({}, {})


class Funds(NamedTuple):
    """Funds as starts see them: what runs and is ``funded``, what is ``spent``, and who is ``closed`` to them."""

    funded: Funded
    spent: Spent
    closed: Closed


def held(book: CapBook, needs: Collection[Need], freed: Iterable[Freed], now: int, to_spend: Mapping[int, int]) -> Held:
    """Sum up what is held, where anything is; see the module. ``to_spend``: by cap."""
    ending = list(freed)
    envelopes = _kept(needs, ending, now, lambda lane: (lane.envelope,))
    return Held(envelopes, _kept(needs, ending, now, lambda lane: _use_caps(book, lane)), to_spend)


def _kept(needs: Iterable[Need], freed: Iterable[Freed], now: int, holders: Callable[[Lane], Iterable[int]]) -> Kept:
    """Sum up what each of the ``holders`` of money keeps."""
    of: dict[int, list[Need]] = {}
    for need in needs:
        for holder in holders(need.lane):
            of.setdefault(holder, []).append(need)
    ending: dict[int, list[Freed]] = {holder: [] for holder in of}
    for each in freed if of else ():
        for holder in holders(each.lane):
            if holder in ending:
                ending[holder].append(each)
    found, starting = dict[int, HeldMoney](), dict[int, int]()
    for holder, mine in sorted(of.items()):
        starting[holder] = sum(need.milli for need in mine if need.at <= now)
        most, start = 0, 0
        for at in sorted({need.at for need in mine if need.at > now}):
            asked = sum(need.milli for need in mine if need.at <= at and (need.end is None or at < need.end))
            asked -= sum(each.milli for each in ending[holder] if each.at <= at)
            if asked > 0:
                most, start = max(most, asked), start or at
        if most:
            found[holder] = HeldMoney(most, start)
    return Kept(found, starting)


def beside(held: Held, book: CapBook, funded: Funded, spent: Spent) -> Funds:
    """Funds that are left for starts. What runs keeps its payers, and what is promised starts now first, so never more
    is held than these leave of any cap.

    Where that is all that is left of a holder, it pays for what surely ends by then, as a held node has room.
    """
    promised = Counter[int](held.to_spend)

    def close(kept: Kept, caps_of: Callable[[int], list[int]]) -> dict[int, int]:
        closed, starting = dict[int, int](), Counter[int]()
        for holder, milli in kept.now.items():
            starting.update(dict.fromkeys(caps_of(holder), milli))
        for holder, mine in sorted(kept.later.items()):
            caps = caps_of(holder)
            left = min((book.caps[i].limit - funded.used[i] - promised[i] - starting[i] for i in caps), default=0)
            if left <= mine.milli:
                closed |= {holder: mine.start} if left > 0 else {}
                continue
            promised.update(dict.fromkeys(caps, mine.milli))
        return closed

    closed = close(held.envelopes, lambda envelope: _caps(book, envelope))
    uses = close(held.uses, lambda cap: [cap])
    used = [taken + promised[i] for i, taken in enumerate(funded.used)]
    cap = {i: spent.cap.get(i, 0) + promised[i] for i in {**spent.cap, **promised}}
    return Funds(
        replace(funded, outcome=replace(funded.outcome, used=used)),
        replace(spent, cap=cap, promised=promised),
        Closed(closed, {number: at for cap, at in uses.items() for number in bits(book.caps[cap].pool.user)}),
    )


def _caps(book: CapBook, envelope: int) -> list[int]:
    """Caps on its GPUs at a time, whoever they are for."""
    caps = ((i, book.caps[i]) for i in book.of_envelope(envelope, 0))
    return [i for i, cap in caps if not cap.ahead and cap.family is not LENDING]


def _use_caps(book: CapBook, lane: Lane) -> list[int]:
    """The use caps that bound GPUs at a time paid for so."""
    caps = ((i, book.caps[i]) for i, _ in book.touches(lane))
    return [i for i, cap in caps if not cap.ahead and cap.family is USE]
