"""Reading a large live cluster: `python -m benchmarks.live [NODES] [LEASES]` on the tests' Kubernetes (`make kube`).

It makes 12,500 nodes of 5 KB and 20,000 leases, which takes some minutes, then reads all of it twice as a planner does
and prints seconds and the peak of its memory.
"""

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from jobtree.api import API_VERSION
from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.live.paths import collection
from jobtree.world.tables.snapshot import take
from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube, Object, node
from tests.kube.live import api, budget

AT = "2026-01-01T00:00:00Z"


def main() -> None:
    """Prepares, measures, prints."""
    nodes, leases = (
        int(sys.argv[place]) if len(sys.argv) > place else default for place, default in ((1, 12_500), (2, 20_000))
    )
    build.build()
    with processes.running(build.find(), thin=True) as running:
        kube = Kube(running)
        kube.create(budget("org:a", 8 * nodes))
        way = api(kube)
        _timed(f"{nodes} nodes made", lambda: _make(way, "Node", "", [_node(number) for number in range(nodes)]))
        _timed(
            f"{leases} leases made", lambda: _make(way, "Lease", "default", [_lease(n, nodes) for n in range(leases)])
        )
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
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
        kube.close()


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


def _lease(number: int, nodes: int) -> Object:
    on = f"n{number % nodes}"
    slots = [f"{on}#{4 * (number // nodes) + i}" for i in range(4)]
    spec = {
        "owner": "org:a", "runRef": {"name": f"r{number}", "namespace": "default"}, "runUid": f"uid-{number}",
        "runOwner": "org:a", "flavor": "H100-80GB", "group": 0, "slice": {"nodes": slots, "role": "Active"},
        "interval": {"start": AT}, "reason": "Start", "cycle": "20260101T000000Z",
        "paidBy": {"budget": "org-a", "envelope": "pool"},
    }  # fmt: skip
    name = {"name": f"r{number}-20260101t000000z-g0-0", "namespace": "default"}
    return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": name, "spec": spec}


if __name__ == "__main__":
    main()
