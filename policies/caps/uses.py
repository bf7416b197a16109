"""Use caps: what runs of an owner use, whoever pays (spec §1 Budget.useCaps, §3.4).

Σ funded payments for runs of the owner, with ``scope: subtree`` also of its descendants, on nodes that flavor and
selector match, in [start, end)                              ≤ maxConcurrency, maxGPUHours, maxCredits

perRun.maxGPUs:  Σ payments for one run there ≤ maxGPUs, of runs that start (`model.payments`, `model.flows`)
perRun.maxTime:  a run that starts and may last longer is paid for nowhere there

Nobody recalls at them: all funded claims count (spec §3.8). Of payments of an envelope that is gone the run's owner is
known all the same, so they count as well.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from jobtree.api.values.scalars import Duration
from policies.caps.cap import MAXIMA, Family, Gone, Lane, Pool
from policies.caps.scopes import GONE
from policies.inputs.money import Money, Use, bits

USE: Final = Family(rule="use", words="the use cap {}", table="use_caps", part="useCaps", limits=MAXIMA, recalls=False)
EVERYBODY: Final = -1
"""A user at whom every use cap looks."""


class Watch(NamedTuple):
    """The use caps that look at a run, each as the bit of its number. ``on``: all of them, whatever their windows.

    ``shut``: those whose nodes are closed to it, since it may last longer than perRun.maxTime; ``each``: those that
    have a perRun.maxGPUs; ``promised``: those that have nothing left on their nodes but what is promised.
    """

    on: int
    shut: int
    each: int
    promised: int = 0

    @property
    def off(self) -> int:
        """Those that keep the run from their nodes."""
        return self.shut | self.promised


UNWATCHED: Final = Watch(0, 0, 0)


def pools(money: Money) -> list[Pool]:
    """One pool per use cap, in (budget, name) order, whose window is open or not: numbers of caps never move."""
    return [_pool(money, number, use) for number, use in enumerate(money.uses)]


def _pool(money: Money, number: int, use: Use) -> Pool:
    opened = use.open_at(money.at)

    def counts(user: int, site: int) -> bool:
        return bool(user >> number & 1) and (site in use.sites or site == GONE)

    def contains(lane: Lane) -> bool:
        return counts(lane.user, lane.site)

    def above(gone: Gone) -> bool:
        return use.is_of(gone.flavor) and counts(gone.user, gone.site)

    return Pool(
        family=USE,
        subject=use.label,
        envelopes=members(money, use) if opened else (),
        contains=contains,
        concurrency=use.concurrency,
        max_gpu_milliseconds=use.max_gpu_milliseconds,
        max_millicredits=use.max_millicredits,
        since=use.start,
        end=use.end,
        above=above if opened else None,
        user=1 << number,
    )


def members(money: Money, use: Use) -> tuple[int, ...]:
    """The envelopes whose payments it may count: all of its flavor."""
    return tuple(i for i, envelope in enumerate(money.envelopes) if use.is_of(envelope.flavor))


def watch(money: Money, owner: str, flavor: str, limit: int | None) -> Watch:
    """Find the use caps on a run of this flavor that lasts so many seconds at most (None: it has no time limit)."""
    on = money.user_of(owner)
    if not on:
        return UNWATCHED
    binding = [(i, use) for i in bits(on) if (use := money.uses[i]).open_at(money.at) and use.is_of(flavor)]
    too_long = [i for i, use in binding if use.is_too_long(limit)]
    each = [i for i, use in binding if use.per_run_gpus is not None]
    return Watch(on, sum(1 << i for i in too_long), sum(1 << i for i in each))


def counting(money: Money, user: int, flavor: str, site: int) -> list[int]:
    """Numbers of the use caps that look at a user and count a site, whatever their windows."""
    looking = ((i, money.uses[i]) for i in bits(user))
    return [i for i, use in looking if use.is_of(flavor) and (site in use.sites or site == GONE)]


def times_runs(money: Money, flavor: str) -> bool:
    """Does one bound how long a run of this flavor may last?"""
    return any(use.per_run_time is not None and use.is_of(flavor) and use.open_at(money.at) for use in money.uses)


def too_long(money: Money, shut: int, limit: int | None, own: int | None) -> str:
    """Say why use caps keep a run, which lasts ``limit`` seconds at most and says ``own``, from their nodes."""
    bound = min((money.uses[i] for i in bits(shut)), key=lambda use: (use.per_run_time, use.label))
    allowed = f"runs of at most {Duration(bound.per_run_time or 0)} (perRun.maxTime)"
    return f"the use cap {bound.label} admits {allowed}, this one {stated(limit, own)}"


def promised(money: Money, kept: int) -> str:
    """Words on use caps, as bits, that have nothing left but what is promised."""
    return f"what the use cap {min(money.uses[i].label for i in bits(kept))} has left is promised"


def stated(limit: int | None, own: int | None) -> str:
    """Words of a refusal on how long a run lasts, in seconds at most, where it asks for ``own`` itself."""
    if limit is None:
        return "has no time limit: set runtime.timeLimit"
    if own is None:
        return f"has no limit of its own and gets {Duration(limit)} (perRun.defaultTime): set runtime.timeLimit"
    return f"has a limit of {Duration(limit)}"


def longest(money: Money, owner: str, flavor: str) -> int | None:
    """Most seconds that a run of this flavor may last under all use caps that look at its owner; None: any time."""
    looking = (money.uses[i] for i in bits(money.user_of(owner)))
    times = (use.per_run_time for use in looking if use.open_at(money.at) and use.is_of(flavor))
    return min((time for time in times if time is not None), default=None)


def each_of(watches: Iterable[Watch]) -> int:
    """The use caps, as bits, whose perRun.maxGPUs a run of any of these may meet."""
    found = 0
    for one in watches:
        found |= one.each
    return found
