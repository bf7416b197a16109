"""Starting runs on a live cluster: `python -m benchmarks.live.starts` on the tests' Kubernetes (`make kube tools`).

Two measures. From submit to pods: Runs of 8 GPUs are submitted one after another, at odd times, while the chart's own
command plans (`cycle --every 10s --for 50s`); seconds until all pods of each are there. A large start: one cycle starts
500 Runs of 8 pods on nodes of one GPU, so 4,000 leases and 4,000 pods; the seconds of its writes, and those that the
bare client takes to create the very same leases and pods, 8 at once; and what both cost of CPU, in the client, the API
server and etcd together (`start RUNS`: with fewer). `results/live.md` has what came of it.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.live import page
from benchmarks.live.page import Row
from cronjobs.cycle import run_cycle
from cronjobs.deadline import planner
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, LABEL_RUN
from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.live.paths import collection
from jobtree.cluster.live.writing import AT_ONCE
from jobtree.world.memory import seen
from tests.kube.bench import build, processes
from tests.kube.bench.kube import Kube, Object, node
from tests.kube.helm import CHART, NAMESPACE, Helm, container
from tests.kube.live import api, budget, run

COMMAND = "python -m benchmarks.live.starts"
SUBMITS = 15


def main() -> None:
    """Measures both and records them."""
    wanted, *runs = sys.argv[1:] or ["both"]
    if wanted in {"submit", "both"}:
        _submit_to_pods()
    if wanted in {"start", "both"}:
        _large_start(int(runs[0]) if runs else 500, 8)


def _submit_to_pods() -> None:
    with processes.running(build.find(), thin=True) as running, tempfile.TemporaryDirectory() as folder:
        kube = Kube(running, crds=False)
        for name in (NAMESPACE, "default"):
            kube.namespace(name)
        Helm(kube, Path(folder))("install", "jobtree", CHART)
        kube.nodes(SUBMITS)
        pool = budget("org:a", 8 * SUBMITS)
        pool["spec"]["namespaces"] = ["default"]
        kube.create(pool)
        job = container(kube, "CronJob", "jobtree-cycle", Path(folder))
        seconds = []
        with job.over_and_over():
            for number in range(SUBMITS):
                time.sleep(0.5 + 7.3 * number % 6.1)  # at no fixed place between two cycles
                began = time.monotonic()
                kube.create(run(f"r{number}", 8, resources={"gpusPerPod": 4}))
                while len(kube.objects("v1", "Pod", label_selector=f"{LABEL_RUN}=r{number}")) < 2:
                    time.sleep(0.02)
                seconds.append(time.monotonic() - began)
        kube.close()
    middle, late = statistics.median(seconds), statistics.quantiles(seconds, n=10)[8]
    told = f"p50 {middle:.1f} s, p90 {late:.1f} s, longest {max(seconds):.1f} s"
    page.record(f"{COMMAND} submit", [Row(f"from submit to its pods, {SUBMITS} runs of 8 GPUs", told, "p50 10 s")])


def _large_start(runs: int, pods: int) -> None:
    with processes.running(build.find(), thin=True) as running, tempfile.TemporaryDirectory() as folder:
        kube = Kube(running)
        for name in (seen.NAMESPACE, "default", "bare"):
            kube.namespace(name)
        way = api(kube)
        count = runs * pods
        kube.create(budget("org:a", count))
        nodes = [node(f"n{number}", gpus=1, domain=f"d{number // 64}") for number in range(count)]
        _side_by_side(way, "Node", "", nodes)
        asked = [run(f"r{number}", pods, resources={"gpusPerPod": 1}) for number in range(runs)]
        _side_by_side(way, "Run", "default", asked)
        servers = [running.running[name].pid for name in ("etcd", "kube-apiserver")]

        def spent() -> float:
            return time.process_time() + sum(map(page.cpu, servers))

        at, cpu = int(time.time()), dict[str, float]()
        result = run_cycle(
            LiveCluster(api(kube), at), at, Lake(folder), planner(), on_phase=lambda name: cpu.update({name: spent()})
        )
        own = spent() - cpu["write"]
        made = {
            "Lease": _stripped(API_VERSION, "Lease", kube.ours("Lease")),
            "Pod": _stripped("v1", "Pod", kube.objects("v1", "Pod")),
        }
        began, before = time.perf_counter(), spent()
        for kind, objects in made.items():
            _side_by_side(way, kind, "bare", objects)
        bare, bare_cpu = time.perf_counter() - began, spent() - before
        kube.close()
    took = result.seconds["write"]
    page.record(
        f"{COMMAND} start" + ("" if runs == 500 else f" {runs}"),
        [
            Row(f"a cycle starts {runs} runs on {count} nodes: {len(made['Lease'])} leases, {len(made['Pod'])} pods",
                f"{result.writes} writes in {took:.1f} s, {own:.1f} s of CPU with the servers'"),
            Row("the bare client creates these leases and pods, as many at once",
                f"{bare:.1f} s, {bare_cpu:.1f} s of CPU with the servers'"),
            Row("the cycle takes as long", f"{took / bare:.2f} times; of CPU {own / bare_cpu:.2f} times", "1.5 times"),
        ],
    )  # fmt: skip


def _stripped(api_version: str, kind: str, objects: Sequence[Object]) -> list[Object]:
    """Objects as they were created, but for their namespace and owner, without what the server adds."""
    kept = ("name", "labels", "annotations")
    return [
        {"apiVersion": api_version, "kind": kind, "spec": each["spec"],
         "metadata": {part: each["metadata"][part] for part in kept if part in each["metadata"]}}
        for each in objects
    ]  # fmt: skip


def _side_by_side(way: Api, kind: str, namespace: str, objects: Sequence[Object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda each: way.call("POST", collection(kind, namespace), each), objects))


if __name__ == "__main__":
    main()
