"""Which of the runs of a type lie where: for what they recall (spec §3.8), while all else of a type is alike.

A large master counts the groups of a type in each kind of domain, not whose they are. Its near payments ask for so
much of runs with some rights in a cell (policies.recall_flows). With groups(t, r, k), of runs of type and shape t with
rights r in the kind of domain k, whole:

    Σ_k groups(t, r, k) = what starts of t with r
    Σ_r groups(t, r, k) ≤ groups(t, k)                                            of the master's solution
    Σ_(t, k in the cell) weighed GPUs × groups(t, r, k) + short(r, cell) ≥ Σ_envelopes near(r, envelope, cell)
    min Σ short
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.master import Master
from planner.solver import LEAN, NOISE, Floats, Settings, solve
from policies.model import INF, Model
from policies.payments import Terms
from policies.places import usable
from policies.recall_flows import Cell, weighed
from policies.shapes import Shape

NODES: Final = 100
"""Most branch-and-bound nodes."""


class Alike(NamedTuple):
    """Groups that a master's solution does not tell apart: a type's, of one shape."""

    type: int
    shape: Shape


Groups = dict[tuple[Alike, int], dict[int, int]]
"""(alike groups, rights) → kind of domain → groups."""


def nearby(
    master: Master,
    values: Floats,
    there: Mapping[Alike, Mapping[int, int]],
    wanted: Mapping[tuple[Alike, int], int],
    settings: Settings,
) -> Groups:
    """Where groups lie whose runs recall something that depends on it; runs that recall nothing are not in it.

    ``values``: a solution of the master; ``there``: what it has in each kind of domain; ``wanted``: (alike groups,
    rights) → how many groups start. Nothing where the small MIP finds no point.
    """
    needs = _needs(master, values)
    asking = {rights for rights, _ in needs}
    mine = {
        key: most for key, most in wanted.items() if key[1] in asking and sum(there.get(key[0], {}).values()) >= most
    }
    if not mine:
        return {}
    model = Model()
    groups: dict[tuple[Alike, int, int], int] = {}
    at: dict[Alike, dict[int, Terms]] = defaultdict(lambda: defaultdict(list))
    near: dict[tuple[int, Cell], Terms] = defaultdict(list)
    for (alike, rights), most in mine.items():
        for place in there[alike]:
            column = model.column(("groups", *alike, rights, place), upper=float(most), integer=True)
            groups[alike, rights, place] = column
            at[alike][place].append((column, 1.0))
            for cell in _cells(master, alike.type, place):
                near[rights, cell].append((column, weighed(master.problem, [(alike.shape, 1)])))
        model.row(("starts", *alike, rights), [(groups[alike, rights, p], 1.0) for p in there[alike]], most, most)
    for alike, by_place in at.items():
        for place, terms in by_place.items():
            model.row(("there", *alike, place), terms, -INF, float(there[alike][place]))
    for (rights, cell), gpus in needs.items():
        short = model.column(("short", rights, *cell.name), cost=-1.0)
        model.row(("near", rights, *cell.name), [*near[rights, cell], (short, 1.0)], gpus, INF)
    found = solve(model, settings | LEAN | {"mip_max_nodes": NODES})
    if found.values is None:
        return {}
    lies: Groups = defaultdict(dict)
    for (alike, rights, place), column in groups.items():
        if count := round(float(found.values[column])):
            lies[alike, rights][place] = count
    return lies


def _needs(master: Master, values: Floats) -> dict[tuple[int, Cell], float]:
    """(rights, cell) → weighed GPUs of runs with these rights that a solution pays for there by near payments."""
    near = master.flows.near
    found: dict[tuple[int, Cell], float] = {}
    for cell, by_rights in near.columns.items() if near is not None else ():
        for rights, terms in by_rights.items():
            gpus = sum(unit * float(values[column]) for column, unit in terms)
            if gpus > NOISE:
                found[rights, cell] = gpus
    return found


def _cells(master: Master, kind: int, place: int) -> list[Cell]:
    """The cells in which groups of a type lie that lie in a kind of domain."""
    problem, near = master.problem, master.flows.near
    assert near is not None
    region = problem.book.money.region
    regions = sorted({region[site] for site in usable(master.kinds[place], problem.types[kind].sites)})
    return [cell for where in regions if (cell := near.network.cell(kind, where)) is not None]
