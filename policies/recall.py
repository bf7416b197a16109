"""Recall: a nearer claimant's start may use quota that farther claims hold (spec §3.8).

Starts are claims admitted now. They stand in the pass of spec §3.5 after the running claims of their own nearness and
before all farther ones, which turn unfunded where they no longer fit. A loan that starts recalls nobody: it has to fit
beside all that stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.classes import Part, Place, Sums, honour, weigh
from policies.kinship import REST
from policies.problem import Candidate, Problem

Bill = tuple[Candidate, Mapping[tuple[bool, int], Mapping[int, int]]]
"""A start, and per (active, region) the GPUs that each envelope pays."""


class Limit(NamedTuple):
    """What the pass holds a claim to: a cap's GPUs now, or for one on hours or credits its next ``second``."""

    cap: int
    second: bool


@dataclass(frozen=True)
class After:
    """Running claims beside starts. ``used``: per cap; ``stays``: by running part; ``holds``: all starts are funded."""

    used: list[int]
    stays: list[bool]
    holds: bool


def standing(rank: int) -> int:
    """Where a family payment stands in the pass (spec §3.5), by how near the payer is to the run."""
    return min(rank, REST)


def takes_of(problem: Problem, touched: Sums, second: Sums) -> dict[Limit, int]:
    """What the pass holds to: look-ahead is for admissions only."""
    caps = problem.book.caps
    now = {Limit(cap, False): weight for cap, weight in touched.items() if not caps[cap].ahead}
    return now | {Limit(cap, True): weight for cap, weight in second.items()}


def after(problem: Problem, bills: Sequence[Bill]) -> After:
    """The pass with starts in it."""
    running = problem.running
    starts, loans = _parts(problem, bills)
    if not starts and not loans:
        return After(list(running.used), running.outcome.funded, holds=True)
    both = sorted([*running.parts, *starts], key=lambda part: part.place)  # stable: groups of a claim keep their order
    outcome = honour(problem.book, problem.spent, both)
    used = outcome.used
    for loan in loans:
        for cap, weight in loan.items():
            used[cap] += weight
    new = {id(part) for part in starts}
    stays = [funded for part, funded in zip(both, outcome.funded, strict=True) if id(part) not in new]
    admitted = all(funded for part, funded in zip(both, outcome.funded, strict=True) if id(part) in new)
    touched = {cap for part in starts for cap in part.touched}.union(*loans)
    return After(used, stays, admitted and all(used[cap] <= problem.book.caps[cap].limit for cap in touched))


def _parts(problem: Problem, bills: Sequence[Bill]) -> tuple[list[Part], list[Sums]]:
    """Family payments as claims, and what loans take per cap."""
    starts: list[Part] = []
    loans: list[Sums] = []
    for candidate, paid in bills:
        ranks = {payer.envelope: payer for payer in candidate.payers}
        claims: dict[int, tuple[Sums, Sums]] = {}
        for (active, region), payments in paid.items():
            for envelope, gpus in payments.items():
                more = weigh(problem.book, problem.lane(ranks[envelope], region), problem.milli(active) * gpus)
                for total, mine in zip(claims.setdefault(envelope, ({}, {})), more, strict=True):
                    for cap, weight in mine.items():
                        total[cap] = total.get(cap, 0) + weight
        for envelope, (touched, second) in claims.items():
            if ranks[envelope].loan:
                loans.append(touched)
            else:
                level = standing(ranks[envelope].rank)
                place = Place(level, problem.book.money.at, candidate.run.key, envelope)
                starts.append(Part(place, False, touched, second, (), False))
    return starts, loans
