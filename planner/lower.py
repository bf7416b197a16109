"""Lowering: waiting runs become candidates, and candidates that only age tells apart become one type."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from policies.caps import CapBook
from policies.claims import RunKey
from policies.classes import Funded
from policies.fleet import Access, Fleet
from policies.ledger import Spent
from policies.payers import Payer, Refused, Source, payers
from policies.payments import limits_runs
from policies.problem import Candidate, Problem, RunType
from policies.runs import RunRow
from policies.shapes import PodLoad
from policies.trees import Tree

EXACT: Final = 100
"""Most waiting runs of a problem whose types keep the order of their payers."""


@dataclass(frozen=True)
class _Purse:
    """Payers of a run, nearest first; ``sources``: the same as caps see them; ``pool``: equal for equal sources.

    ``number``: one for each purse.
    """

    payers: tuple[Payer, ...]
    refused: list[Refused]
    sources: tuple[Source, ...]
    pool: int
    number: int


@dataclass
class _Lowering:
    """Answers shared by runs that ask the same. ``exact``: runs whose payers stand in another order differ in type."""

    fleet: Fleet
    book: CapBook
    exact: bool
    purses: dict[tuple[object, ...], _Purse] = field(default_factory=dict)
    pools: dict[object, int] = field(default_factory=dict)
    types: dict[tuple[object, ...], RunType] = field(default_factory=dict)

    def purse(self, run: RunRow) -> _Purse:
        """Who may pay for the run."""
        asked = (run.owner, run.flavor, run.sponsors, run.allow_borrow, self._weighed_limit(run))
        if asked not in self.purses:
            found, refused = payers(self.book.money, run)
            near = tuple(self._bucketed(payer) for payer in found)
            sources = tuple(sorted({payer.source for payer in near}, key=lambda s: s.envelope))
            pool = self.pools.setdefault(near if self.exact else sources, len(self.pools))
            self.purses[asked] = _Purse(near, refused, sources, pool, len(self.purses))
        return self.purses[asked]

    def _weighed_limit(self, run: RunRow) -> int | None:
        """The run's limit as far as any envelope of its flavor can tell limits apart."""
        money = self.book.money
        strict = money.policy.funding.past_window == "refuse" or any(
            money.envelopes[e].per_run_time is not None or money.envelopes[e].per_run_default_time is not None
            for e in money.by_flavor.get(run.flavor, ())
        )
        period = int(money.policy.accounting_period)
        return run.limit if strict else min(period, period if run.limit is None else run.limit)

    def _bucketed(self, payer: Payer) -> Payer:
        """Time limits that no cap on time will ever weigh are the same limit."""
        period = int(self.book.money.policy.accounting_period)
        timed = bool(self.book.time_caps(payer.envelope))
        limit = min(period, period if payer.limit is None else payer.limit) if timed else None
        return Payer(payer.envelope, payer.rank, payer.order, limit, payer.run_gpus)

    def access(self, run: RunRow) -> Access:
        """What the run asks of a node, were it to start now."""
        return run.access(self.book.money.policy.maintenance, self.book.money.at)

    def type(self, run: RunRow, purse: _Purse, recalls: int, *, unfunded: bool, tied: bool) -> RunType:
        """The run's type; runs that are tied to others are types of their own.

        Where the model is exact, so are runs with limits of their own, which a type would only hold on average, and
        runs that grow in one domain, whose widths a type would not know by domain.
        """
        access = self.access(run)
        load = PodLoad(run.pod_cpu_milli, run.pod_memory)
        borrows = run.max_borrow if not unfunded and any(source.loan for source in purse.sources) else None
        pool = -1 if unfunded else purse.pool
        limited = not unfunded and limits_runs(purse.sources, borrows)
        grows = run.malleable and not run.spread
        alone = tied or (self.exact and (limited or grows))
        key = (access, run.lowered(), pool, load, borrows, recalls, run.key if alone else None)
        found = self.types.get(key)
        if found is None:
            sites = self.fleet.sites_for(access)
            if not unfunded:  # room where nobody pays is none
                sites &= frozenset(s for source in purse.sources for s in self.book.money.pays_on[source.envelope])
            found = self.types[key] = RunType(
                index=len(self.types),
                lowered=run.lowered(),
                sites=sites,
                sources=() if unfunded else purse.sources,
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
    gangs: list[list[RunKey]],
    trees: list[Tree],
) -> Problem:
    """Lower the ``runs`` that may start, beside the claims that are ``running``."""
    money = book.money
    exact = len(runs) <= EXACT
    lowering = _Lowering(fleet, book, exact)
    admitted = sorted(part.place.admitted for part in running.parts)
    tied = {key for tree in trees for key in tree.members} | {key for gang in gangs for key in gang}
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
    return Problem(fleet, book, running, spent, candidates, types, ways, gangs, trees, refused, exact)
