"""The words of many waiting runs are those of few: where one payer would carry the rest, both computations agree."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

import planner
from planner.effort import USUAL, Effort
from tests.reference.worlds import snapshot
from tests.support import documents as doc
from tests.support.times import T0, moment, unix
from tests.support.worlds import World

FUNDING: dict[str, Any] = {"allowBorrow": True, "sponsors": ["org:l"], "maxBorrowGPUs": 2}


def world(case: str) -> World:
    there = World().domain("A", nodes=4)
    if case == "own":
        return there.budget("org:a", 2)
    if case.startswith("perRun"):
        return there.budget("org:a", 32, perRun={"maxGPUs": 2})
    if case == "subtree":
        return there.budget("org", 3, scope="subtree").budget("org:a", 8, sharing="none")
    if case.startswith("borrow"):
        there.budget("org:a", 1)
    return there.budget("org:l", 16, lending={"allow": True, "maxConcurrency": 1 if case == "lending" else 8})


@pytest.mark.parametrize("case", ["own", "perRun", "perRun spares", "subtree", "lending", "borrow", "borrow spares"])
def test_few_and_many_say_the_same(case: str) -> None:
    said = []
    for count in (2, 120):
        there = world(case)
        for number in range(count):
            there.run(f"r{number:03}", 6, funding=FUNDING, spares=1 if case.endswith("spares") else 0)
        cycle = there.cycle()
        said.append({(wait.message, tuple(cycle.shorts(name))) for name, wait in cycle.waits.items()})

    assert said[0] == said[1]
    assert len(said[0]) == 1


class Place(NamedTuple):
    """What a run says of the nodes that it may use, and what it is told where it says that."""

    spec: dict[str, Any]
    words: str


def selector(key: str, value: str) -> dict[str, Any]:
    return {"locality": {"selector": {key: value}}}


SHUT = "Every matching node of flavor H100-80GB is tainted, or in maintenance before the run surely ends."
PLACES = (
    Place({}, "Asks for 8 GPUs: 8 GPUs would have to be freed in A."),
    Place(
        selector("region", "us-west"),
        "Asks for 8 GPUs: 8 GPUs would have to be freed in A; only nodes with region=us-west are looked at.",
    ),
    Place(selector("region", "us-east"), "No node of flavor H100-80GB matches its selector region=us-east."),
    Place(
        {"template": {"spec": {"nodeSelector": {"rack": "r1"}, "containers": [{"name": "main"}]}}},
        "No node of flavor H100-80GB matches its selector rack=r1.",
    ),
    Place(selector("fabric.domain", "T"), SHUT),
    Place(selector("fabric.domain", "M") | {"runtime": {"timeLimit": "2h"}}, SHUT),
    Place(
        selector("fabric.domain", "M") | {"runtime": {"timeLimit": "1h"}},
        "No node that it may use is matched by an envelope that pays for it: org-a/gpus (fabric.domain=A).",
    ),
)
"""Where nothing is free, where no node is, where all are tainted, where they leave soon, where nobody pays."""


def told(places: Sequence[Place], effort: Effort) -> list[str]:
    """The words of runs that differ in nothing but that."""
    there = World().domain("A", nodes=1).domain("T", nodes=1, spec={"taints": [{"key": "t", "effect": "NoSchedule"}]})
    there.domain("M", nodes=1).budget("org:a", 64, selector={"fabric.domain": "A"})
    there.policy(maintenance=[{"selector": {"fabric.domain": "M"}, "start": moment("+1h"), "end": moment("+3h")}])
    there.run("older", 8, created="-1h")
    for number, place in enumerate(places):
        there.run(f"r{number}", 8, spec=place.spec)
    return [wait.message for wait in planner.plan(snapshot(doc.read(there.save())), unix(T0), effort).waits]


@pytest.mark.parametrize("effort", [USUAL, Effort(exact=0)], ids=["few wait", "many wait"])
def test_a_run_is_told_of_the_nodes_that_it_asked_for_itself(effort: Effort) -> None:
    for places in (*((place,) for place in PLACES), PLACES, PLACES[::-1]):
        assert told(places, effort) == [place.words for place in places]
