"""A large live cluster at rest: `python -m benchmarks.live [NODES] [LEASES]` on the tests' Kubernetes (`make kube`).

It makes 12,500 nodes of 5 KB, and one cycle starts runs of 40 leases and pods each, 20,000 in all, which takes some
minutes. Then it reads all of it twice as a planner does, and measures cycles in which nothing is to be done: seconds,
CPU of the planner and of its process for the search, writes, and the peak of its memory.
"""

import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from exporters.lake.lake import Lake
from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.live.paths import collection
from jobtree.world.memory import seen
from jobtree.world.tables.snapshot import take
from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube, Object, node
from tests.kube.live import api, budget, run

GROUPS = 40
"""Leases of a run: groups of 4 GPUs, each in a pod of its own."""


def main() -> None:
    """Prepares, measures, prints."""
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
        _timed(f"{leases} leases and their pods made by a cycle", lambda: _cycle(kube, Lake(lake), planner, 0))
        for name in ("first", "again"):
            cluster = LiveCluster(api(kube), int(time.time()))
            began, worked = time.perf_counter(), time.process_time()
            intake = cluster.read()
            read = time.perf_counter()
            snapshot = take(intake)
            done = time.perf_counter()
            print(
                f"{name}: read {read - began:.2f} s, snapshot {done - read:.2f} s, of these "
                f"{time.process_time() - worked:.2f} s of CPU; {len(intake.nodes)} nodes, {len(intake.leases)} leases, "
                f"{len(intake.quarantined)} set aside, digest {snapshot.digest[:8]}"
            )
            del intake, snapshot
        for turn in range(1, 4):
            _cycle(kube, Lake(lake), planner, turn)
        planner.close()
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
        kube.close()


def _cycle(kube: Kube, lake: Lake, planner: Planner, turn: int) -> None:
    """One cycle, in a second of its own; prints what it took."""
    at = int(time.time()) + 2 * turn
    began, worked, searched = time.perf_counter(), time.process_time(), _cpu(planner.pid)
    result = run_cycle(LiveCluster(api(kube), at), at, lake, planner)
    print(
        f"cycle {turn}: {result.writes} writes, {time.perf_counter() - began:.1f} s, "
        f"{time.process_time() - worked:.2f} s of CPU and {_cpu(planner.pid) - searched:.2f} s in its search; "
        f"{', '.join(f'{name} {seconds:.1f}' for name, seconds in result.seconds.items())}",
        flush=True,
    )


def _cpu(pid: int | None) -> float:
    """CPU seconds of a process so far."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
