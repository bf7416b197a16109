"""The least harm: the small MILP against all sets of victims one by one (spec §6)."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from jobtree.api.kinds.core import Node
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.rules.decode import decode
from jobtree.world.tables import rows
from planner.cutting.domains import Need
from planner.cutting.least import Weighing
from planner.cutting.odds import odds
from planner.cutting.pools import Pools
from planner.cutting.victims import Group, Spare, Victim
from planner.placement.room import Room
from policies.cuts.lottery import Token
from policies.cuts.order import Harm
from policies.inputs.fleet import Fleet
from policies.inputs.shapes import NO_LOAD, Shape
from tests.support import documents as doc
from tests.support.effort import examples

FAR = 1_767_139_200


def room_of(free: Sequence[int], domains: Sequence[str]) -> Room:
    """Nodes in these domains with so many free slots each."""
    nodes = [decode("Node", doc.node(f"n{i}", 8, domain=domain)) for i, domain in enumerate(domains)]
    table = rows.nodes([node for node in nodes if isinstance(node, Node)], PolicySpec())
    room = Room(Fleet.read(table, [], []))
    room.free = [*free]
    return room


def need(gpus: int, *, groups: int = 1, pod: int = 0) -> Need:
    return Need(Shape(gpus, pod, 0), groups, frozenset({0}), NO_LOAD)


def victim(
    name: str, *groups: dict[int, int], owner: str = "", spares: tuple[tuple[int, int], ...] = (),
    least: int | None = None, step: int = 0, start: int = FAR, **fields: bool,
) -> Victim:  # fmt: skip
    """A run of groups {node: GPUs}; ``least``: its least width where it is malleable; ``step``: GPUs of several groups
    that go together; ``spares``: (node, GPUs).
    """
    width = sum(sum(group.values()) for group in groups)
    surplus = 0 if least is None else width - least
    unfunded = fields.get("unfunded", False)
    return Victim(
        ("d", name), f"uid-{name}", owner or f"org:{name}", surplus, start,
        tuple(Group(i, tuple(sorted(g.items())), unfunded, sum(g.values()) <= surplus) for i, g in enumerate(groups)),
        tuple(Spare((("d", f"{name}-s{i}"),), 0, node, gpus) for i, (node, gpus) in enumerate(spares)),
        unfunded, unfunded or fields.get("losable", True), step,
    )  # fmt: skip


class World(NamedTuple):
    free: list[int]
    domains: list[str]
    victims: list[Victim]
    needs: list[Need]


def occupancies(world: World) -> set[tuple[int, ...]]:
    """GPUs per node of every way to lay the start out, whatever is free."""
    groups = [ways for each in world.needs for ways in [sorted(lays(world.domains, each.shape))] * each.groups]
    return {tuple(map(sum, zip(*each, strict=True))) for each in product(*groups)}


def lays(domains: Sequence[str], shape: Shape) -> set[tuple[int, ...]]:
    """GPUs per node of every way to lay a group out in one domain."""
    unit, of_group = shape.pod or 1, set()
    for domain in set(domains):
        mine = [i for i, each in enumerate(domains) if each == domain]
        for split in product(range(shape.size // unit + 1), repeat=len(mine)):
            if sum(split) == shape.size // unit:
                of_group.add(tuple(unit * split[mine.index(i)] if i in mine else 0 for i in range(len(domains))))
    return of_group


def cuts(each: Victim) -> Iterator[tuple[Harm, bool, frozenset[int], dict[int, int]]]:
    """Every way to cut one victim: harm, whether all is lost, groups that go alone, slots freed by node."""
    droppable = [group for group in each.groups if group.droppable]
    for gone in chain.from_iterable(combinations(droppable, n) for n in range(len(droppable) + 1)):
        dropped = sum(group.gpus for group in gone)
        if dropped > each.surplus or dropped % (each.step or 1):
            continue
        for lost in (False, True) if each.losable else (False,):
            kept = [group for group in each.groups if group not in gone and not lost]
            for alone in (False, True) if each.spares and 0 in {group.number for group in kept} else (False,):
                freed: dict[int, int] = {}
                slots = [slot for group in each.groups if group not in kept for slot in group.slots]
                slots += [(s.node, s.gpus) for s in each.spares if alone or 0 not in {g.number for g in kept}]
                for node, gpus in slots:
                    freed[node] = freed.get(node, 0) + gpus
                whole = sum(group.gpus for group in each.groups if lost and group not in gone)
                spares = sum(s.gpus for s in each.spares) if alone else 0
                harm = Harm(0, 0, spares, whole + dropped) if each.unfunded else Harm(whole, dropped, spares, 0)
                yield harm, lost, frozenset(group.number for group in gone), freed


def best(world: World) -> tuple[Harm | None, set[frozenset[str]]]:
    """The least harm, and the sets of runs that the lottery takes in some set of victims of that harm."""
    laid = occupancies(world)
    found: dict[Harm, set[frozenset[str]]] = {}
    for chosen in product(*(list(cuts(each)) for each in world.victims)):
        harm = Harm(*map(sum, zip(*(harm for harm, *_ in chosen), strict=True))) if chosen else Harm()
        room = [free + sum(freed.get(i, 0) for *_, freed in chosen) for i, free in enumerate(world.free)]
        helping = [
            {node for node, _ in group.slots}
            for each, (_, _, gone, _) in zip(world.victims, chosen, strict=True)
            for group in each.groups
            if group.number in gone and not each.step
        ]
        for used in laid:
            fits = all(gpus <= left for gpus, left in zip(used, room, strict=True))
            if fits and all(any(used[node] for node in nodes) for nodes in helping):
                lost = frozenset(
                    each.run[1]
                    for each, (_, lost, *_) in zip(world.victims, chosen, strict=True)
                    if lost and not each.unfunded
                )
                found.setdefault(harm, set()).add(lost)
    least = min(found, default=None)
    return least, found.get(least, set()) if least is not None else set()


def one_by_one(pools: Pools, drawn: tuple[Token, ...]) -> dict[tuple[str, str], Fraction]:
    """Each run's chance, through every sequence of picks."""
    found: dict[tuple[str, str], Fraction] = {}
    owners = [tokens for tokens in pools.after(drawn).values() if tokens]
    for tokens in owners:
        for token in tokens:
            part = Fraction(1, len(owners) * len(tokens))
            key = (token.namespace, token.run)
            found[key] = found.get(key, Fraction(0)) + part
            for run, chance in one_by_one(pools, (*drawn, token)).items():
                found[run] = found.get(run, Fraction(0)) + part * chance
    return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(1, 4))
    domains = sorted(draw(st.lists(st.sampled_from("AB"), min_size=count, max_size=count)))
    free = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    victims = []
    for number in range(draw(st.integers(0, 4))):
        step = draw(st.sampled_from([0, 0, 0, 2]))
        sizes = [1, 1, 1] if step else draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
        groups = [{draw(st.integers(0, count - 1)): gpus} for gpus in sizes]
        spares = ((draw(st.integers(0, count - 1)), 1),) if draw(st.integers(0, 3)) == 0 else ()
        least = sizes[0] if step else draw(st.sampled_from([None, sizes[0]]))
        kind: dict[str, Any] = draw(st.sampled_from([{}, {}, {"unfunded": True}, {"losable": False}]))
        owner = draw(st.sampled_from(["", "org:o"]))
        victims.append(victim(f"v{number}", *groups, owner=owner, spares=spares, least=least, step=step, **kind))
    needs = []
    for most in draw(st.sampled_from([(2,), (1, 1)])):
        pod = draw(st.sampled_from([0, 1, 2]))
        gpus = draw(st.integers(1, 4)) * max(1, pod)
        needs.append(need(min(gpus, 4), groups=draw(st.integers(1, most)), pod=pod))
    return World(free, domains, victims, needs)


@given(worlds())
@examples(400)
def test_no_set_of_victims_does_less_harm(world: World) -> None:
    weighing = Weighing.of(world.victims, world.needs, room_of(world.free, world.domains))
    least, drawn = best(world)
    assert weighing.least() == least
    if least is None:
        return
    pools = Pools(weighing, least)
    in_pool = {token.run for tokens in pools.after(()).values() for token in tokens}
    members = {name for names in drawn for name in names}
    assert in_pool <= members
    assert (in_pool == set()) == (least.lottery == 0)
    for name in sorted(in_pool):
        rest = pools.after([Token("d", name, 0)])
        more = {token.run for tokens in rest.values() for token in tokens}
        completing = [names for names in drawn if name in names]
        assert more <= {other for names in completing for other in names}
        assert (more == set()) == ({name} in completing)
    expected = {run: round(float(chance), 6) for run, chance in sorted(one_by_one(pools, ()).items())}
    assert odds(pools) == expected
    assert {name for _, name in expected} == members
