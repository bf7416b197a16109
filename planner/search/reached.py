"""What a draft reaches in the stages of the objective, in each stage's own integers, exact (spec §4)."""

from typing import Final

from planner.placement.draft import Draft
from policies.model import payments
from policies.model.problem import Problem

START_STAGES: Final = {"starts": False, "opportunistic": True}
"""Stages that start runs: funded ones, and those unfunded by their own choice."""


def value_of(problem: Problem, draft: Draft, *, unfunded: bool) -> int:
    """Σ Active GPUs × weight of the draft's funded (stage 3) or unfunded (stage 6) starts: GPU-seconds, exact."""
    total = 0
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        kind = problem.types[candidate.type]
        if kind.unfunded == unfunded:
            total += kind.gpus(start.steps) * candidate.weight
    return total


def nearness(problem: Problem, draft: Draft) -> int:
    """Stage 7: Σ milli-GPUs × rank of the payers, exact."""
    return sum(payments.distance(problem, candidate, paid) for candidate, paid in draft.paid.items())
