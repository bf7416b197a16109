"""Lowering: waiting runs become candidates, and candidates that only age tells apart become one type."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from planner.state.payer_lists import PayerList, PayerLists
from policies.caps.cap import Cap, CapBook, Lane
from policies.caps.leeway import Leeway
from policies.caps.lending import LENDING
from policies.caps.uses import Watch
from policies.funding.classes import Funded
from policies.funding.ledger import Spent
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Access, Fleet
from policies.inputs.money import bits
from policies.inputs.runs import RunRow
from policies.model.payers import Source
from policies.model.payments import limits_runs
from policies.model.problem import Candidate, Problem, RunType
from policies.model.recall import Ask, Recall
from policies.model.trees import Ties
from policies.promises.funds import OPEN, Closed, Funds


class _Pool(NamedTuple):
    """Payers as the model tells them apart; ``number``: the same for the same ones; ``lends``: is one a sponsor?"""

    sources: tuple[Source, ...]
    number: int
    lends: bool


_NOBODY: Final = _Pool((), -1, lends=False)
"""Of a run that starts unfunded by its own choice."""


@dataclass
class _Lowering:
    """Answers shared by runs that ask the same. ``exact``: runs whose payers stand in another order differ in type.

    ``numbers``: of pools; ``pools``: by purse, and by what of its limits on single runs can bind; ``single``: by that,
    payers as `_single` has them.
    """

    fleet: Fleet
    book: CapBook
    recall: Recall
    leeway: Leeway
    exact: bool
    numbers: dict[object, int] = field(default_factory=dict)
    pools: dict[tuple[int, bool, int], _Pool] = field(default_factory=dict)
    single: dict[tuple[bool, int], dict[Source, Source | None]] = field(default_factory=dict)
    types: dict[tuple[object, ...], RunType] = field(default_factory=dict)

    def payers(self, run: RunRow, purse: PayerList) -> tuple[_Pool, int | None]:
        """The payers as the model tells them apart, and the run's borrow limit where it can bind.

        On large problems those that cannot pay are left out, and so is what no cap that could bind looks at.
        """
        borrows = run.max_borrow if purse.lends else None
        if self.exact:
            return _Pool(purse.sources, self.numbers.setdefault(purse.payers, len(self.numbers)), purse.lends), borrows
        if borrows is not None and borrows >= run.total:
            borrows = None
        most = run.total + run.spare_gpus if purse.limits_runs else 0
        asked = (purse.number, borrows is None, most)
        if asked not in self.pools:
            known = self.single.setdefault(asked[1:], {})
            for source in purse.sources:
                if source not in known:
                    known[source] = self._single(source, borrows is not None, most)
            mine = tuple(each for source in purse.sources if (each := known[source]) is not None)
            number = self.numbers.setdefault(mine, len(self.numbers))
            self.pools[asked] = _Pool(mine, number, any(source.loan for source in mine))
        found = self.pools[asked]
        return found, borrows if found.lends else None

    def _single(self, source: Source, borrows: bool, most: int) -> Source | None:
        """A payer without what does not matter; None where it cannot pay.

        ``borrows``: is there a limit on loans; ``most``: GPUs that one run could take.
        """
        there = self.book.of_envelope(source.envelope, source.watch.on)
        caps = [self.book.caps[cap] for cap in there if cap not in self.leeway.idle]
        limit = source.limit if any(cap.ahead for cap in caps) else None
        lent = source.loan and (borrows or any(cap.family is LENDING for cap in caps))
        own = source.run_gpus if source.run_gpus is not None and source.run_gpus < most else None
        watch = self._watched(source.watch, caps, most)
        lanes = (Lane(source.envelope, source.loan, region, limit, watch.on) for region in self.leeway.free)
        pays_on = self.book.money.paid_on(source.envelope, watch.off)
        pays = any(self._is_open(lane, source.level) for lane in lanes if lane.site in pays_on)
        level = self.recall.level(self.book, source.envelope, source.level, self.leeway.idle)
        return Source(source.envelope, lent, limit, own, level, watch) if pays else None

    def _watched(self, watch: Watch, caps: list[Cap], most: int) -> Watch:
        """Without the use caps that cannot bind. ``caps``: those that could; ``most``: as `_single` has it."""
        if not watch.on:
            return watch
        on = sum({cap.pool.user for cap in caps}) & watch.on
        uses = self.book.money.uses
        each = sum(1 << i for i in bits(watch.each) if (uses[i].per_run_gpus or 0) < most)
        return Watch(on, watch.shut, each, watch.promised)

    def _is_open(self, lane: Lane, level: int) -> bool:
        """Is there money for a GPU, or a spare, of a start that stands there?"""
        touches = self.leeway.touches(lane, self.leeway.least)
        if touches is None or self.leeway.rises:
            return touches is not None
        rooms = ((self.recall.room[cap], weight) for cap, weight in touches if cap in self.recall.room)
        return all(room[level] >= weight * self.leeway.least for room, weight in rooms)

    def access(self, run: RunRow) -> Access:
        """Demand of the run on a node, were it to start now."""
        return run.access(self.book.money.policy.maintenance, self.book.money.at)

    def type(self, run: RunRow, purse: PayerList, *, unfunded: bool, tied: bool) -> RunType:
        """The run's type; runs that are tied to others are types of their own.

        Where the model is exact, so are runs with limits of their own, which a type would only hold on average, and
        runs that grow in one domain, whose widths a type would not know by domain.
        """
        load = run.load
        (sources, pool, _), borrows = (_NOBODY, None) if unfunded else self.payers(run, purse)
        sites = self.fleet.sites_for(self.access(run))
        if not unfunded:
            sites &= purse.sites  # room where nobody pays is none
        alone = tied or (self.exact and (limits_runs(sources, borrows) or (run.malleable and not run.spread)))
        lowered = run.lowered()
        key = (sites, lowered, pool, load, borrows, run.key if alone else None)
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = RunType(
                index=len(self.types),
                lowered=lowered,
                sites=sites,
                sources=sources,
                pool=pool,
                unfunded=unfunded,
                load=load,
                max_borrow=borrows,
            )
        return found


@dataclass
class Asked:
    """Answers that are the same while only what runs changes: who pays for what waits, its forms and sums.

    Of one state, or of several that differ in what has ended and by a clock that no payer asks. It knows runs by their
    keys: where they are others, all but the ``lists`` is begun anew; where their Budgets or windows are, these, too.
    """

    lists: dict[object, PayerLists] = field(default_factory=dict)
    _known: dict[object, tuple[list[PayerList], list[int], list[Ask]]] = field(default_factory=dict)

    def payers(self, book: CapBook, closed: Closed = OPEN, promised: frozenset[RunKey] = frozenset()) -> PayerLists:
        """Payers of any run; see `PayerLists`."""
        asked = closed.asked, promised
        if asked not in self.lists:
            self.lists[asked] = PayerLists(book, closed, promised)
        return self.lists[asked]

    def of(
        self, runs: list[RunRow], book: CapBook, closed: Closed, ties: Ties, *, exact: bool
    ) -> tuple[list[PayerList], list[int], list[Ask]]:
        """``lists``, ``forms`` (`Waiting`) and what each of them asks of caps; ``closed``: see `PayerLists`."""
        alone = ties.members | ties.promised.all
        asked = tuple(run.key for run in runs), closed.asked, alone, ties.promised.due, exact
        if asked not in self._known:
            payers = self.payers(book, closed, frozenset(ties.promised.due))
            lists = [payers.of(run) for run in runs]
            limits = bool(book.money.policy.maintenance)
            forms = _forms(runs, lists, exact=exact, limits=limits, alone=alone)
            self._known[asked] = lists, forms, _asks(runs, lists)
        return self._known[asked]


@dataclass(frozen=True)
class Waiting:
    """The ``runs`` that may start beside the claims that are ``running``, with what no leeway of caps tells.

    ``lists``: who may pay for each; ``recalls``: may it recall anything; ``once_changed``: `Problem`;
    ``forms``: the same number for runs that ask the same of money and nodes, and so are of one type.
    """

    runs: list[RunRow]
    lists: list[PayerList]
    forms: list[int]
    fleet: Fleet
    book: CapBook
    running: Funded
    spent: Spent
    recall: Recall
    once_changed: Recall
    recalls: list[bool]
    ties: Ties
    exact: bool

    @classmethod
    def of(
        cls,
        runs: list[RunRow],
        fleet: Fleet,
        book: CapBook,
        left: Funds,
        ties: Ties,
        *,
        changed: int,
        exact: bool,
        asked: Asked,
    ) -> "Waiting":
        """Weigh runs that may start; ``changed``: when a cycle last saw another world; ``asked``: what is known."""
        running, spent = left.funded, left.spent
        lists, forms, asks = asked.of(runs, book, left.closed, ties, exact=exact)
        recall = once_changed = Recall.of(book, running, spent, asks, changed)
        if any(part.place.admitted >= changed for part in running.parts):
            once_changed = Recall.of(book, running, spent, asks, book.money.at)
        of_list: dict[int, bool] = {}
        for purse in lists if recall.room else ():
            if purse.number not in of_list:
                of_list[purse.number] = any(recall.recalls(book, payer) for payer in purse.payers)
        recalls = [of_list.get(purse.number, False) for purse in lists]
        return cls(runs, lists, forms, fleet, book, running, spent, recall, once_changed, recalls, ties, exact)

    def lowered(self, free: Mapping[int, int], *, rises: bool = False) -> Problem:
        """The problem, where so many GPUs are ``free`` by site; ``rises``: see `Leeway`."""
        least = list(self.running.used)
        for cap, rooms in self.recall.room.items():
            least[cap] = self.book.caps[cap].limit - rooms[0]
        return self._lowered(Leeway.of(self.book, self.running.used, least, free, rises=rises), self.recall)

    def is_like(self, other: "Waiting") -> bool:
        """Is what waits the same, and may each run recall or not as there?"""
        return self.forms is other.forms and self.recalls == other.recalls

    def lowered_for_later(self, sizes: Mapping[int, int]) -> Problem:
        """The problem with types that hold whatever ends of what runs: no payer that may pay then is left out of them.

        ``sizes``: GPUs by site. How it is at a time says `beside`.
        """
        nothing = [0] * len(self.book.caps)
        return self._lowered(Leeway.of(self.book, nothing, nothing, sizes), Recall({}, {}, self.recall.changed))

    def beside(self, problem: Problem) -> Problem:
        """That of `lowered_for_later` of what is like this (`is_like`), beside the claims that are running here."""
        return replace(
            problem,
            book=self.book,
            running=self.running,
            spent=self.spent,
            recall=self.recall,
            once_changed=self.once_changed,
            gangs=self.ties.gangs,
            trees=self.ties.trees,
        )

    def _told(self, key: RunKey) -> frozenset[int]:
        """Nodes on which a run is promised to start, as far as they are there."""
        index = self.fleet.index
        return frozenset(index[name] for name in self.ties.promised.nodes.get(key, ()) if name in index)

    def _lowered(self, leeway: Leeway, recall: Recall) -> Problem:
        money = self.book.money
        lowering = _Lowering(self.fleet, self.book, recall, leeway, self.exact)
        tied = self.ties.members
        of_form: dict[tuple[int, bool], RunType] = {}
        candidates: list[Candidate] = []
        promised = self.ties.promised
        turns = {key: turn for turn, key in enumerate(promised.due)}
        ways: dict[RunKey, list[int]] = {}
        for run, purse, recalls, form in zip(self.runs, self.lists, self.recalls, self.forms, strict=True):
            weight = run.weight(money.policy, money.at)
            short = run.key in promised.unfunded
            fills = short or (run.opportunistic and "opportunistic" in money.policy.stages)
            for unfunded in (False, True) if fills else (False,):
                if unfunded or purse.payers:
                    kind = of_form.get((form, unfunded))
                    if kind is None:
                        kind = lowering.type(run, purse, unfunded=unfunded, tied=run.key in tied)
                        of_form[form, unfunded] = kind
                    kind.members.append(len(candidates))
                    ways.setdefault(run.key, []).append(len(candidates))
                    near = () if unfunded else purse.payers
                    turn = turns.get(run.key, len(turns)) if short or not unfunded else len(turns)
                    may = recalls and not unfunded
                    told = self._told(run.key) if turn < len(turns) else frozenset[int]()
                    candidates.append(Candidate(run, weight, kind.index, near, purse.number, may, turn, told))
        types = list(lowering.types.values())
        for kind in types:
            kind.members.sort(key=lambda c: candidates[c].order)
        return Problem(
            fleet=self.fleet,
            book=self.book,
            running=self.running,
            spent=self.spent,
            recall=recall,
            once_changed=self.once_changed,
            leeway=leeway,
            candidates=candidates,
            types=types,
            ways=ways,
            gangs=self.ties.gangs,
            trees=self.ties.trees,
            refused={run.key: purse.refused for run, purse in zip(self.runs, self.lists, strict=True)},
            exact=self.exact,
            due=[c for c, candidate in enumerate(candidates) if candidate.turn < len(turns)],
        )


def _forms(
    runs: list[RunRow], lists: list[PayerList], *, exact: bool, limits: bool, alone: frozenset[RunKey]
) -> list[int]:
    """The same number for runs of which `_Lowering.type` reads the same.

    ``limits``: do time limits matter to where a run may lie? Runs ``alone`` have forms of their own.
    """
    numbers: dict[tuple[object, ...], int] = {}
    found = []
    for run, purse in zip(runs, lists, strict=True):
        nodes = run.flavor, run.selector, run.tolerations, run.time_limit if limits else None
        width = run.total, run.min_total, run.step, run.group, run.pod, run.spares, run.spread
        own = run.key if exact or run.key in alone else None
        form = purse.number, run.max_borrow, nodes, width, run.pod_cpu_milli, run.pod_memory, own
        found.append(numbers.setdefault(form, len(numbers)))
    return found


def _asks(runs: list[RunRow], lists: list[PayerList]) -> list[Ask]:
    """Demand of what waits, by its payers."""
    found: dict[int, Ask] = {}
    for run, purse in zip(runs, lists, strict=True):
        gpus = found[purse.number].gpus if purse.number in found else 0
        found[purse.number] = Ask(purse.payers, gpus + run.total + run.spare_gpus)
    return list(found.values())
