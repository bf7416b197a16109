"""Starting one run after another: the first incumbent, and the fill that makes a plan maximal (spec §4).

Maximal: nothing that waits could be added to it, except a start that recalls and needs a mixture of payers that only
the master finds, or a gang that fits only in an order of its members, or pods whose CPU or memory fits a domain only in
an order, that was not tried.

Heaviest (oldest) first; each takes the nearest payers that still have room, then slots. Runs that start together are
tried as one, in the place of what a GPU of theirs weighs on average (`filling.together`). Nothing is ever taken back,
so a run type that once did not fit will not fit later in the same pass, and is skipped.
"""

from collections.abc import Iterable, Sequence
from heapq import merge
from operator import itemgetter

from planner.filling.filler import Filler, Settled
from planner.filling.together import Place, Together
from planner.placement.draft import Draft
from planner.placement.place import Start
from policies.model.gangs import Gang, tied
from policies.model.problem import Problem


def fill(
    filler: Filler, draft: Draft, order: Sequence[int], before: Sequence[int] = (), *, least: bool = False
) -> None:
    """Add to ``draft`` whatever still fits, candidates in ``order``, a gang before the first that weighs less than it.

    ``before``: candidates of stages that have been filled; members of a gang may start as one of these beside others in
    ``order``. ``least``: nothing is wider than it has to be before all have been tried, so that none keeps another from
    starting by its width.
    """
    problem = filler.problem
    together = Together(problem, filler, order, before)
    started = draft.started(problem)
    waiting = set(tied(problem.gangs, started))
    hopeless: set[tuple[int, int, int]] = set()
    found: list[Settled] = []
    for turn in _turns(problem, together.places(waiting), order):
        if isinstance(turn, Gang):
            now = together.try_start(turn, least=least)
            waiting.difference_update(turn if now else ())
        else:
            key = problem.candidates[turn].run.key
            is_over = key in started or key in waiting
            now = [] if is_over else _try_single(problem, filler, turn, hopeless, least=least)
        found += now
        started |= {problem.candidates[each.start.candidate].run.key for each in now}
    for each in filler.widen(found) if least else found:
        draft.starts.append(each.start)
        draft.pieces += each.pieces
        draft.paid[each.start.candidate] = each.paid


def _turns(problem: Problem, gangs: Sequence[tuple[Place, Gang]], order: Sequence[int]) -> Iterable[int | Gang]:
    """Turns to be tried, one after the other: candidates, and ``gangs`` each before those that have its place."""
    if not gangs:
        return order
    singles: Iterable[tuple[Place, int | Gang]] = ((problem.candidates[index].order, index) for index in order)
    return (turn for _, turn in merge(gangs, singles, key=itemgetter(0)))


def _try_single(
    problem: Problem, filler: Filler, index: int, hopeless: set[tuple[int, int, int]], *, least: bool
) -> list[Settled]:
    """The candidate as wide as it can start, or at its ``least``; an empty list where it cannot."""
    candidate = problem.candidates[index]
    kind = problem.types[candidate.type]
    for steps in range(0 if least else kind.lowered.steps, -1, -1):
        case = (kind.index, steps, candidate.purse if problem.exact else 0)
        if case in hopeless:
            continue
        found = filler.try_start(kind, Start(index, steps))
        if found is not None:
            return [found]
        hopeless.add(case)
    return []
