"""Choice of a domain for each piece, as a small MIP, where placement by construction has stranded some.

    max Σ worth × keep
    Σ_domains n[alike, domain] = Σ_pieces alike keep,   0 ≤ keep ≤ 1,
    the rows of room of every single domain (policies.model.capacity)

Pieces are alike that ask the same of the same sites: they are interchangeable, so the heavier ones are kept first and
``keep`` is whole where n is. All stay in the kind of domain that the master has them in: in another one somebody else
has to pay, and what nobody can pay there is lost with all that was moved for it.
"""

from collections.abc import Sequence
from typing import Final

from planner.effort import USUAL, Effort
from planner.placement.place import Piece
from planner.placement.room import Room
from planner.solver.highs import LEAN, Settings, solve
from policies.inputs.places import Kind, usable
from policies.inputs.shapes import PodLoad, Shape
from policies.model import capacity
from policies.model.linear import Model

KEEP: Final = 1e-6
"""What a piece counts that is worth nothing to this stage, as part of the heaviest."""

_Alike = tuple[Shape, frozenset[int], PodLoad]
"""(shape, sites that it may use, what a pod asks of its node beside GPUs)."""


def allot(
    room: Room, kind: Kind, pieces: Sequence[Piece], worth: Sequence[float], settings: Settings, effort: Effort = USUAL
) -> list[Piece] | None:
    """Give pieces domains of their ``kind``; returns those that get none. None: no answer, and nothing changed.

    ``pieces``: all that lie there; ``room``: before any of them took slots; ``worth``: per candidate.
    """
    groups: dict[_Alike, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda p: (-worth[p.candidate], p.candidate, p.groups)):
        groups.setdefault((piece.shape, usable(kind, piece.sites), piece.load), []).append(piece)
    if len(kind.domains) * len(groups) > effort.placing.columns:
        return None
    model = Model()
    most = max([1.0, *(float(worth[piece.candidate]) for piece in pieces)])
    costs: dict[int, float] = {}
    inside: dict[int, list[capacity.Pieces]] = {domain: [] for domain in kind.domains}
    lies: list[dict[int, int]] = []
    for (shape, part, load), alike in groups.items():
        lie = {d: model.column(("lie", shape, d), upper=float(len(alike)), integer=True) for d in kind.domains}
        for domain, column in lie.items():
            inside[domain].append(capacity.Pieces(shape, part, load, column))
        kept = [model.column(("keep",), upper=1.0) for _ in alike]
        costs |= {c: KEEP + worth[p.candidate] / most for c, p in zip(kept, alike, strict=True)}
        model.row(("all", shape), [*((c, 1.0) for c in lie.values()), *((c, -1.0) for c in kept)], 0.0, 0.0)
        lies.append(lie)
    for domain in kind.domains:
        capacity.rows(model, Kind(kind.index, kind.sites, (domain,)), inside[domain], room.capacity)
    model.maximise(costs)
    found = solve(model, settings | LEAN | {"mip_max_nodes": effort.placing.nodes}).values
    if found is None:
        return None
    rest: list[Piece] = []
    for alike, lie in zip(groups.values(), lies, strict=True):
        domains = [domain for domain, column in lie.items() for _ in range(round(float(found[column])))]
        for piece, domain in zip(alike, domains, strict=False):
            piece.domain = domain
        rest += alike[len(domains) :]
    return rest
