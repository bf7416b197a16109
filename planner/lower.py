"""Lowering: waiting runs become candidates, and candidates that only age tells apart become one type."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from policies import lending
from policies.caps import CapBook, Lane
from policies.claims import RunKey
from policies.classes import Funded
from policies.fleet import Access, Fleet
from policies.ledger import Spent
from policies.leeway import Leeway
from policies.payers import Payer, Refused, Source, payers
from policies.payments import limits_runs
from policies.problem import Candidate, Problem, RunType
from policies.runs import RunRow
from policies.shapes import PodLoad
from policies.trees import Ties

EXACT: Final = 100
"""Most runs that wait where few do."""


def few(waiting: int) -> bool:
    """Do so few runs wait that each keeps the order of its payers, and is weighed with all others to the end?"""
    return waiting <= EXACT


@dataclass(frozen=True)
class _Purse:
    """Payers of a run, nearest first; ``sources``: the same as caps see them.

    ``lends``: is one of them a sponsor; ``limits_runs``: does one bound what it pays for a single run; ``sites``: where
    any of them pays; ``number``: one for each purse.
    """

    payers: tuple[Payer, ...]
    refused: list[Refused]
    sources: tuple[Source, ...]
    lends: bool
    limits_runs: bool
    sites: frozenset[int]
    number: int


@dataclass
class _Lowering:
    """Answers shared by runs that ask the same. ``exact``: runs whose payers stand in another order differ in type."""

    fleet: Fleet
    book: CapBook
    leeway: Leeway
    exact: bool
    purses: dict[tuple[object, ...], _Purse] = field(default_factory=dict)
    pools: dict[object, int] = field(default_factory=dict)
    strict: dict[str, bool] = field(default_factory=dict)
    found: dict[tuple[object, ...], tuple[list[Payer], list[Refused], list[int]]] = field(default_factory=dict)
    live: dict[tuple[int, bool, int], tuple[Source, ...]] = field(default_factory=dict)
    single: dict[tuple[Source, bool, int], Source | None] = field(default_factory=dict)
    types: dict[tuple[object, ...], RunType] = field(default_factory=dict)

    def purse(self, run: RunRow) -> _Purse:
        """Who may pay for the run."""
        who = (run.owner, run.flavor, run.sponsors, run.allow_borrow)
        asked = (*who, self._weighed_limit(run))
        if asked not in self.purses:
            if self.strict[run.flavor] or who not in self.found:  # else a limit changes nothing but the payers' limits
                self.found[who] = self._payers(run)
            found, refused, timed = self.found[who]
            for place in timed:
                limit = found[place].limit if self.strict[run.flavor] else run.limit
                found[place] = found[place].within(self._ahead(limit))
            near = tuple(found)
            sources = tuple(sorted({payer.source for payer in near}, key=lambda s: s.envelope))
            lends = any(source.loan for source in sources)
            limited = any(source.run_gpus is not None for source in sources)
            sites = frozenset[int]().union(*(self.book.money.pays_on[source.envelope] for source in sources))
            self.purses[asked] = _Purse(near, refused, sources, lends, limited, sites, len(self.purses))
        return self.purses[asked]

    def _weighed_limit(self, run: RunRow) -> int | None:
        """The run's limit as far as any envelope of its flavor can tell limits apart."""
        if run.flavor not in self.strict:
            money = self.book.money
            self.strict[run.flavor] = money.policy.funding.past_window == "refuse" or any(
                money.envelopes[e].per_run_time is not None or money.envelopes[e].per_run_default_time is not None
                for e in money.by_flavor.get(run.flavor, ())
            )
        return run.limit if self.strict[run.flavor] else self._ahead(run.limit)

    def _ahead(self, limit: int | None) -> int:
        """No cap on time looks further ahead than the accounting period."""
        period = int(self.book.money.policy.accounting_period)
        return period if limit is None else min(period, limit)

    def _payers(self, run: RunRow) -> tuple[list[Payer], list[Refused], list[int]]:
        """Who may pay, who may not, and the places of payers whose limit a cap on time weighs: only they have one."""
        found, refused = payers(self.book.money, run)
        timed = [i for i, payer in enumerate(found) if self.book.time_caps(payer.envelope)]
        weighed = set(timed)
        return [payer if i in weighed else payer.within(None) for i, payer in enumerate(found)], refused, timed

    def sources(self, run: RunRow, purse: _Purse) -> tuple[tuple[Source, ...], int | None]:
        """The payers as the model tells them apart, and the run's borrow limit where it can bind.

        On large problems those that cannot pay are left out, and so is what no cap that could bind looks at.
        """
        borrows = run.max_borrow if purse.lends else None
        if self.exact:
            return purse.sources, borrows
        if borrows is not None and borrows >= run.total:
            borrows = None
        most = run.total + run.spare_gpus if purse.limits_runs else 0
        asked = (purse.number, borrows is None, most)
        if asked not in self.live:
            live = (self._live(source, borrows is not None, most) for source in purse.sources)
            self.live[asked] = tuple(source for source in live if source is not None)
        found = self.live[asked]
        return found, borrows if any(source.loan for source in found) else None

    def _live(self, source: Source, borrows: bool, most: int) -> Source | None:
        """A payer without what does not matter; None where it cannot pay.

        ``borrows``: is there a limit on loans; ``most``: GPUs that one run could take.
        """
        key = (source, borrows, most)
        if key not in self.single:
            self.single[key] = self._single(source, borrows, most)
        return self.single[key]

    def _single(self, source: Source, borrows: bool, most: int) -> Source | None:
        caps = [self.book.caps[cap] for cap in self.book.of_envelope(source.envelope) if cap not in self.leeway.idle]
        limit = source.limit if any(cap.ahead for cap in caps) else None
        lent = source.loan and (borrows or any(cap.rule == lending.RULE for cap in caps))
        own = source.run_gpus if source.run_gpus is not None and source.run_gpus < most else None
        lanes = (Lane(source.envelope, source.loan, region, limit) for region in self.leeway.free)
        pays = any(
            self.leeway.touches(lane, self.leeway.least) is not None
            for lane in lanes
            if lane.site in self.book.money.pays_on[source.envelope]
        )
        return Source(source.envelope, lent, limit, own) if pays else None

    def access(self, run: RunRow) -> Access:
        """What the run asks of a node, were it to start now."""
        return run.access(self.book.money.policy.maintenance, self.book.money.at)

    def type(self, run: RunRow, purse: _Purse, recalls: int, *, unfunded: bool, tied: bool) -> RunType:
        """The run's type; runs that are tied to others are types of their own.

        Where the model is exact, so are runs with limits of their own, which a type would only hold on average, and
        runs that grow in one domain, whose widths a type would not know by domain.
        """
        load = PodLoad(run.pod_cpu_milli, run.pod_memory)
        sources, borrows = ((), None) if unfunded else self.sources(run, purse)
        pool = -1
        sites = self.fleet.sites_for(self.access(run))
        if not unfunded:
            pool = self.pools.setdefault(purse.payers if self.exact else sources, len(self.pools))
            sites &= purse.sites  # room where nobody pays is none
        alone = tied or (self.exact and (limits_runs(sources, borrows) or (run.malleable and not run.spread)))
        key = (sites, run.lowered(), pool, load, borrows, recalls, run.key if alone else None)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = RunType(
                index=len(self.types),
                lowered=run.lowered(),
                sites=sites,
                sources=sources,
                pool=pool,
                unfunded=unfunded,
                load=load,
                max_borrow=borrows,
            )
        return found


def lower_runs(
    runs: list[RunRow],
    fleet: Fleet,
    book: CapBook,
    running: Funded,
    spent: Spent,
    leeway: Leeway,
    ties: Ties,
    *,
    exact: bool,
) -> Problem:
    """Lower the ``runs`` that may start, beside the claims that are ``running``."""
    money = book.money
    lowering = _Lowering(fleet, book, leeway, exact)
    admitted = sorted(part.place.admitted for part in running.parts)
    tied = {key for tree in ties.trees for key in tree.members} | {key for gang in ties.gangs for key in gang}
    candidates: list[Candidate] = []
    ways: dict[RunKey, list[int]] = {}
    refused: dict[RunKey, list[Refused]] = {}
    for run in runs:
        purse = lowering.purse(run)
        refused[run.key] = purse.refused
        weight = run.weight(money.policy, money.at)
        recalls = bisect_left(admitted, run.created) if exact else 0
        fills = run.opportunistic and "opportunistic" in money.policy.stages
        for unfunded in (False, True) if fills else (False,):
            if unfunded or purse.payers:
                kind = lowering.type(run, purse, recalls, unfunded=unfunded, tied=run.key in tied)
                kind.members.append(len(candidates))
                ways.setdefault(run.key, []).append(len(candidates))
                near = () if unfunded else purse.payers
                candidates.append(Candidate(run, weight, kind.index, near, purse.number, recalls))
    types = list(lowering.types.values())
    for kind in types:
        kind.members.sort(key=lambda c: candidates[c].order)
    return Problem(fleet, book, running, spent, leeway, candidates, types, ways, ties.gangs, ties.trees, refused, exact)
