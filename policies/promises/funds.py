"""The money that promises keep for themselves (spec §5: a promise holds money as it holds slots).

Of each envelope, in milli-GPUs of its concurrency, what promises need at some time beyond what ends by then:

    held = max over times t of  Σ promised at t − Σ of what runs now and surely ends, or may be recalled, by t

A run that is not promised may use it only if it surely ends before the first of these times. Of each cap on hours or
credits, which do not come back, what is taken then beyond what is taken now:

    held = max over promised times t of  (spent, provided for and promised by t)  −  (spent and provided for now)
"""

from collections import Counter
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
    """Money that promises hold of an envelope: ``milli``-GPUs, from ``start`` on at the earliest."""

    milli: int
    start: int


class Held(NamedTuple):
    """Money that promises hold: of ``envelopes``, beside what others that are promised take of them as they start
    ``now`` (milli-GPUs); by cap on hours and credits what they have ``to_spend``.
    """

    envelopes: Mapping[int, HeldMoney]
    now: Mapping[int, int]
    to_spend: Mapping[int, int]


NOTHING: Final = Held({}, {}, {})


class Funds(NamedTuple):
    """Funds as starts see them: what runs and is ``funded``, what is ``spent``, and from when on an envelope pays for
    promises alone (``closed``; Unix seconds).
    """

    funded: Funded
    spent: Spent
    closed: Mapping[int, int]


def held_money(needs: Iterable[Need], freed: Iterable[Freed], now: int, to_spend: Mapping[int, int]) -> Held:
    """Sum up what is held by envelope, where anything is; see the module. ``to_spend``: by cap."""
    of: dict[int, list[Need]] = {}
    for need in needs:
        of.setdefault(need.envelope, []).append(need)
    ending: dict[int, list[Freed]] = {envelope: [] for envelope in of}
    for each in freed:
        if each.envelope in ending:
            ending[each.envelope].append(each)
    found, starting = dict[int, HeldMoney](), dict[int, int]()
    for envelope, mine in sorted(of.items()):
        starting[envelope] = sum(need.milli for need in mine if need.at <= now)
        most, start = 0, 0
        for at in sorted({need.at for need in mine if need.at > now}):
            asked = sum(need.milli for need in mine if need.at <= at and (need.end is None or at < need.end))
            asked -= sum(each.milli for each in ending[envelope] if each.at <= at)
            if asked > 0:
                most, start = max(most, asked), start or at
        if most:
            found[envelope] = HeldMoney(most, start)
    return Held(found, starting, to_spend)


def beside(held: Held, book: CapBook, funded: Funded, spent: Spent) -> Funds:
    """Funds that are left for starts. What runs keeps its payers, and what is promised starts now first, so never more
    is held than these leave of any cap.

    Where that is all that is left of an envelope, it pays for what surely ends by then, as a held node has room.
    """
    promised, closed = Counter[int](held.to_spend), dict[int, int]()
    starting = Counter[int]()
    for envelope, milli in held.now.items():
        starting.update(dict.fromkeys(_caps(book, envelope), milli))
    for envelope, mine in sorted(held.envelopes.items()):
        caps = _caps(book, envelope)
        left = min((book.caps[i].limit - funded.used[i] - promised[i] - starting[i] for i in caps), default=0)
        if left <= mine.milli:
            closed |= {envelope: mine.start} if left > 0 else {}
            continue
        for i in caps:
            promised[i] += mine.milli
    used = [taken + promised[i] for i, taken in enumerate(funded.used)]
    cap = {i: spent.cap.get(i, 0) + promised[i] for i in {**spent.cap, **promised}}
    return Funds(
        replace(funded, outcome=replace(funded.outcome, used=used)),
        replace(spent, cap=cap, promised=promised),
        closed,
    )


def _caps(book: CapBook, envelope: int) -> list[int]:
    """Caps on its GPUs at a time, whoever they are for."""
    caps = ((i, book.caps[i]) for i in book.of_envelope(envelope, 0))
    return [i for i, cap in caps if not cap.ahead and cap.family is not LENDING]
