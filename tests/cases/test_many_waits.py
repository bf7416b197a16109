"""The words of many waiting runs are those of few: where one payer would carry the rest, both computations agree."""

from typing import Any

import pytest

from tests.support.worlds import World

FUNDING: dict[str, Any] = {"allowBorrow": True, "sponsors": ["org:l"], "maxBorrowGPUs": 2}


def world(case: str) -> World:
    there = World().domain("A", nodes=4)
    if case == "own":
        return there.budget("org:a", 2)
    if case == "perRun":
        return there.budget("org:a", 32, perRun={"maxGPUs": 2})
    if case == "subtree":
        return there.budget("org", 3, scope="subtree").budget("org:a", 8, sharing="none")
    if case == "borrow":
        there.budget("org:a", 1)
    return there.budget("org:l", 16, lending={"allow": True, "maxConcurrency": 1 if case == "lending" else 8})


@pytest.mark.parametrize("case", ["own", "perRun", "subtree", "lending", "borrow"])
def test_few_and_many_say_the_same(case: str) -> None:
    said = []
    for count in (2, 120):
        there = world(case)
        for number in range(count):
            there.run(f"r{number:03}", 6, funding=FUNDING)
        cycle = there.cycle()
        said.append({(wait.message, tuple(cycle.shorts(name))) for name, wait in cycle.waits.items()})

    assert said[0] == said[1]
    assert len(said[0]) == 1
