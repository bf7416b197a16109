"""Room in the model: what fits into the domains of a kind (spec §2), valid whatever placement does later.

For a kind, a part of its sites, a pod size p and a size s:

    Σ over groups that can use only that part of  ⌊units_p(group)/s⌋·s × count  ≤  Σ_domains ⌊capacity_p(domain)/s⌋·s

units_p counts a group's GPUs in pods of at least p, each rounded down to multiples of p; capacity_p(domain) is
Σ_nodes ⌊free/p⌋·p. A second set of rows, for work whose pods ask for CPU or memory, counts each Active pod as one of
size p against Σ_nodes p × (pods of size p and that load which fit): a bigger pod takes no less of a node.
In any placement each domain's groups satisfy Σ units_p ≤ capacity_p, and a sum of multiples of s
that is at most c is at most ⌊c/s⌋·s: so the rows hold for every s. Where pod and group sizes divide one another they
are also sufficient; where they do not, placement has the last word.
"""

from dataclasses import dataclass

from policies.inputs.places import Capacity, Kind, pod_units
from policies.inputs.shapes import NO_LOAD, PodLoad, Shape
from policies.model.linear import INF, Model

PieceKey = tuple[Shape, int, frozenset[int], PodLoad]
"""(shape, kind, the part of the kind's sites that it may use, what a pod asks of its node beside GPUs)."""


@dataclass(frozen=True)
class Pieces:
    """Groups of one shape in one part of a kind, however many types they come from. ``column`` counts them."""

    shape: Shape
    part: frozenset[int]
    load: PodLoad
    column: int


def gather(model: Model, groups: dict[PieceKey, list[int]]) -> dict[int, list[Pieces]]:
    """One counting column per PieceKey, so that capacity rows stay short. Returns them by kind."""
    found: dict[int, list[Pieces]] = {}
    for (shape, kind, part, load), columns in sorted(groups.items(), key=_piece_order):
        if len(columns) == 1:
            count = columns[0]
        else:
            count = model.column(("pieces", shape, kind, tuple(sorted(part)), load))
            terms = [(column, 1.0) for column in columns]
            model.row(("count", shape, kind, tuple(sorted(part)), load), [*terms, (count, -1.0)], 0.0, 0.0)
        found.setdefault(kind, []).append(Pieces(shape, part, load, count))
    return found


def _piece_order(item: tuple[PieceKey, list[int]]) -> tuple[object, ...]:
    (shape, kind, part, load), _ = item
    return kind, sorted(part), shape, load


def rows(model: Model, kind: Kind, pieces: list[Pieces], capacity: Capacity) -> None:
    """All rows of one kind: for all work, and for work that asks for CPU or memory on the nodes that have it."""
    for part, load in sorted({(p.part, load) for p in pieces for load in (NO_LOAD, p.load)}, key=_part_order):
        inside = [p for p in pieces if p.part <= part and load in (NO_LOAD, p.load)]
        for pod in sorted({max(1, p.shape.pod) for p in inside}):
            caps = [capacity(domain, part, pod, load) for domain in kind.domains]
            takers = [(p.column, units) for p in inside if (units := pod_units(p.shape, pod, load))]
            for size in sorted({units for _, units in takers} | {pod}):
                terms = [(column, float(units // size * size)) for column, units in takers if units >= size]
                limit = float(sum(cap // size * size for cap in caps))
                model.row(("room", kind.index, tuple(sorted(part)), load, pod, size), terms, -INF, limit)


def _part_order(key: tuple[frozenset[int], PodLoad]) -> tuple[list[int], PodLoad]:
    return sorted(key[0]), key[1]
