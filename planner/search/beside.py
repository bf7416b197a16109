"""Running claims beside starts: the pass of spec §3.5 with the starts in it, which has the last word (spec §3.8)."""

from typing import NamedTuple

from planner.filling.claims import claims
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.room import Room
from policies.funding.classes import honour
from policies.model import gangs
from policies.model.problem import Problem


class Beside(NamedTuple):
    """``stays``: is a running part funded; ``lost``: starts, by candidate, with which a plan is not admissible."""

    stays: list[bool]
    lost: set[int]


def beside(problem: Problem, draft: Draft) -> Beside:
    """Decide who is funded once a draft is carried out.

    Within the room that recall leaves (`model.recall`) a start can only be unfunded where a claim comes back that
    was unfunded, in place of what is recalled. Where that takes the payer of what cannot be recalled, the last of the
    starts that recall is lost.
    """
    running = problem.running
    purses = Purses.after(problem, draft)
    if not purses.recalling:
        return Beside(running.outcome.funded, set())
    starts = list(claims(problem, draft))
    number = {id(part): candidate for candidate, part in starts}
    order = sorted([*running.parts, *(part for _, part in starts)], key=lambda part: part.place)
    funded = honour(problem.book, problem.spent, order).funded
    stays = [paid for part, paid in zip(order, funded, strict=True) if id(part) not in number]
    lost = {number[id(part)] for part, paid in zip(order, funded, strict=True) if id(part) in number and not paid}
    if not lost and any(
        was and not stay and not problem.recall.may_lose(part.place)
        for part, was, stay in zip(running.parts, running.outcome.funded, stays, strict=True)
    ):
        over = {cap for cap in problem.recall.room if purses.left(cap) < 0}
        lost = {next(number[id(part)] for part in reversed(order) if id(part) in number and over & part.touched.keys())}
    return Beside(stays, lost)


def drop(problem: Problem, room: Room, draft: Draft, candidates: set[int]) -> None:
    """Take starts out of a draft, and where fewer of a gang are left than have to start together, all of it.

    What goes is in ``candidates`` afterwards.
    """
    lost = {problem.candidates[c].run.key for c in candidates}
    for key in gangs.too_few_left(problem.gangs, draft.started(problem), lost):
        candidates |= {*problem.ways.get(key, ())}
    for piece in draft.pieces:
        if piece.candidate in candidates:
            room.give_back(piece.chunks, piece.load)
    draft.starts = [start for start in draft.starts if start.candidate not in candidates]
    draft.pieces = [piece for piece in draft.pieces if piece.candidate not in candidates]
    for candidate in candidates:
        draft.paid.pop(candidate, None)


def drop_lost(problem: Problem, room: Room, draft: Draft) -> set[int]:
    """Take out of a draft what the pass does not let start; returns what went."""
    gone: set[int] = set()
    while lost := beside(problem, draft).lost:
        drop(problem, room, draft, lost)
        gone |= lost
    return gone
