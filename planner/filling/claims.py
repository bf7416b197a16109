"""Claims of starts: what a draft pays, as the pass of spec §3.5 weighs it beside what runs."""

from collections.abc import Iterator, Mapping

from planner.placement.draft import Draft, Payments
from policies.caps.cap import Lane
from policies.funding.classes import FRESH_LOAN, OLD_LOAN, Part, Place, weigh
from policies.model.problem import Problem


def claims(problem: Problem, draft: Draft) -> Iterator[tuple[int, Part]]:
    """(candidate, claim) of all that a draft starts."""
    for candidate, paid in draft.paid.items():
        yield from ((candidate, part) for part in _of(problem, candidate, paid))


def _of(problem: Problem, candidate: int, paid: Mapping[tuple[bool, int], Payments]) -> Iterator[Part]:
    """Takings of a start, claim by claim: each whole, since its groups follow one another in the pass."""
    money, run = problem.book.money, problem.candidates[candidate].run
    payers = problem.payers(problem.candidates[candidate])
    lanes: dict[int, list[tuple[Lane, int]]] = {}
    for (active, region), payments in paid.items():
        for envelope, gpus in payments.items():
            lane = problem.lane(payers[envelope], region)
            lanes.setdefault(envelope, []).append((lane, problem.milli(active) * gpus))
    for envelope, mine in lanes.items():
        touched, second = weigh(problem.book, mine)
        payer = payers[envelope]
        standing = payer.level
        if payer.loan:
            standing = FRESH_LOAN if money.envelopes[envelope].is_young(0) else OLD_LOAN
        place = Place(standing, money.at, run.key, envelope)
        yield Part(place, False, touched, second, ())
