"""What a fleet is to be like. Equal recipes give equal bytes."""

from typing import Final, Literal

import msgspec

HOUR: Final = 3600
DAY: Final = 24 * HOUR


class Grain(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs per group of runs of 16 and more, and per pod where one has a size; each is taken where it divides."""

    groups: tuple[int, ...] = (8, 16, 32)
    pods: tuple[int, ...] = (8, 4)
    odd: bool = False
    """Runs are rounded to multiples of their group instead, and small ones are of every size."""


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs have waited (exponential, seconds), and what Policy ``age`` makes of it."""

    mean: int = 5400
    oldest: int = 48 * HOUR
    unit: int = DAY
    cap: int = 3 * DAY


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet of ``gpus`` GPUs, a part ``running`` of them in use, with ``pending`` runs that wait.

    ``budgets``: ``family``, three roots that share, bound and lend over four levels; ``private``, families of one to
    three owners that share nothing with others, whose gangs ask for a third to two thirds of an envelope; ``cohorts``,
    the demand of Kueue's scheduler benchmark all at once: 5 families of 6 owners, quota for 600 GPUs.
    """

    gpus: int
    pending: int
    owners: int
    running: float = 0.9
    budgets: Literal["family", "private", "cohorts"] = "family"
    grain: Grain = Grain()
    ages: Ages = Ages()
    deadline: int | None = None
    """Policy ``solver.deadline`` in seconds, where it is not the default."""
    held: int | None = None
    """Policy ``reservations.maxHeld``, likewise."""
    seed: int = 1


CHAIN: Final = Grain()
ODD: Final = Grain(groups=(6, 10, 12, 20, 24), pods=(6, 5, 3), odd=True)
"""Sizes off the divisibility chain: no size divides the next, and nodes of 8 are never filled evenly."""
EQUAL: Final = Ages(mean=DAY, oldest=4 * DAY, cap=0)
DAYS: Final = Ages(mean=DAY, oldest=4 * DAY)
HOURS: Final = Ages(mean=DAY, oldest=4 * DAY, unit=HOUR)
