"""Runs that ask the same find their type and their payers together: the same that each finds alone."""

from dataclasses import replace
from itertools import product
from typing import Final

import pytest
from hypothesis import given

from planner import Planning
from planner.effort import USUAL, Effort
from policies.model.payers import Payers, payers
from policies.model.problem import Problem
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment

WORLDS: Final = 25
OLD: Final = "A100-80GB"
BASE: Final = doc.merge(
    doc.run("base", 8),
    {
        "spec": {
            "resources": {"gpusPerPod": 2},
            "funding": {"allowBorrow": True, "sponsors": ["org:b"]},
            "locality": {"groupGPUs": 4},
        }
    },
)


def _template(*tolerations: doc.Document, **requests: str) -> doc.Document:
    container = {"name": "main", "image": "i", "resources": {"requests": requests}}
    return {"template": {"spec": {"containers": [container], "tolerations": [*tolerations]}}}


def _malleable(least: int, most: int, step: int) -> doc.Document:
    widths = {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": step}
    return {"resources": {"totalGPUs": most}, "malleable": widths}


OTHERWISE: Final[dict[str, doc.Document]] = {
    "flavor": {"resources": {"gpuType": OLD}},
    "total": {"resources": {"totalGPUs": 12}},
    "least": _malleable(4, 8, 4),
    "most": _malleable(4, 12, 4),
    "more": _malleable(8, 12, 4),
    "step": _malleable(4, 12, 8),
    "group": {"locality": {"groupGPUs": 8}},
    "pod": {"resources": {"gpusPerPod": 4}},
    "spares": {"spares": 1},
    "spread": {"locality": {"allowCrossGroupSpread": False}},
    "selector": {"locality": {"selector": {"fabric.domain": "d1"}}},
    "tolerations": _template({"key": "t", "operator": "Exists"}),
    "cpu": _template(cpu="4"),
    "memory": _template(memory="4Gi"),
    "loan": {"funding": {"maxBorrowGPUs": 4}},
    "limit": {"runtime": {"timeLimit": "1h"}},
}
"""What runs that are otherwise like the base ask; each makes a type."""
ODD: Final = World(
    [
        doc.policy(
            accountingPeriod="1h",
            maintenance=[{"selector": {"region": "us-east"}, "start": moment("+2h"), "end": moment("+4h")}],
        ),
        doc.node("w0"),
        doc.node("w1", domain="d5"),
        doc.merge(doc.node("e0", domain="d2"), {"metadata": {"labels": {"region": "us-east"}}}),
        doc.merge(doc.node("t0", domain="d3"), {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}),
        doc.node("a0", domain="d4", flavor=OLD),
        doc.budget("org:a", [doc.envelope(64), doc.envelope(64, "old", flavor=OLD)]),
        doc.budget("org:b", [doc.envelope(64, lending={"allow": True})]),
        BASE,
        doc.merge(BASE, {"metadata": {"name": "same"}}),
        *(doc.merge(BASE, {"metadata": {"name": name}, "spec": spec}) for name, spec in OTHERWISE.items()),
    ]
)

FAMILY: Final = [
    doc.node("w0"),
    doc.node("a0", domain="d2", flavor=OLD),
    doc.budget("org:a", [doc.envelope(64, perRun={"maxTime": "2h"}), doc.envelope(64, "old", flavor=OLD)]),
    doc.budget("org:a:x", [doc.envelope(64, sharing="none", lending={"allow": True})]),
    doc.budget("org:a:y", [doc.envelope(64)]),
]
KIN: Final = World(
    [
        *FAMILY,
        *(
            doc.merge(
                doc.run(f"r{number}", 8, owner),
                {
                    "spec": {
                        "resources": {"gpuType": flavor},
                        "runtime": {"timeLimit": limit},
                        "funding": {"allowBorrow": True, "sponsors": [*sponsors]},
                    }
                },
            )
            for number, (owner, flavor, limit, sponsors) in enumerate(
                product(["org:a", "org:a:x", "org:a:y"], [doc.FLAVOR, OLD], ["1h", "3h"], [[], ["org:a:x"]])
            )
            if owner not in sponsors
        ),
    ]
)
"""``x`` shares with nobody and lends to relatives; ``org:a`` pays for short runs alone, and for old GPUs."""


def _problem(world: World, effort: Effort = USUAL) -> Problem:
    return Planning(world.snapshot(), AT, effort).problem


def _hold(world: World, effort: Effort) -> None:
    state = Planning(world.snapshot(), AT, effort).state
    waiting = state.waiting()
    found, alone = map(state.lowered, (waiting, replace(waiting, forms=[*range(len(waiting.runs))])))

    assert (found.types, found.candidates) == (alone.types, alone.candidates)


def test_runs_are_of_one_type_where_they_ask_the_same() -> None:
    many = Effort(exact=0)
    problem = _problem(ODD, many)
    types = [{problem.candidates[c].run.name for c in kind.members} for kind in problem.types]

    assert sorted(map(sorted, types)) == sorted([["base", "same"], *([name] for name in OTHERWISE)])
    _hold(ODD, many)


@pytest.mark.parametrize("effort", [Effort(exact=0), USUAL], ids=["large", "exact"])
def test_types_are_those_that_each_run_has_alone(effort: Effort) -> None:
    @examples(WORLDS)
    @given(worlds.worlds("all"))
    def holds(world: World) -> None:
        _hold(world, effort)

    holds()


def test_payers_are_those_that_each_run_has_alone() -> None:
    problem = _problem(KIN)
    money, runs = problem.book.money, [candidate.run for candidate in problem.candidates]
    together = Payers(money)

    assert len(runs) == len(KIN.documents) - len(FAMILY)
    assert [together.of(run, run.limit) for run in runs] == [payers(money, run) for run in runs]
