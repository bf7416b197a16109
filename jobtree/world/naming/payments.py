"""Payers that stop paying for GPUs of a run, and pay for them again, as ledgers tell it; and the words of that."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from jobtree.api.values.counted import gpus_of
from jobtree.api.values.scalars import Time


class Flip(NamedTuple):
    """From the second ``since`` on a lease is ``paid`` for, or not."""

    since: int
    paid: bool


def flips(ledger: Iterable[Flip]) -> Iterator[Flip]:
    """Where a ledger turns; ``ledger``: its segments."""
    yield from (now for before, now in pairwise(ledger) if before.paid != now.paid)


class Part(NamedTuple):
    """GPUs of a lease, and the name of its payer."""

    payer: str
    gpus: int
    active: bool


def stopped(payer: str, since: int, parts: Iterable[Part]) -> str:
    """``rai/h100 stopped paying for 8 GPUs at 2026-01-01T00:00:00Z``."""
    return f"{payer} stopped paying for {_gpus(parts)} at {Time(since)}"


def messages(turns: Mapping[Flip, Iterable[Part]], unpaid: str) -> Iterator[tuple[Flip, str]]:
    """Say what turns of a run; ``unpaid``: words on its GPUs that nobody pays for now, for the last turn to that."""
    last = max((flip for flip in turns if not flip.paid), default=None)
    for flip, parts in turns.items():
        yield flip, unpaid if unpaid and flip == last else told(flip, parts)


def told(flip: Flip, parts: Iterable[Part]) -> str:
    """A sentence on all that turns at once of a run."""
    of: dict[str, list[Part]] = {}
    for part in parts:
        of.setdefault(part.payer, []).append(part)
    said = [
        f"{payer} pays for {_gpus(mine)} again, from {Time(flip.since)} on"
        if flip.paid
        else stopped(payer, flip.since, mine)
        for payer, mine in sorted(of.items())
    ]
    return f"{'; '.join(said)}."


def _gpus(parts: Iterable[Part]) -> str:
    gpus = {True: 0, False: 0}
    for part in parts:
        gpus[part.active] += part.gpus
    return gpus_of(gpus[True], gpus[False])
