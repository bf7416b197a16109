"""A busy small world, cycle after cycle: no cut is needless, no promise wavers, and at rest nothing moves.

A cut is needless where its promise would start without it: on each of its nodes there was room enough for all that
promises start there in what was free and what the others left.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from policies.cuts.lottery import secret_at
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import Cycle, World

OWNERS = ("org:a", "org:b", "org:c")
NODES = {f"{domain}{number:02}": 8 for domain, count in (("a", 3), ("b", 2)) for number in range(1, count + 1)}
Unit = tuple[str, str, int]
"""What goes at once for a promise: (reservation, run, its group where only that goes, else -1)."""


def needless(before: list[Document], cycle: Cycle) -> list[Unit]:
    """Cuts without which what promises start would have had room, where it lies."""
    leases = {each["metadata"]["name"]: each for each in before if each["kind"] == "Lease"}
    left = dict(NODES)
    for lease in leases.values():
        if not lease["status"].get("closed"):
            for slot in lease["spec"]["slice"]["nodes"]:
                left[slot.partition("#")[0]] -= 1
    freed: dict[Unit, dict[str, int]] = {}
    for closure in cycle.plan.closures:
        spec = leases[closure.name]["spec"]
        node, gpus = spec["slice"]["nodes"][0].partition("#")[0], len(spec["slice"]["nodes"])
        if closure.made_room_for:
            alone = closure.reason in ("Shrink", "DropSpare")
            unit = closure.made_room_for, spec["runRef"]["name"], spec["group"] if alone else -1
            freed.setdefault(unit, {}).setdefault(node, 0)
            freed[unit][node] += gpus
        else:
            left[node] += gpus
    due = {
        each["spec"]["runRef"]["name"] for each in cycle.all("Reservation") if each["status"]["state"] == "Activated"
    }
    asked = dict.fromkeys(NODES, 0)
    for lease in cycle.plan.leases:
        if lease.spec.run_ref.run_name in due:
            asked[lease.spec.node] += len(lease.spec.slice.nodes)
    free = {node: left[node] + sum(unit.get(node, 0) for unit in freed.values()) for node in NODES}
    return [unit for unit, nodes in freed.items() if all(asked[node] <= free[node] - nodes[node] for node in nodes)]


def wavering(before: dict[str, Document], cycle: Cycle) -> Iterator[str]:
    """Promises that moved in time or place without a word of it, or twice for one cause."""
    for each in cycle.all("Reservation"):
        name, status = each["metadata"]["name"], each["status"]
        history = status.get("history", [])
        if len({(move["at"], move["cause"]) for move in history}) < len(history):
            yield f"{name} moved twice for one cause: {history}"
        old = before.get(name)
        if old is None or status["state"] != "Pending":
            continue
        moved = any(old[field] != status[field] for field in ("earliestStart", "intendedSlice"))
        if moved and len(history) <= len(old.get("history", [])) < 20:
            yield f"{name} moved without a cause"


def arrive(world: World, chance: random.Random, minute: int) -> None:
    """A run of some kind; some state a limit, some are malleable or opportunistic, some start two together."""
    fields: dict[str, Any] = {}
    if chance.random() < 0.3:
        fields = {"by": 4, "malleable": {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}}
    elif chance.random() < 0.2:
        fields = {"funding": {"opportunistic": True}}
    gpus = 12 if "malleable" in fields else chance.choice([2, 4, 8, 8])
    limit = chance.choice([None, None, "40m"])
    owner = chance.choice(OWNERS)
    names = [f"r{minute:04}"]
    if not fields and chance.random() < 0.2:
        fields = {"gang": {"name": f"g{minute}", "size": 2}}
        names.append(f"s{minute:04}")
    for name in names:
        world.run(name, gpus, owner=owner, limit=limit, created=f"+{minute}m", **fields)


def clear(world: World, cycle: Cycle) -> None:
    """Runs that are over go, as the reservations and Plans of long ago do."""
    for name, phase in cycle.phases.items():
        if phase in ("Completed", "Failed"):
            world.delete("Run", name)


def unlike(one: Cycle, other: Cycle) -> list[tuple[Document | None, Document | None]]:
    """Objects that are not the same after both cycles, but for their Plans."""
    first, second = (
        {(each["kind"], each["metadata"]["name"]): each for each in cycle.documents if each["kind"] != "Plan"}
        for cycle in (one, other)
    )
    keys = sorted({*first, *second})
    return [(first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)]


def busy() -> World:
    """Two domains, three owners, and a chain of secrets that is known: every draw comes out the same again."""
    world = World().domain("A", nodes=3).domain("B", nodes=2)
    world.policy(
        lottery={"term": "30m"},
        reservations={"patience": "10m", "notice": "5m"},
        retention={"leases": "1h", "plans": 3},
    )
    for owner in OWNERS:
        world.budget(owner, 40)
    origin, length = "5f" * 32, 4096
    chain = {"anchor": secret_at(origin, 0, length), "length": str(length), "position": "0", "since": moment("+0s")}
    where = {"name": "jobtree-lottery", "namespace": "jobtree-system"}
    return world.add(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": chain},
        {"apiVersion": "v1", "kind": "Secret", "metadata": where, "type": "Opaque", "stringData": {"origin": origin}},
    )


@pytest.mark.parametrize("cycles", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_cuts_serve_and_promises_stand_over_many_cycles(cycles: int) -> None:
    chance = random.Random(7)
    world = busy()
    cut, rests, cycle = 0, 0, world.cycle()
    promises: dict[str, Document] = {}
    for minute in range(1, cycles):
        if chance.random() < 0.4:
            arrive(world, chance, minute)
        before = cycle.documents
        cycle = world.cycle(f"+{minute}m")
        assert needless(before, cycle) == []
        assert [*wavering(promises, cycle)] == []
        cut += len({closure.made_room_for for closure in cycle.plan.closures if closure.made_room_for})
        if minute % 10 == 0:  # nothing changes, and after a cycle that closes nothing nothing moves
            again = world.cycle(f"+{60 * minute + 10}s")
            if not cycle.plan.closures and not again.plan.closures:
                rests += 1
                assert unlike(cycle, again) == []
            cycle = again
        promises = {each["metadata"]["name"]: each["status"] for each in cycle.all("Reservation")}
        clear(world, cycle)
    assert cut > cycles // 100
    assert rests > cycles // 50
