"""Payer of a swap: the spare's payer, or where that lacks room the nearest that has some beside everything.

Room beside everything (spec §3.8): with the swap in the pass over all claims it is funded, and nobody loses its payer.
A swap carries on what runs, so it is no admission, and nothing is looked ahead for it. Where nobody has room for it,
nobody pays: the run goes on all the same. Swaps are weighed together, and apart only where there is not room for all:
of n swaps that all stay with their payers that is one pass.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from planner.state.payer_lists import PayerLists
from policies.caps.cap import CapBook
from policies.funding.classes import Funded
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow, RunKey
from policies.inputs.money import bits
from policies.inputs.runs import RunRow
from policies.model.payers import Payer

Pass = Callable[[Sequence[LeaseRow]], Funded]
"""The pass over what stays and these leases."""


def paid(
    swaps: Sequence[LeaseRow],
    runs: Mapping[RunKey, RunRow],
    held: Mapping[RunKey, list[LeaseRow]],
    book: CapBook,
    weigh: Pass,
    sites: Mapping[str, int],
) -> list[LeaseRow]:
    """``swaps``, each with its payer. ``held``: what stays open beside them; ``sites``: of nodes, by name."""
    done = [swap if swap.envelope >= 0 else _by_nobody(swap, runs[swap.run_key]) for swap in swaps if not swap.active]
    paying = _Paying(runs, held, PayerLists(book), weigh, sites, done, weigh(done).classes)
    paying.settle([swap for swap in swaps if swap.active])
    return sorted(paying.done, key=lambda each: each.key)


@dataclass
class _Paying:
    """``done``: swaps that have their payer; ``classes``: of all claims, with these."""

    runs: Mapping[RunKey, RunRow]
    held: Mapping[RunKey, list[LeaseRow]]
    lists: PayerLists
    weigh: Pass
    sites: Mapping[str, int]
    done: list[LeaseRow]
    classes: Mapping[LeaseKey, str]

    def settle(self, swaps: Sequence[LeaseRow]) -> None:
        """All with the first payer each, if there is room for all of these; else one half after the other."""
        first: list[LeaseRow] = []
        for swap in swaps:
            first.append(next(self._ways(swap, first)))
        if self._holds(first):
            return
        if len(swaps) == 1:
            next(way for way in self._ways(swaps[0], ()) if self._holds([way]))
            return
        half = len(swaps) // 2
        self.settle(swaps[:half])
        self.settle(swaps[half:])

    def _holds(self, ways: Sequence[LeaseRow]) -> bool:
        """Is there room for these beside everything? Then they are done."""
        classes = self.weigh([*self.done, *ways]).classes
        keeps = all(classes[key] != UNFUNDED for key, name in self.classes.items() if name != UNFUNDED)
        if not keeps or any(classes[way.key] == UNFUNDED for way in ways if way.envelope >= 0):
            return False
        self.done += ways
        self.classes = classes
        return True

    def _ways(self, swap: LeaseRow, more: Iterable[LeaseRow]) -> Iterator[LeaseRow]:
        """Ways as `_ways` has them, beside what is done, and ``more``."""
        mine = [each for each in (*self.done, *more) if each.run_key == swap.run_key]
        beside = [*self.held.get(swap.run_key, ()), *mine]
        return _ways(swap, self.runs[swap.run_key], beside, self.lists, self.sites[swap.node])


def _ways(swap: LeaseRow, run: RunRow, beside: Iterable[LeaseRow], lists: PayerLists, site: int) -> Iterator[LeaseRow]:
    """The swap with each payer that may be its own, the spare's first, then nearest first; last with nobody's."""
    money, held = lists.book.money, list(beside)
    if swap.envelope >= 0:
        all_ = lists.of(run.running()).payers
        loans = {payer.envelope for payer in all_ if payer.loan}
        lent = sum(each.gpus for each in held if each.active and _is_lent(each, swap.start, loans))
        payers = [
            payer
            for payer in all_
            if site in money.paid_on(payer.envelope, payer.watch.off)
            and _is_within(run, payer, [*held, swap], lists.book, site, lent)
        ]
        for payer in sorted(payers, key=lambda payer: payer.envelope != swap.envelope):
            envelope = money.envelopes[payer.envelope]
            yield replace(
                swap, envelope=payer.envelope, budget=envelope.budget, envelope_name=envelope.name, owner=envelope.owner
            )
    yield _by_nobody(swap, run)


def _by_nobody(swap: LeaseRow, run: RunRow) -> LeaseRow:
    return replace(swap, envelope=-1, budget="", envelope_name="", owner=run.owner)


def _is_lent(lease: LeaseRow, at: int, loans: Container[int]) -> bool:
    """Is it paid by a loan, be it one of this cycle (Unix second ``at``), whose ledger is not begun?"""
    return lease.envelope in loans if lease.start == at and not lease.segments else lease.funding_class == "borrowed"


def _is_within(run: RunRow, payer: Payer, leases: Sequence[LeaseRow], book: CapBook, site: int, lent: int) -> bool:
    """Does a payment, the last of ``leases``, keep the limits on what a single run takes? ``lent``: its GPUs so far."""
    policy, uses = book.money.policy, book.money.uses
    *others, last = leases
    mine = [each for each in others if each.envelope == payer.envelope]
    if payer.run_gpus is not None and sum(each.milli(policy) for each in (*mine, last)) > 1000 * payer.run_gpus:
        return False
    if payer.loan and run.max_borrow is not None and lent + last.gpus > run.max_borrow:
        return False
    funded = sum(each.milli(policy) for each in leases if each.envelope >= 0)
    return all(funded <= 1000 * (uses[i].per_run_gpus or 0) for i in bits(payer.watch.each) if site in uses[i].sites)
