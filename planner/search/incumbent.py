"""An incumbent in short: what is enough, with the snapshot and the time, to make the whole Plan of it.

A search hands one out whenever it finds a better one. Most of them nobody needs, so closures, leases, statuses and
words are made of the last one alone (`planner.planning.Planning.finish`).
"""

import msgspec

from jobtree.world.plan import Solver, Stage
from planner.placement.draft import Draft
from planner.placement.place import Piece, Start, pieces_of
from planner.placement.room import Chunk
from planner.search.certificates import Outcome
from planner.solver.highs import identity
from policies.model.problem import Problem


class Incumbent(msgspec.Struct, frozen=True, kw_only=True):
    """``starts``: (candidate, steps); ``chunks``: (candidate, group, node, slots, pods, active); ``payments``:
    (candidate, active, region, envelope, GPUs), nearest payer first; ``stages``: its certificates.

    Candidates, nodes, regions and envelopes are numbers of the snapshot's Problem.
    """

    starts: list[tuple[int, int]]
    chunks: list[tuple[int, int, int, int, int, bool]]
    payments: list[tuple[int, bool, int, int, int]]
    stages: list[Stage]
    solver: Solver

    @classmethod
    def of(cls, outcome: Outcome) -> "Incumbent":
        """The short form of an outcome."""
        draft = outcome.draft
        return cls(
            starts=[(start.candidate, start.steps) for start in draft.starts],
            chunks=[
                (piece.candidate, chunk.group, chunk.node, chunk.count, chunk.pods, chunk.active)
                for piece in draft.pieces
                for chunk in piece.chunks
            ],
            payments=[
                (candidate, active, region, envelope, gpus)
                for candidate, paid in draft.paid.items()
                for (active, region), payments in paid.items()
                for envelope, gpus in payments.items()
            ],
            stages=list(outcome.stages),
            solver=Solver(**identity(outcome.settings)),
        )

    def draft(self, problem: Problem) -> Draft:
        """The draft that it is short for."""
        draft = Draft([Start(*start) for start in self.starts])
        of_group: dict[tuple[int, int], Piece] = {}
        for start in draft.starts:
            draft.paid[start.candidate] = {}
            for piece in pieces_of(problem, start):
                draft.pieces.append(piece)
                of_group.update({(start.candidate, group): piece for group, _ in piece.groups})
        for candidate, group, node, count, pods, active in self.chunks:
            piece = of_group[candidate, group]
            piece.domain = int(problem.fleet.domain[node])
            piece.chunks.append(Chunk(group, node, count, pods, active))
        for candidate, active, region, envelope, gpus in self.payments:
            draft.paid[candidate].setdefault((active, region), {})[envelope] = gpus
        return draft
