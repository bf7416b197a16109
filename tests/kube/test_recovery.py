"""After a disaster the next cycle goes on from what is there: etcd of an hour ago, no lake, or both."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube
from tests.kube.conftest import skip_or_fail
from tests.kube.live import Live, budget, doubled, open_leases, run


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A bench of its own, whose etcd the test may kill, with two runs of which one has started."""
    skip_or_fail(name for name in processes.THIN if name not in build.find())
    with processes.running(build.find(), thin=True) as running:
        kube = Kube(running)
        live = Live(kube, tmp_path / "lake")
        kube.namespace("default")
        kube.nodes(2)
        kube.create(budget("org:a", 16), run("early", 8))
        live.cycle()
        assert live.phases() == {"early": "Running"}
        yield live
        kube.close()


def _stopped(live: Live) -> processes.Processes:
    live.kube.processes.kill("kube-apiserver")
    live.kube.processes.kill("etcd")
    return live.kube.processes


def _started(live: Live) -> None:
    live.kube.processes.start_etcd()
    live.kube.processes.start_apiserver()
    live.kube.processes.until(live.kube.processes.is_ready, "kube-apiserver")


def _save(live: Live, place: Path) -> None:
    shutil.copytree(_stopped(live).folder / "etcd", place)
    _started(live)


def _restore(live: Live, place: Path) -> None:
    folder = _stopped(live).folder / "etcd"
    shutil.rmtree(folder)
    shutil.copytree(place, folder)
    _started(live)


def test_etcd_of_an_hour_ago_is_planned_on_from_there(live: Live, tmp_path: Path) -> None:
    _save(live, tmp_path / "saved")
    live.kube.create(run("late", 8))
    live.cycle()
    assert live.phases() == {"early": "Running", "late": "Running"}

    _restore(live, tmp_path / "saved")
    assert live.phases() == {"early": "Running"}
    live.kube.create(run("after", 8))
    live.cycle()

    assert live.phases() == {"early": "Running", "after": "Running"}
    assert doubled(live.kube) == []
    assert len(open_leases(live.kube)) == 2


def test_a_cycle_that_the_restored_cluster_never_saw_is_set_aside(live: Live, tmp_path: Path) -> None:
    _save(live, tmp_path / "saved")
    live.kube.create(run("late", 8))
    live.cycle()
    newest = max((live.lake / "cycles").rglob("*Z.json"))
    text = newest.read_text()
    newest.write_text(text.replace('"phase": "applied"', '"phase": "planned"'))  # cut off before its end
    assert newest.read_text() != text

    _restore(live, tmp_path / "saved")
    live.kube.create(run("after", 8))
    live.cycle()

    assert live.phases()["after"] == "Running"
    assert doubled(live.kube) == []


def test_a_lost_lake_costs_history_and_nothing_else(live: Live) -> None:
    before = open_leases(live.kube)
    shutil.rmtree(live.lake)
    live.kube.create(run("after", 8))

    live.cycle()

    assert live.phases() == {"early": "Running", "after": "Running"}
    kept = {each["metadata"]["uid"] for each in open_leases(live.kube)}
    assert {each["metadata"]["uid"] for each in before} < kept
    assert len(list((live.lake / "cycles").rglob("*Z.json"))) == 1


def test_both_at_once(live: Live, tmp_path: Path) -> None:
    _save(live, tmp_path / "saved")
    live.kube.create(run("late", 8))
    live.cycle()
    _restore(live, tmp_path / "saved")
    shutil.rmtree(live.lake)
    live.kube.create(run("late", 8))

    live.cycle()

    assert live.phases() == {"early": "Running", "late": "Running"}
    assert doubled(live.kube) == []
