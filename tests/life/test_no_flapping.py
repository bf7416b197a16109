"""Two elastic runs that compete come to rest and stay so (spec §4): over hundreds of cycles nobody takes turns."""

from typing import Any

import pytest

from tests.history.play import Cluster, Step
from tests.life.streams import START, made
from tests.support import documents as doc
from tests.support.documents import merge

CYCLES = 200
WIDTHS: dict[str, Any] = {"minTotalGPUs": 2, "maxTotalGPUs": 12, "stepGPUs": 2}


def competing(gpus: int, concurrency: int, **more: Any) -> Cluster:
    """Two runs of 2 to 12 GPUs on ``gpus`` GPUs of a node each and a Budget of so many."""
    cluster = Cluster()
    nodes = [made(doc.node(f"n{number}", 8, domain="A"), START) for number in range(gpus // 8)]
    runs = [
        made(merge(doc.run(name, 2), {"spec": {"malleable": WIDTHS, "locality": {"groupGPUs": 2}, **more}}), START)
        for name in ("one", "two")
    ]
    budget = made(doc.budget("org:a", [doc.envelope(concurrency)]), START)
    cluster.change(Step(START, put=[*nodes, *runs, budget]))
    return cluster


def widths(documents: list[doc.Document]) -> dict[str, int]:
    """Active GPUs by run."""
    found = dict.fromkeys(("one", "two"), 0)
    for each in documents:
        if each["kind"] == "Lease" and not each["status"].get("closed"):
            found[each["spec"]["runRef"]["name"]] += len(each["spec"]["slice"]["nodes"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "concurrency"), [(16, 64), (32, 15)])
def test_two_runs_that_compete_change_their_width_only_to_grow_to_what_there_is(gpus: int, concurrency: int) -> None:
    cluster = competing(gpus, concurrency)
    changes = []
    for number in range(CYCLES):
        played = cluster.cycle(START + 60 * number)
        before, after = widths(played.before), widths(played.after)
        changes += [(number, run) for run in after if after[run] != before[run]]
        assert all(after[run] >= before[run] for run in after)

    assert sum(widths(cluster.documents()).values()) == min(gpus, concurrency) // 2 * 2
    assert len(changes) == 2 + (min(gpus, concurrency) - 4) // 2  # both start, then each step once
    assert max(number for number, _ in changes) <= 6
