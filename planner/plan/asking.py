"""Problem of what runs ask for beside what they hold: it recalls nobody, and keeps a run's limits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.filling.purses import Purses
from planner.state.lower import Waiting
from planner.state.payer_lists import PayerList, PayerLists
from planner.state.state import State
from policies.inputs.money import bits
from policies.inputs.runs import RunRow
from policies.model.payers import Payer
from policies.model.problem import Problem
from policies.model.recall import Recall
from policies.model.trees import Ties
from policies.promises import funds
from policies.promises.holds import NOBODY


def asking(state: State, purses: Purses, rows: Sequence[RunRow], free: Mapping[int, int]) -> Problem:
    """The problem of ``rows``: GPUs that runs ask for beside what they hold, the time limit what is left of theirs.

    ``purses``: what everything else takes; ``free``: GPUs by site. Every GPU counts the same.
    """
    before = purses.problem
    closed = funds.beside(state.holds.money, state.book, state.funded, state.taken).closed
    left, whole = PayerLists(state.book, closed), PayerLists(state.book, closed)
    lists = [_list(state, row, left.of(row), whole.of(state.runs[row.key]), n) for n, row in enumerate(rows)]
    trees = [replace(tree, left=rest) for tree, rest in zip(before.trees, purses.trees, strict=True)]
    running = replace(before.running, outcome=replace(before.running.outcome, used=list(purses.used)))
    nothing = Recall({}, {}, state.changed)
    waiting = Waiting(
        runs=list(rows),
        lists=lists,
        forms=list(range(len(rows))),
        fleet=state.fleet,
        book=state.book,
        running=running,
        spent=before.spent,
        recall=nothing,
        once_changed=nothing,
        recalls=[False] * len(rows),
        ties=Ties([], trees, NOBODY),
        exact=len(rows) <= state.effort.growing,
    )
    problem = waiting.lowered(free)
    unit = int(state.policy.age.unit)
    return replace(problem, candidates=[replace(each, weight=unit) for each in problem.candidates])


def _list(state: State, row: RunRow, left: PayerList, whole: PayerList, number: int) -> PayerList:
    """Payers of it: those of the whole run, less what the run takes of its limits on single runs."""
    may = {payer.envelope for payer in whole.payers}
    held: dict[int, int] = {}
    for lease in state.held.get(row.key, ()):
        if lease.envelope >= 0:
            held[lease.envelope] = held.get(lease.envelope, 0) + lease.milli(state.policy)
    payers = []
    for payer in left.payers:
        if payer.envelope in may and _within_uses(state, row, payer, sum(held.values())):
            most = payer.run_gpus
            mine = None if most is None else max(0, (1000 * most - held.get(payer.envelope, 0)) // 1000)
            payers.append(payer._replace(run_gpus=mine))
    return PayerList.of(state.money, payers, [], number)


def _within_uses(state: State, row: RunRow, payer: Payer, held: int) -> bool:
    """Do the use caps on what one run takes leave room for all that it asks, wherever it lies?"""
    asked = 1000 * row.total + state.policy.spares.discount_milli * row.spare_gpus
    uses = state.book.money.uses
    return all(held + asked <= 1000 * (uses[i].per_run_gpus or 0) for i in bits(payer.watch.each))
