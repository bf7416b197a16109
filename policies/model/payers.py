"""Payers of a run, nearest first, where and when (spec §3.1–§3.3).

rank(payer):  own 0, parents 1, siblings 2, children 3, grandparents 4, cousins 5, sponsors 6
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import Duration, Time
from jobtree.world.naming.kinship import COUSIN, OWN, RANK_NAMES, SPONSOR, standing_of
from policies.caps import uses
from policies.caps.uses import Watch
from policies.funding.classes import OLD_LOAN
from policies.inputs.claims import RunKey
from policies.inputs.money import Envelope, Money, bits
from policies.inputs.runs import RunRow
from policies.promises.funds import OPEN, Closed

_LEVELS: Final = (*map(standing_of, range(SPONSOR)), OLD_LOAN)
"""By rank."""


class Source(NamedTuple):
    """A payer as caps see it: of how near it is only what it may recall matters (`policies.model.recall`)."""

    envelope: int
    loan: bool
    limit: int | None
    run_gpus: int | None
    level: int
    watch: Watch


class Payer(NamedTuple):
    """An envelope that may pay for a run. ``limit``: seconds a claim may last there; ``run_gpus``: most for one run;
    ``watch``: use caps that look at the run.
    """

    envelope: int
    rank: int
    order: int
    limit: int | None
    run_gpus: int | None
    watch: Watch

    @property
    def loan(self) -> bool:
        """Is it a sponsor?"""
        return self.rank == SPONSOR

    @property
    def level(self) -> int:
        """Level of a start that it pays for among claims (spec §3.8): a loan farthest, for it recalls nothing."""
        return _LEVELS[self.rank]

    def within(self, limit: int | None) -> Payer:
        """Put the payer under another time limit."""
        return self if limit == self.limit else self._replace(limit=limit)

    @property
    def source(self) -> Source:
        """The payer without its nearness."""
        return _source(self)


@lru_cache(maxsize=65_536)  # it is asked of every payer of every list, and lists share their payers
def _source(payer: Payer) -> Source:
    return Source(payer.envelope, payer.loan, payer.limit, payer.run_gpus, payer.level, payer.watch)


@dataclass(frozen=True, slots=True)
class Refused:
    """An envelope of the right flavor that does not pay, and why. ``later``: its window is still to open.

    ``within``: of one that pays for shorter runs alone, how many seconds these may last.
    """

    envelope: int
    rank: int
    why: str
    later: bool
    run_gpus: int | None
    within: int | None = None

    def words(self, run: RunRow) -> str:
        """The reason, and the limit on a single run's GPUs where that binds too."""
        if self.run_gpus is None or self.run_gpus >= run.width_min:
            return self.why
        return f"{self.why}, and it pays for at most {counted(self.run_gpus, 'GPU')} of one run (perRun.maxGPUs)"


class _Answers(NamedTuple):
    """Answers of some envelopes: those that pay, each with its place in the order of payers, and those that do not."""

    found: list[tuple[tuple[int, int, str], Payer]]
    refused: list[Refused]


class Payers:
    """Payers of runs. What relatives answer to a claimant hangs on how near it is alone, and is asked once."""

    def __init__(self, money: Money, closed: Closed = OPEN, promised: frozenset[RunKey] = frozenset()) -> None:
        """``closed``: who from then on pays for what is ``promised`` alone."""
        self._money = money
        self._closed = closed
        self._promised = promised
        self._owners: dict[str, dict[str, list[int]]] = {}
        """Flavor → owner → envelopes."""
        self._below: dict[str, dict[str, list[str]]] = {}
        """Flavor → ancestor → owners of envelopes who descend from it, itself among them."""
        self._relatives: dict[tuple[str, int | None, str, int, int, bool], _Answers] = {}
        """By flavor, time limit, owner, its rank, the use caps that look at the claimant, and is the run promised?"""

    def of(self, run: RunRow, limit: int | None) -> tuple[list[Payer], list[Refused]]:
        """Every envelope of the run's flavor that may pay for it, nearest first, and those near it that may not.

        ``limit``: seconds that it may last, as far as envelopes look at that.
        """
        found: list[tuple[tuple[int, int, str], Payer]] = []
        refused: list[Refused] = []
        claimant, sponsors, rank_of = run.owner, frozenset(run.sponsors), self._money.family.rank
        user = self._money.user_of(claimant)
        there = self._of_flavor(run.flavor)
        for owner in sorted(self._near(run.flavor, claimant) | (sponsors & there.keys())):
            envelopes, family = there[owner], rank_of(claimant, owner)
            if owner in sponsors:
                answers = self._ask(envelopes, run, family, limit)
            elif family is not None:
                case = run.flavor, limit, owner, family, user, run.key in self._promised
                if case not in self._relatives:
                    self._relatives[case] = self._ask(envelopes, run, family, limit)
                answers = self._relatives[case]
            else:
                continue
            found += answers.found
            refused += answers.refused
        found.sort(key=itemgetter(0))
        refused.sort(key=attrgetter("envelope"))
        return [payer for _, payer in found], refused

    def _near(self, flavor: str, claimant: str) -> set[str]:
        """Owners of envelopes who are relatives: thousands of strangers are not asked one by one."""
        lineage = self._money.family.lineage
        if flavor not in self._below:
            below = self._below[flavor] = dict[str, list[str]]()
            for owner in self._of_flavor(flavor):
                for ancestor in lineage(owner):
                    below.setdefault(ancestor, []).append(owner)
        return set[str]().union(*(self._below[flavor].get(ancestor, ()) for ancestor in lineage(claimant)))

    def _of_flavor(self, flavor: str) -> dict[str, list[int]]:
        if flavor not in self._owners:
            owners = self._owners[flavor] = dict[str, list[int]]()
            for index in self._money.by_flavor.get(flavor, ()):
                owners.setdefault(self._money.envelopes[index].owner, []).append(index)
        return self._owners[flavor]

    def _ask(self, envelopes: list[int], run: RunRow, family: int | None, limit: int | None) -> _Answers:
        """Envelopes of one owner, a sponsor of the run or a relative as near as ``family``."""
        money, answers = self._money, _Answers([], [])
        for index in envelopes:
            envelope = money.envelopes[index]
            sponsor = envelope.owner in run.sponsors
            lends = sponsor and envelope.lends and (family is None or not _shares(envelope, family))
            rank = SPONSOR if family is None or lends else family
            lasts = envelope.lasts(limit)
            watch = uses.watch(money, run.owner, run.flavor, lasts)
            why = _refusal(envelope, rank, run) or _time_refusal(money, envelope, lasts, limit)
            shut = not why and bool(money.pays_on[index]) and not money.paid_on(index, watch.shut)
            if shut:
                why = f"{envelope.label} may not pay: {uses.too_long(money, watch.shut, lasts, limit)}"
            watch, promised = self._promised_away(index, watch, run, lasts)
            held = not why and bool(promised)
            if held:
                why = f"{promised}; this one {uses.stated(lasts, limit)}"
            if why:
                opens = envelope.start is not None and money.at < envelope.start and why == _shut(envelope, money.told)
                bound = [
                    t for t in (envelope.per_run_time, uses.longest(money, run.owner, run.flavor)) if t is not None
                ]
                long = shut or why == _too_long(envelope, lasts, limit)
                within = min(bound) if long else None
                later = held or opens or (shut and all(money.uses[i].end is not None for i in bits(watch.shut)))
                answers.refused.append(Refused(index, rank, why, later, envelope.per_run_gpus, within))
                continue
            order = run.sponsors.index(envelope.owner) if rank == SPONSOR else 0
            payer = Payer(index, rank, order, lasts, envelope.per_run_gpus, watch)
            answers.found.append(((rank, order, envelope.label), payer))
        return answers

    def _promised_away(self, index: int, watch: Watch, run: RunRow, limit: int | None) -> tuple[Watch, str]:
        """Use caps that look at a run, with those that promises leave it nothing of; why an envelope pays nothing.

        They leave nothing to what might still be paid for when a promise needs the money.
        """
        if run.key in self._promised or not any(self._closed):
            return watch, ""
        money, last = self._money, None if limit is None else self._money.at + limit

        def is_held(start: int) -> bool:
            return last is None or last > start

        looking = [i for i in self._closed.uses if watch.on >> i & 1 and money.uses[i].is_of(run.flavor)]
        kept = {i: self._closed.uses[i] for i in looking if is_held(self._closed.uses[i])}
        watch = watch._replace(promised=sum(1 << i for i in kept))
        start = self._closed.envelopes.get(index)
        if start is not None and is_held(start):
            return watch, f"what {money.envelopes[index].label} has left is promised from {Time(start)} on"
        if watch.promised and money.pays_on[index] and not money.paid_on(index, watch.off):
            first = min(kept, key=lambda i: (kept[i], money.uses[i].label))
            return watch, f"{uses.promised(money, 1 << first)} from {Time(kept[first])} on"
        return watch, ""


def payers(money: Money, run: RunRow) -> tuple[list[Payer], list[Refused]]:
    """List who may pay for a single run, and who may not."""
    return Payers(money).of(run, run.limit)


def _shares(envelope: Envelope, rank: int) -> bool:
    """Does it pay for its own owner, or for a relative as near as that?"""
    return rank == OWN or (rank <= COUSIN and envelope.shares)


def _refusal(envelope: Envelope, rank: int, run: RunRow) -> str:
    """Refusal of a relative that does not share, or of a sponsor."""
    if _shares(envelope, rank):
        return ""
    if rank <= COUSIN:
        return f"{envelope.label} of {envelope.owner} ({RANK_NAMES[rank]}) does not share: its sharing is none"
    if not run.allow_borrow:
        return f"{envelope.label} is a sponsor's, and the run does not set funding.allowBorrow"
    if not envelope.lends:
        return f"{envelope.label} does not lend"
    if not envelope.lends_to(run.owner):
        return f"{envelope.label} lends to {named(envelope.lending_to)}, which does not match {run.owner}"
    return ""


def _time_refusal(money: Money, envelope: Envelope, limit: int | None, own: int | None) -> str:
    """Refusal of an envelope that has no time left for a run that lasts so many seconds; ``own``: as it says."""
    if not envelope.pays_at(money.at, money.told):
        return _shut(envelope, money.told)
    if envelope.max_gpu_milliseconds == 0 or envelope.max_millicredits == 0:
        return f"{envelope.label} has a cap of 0 GPU-hours or credits"
    if long := _too_long(envelope, limit, own):
        return long
    if money.policy.funding.past_window == "refuse" and envelope.end is not None:
        inside = limit is not None and money.at + limit <= envelope.end
        if not inside:
            only = "runs whose limit ends inside its window"
            return f"{envelope.label} pays only for {only}; this one {uses.stated(limit, own)}"
    return ""


def _too_long(envelope: Envelope, limit: int | None, own: int | None) -> str:
    """Refusal of an envelope that pays for shorter runs alone."""
    if not envelope.is_too_long(limit):
        return ""
    allowed = f"runs of at most {Duration(envelope.per_run_time or 0)} (perRun.maxTime)"
    return f"{envelope.label} pays for {allowed}, this one {uses.stated(limit, own)}"


def _shut(envelope: Envelope, at: int) -> str:
    """Refusal of an envelope whose window is shut at that time."""
    if envelope.start is not None and at < envelope.start:
        return f"the window of {envelope.label} opens at {Time(envelope.start)}"
    return f"the window of {envelope.label} closed at {Time(envelope.end or at)}"
