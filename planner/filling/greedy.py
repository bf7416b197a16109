"""Starting one run after another: the first incumbent, and the fill that makes a plan maximal (spec §4).

Maximal: nothing that waits could be added to it, except a start that recalls and needs a mixture of payers that only
the master finds, or a gang that fits only in an order of its members, or pods whose CPU or memory fits a domain only in
an order, that was not tried.

Heaviest (oldest) first; each takes the nearest payers that still have room, then slots. Runs that start together are
tried as one, in the place of what a GPU of theirs weighs on average (`filling.together`). Nothing is ever taken back,
so a run type that once did not fit will not fit later in the same pass, and is skipped.
"""

from collections.abc import Container, Iterable, Sequence
from heapq import merge
from operator import itemgetter

from planner.filling.filler import Filler, Settled
from planner.filling.together import Place, Together
from planner.placement.draft import Draft
from planner.placement.place import Start, by_candidate
from policies.model.gangs import Gang, tied
from policies.model.problem import Problem


def fill(
    filler: Filler, draft: Draft, order: Sequence[int], before: Sequence[int] = (), *, least: bool = False
) -> None:
    """Add to ``draft`` whatever still fits, candidates in ``order``, a gang before the first that weighs less than it.

    ``before``: candidates of stages that have been filled; members of a gang may start as one of these beside others in
    ``order``. ``least``: nothing is wider than it has to be before all have been tried, so that none keeps another from
    starting by its width; then what is paid grows. What is promised nodes starts there, where that can be.
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
    unpaid = [each for each in found if not each.paid] if least else []
    _add(draft, [*filler.widen(each for each in found if each.paid), *unpaid] if least else found)


def widen_unpaid(filler: Filler, draft: Draft, candidates: Container[int]) -> None:
    """Let a draft's starts of these candidates that nobody pays grow in what all else leaves."""
    mine = [start for start in draft.starts if start.candidate in candidates and not draft.paid.get(start.candidate)]
    ours, pieces = {start.candidate for start in mine}, by_candidate(draft.pieces)
    draft.starts = [start for start in draft.starts if start.candidate not in ours]
    draft.pieces = [piece for piece in draft.pieces if piece.candidate not in ours]
    _add(draft, filler.widen(Settled(start, pieces[start.candidate], {}) for start in mine))


def _add(draft: Draft, found: Iterable[Settled]) -> None:
    for each in found:
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
    """The candidate as wide as it can start, or at its ``least``, on nodes that it is promised if it can; an empty list
    where it cannot.
    """
    candidate = problem.candidates[index]
    kind = problem.types[candidate.type]
    if least and candidate.told and candidate.payers and (there := filler.start_on(Start(index, 0), candidate.told)):
        return [there]
    for steps in range(0 if least else kind.lowered.steps, -1, -1):
        case = (kind.index, steps, candidate.purse if problem.exact else 0)
        if case in hopeless:
            continue
        found = filler.try_start(kind, Start(index, steps))
        if found is not None:
            return [found]
        hopeless.add(case)
    return []
