"""Published odds are how often runs are drawn: exact ones, and simulated ones within the error that they state."""

from collections import Counter
from hashlib import sha256
from math import sqrt

import pytest

from planner.cutting.least import Weighing
from planner.cutting.odds import _simulated, odds
from planner.cutting.pools import Pools
from planner.effort import USUAL
from policies.cuts import lottery
from tests.cuts.test_least import need, room_of, victim

TIMES = 4_000
KEY = tuple[str, str]


def pools(case: str) -> Pools:
    """A start of some GPUs that victims of several owners and widths fill the nodes against."""
    if case == "owners":  # three of six, of owners with one, two and three runs
        runs = [("p", "org:p"), ("q0", "org:q"), ("q1", "org:q"), ("r0", "org:r"), ("r1", "org:r"), ("r2", "org:r")]
        victims = [victim(name, {node: 2}, owner=owner) for node, (name, owner) in enumerate(runs)]
        wanted = need(2, groups=3)
    elif case == "widths":  # 4 GPUs by one of 4, or by two of 2
        victims = [victim("wide", {0: 2, 1: 2}), *(victim(f"n{node}", {node: 2}, owner="org:n") for node in (2, 3, 4))]
        wanted = need(2, groups=2)
    else:  # a run on two nodes frees two at once, beside what only one of them needs
        victims = [victim("a", {0: 1, 1: 1}), victim("b", {2: 1}), victim("c", {3: 1}), victim("d", {4: 1, 5: 1})]
        wanted = need(1, groups=3)
    nodes = 1 + max(node for each in victims for group in each.groups for node, _ in group.slots)
    weighing = Weighing.of(victims, [wanted], room_of([0] * nodes, ["A"] * nodes))
    harm = weighing.least()
    assert harm is not None
    assert harm.lottery
    return Pools(weighing, harm)


def drawn(asked: Pools, times: int) -> Counter[KEY]:
    """How often each run is drawn with the seeds of so many positions of a chain."""
    secret, counts = "5f" * 32, Counter[KEY]()
    for _ in range(times):
        secret = sha256(bytes.fromhex(secret)).hexdigest()
        picks = lottery.draw(lottery.seed_of(secret, "uid", 1_767_226_500), asked.after)
        counts.update((pick.token.namespace, pick.token.run) for pick in picks)
    return counts


@pytest.mark.parametrize("case", ["owners", "widths", "pieces"])
def test_exact_odds_are_how_often_runs_are_drawn(case: str) -> None:
    asked = pools(case)
    published, counts = odds(asked), drawn(asked, TIMES)
    assert counts.keys() <= published.keys()
    far = {run: (p, counts[run]) for run, p in published.items()
           if abs(counts[run] - TIMES * p) > 4 * sqrt(TIMES * p * (1 - p)) + TIMES * 1e-6}  # fmt: skip
    assert far == {}


@pytest.mark.parametrize("case", ["owners", "widths", "pieces"])
def test_simulated_odds_are_within_their_error(case: str) -> None:
    asked = pools(case)
    limits = USUAL.odds
    exact = odds(asked)
    simulated = _simulated(asked, limits.columns // len(asked.weighing.model.cost), limits.draws)
    assert max(abs(simulated.get(run, 0.0) - p) for run, p in exact.items()) <= 4 * 0.5 / sqrt(limits.draws)
