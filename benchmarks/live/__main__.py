"""A large live cluster at rest: `python -m benchmarks.live [NODES] [LEASES]` on the tests' Kubernetes (`make kube`).

It makes 12,500 nodes of 5 KB, and one cycle starts runs of 40 leases and pods each, 20,000 in all, which takes some
minutes. Then a fresh process reads all of it as a planner does (seconds, memory), and further cycles find nothing to
do: CPU of the planner and of its process for the search, writes. `results/live.md` has what came of it.
"""

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchmarks.live import page
from benchmarks.live.fresh import read
from benchmarks.live.page import Row
from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake
from jobtree.api import Time
from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.live.paths import collection
from jobtree.world.memory import seen
from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube, Object, node
from tests.kube.live import api, budget, run

GROUPS = 40
"""Leases of a run: groups of 4 GPUs, each in a pod of its own."""


def main() -> None:
    """Prepares, measures, records."""
    nodes, leases = (
        int(sys.argv[place]) if len(sys.argv) > place else default for place, default in ((1, 12_500), (2, 20_000))
    )
    build.build()
    with processes.running(build.find(), thin=True) as running, tempfile.TemporaryDirectory() as lake:
        kube = Kube(running)
        for name in (seen.NAMESPACE, "default"):
            kube.namespace(name)
        kube.create(budget("org:a", 8 * nodes))
        way = api(kube)
        _timed(f"{nodes} nodes made", lambda: _make(way, "Node", "", [_node(number) for number in range(nodes)]))
        shape: dict[str, Any] = {"resources": {"gpusPerPod": 4}, "locality": {"groupGPUs": 4}}
        _make(way, "Run", "default", [run(f"r{n}", 4 * GROUPS, **shape) for n in range(leases // GROUPS)])
        planner = Planner()
        cluster = LiveCluster(api(kube), 0)  # one for all cycles, as of `jobtree cycle --every`
        began = [_cycle(cluster, Lake(lake), planner, 0)]
        print(began[0], flush=True)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            told = fresh.submit(read, kube.url, str(kube.processes.ca)).result()
        rest = [_cycle(cluster, Lake(lake), planner, turn) for turn in range(1, 5)]
        planner.close()
        kube.close()
    world = f"{nodes} nodes, {leases} leases and as many pods"
    page.record(
        " ".join(["python -m benchmarks.live", *sys.argv[1:]]),
        [
            Row(f"a fresh process reads {world} into a Snapshot", told, "8 s, 1.5 GiB"),
            *(Row(f"cycle {turn} after those starts", each, "at rest 3 s of CPU and no write")
              for turn, each in enumerate(rest, 1)),
        ],
    )  # fmt: skip


def _cycle(cluster: LiveCluster, lake: Lake, planner: Planner, turn: int) -> str:
    """One cycle, in a second of its own: what it took."""
    cluster.at = Time(int(time.time()) + 2 * turn)
    began, worked, searched = time.perf_counter(), time.process_time(), page.cpu(planner.pid)
    result = run_cycle(cluster, int(cluster.at), lake, planner)
    own, search = time.process_time() - worked, page.cpu(planner.pid) - searched
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.seconds.items())
    return (
        f"{own + search:.1f} s of CPU ({search:.1f} s of them its search), {result.writes} writes, "
        f"{time.perf_counter() - began:.1f} s ({phases})"
    )


def _timed(words: str, work: object) -> None:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    print(f"{words} in {time.perf_counter() - began:.0f} s", flush=True)


def _make(way: Api, kind: str, namespace: str, objects: list[Object]) -> None:
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda each: way.call("POST", collection(kind, namespace), each), objects))


def _node(number: int) -> Object:
    made = node(f"n{number}", domain=f"d{number // 32}")
    made["metadata"]["labels"] |= {f"example.org/label-{i}": f"value-{number}-{i}" for i in range(40)}
    made["metadata"]["annotations"] = {f"example.org/note-{i}": "x" * 100 for i in range(8)}
    made["status"]["images"] = [
        {"names": [f"registry.example/image-{i}@sha256:{'0' * 64}"], "sizeBytes": 10**9} for i in range(10)
    ]
    return made


if __name__ == "__main__":
    main()
