"""The stages of the objective: what each counts of a draft, in its own integers, exact (spec §4).

Growth, which follows the search, is not of a draft: `planner.plan.growing`.
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from planner.placement import tie_breaks
from planner.placement.draft import Draft
from planner.placement.room import Room
from policies.model import payments
from policies.model.problem import Problem

Sense = Literal["max", "min"]


class Objective(NamedTuple):
    """A stage. ``value``: of a draft, beside the room that it leaves; ``unfunded``: which starts it counts, None where
    it counts no starts; ``constructive``: made by placement alone, so that it has no bound but its value.
    """

    name: str
    unit: str
    sense: Sense
    value: Callable[[Problem, Draft, Room], int]
    unfunded: bool | None = None
    constructive: bool = False

    def in_model(self, value: int, unit: int) -> float:
        """A value as the model has it, which maximises: in ``unit`` GPU-seconds of weight, or minus GPUs."""
        return value / unit if self.sense == "max" else -value / 1000


def value_of(problem: Problem, draft: Draft, *, unfunded: bool) -> int:
    """Σ Active GPUs × weight of the draft's funded (stage 3) or unfunded (stage 6) starts: GPU-seconds, exact."""
    total = 0
    for start in draft.starts:
        candidate = problem.candidates[start.candidate]
        kind = problem.types[candidate.type]
        if kind.unfunded == unfunded:
            total += kind.gpus(start.steps) * candidate.weight
    return total


def overdraw(problem: Problem, draft: Draft) -> int:
    """Stage 4: milli-GPUs by which envelopes pay more than their concurrency, all that was funded before counted."""
    taken = dict.fromkeys(problem.recall.spare, 0)
    for paid in draft.paid.values():
        for (active, _), mine in paid.items():
            for envelope, gpus in mine.items():
                if envelope in taken:
                    taken[envelope] += gpus * problem.milli(active)
    return sum(max(0, milli - problem.recall.spare[envelope]) for envelope, milli in taken.items())


def nearness(problem: Problem, draft: Draft) -> int:
    """Stage 7: Σ milli-GPUs × rank of the payers, exact."""
    return sum(payments.distance(problem, candidate, paid) for candidate, paid in draft.paid.items())


def _domains(_of: Problem, draft: Draft, _room: Room) -> int:
    return tie_breaks.domains_used((piece.candidate, piece.domain) for piece in draft.pieces)


def _holes(_of: Problem, _draft: Draft, room: Room) -> int:
    return tie_breaks.holes(room.domain_free())


_WEIGHT: Final = "GPU-seconds of weight"
STAGES: Final = {
    stage.name: stage
    for stage in (
        Objective("starts", _WEIGHT, "max", lambda of, draft, _: value_of(of, draft, unfunded=False), unfunded=False),
        Objective("overdraw", "milli-GPUs", "min", lambda of, draft, _: overdraw(of, draft)),
        Objective(
            "opportunistic", _WEIGHT, "max", lambda of, draft, _: value_of(of, draft, unfunded=True), unfunded=True
        ),
        Objective("payers", "milli-GPUs × rank", "min", lambda of, draft, _: nearness(of, draft)),
        Objective("domains", "domains of runs", "min", _domains, constructive=True),
        Objective("holes", "squared free GPUs of domains", "max", _holes, constructive=True),
    )
}
"""Every stage of a draft, by name, in the specification's order."""
START_STAGES: Final = {stage.name: stage.unfunded for stage in STAGES.values() if stage.unfunded is not None}
"""Those that start runs: funded ones, and those unfunded by their own choice."""
LAST_STAGES: Final = tuple(name for name in STAGES if name not in {"overdraw", *START_STAGES})
"""Those that follow all that the Policy orders; `overdraw` follows `starts`."""
