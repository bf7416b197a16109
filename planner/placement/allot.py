"""Which domain of its kind each piece lies in, as a small MIP, where placement by construction has stranded some.

    max Σ worth × keep   Σ_domains n[shape, domain] = Σ_pieces of the shape keep,   0 ≤ keep ≤ 1,
    the rows of room of every single domain (policies.model.capacity)

Pieces of one shape are interchangeable, so the heavier ones are kept first and ``keep`` is whole where n is.
"""

from collections.abc import Sequence
from typing import Final

from planner.placement.place import Piece
from planner.placement.room import Room
from planner.solver.highs import LEAN, Settings, solve
from policies.inputs.places import Kind, usable
from policies.model import capacity
from policies.model.linear import Model

NODES: Final = 50
"""Most branch-and-bound nodes of one kind."""
COLUMNS: Final = 2_000
"""Most columns of a kind that is done at all."""
KEEP: Final = 1e-3
"""What a piece counts that is worth nothing to this stage."""


def allot(
    room: Room, kind: Kind, pieces: Sequence[Piece], worth: Sequence[float], settings: Settings
) -> list[Piece] | None:
    """Give the kind's pieces their domains; those that get none. None: no answer, and nothing changed.

    ``room``: before any of the pieces took slots; ``worth``: per candidate.
    """
    alike: dict[capacity.PieceKey, list[Piece]] = {}
    for piece in pieces:
        alike.setdefault((piece.shape, kind.index, usable(kind, piece.sites), piece.load), []).append(piece)
    if len(alike) * len(kind.domains) > COLUMNS:
        return None
    model = Model()
    costs: dict[int, float] = {}
    inside: list[list[capacity.Pieces]] = [[] for _ in kind.domains]
    counts: list[list[int]] = []
    for (shape, _, part, load), mine in alike.items():
        mine.sort(key=lambda piece: (-worth[piece.candidate], piece.candidate, piece.groups))
        columns = [model.column(("lie", shape, d), upper=float(len(mine)), integer=True) for d in kind.domains]
        for here, column in zip(inside, columns, strict=True):
            here.append(capacity.Pieces(shape, part, load, column))
        kept = [model.column(("keep",), upper=1.0) for _ in mine]
        costs.update((column, KEEP + worth[piece.candidate]) for column, piece in zip(kept, mine, strict=True))
        model.row(("all", shape), [*((c, 1.0) for c in columns), *((c, -1.0) for c in kept)], 0.0, 0.0)
        counts.append(columns)
    for domain, here in zip(kind.domains, inside, strict=True):
        capacity.rows(model, Kind(kind.index, kind.sites, (domain,)), here, room.capacity)
    model.maximise(costs)
    found = solve(model, settings | LEAN | {"mip_max_nodes": NODES}).values
    if found is None:
        return None
    failed: list[Piece] = []
    for mine, columns in zip(alike.values(), counts, strict=True):
        waiting = iter(mine)
        for domain, column in zip(kind.domains, columns, strict=True):
            for _ in range(round(float(found[column]))):
                next(waiting).domain = domain
        failed += waiting
    return failed
