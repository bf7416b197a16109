"""Who pays for a swap: the spare's payer, or where that lacks room the nearest that has some beside everything.

Room beside everything (spec §3.8): with the swap in the pass over all claims it is funded, and nobody loses its payer.
A swap carries on what runs, so it is no admission, and nothing is looked ahead for it. Where nobody has room for it,
nobody pays: the run goes on all the same.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from planner.state.payer_lists import PayerLists
from policies.caps.cap import CapBook
from policies.funding.classes import Funded
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey
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
    done = [swap for swap in swaps if not swap.active]
    before = weigh(done).classes
    lists = PayerLists(book)
    for swap in (swap for swap in swaps if swap.active):
        beside = [*held.get(swap.run_key, ()), *(each for each in done if each.run_key == swap.run_key)]
        for way in _ways(swap, runs[swap.run_key], beside, lists, sites[swap.node]):
            classes = weigh([*done, way]).classes
            keeps = all(classes[key] != UNFUNDED for key, name in before.items() if name != UNFUNDED)
            if keeps and (classes[way.key] != UNFUNDED or way.envelope < 0):
                before = classes
                done.append(way)
                break
    return sorted(done, key=lambda each: each.key)


def _ways(swap: LeaseRow, run: RunRow, beside: Iterable[LeaseRow], lists: PayerLists, site: int) -> Iterator[LeaseRow]:
    """The swap with each payer that may be its own, the spare's first, then nearest first; last with nobody's."""
    money, held = lists.book.money, list(beside)
    if swap.envelope >= 0:
        all_ = lists.of(run).payers
        loans = {payer.envelope for payer in all_ if payer.loan}
        lent = sum(each.gpus for each in held if each.active and _is_lent(each, swap.start, loans))
        payers = [
            payer
            for payer in all_
            if site in money.paid_on(payer.envelope, payer.watch.shut)
            and _is_within(run, payer, [*held, swap], lists.book, site, lent)
        ]
        for payer in sorted(payers, key=lambda payer: payer.envelope != swap.envelope):
            envelope = money.envelopes[payer.envelope]
            yield replace(
                swap, envelope=payer.envelope, budget=envelope.budget, envelope_name=envelope.name, owner=envelope.owner
            )
    yield replace(swap, envelope=-1, budget="", envelope_name="", owner=run.owner)


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
