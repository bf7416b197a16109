"""The money that promises keep for themselves (spec §5: a promise holds money as it holds slots).

Of each envelope, in milli-GPUs of its concurrency, what promises need at some time beyond what ends by then:

    held = max over times t of  Σ promised at t − Σ of what runs now and surely ends, or may be recalled, by t

A run that is not promised may use it only if it surely ends before the first of these times. Of each cap on hours or
credits, which do not come back, what is taken then beyond what is taken now:

    held = max over promised times t of  (spent, provided for and promised by t)  −  (spent and provided for now)
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from policies.caps.cap import CapBook
from policies.caps.lending import LENDING
from policies.funding.classes import Funded
from policies.funding.ledger import Spent


class Need(NamedTuple):
    """Money that a promise takes of an envelope from ``at`` to ``end`` (Unix seconds; None: for good), in milli-GPUs.

    ``loan``: is it lent?
    """

    envelope: int
    milli: int
    at: int
    end: int | None
    loan: bool


class Freed(NamedTuple):
    """Money that an envelope pays now and gives up for promises from ``at`` (Unix seconds) on, in milli-GPUs."""

    envelope: int
    milli: int
    at: int


class HeldMoney(NamedTuple):
    """Money that promises hold of an envelope: ``milli``-GPUs, from ``start`` on at the earliest, beside ``now``, what
    others that are promised take as they start now.
    """

    milli: int
    start: int
    now: int


class Held(NamedTuple):
    """Money that promises hold: ``envelopes``, and by cap what is ``ahead`` of caps on hours and credits."""

    envelopes: Mapping[int, HeldMoney]
    ahead: Mapping[int, int]


NOTHING: Final = Held({}, {})


class Funds(NamedTuple):
    """Funds as starts see them: what runs and is ``funded``, what is ``spent``, and from when on an envelope pays for
    promises alone (``closed``; Unix seconds).
    """

    funded: Funded
    spent: Spent
    closed: Mapping[int, int]


def held_money(needs: Iterable[Need], freed: Iterable[Freed], now: int) -> dict[int, HeldMoney]:
    """Sum up what is held by envelope, where anything is; see the module."""
    of: dict[int, list[Need]] = {}
    for need in needs:
        of.setdefault(need.envelope, []).append(need)
    ending: dict[int, list[Freed]] = {envelope: [] for envelope in of}
    for each in freed:
        if each.envelope in ending:
            ending[each.envelope].append(each)
    found = {}
    for envelope, mine in sorted(of.items()):
        starting = sum(need.milli for need in mine if need.at <= now)
        most, start = 0, 0
        for at in sorted({need.at for need in mine if need.at > now}):
            asked = sum(need.milli for need in mine if need.at <= at and (need.end is None or at < need.end))
            asked -= sum(each.milli for each in ending[envelope] if each.at <= at)
            if asked > 0:
                most, start = max(most, asked), start or at
        if most:
            found[envelope] = HeldMoney(most, start, starting)
    return found


def beside(held: Held, book: CapBook, funded: Funded, spent: Spent) -> Funds:
    """Funds that are left for starts. What runs keeps its payers, so never more is held than is left of any cap.

    Where that is all that is left of an envelope, it pays for what surely ends by then, as a held node has room.
    """
    used, cap, closed = list(funded.used), dict(spent.cap), dict[int, int]()
    for i, more in held.ahead.items():
        used[i] += more
        cap[i] = cap.get(i, 0) + more
    for envelope, mine in sorted(held.envelopes.items()):
        caps = [i for i in book.of_envelope(envelope, 0) if _binds(book, i)]
        left = min((book.caps[i].limit - used[i] for i in caps), default=0) - mine.now
        if left <= mine.milli:
            closed |= {envelope: mine.start} if left > 0 else {}
            continue
        for i in caps:
            used[i] += mine.milli
            cap[i] = cap.get(i, 0) + mine.milli
    return Funds(replace(funded, outcome=replace(funded.outcome, used=used)), replace(spent, cap=cap), closed)


def _binds(book: CapBook, cap: int) -> bool:
    """Is it a cap on GPUs at a time, whoever they are for?"""
    return book.caps[cap].measure.name == "concurrency" and book.caps[cap].family is not LENDING
