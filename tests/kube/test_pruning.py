"""What a cluster forgets, and what not: closed leases go after their retention, their hours stay (spec §3.6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtree.api import API_VERSION
from jobtree.world.memory import balances
from tests.kube.bench.kube import Kube, names
from tests.kube.live import Live, budget, run
from tests.kube.test_faults import killed_cycle
from tests.support import documents as doc
from tests.support.times import unix

DAY = 86_400
PLANS = 3


@pytest.fixture
def live(thin_kube: Kube, tmp_path: Path) -> Live:
    thin_kube.nodes(1)
    thin_kube.create(doc.policy(retention={"leases": "7d", "plans": PLANS}), budget("org:a", 8))
    return Live(thin_kube, tmp_path / "lake")


def used(live: Live, name: str, ahead: int) -> int:
    """A run of 8 GPUs that is cancelled after an hour; the GPU-seconds that its lease says."""
    live.kube.create(run(name, 8))
    live.cycle(ahead)
    live.kube.patch(API_VERSION, "Run", "default", name, {"spec": {"state": "Cancelled"}})
    live.cycle(ahead + 3600)
    (lease,) = live.kube.ours("Lease")
    return 8 * (unix(lease["status"]["ended"]) - unix(lease["spec"]["interval"]["start"]))


def charged(live: Live) -> int:
    """The GPU-seconds that the Budget says."""
    (one,) = live.kube.ours("Budget")
    return int(one["status"]["envelopes"][0]["gpuSecondsConsumed"])


def test_hours_of_leases_that_are_gone_stay_whenever_the_planner_is_killed(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent, rounds, was_killed = 0, 0, True
    while was_killed:
        ahead, rounds = rounds * 9 * DAY, rounds + 1
        spent += used(live, f"r{rounds}", ahead)
        assert charged(live) == spent

        was_killed = killed_cycle(live, rounds - 1, monkeypatch, ahead + 8 * DAY)
        live.cycle(ahead + 8 * DAY + 60)
        assert (rounds, live.kube.ours("Lease"), charged(live)) == (rounds, [], spent)
    assert rounds > 4  # so many writes the cycle has that prunes, at least
    assert live.kube.find("v1", "ConfigMap", "jobtree-system", balances.RECORD)
    assert len(live.kube.ours("Plan")) <= PLANS

    again = live.cycle((rounds - 1) * 9 * DAY + 8 * DAY + 120)
    assert (again.writes, charged(live)) == (0, spent)


def test_promises_that_are_over_go_with_their_runs(live: Live) -> None:
    kube = live.kube
    kube.create(run("r", 8, runtime={"timeLimit": "1h"}), run("waits", 8))
    live.cycle()
    assert names(kube.ours("Reservation")) != []
    kube.patch(API_VERSION, "Run", "default", "waits", {"spec": {"state": "Cancelled"}})

    live.cycle(60)
    (over,) = kube.ours("Reservation")
    assert live.cycle(120).writes == 0  # it is at rest
    kube.patch(API_VERSION, "Run", "default", "r", {"spec": {"state": "Cancelled"}})
    live.cycle(180)

    assert (over["status"]["state"], kube.ours("Reservation")) == ("Failed", [])
