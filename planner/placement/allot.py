"""Choice of a domain for each piece, as a small MIP, where placement by construction has stranded some.

    max Σ worth × keep − Σ move × moved
    Σ_domains n[alike, domain] = Σ_pieces alike keep,   0 ≤ keep ≤ 1,
    Σ_domains of a kind n[alike, domain] − moved[alike, kind] ≤ pieces that the master has there,
    the rows of room of every single domain (policies.model.capacity)

Pieces are alike that ask the same of the same sites: they are interchangeable, so the heavier ones are kept first and
``keep`` is whole where n is. In another kind of domain than the master's somebody else may have to pay, so the lightest
move, and only where some piece would stay away else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.effort import USUAL, Effort
from planner.placement.place import Piece
from planner.placement.room import Room
from planner.solver.highs import LEAN, Settings, solve
from policies.inputs.places import Kind, usable
from policies.inputs.shapes import PodLoad, Shape
from policies.model import capacity
from policies.model.linear import INF, Model

KEEP: Final = 1e-6
"""What a piece counts that is worth nothing to this stage, as part of the heaviest."""

_Alike = tuple[Shape, frozenset[int], PodLoad]
"""(shape, sites that it may use, what a pod asks of its node beside GPUs)."""


@dataclass
class _Group:
    """Pieces that are alike, the heaviest first, and the columns of how many of them lie in each domain, by kind."""

    pieces: list[Piece]
    columns: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def hand_out(self, count: Mapping[int, int]) -> list[Piece]:
        """Give as many pieces, the heaviest, domains as columns ``count``, in their own kinds first; the others."""
        left = {kind: [d for d, column in mine for _ in range(count[column])] for kind, mine in self.columns.items()}
        kept = sum(map(len, left.values()))
        away: list[Piece] = []
        for piece in self.pieces[:kept]:
            if left.get(piece.kind):
                piece.domain = left[piece.kind].pop(0)
            else:
                away.append(piece)
        others = [(kind, domain) for kind, mine in left.items() for domain in mine]
        for piece, (kind, domain) in zip(away, others, strict=True):
            piece.kind, piece.domain = kind, domain
        return self.pieces[kept:]


def allot(
    room: Room,
    kinds: Sequence[Kind],
    pieces: Sequence[Piece],
    worth: Sequence[float],
    settings: Settings,
    effort: Effort = USUAL,
) -> list[Piece] | None:
    """Give pieces domains of ``kinds``; returns those that get none. None: no answer, and nothing changed.

    ``pieces``: all that lie in these kinds; ``room``: before any of them took slots; ``worth``: per candidate.
    """
    groups: dict[_Alike, _Group] = {}
    for piece in sorted(pieces, key=lambda p: (-worth[p.candidate], p.candidate, p.groups)):
        sites = frozenset[int]().union(*(usable(kind, piece.sites) for kind in kinds))
        groups.setdefault((piece.shape, sites, piece.load), _Group([])).pieces.append(piece)
    limits = effort.placing
    if sum(len(kind.domains) for kind in kinds for _, sites, _ in groups if usable(kind, sites)) > limits.columns:
        return None
    model = Model()
    most = max([1.0, *(float(worth[piece.candidate]) for piece in pieces)])
    costs: dict[int, float] = {}
    inside: dict[int, list[capacity.Pieces]] = {domain: [] for kind in kinds for domain in kind.domains}
    for (shape, sites, load), group in groups.items():
        for kind in kinds:
            if part := usable(kind, sites):
                mine = group.columns[kind.index] = [
                    (d, model.column(("lie", shape, d), upper=float(len(group.pieces)), integer=True))
                    for d in kind.domains
                ]
                for domain, column in mine:
                    inside[domain].append(capacity.Pieces(shape, part, load, column))
                here = sum(piece.kind == kind.index for piece in group.pieces)
                moved = model.column(("moved", shape, kind.index))
                costs[moved] = -limits.move * worth[group.pieces[-1].candidate] / most
                model.row(("moved", shape, kind.index), [*((c, 1.0) for _, c in mine), (moved, -1.0)], -INF, here)
        kept = [model.column(("keep",), upper=1.0) for _ in group.pieces]
        costs |= {c: KEEP + worth[p.candidate] / most for c, p in zip(kept, group.pieces, strict=True)}
        lie = [(column, 1.0) for mine in group.columns.values() for _, column in mine]
        model.row(("all", shape), [*lie, *((c, -1.0) for c in kept)], 0.0, 0.0)
    for kind in kinds:
        for domain in kind.domains:
            capacity.rows(model, Kind(kind.index, kind.sites, (domain,)), inside[domain], room.capacity)
    model.maximise(costs)
    found = solve(model, settings | LEAN | {"mip_max_nodes": limits.nodes}).values
    if found is None:
        return None
    count = {c: round(float(found[c])) for group in groups.values() for mine in group.columns.values() for _, c in mine}
    return [piece for group in groups.values() for piece in group.hand_out(count)]
