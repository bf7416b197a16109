"""A plan in the making: which runs start, where, and who pays."""

from dataclasses import dataclass, field

from planner.placement.place import Piece, Start
from policies.inputs.claims import RunKey
from policies.model.problem import Problem

Payments = dict[int, int]
"""Envelope → GPUs, for one role and region of one run."""


@dataclass
class Draft:
    """``paid``: candidate → (active, region) → payments; unfunded starts have none."""

    starts: list[Start] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    paid: dict[int, dict[tuple[bool, int], Payments]] = field(default_factory=dict)

    def started(self, problem: Problem) -> set[RunKey]:
        """Keys of the runs that start."""
        return {problem.candidates[start.candidate].run.key for start in self.starts}
