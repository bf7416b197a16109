"""Whatever fails in a cycle's writes, the next cycle ends in the same state, and no slot is ever held twice (spec §8).

Every round of these tests makes the same busy change under new names: two runs are cancelled, two others start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, Refusal
from jobtree.cluster.live import client
from jobtree.cluster.live.client import Api
from tests.kube.bench.kube import Kube, Object, names
from tests.kube.bench.proxy import Call, Fault, Proxy, proxy
from tests.kube.live import Live, budget, doubled, run
from tests.kube.watcher import Watcher, watching


class Crash(BaseException):
    """The planner is killed."""


@pytest.fixture
def live(thin_kube: Kube, tmp_path: Path) -> Live:
    thin_kube.nodes(4)
    thin_kube.create(budget("org:a", 32))
    return Live(thin_kube, tmp_path / "lake")


@pytest.fixture
def eye(thin_kube: Kube) -> Iterator[Watcher]:
    """Sees to it, in every test, that no slot is held twice at any moment."""
    with watching(thin_kube) as watcher:
        yield watcher
        assert watcher.doubled == set()
        assert watcher.seen > 0


def busy(live: Live, number: int) -> None:
    """Cancels the runs of the round before and submits two others."""
    for name in (f"a{number - 1}", f"b{number - 1}"):
        if live.kube.find(API_VERSION, "Run", "default", name):
            live.kube.patch(API_VERSION, "Run", "default", name, {"spec": {"state": "Cancelled"}})
    live.kube.create(run(f"a{number}", 16, resources={"gpusPerPod": 8}), run(f"b{number}", 8))


def look(live: Live, number: int) -> dict[str, Any]:
    """What is there after a round, without what names and clocks make of it."""
    kube = live.kube
    leases = [each for each in kube.ours("Lease") if _round(each["spec"]["runRef"]["name"]) == number]
    before = [each for each in kube.ours("Lease") if _round(each["spec"]["runRef"]["name"]) == number - 1]
    pods = kube.objects("v1", "Pod")
    finalizers = {each["metadata"]["name"]: each["metadata"].get("finalizers", []) for each in kube.ours("Run")}
    return {
        "phases": {name[0]: phase for name, phase in live.phases().items() if _round(name) == number},
        "ended": {name[0]: phase for name, phase in live.phases().items() if _round(name) == number - 1},
        "open": sorted(_of(each) for each in leases),
        "closed": sorted((_of(each)[0], each["status"].get("closureReason")) for each in before),
        "ledgers": {_ledger(each) for each in before},
        "pods": sorted((each["metadata"]["labels"]["rq.davidlangworthy.io/run"][0], _pin(each)) for each in pods),
        "plans": {each["status"]["phase"] for each in kube.ours("Plan")},
        "finalizers": {name[0]: len(kept) for name, kept in finalizers.items() if _round(name) == number},
        "left": [name for name, kept in finalizers.items() if kept and _round(name) != number],
        "usage": kube.ours("Budget")[0]["status"]["envelopes"][0]["ownedGPUs"],
        "services": {name[0]: _serves(kube, name) for name in finalizers if _round(name) == number},
        "doubled": doubled(kube),
    }


def _serves(kube: Kube, name: str) -> bool:
    """Whether the Service of a Run is that very Run's."""
    owner = kube.get(API_VERSION, "Run", "default", name)["metadata"]["uid"]
    service = kube.find("v1", "Service", "default", f"run-{name}")
    return service is not None and service["metadata"]["ownerReferences"][0]["uid"] == owner


def _round(name: str) -> int:
    return int(name[1:])


def _of(lease: Object) -> tuple[str, int, int]:
    spec = lease["spec"]
    return spec["runRef"]["name"][0], spec["group"], len(spec["slice"]["nodes"])


def _ledger(lease: Object) -> tuple[str, bool]:
    (segment,) = lease["status"]["funding"]
    return segment["class"], segment["to"] == lease["status"]["ended"]


def _pin(pod: Object) -> int:
    return int(pod["metadata"]["labels"]["rq.davidlangworthy.io/rank"])


EXPECTED: dict[str, Any] = {
    "phases": {"a": "Running", "b": "Running"},
    "ended": {"a": "Failed", "b": "Failed"},
    "open": [("a", 0, 8), ("a", 0, 8), ("b", 0, 8)],
    "closed": [("a", "Cancelled"), ("a", "Cancelled"), ("b", "Cancelled")],
    "ledgers": {("owned", True)},
    "pods": [("a", 0), ("a", 1), ("b", 0)],
    "plans": {"Applied"},
    "finalizers": {"a": 1, "b": 1},
    "left": [],
    "usage": 24,
    "services": {"a": True, "b": True},
    "doubled": [],
}


def settled(live: Live, number: int) -> dict[str, Any]:
    """After the cycles that follow: what waited for pods that still terminated has started by then."""
    live.cycle()
    live.cycle()
    return look(live, number)


def begun(live: Live) -> None:
    """The first round, undisturbed."""
    busy(live, 0)
    live.cycle()


class Killed(Api):
    """A client whose process is killed once ``after`` writes are done."""

    after = 10**9
    done = 0
    lock = threading.Lock()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> bytes:
        if not options.get("fenced", True):  # the lock's own
            return super().call(method, path, body, **options)
        with self.lock:
            if type(self).done >= self.after:
                raise Crash
            answer = super().call(method, path, body, **options)
            type(self).done += 1
            return answer


def killed_cycle(live: Live, after: int, monkeypatch: pytest.MonkeyPatch, ahead: int = 0) -> bool:
    """A cycle that is killed after so many writes; whether it was, or ended before."""
    Killed.after, Killed.done = after, 0
    monkeypatch.setattr("tests.kube.live.Api", Killed)
    try:
        live.cycle(ahead)
    except Crash:
        return True
    finally:
        monkeypatch.undo()
    return False


def test_a_planner_killed_after_any_write_is_completed_by_the_next(
    live: Live, eye: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(live)
    number, was_killed = 0, True
    while was_killed:
        number += 1
        busy(live, number)
        was_killed = killed_cycle(live, number - 1, monkeypatch)
        assert (number, settled(live, number)) == (number, EXPECTED)
    assert number > 20  # so many writes the busy cycle has, at least


def refused(status: int, way: str) -> Fault:
    return Fault("before" if way == "before" else "after", status, (("Retry-After", "0"),) if status == 429 else ())


FAULTS = {
    f"{name} {way}": refused(status, way)
    for name, status in (("409", 409), ("429", 429), ("500", 500), ("reset", 0), ("timeout", -1))
    for way in ("before", "after")
}


@pytest.fixture
def way(thin_kube: Kube) -> Iterator[Proxy]:
    with proxy(thin_kube.url, thin_kube.processes.ca) as made:
        yield made


@pytest.mark.parametrize("kind", FAULTS)
def test_every_call_may_fail_once(
    live: Live, eye: Watcher, way: Proxy, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "WRITING", urllib3.Timeout(connect=5, read=2))
    begun(live)
    busy(live, 1)
    failed: set[tuple[str, str]] = set()

    def once(call: Call) -> Fault | None:
        what = (call.method, call.path)
        if what in failed:
            return None
        failed.add(what)
        return FAULTS[kind]

    way.reset(once)
    try:
        replace(live, url=way.url).cycle()
    except Refusal:
        assert kind.startswith("409")  # which says that another was faster: then the next cycle goes on
    assert settled(live, 1) == EXPECTED
    assert len(failed) > (0 if kind.startswith("409") else 20)


@pytest.mark.parametrize("when", ["before", "after"])
def test_any_call_may_be_told_of_a_conflict(live: Live, eye: Watcher, way: Proxy, when: str) -> None:
    begun(live)
    number, was_told = 0, True
    while was_told:
        number += 1
        busy(live, number)
        way.reset(lambda call: refused(409, when) if call.number == number else None)  # noqa: B023 asked in this round
        with suppress(Refusal):  # the cycle may end there: the next goes on
            replace(live, url=way.url).cycle()
        was_told = len(way.writes) >= number
        assert (number, settled(live, number)) == (number, EXPECTED)
    assert number > 20


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_service_that_is_not_handed_over_is_so_by_the_next_cycle(live: Live, way: Proxy, when: str) -> None:
    kube = live.kube
    told: list[Call] = []

    def conflict(call: Call) -> Fault | None:
        if (call.method, call.path.partition("?")[0]) != ("PATCH", "/api/v1/namespaces/default/services/run-r") or told:
            return None
        told.append(call)
        return refused(409, when)

    kube.create(run("r", 8))
    live.cycle()
    kube.delete(API_VERSION, "Run", "default", "r")
    live.cycle()
    kube.create(run("r", 8))  # without controllers the Service of the first one is still there
    way.reset(conflict)
    replace(live, url=way.url).cycle()
    assert (len(told), len(live.pods("r"))) == (1, 0 if when == "before" else 1)
    live.cycle()

    (made,), (service,) = kube.ours("Run"), kube.objects("v1", "Service", label_selector="rq.davidlangworthy.io/run")
    assert [each["uid"] for each in service["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert (len(live.pods("r")), made["metadata"].get("annotations", {})) == (1, {})


def test_two_planners_at_once_are_one_after_the_other(live: Live, eye: Watcher) -> None:
    begun(live)
    for number in range(1, 4):
        busy(live, number)
        planners = [Planner(), Planner()]
        errors = at_once([replace(live, planner=each).cycle for each in planners])
        for each in planners:
            each.close()
        assert [error for error in errors if not isinstance(error, Refusal)] == []
        assert settled(live, number) == EXPECTED


def at_once(works: list[Callable[[], Any]]) -> list[BaseException]:
    """Does all of them at the same time; what they raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 told to the test
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_a_planner_that_lost_its_lock_writes_nothing_more(live: Live) -> None:
    begun(live)
    busy(live, 1)
    before = {kind: live.kube.ours(kind) for kind in ("Plan", "Lease", "Run")}
    cluster = live.cluster()
    at = live.kube.until(live._next_second)
    cluster.at = type(cluster.at)(at)
    with cluster.hold():
        lease = live.kube.get("coordination.k8s.io/v1", "Lease", "jobtree-system", "jobtree-planner")
        lock = cluster._lock
        assert lock is not None
        lock._stop.set()  # its machine sleeps: nothing is renewed
        lock._until = 0.0
        with pytest.raises(Refusal, match="nothing more is written"):
            run_cycle(cluster, at, Lake(str(live.lake)), live.planner)
        assert lease["spec"]["holderIdentity"] == lock.holder
    assert {kind: live.kube.ours(kind) for kind in before} == before


def test_the_lock_of_a_killed_planner_is_late_by_itself(live: Live) -> None:
    begun(live)
    dead = replace(live, seconds=2).cluster()
    assert dead._lock is not None
    dead._lock.take()
    dead._lock._stop.set()  # killed: it neither renews nor gives back

    with pytest.raises(Refusal, match=r"another planner is at work: .* holds the lock jobtree-planner"):
        replace(live, wait=0).cycle()
    live.cycle()
    assert names(live.kube.ours("Plan"))[1:] != []
