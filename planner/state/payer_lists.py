"""Payers of each run that waits: one list for all runs that ask the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from policies.caps.cap import CapBook
from policies.caps.uses import times_runs
from policies.inputs.claims import RunKey
from policies.inputs.money import Money
from policies.inputs.runs import RunRow
from policies.model.payers import Payer, Payers, Refused, Source
from policies.model.payments import limits_runs
from policies.promises.funds import OPEN, Closed


@dataclass(frozen=True)
class PayerList:
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

    @classmethod
    def of(cls, money: Money, payers: Iterable[Payer], refused: list[Refused], number: int) -> "PayerList":
        """List these payers, in their order."""
        near = tuple(payers)
        sources = tuple(sorted((payer.source for payer in near), key=attrgetter("envelope")))
        return cls(
            payers=near,
            refused=refused,
            sources=sources,
            lends=any(source.loan for source in sources),
            limits_runs=limits_runs(sources, None),
            sites=frozenset[int]().union(*(money.paid_on(each.envelope, each.watch.off) for each in sources)),
            number=number,
        )


class PayerLists:
    """Answers shared by runs that ask the same."""

    def __init__(self, book: CapBook, closed: Closed = OPEN, promised: frozenset[RunKey] = frozenset()) -> None:
        """``closed``: who from then on pays for what is ``promised`` alone."""
        self.book = book
        self._closed = closed
        self._promised = promised
        self._payers = Payers(book.money, self._closed, promised)
        self._lists: dict[tuple[object, ...], PayerList] = {}
        self._strict: dict[str, bool] = {}
        self._found: dict[tuple[object, ...], tuple[list[Payer], list[Refused], list[int]]] = {}

    def of(self, run: RunRow) -> PayerList:
        """List who may pay for the run."""
        who = (run.owner, run.flavor, run.sponsors, run.allow_borrow, run.key in self._promised)
        asked = (*who, self._weighed_limit(run))
        if asked not in self._lists:
            if self._strict[run.flavor] or who not in self._found:  # else only the payers' limits differ
                self._found[who] = self._asked(run)
            found, refused, timed = self._found[who]
            for place in timed:
                limit = found[place].limit if self._strict[run.flavor] else run.limit
                found[place] = found[place].within(self._ahead(limit))
            self._lists[asked] = PayerList.of(self.book.money, found, refused, len(self._lists))
        return self._lists[asked]

    def _weighed_limit(self, run: RunRow) -> int | None:
        """The run's limit as far as any envelope or use cap of its flavor can tell limits apart."""
        if run.flavor not in self._strict:
            money = self.book.money
            timed = (
                bool(self._closed.uses)
                or times_runs(money, run.flavor)
                or any(
                    money.envelopes[e].per_run_time is not None
                    or money.envelopes[e].per_run_default_time is not None
                    or e in self._closed.envelopes
                    for e in money.by_flavor.get(run.flavor, ())
                )
            )
            self._strict[run.flavor] = timed or money.policy.funding.past_window == "refuse"
        return run.limit if self._strict[run.flavor] else self._ahead(run.limit)

    def _ahead(self, limit: int | None) -> int:
        """No cap on time looks further ahead than the accounting period."""
        period = int(self.book.money.policy.accounting_period)
        return period if limit is None else min(period, limit)

    def _asked(self, run: RunRow) -> tuple[list[Payer], list[Refused], list[int]]:
        """Payers, who may not pay, and the places of payers whose limit a cap on time weighs: only they have one."""
        found, refused = self._payers.of(run, run.limit if self._strict[run.flavor] else None)
        user = self.book.money.user_of(run.owner)
        looked = (self.book.of_envelope(payer.envelope, user) for payer in found)
        timed = [i for i, mine in enumerate(looked) if any(self.book.caps[cap].ahead for cap in mine)]
        weighed = set(timed)
        return [payer if i in weighed else payer.within(None) for i, payer in enumerate(found)], refused, timed
