"""The demand of Kueue's own scheduler benchmark as a stream, and how long a list schedule takes for it.

    python -m benchmarks.streams.kueue FOLDER [--form baseline|tas] [--whole]
    jobtree simulate FOLDER --every 1s --compare

Facts from kubernetes-sigs/kueue, test/performance/scheduler (Apache-2.0): 5 cohorts of 6 queues, each with a quota of
20 and borrowing from its cohort, so that 600 can be in use; every queue gets the same workloads of three classes. Sizes
are GPUs here. Whole seconds are needed, so times are ten times as long; the stretched form has a tenth of the workloads
too, ``--whole`` has all 15,000: its makespan over 10 is that of the original. The fleet has as many GPUs as all quotas
together, so that who turns unfunded runs on nobody's account alone where there is room for it.
"""

import argparse
import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from jobtree.api import API_VERSION, Time

BEGIN: Final = int(Time.parse("2026-01-05T00:00:00Z"))
COHORTS, QUEUES, QUOTA = 5, 6, 20


class Set(NamedTuple):
    """``workloads`` of them for each queue, one each ``every`` seconds; all at ten times their original times."""

    kind: str
    gpus: int
    seconds: int
    priority: int
    every: int
    workloads: int


CLASSES: Final = {"small": (1, 2, 50, 1), "medium": (5, 5, 100, 5), "large": (20, 10, 200, 12)}
"""GPUs, seconds, priority, and seconds between two of a set."""
COUNTS: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    "baseline": {"small": (350,), "medium": (100,), "large": (50,)},
    "tas": {"small": (120, 120, 110), "medium": (34, 33, 33), "large": (17, 17, 16)},
}
"""Workloads that each queue gets, in sets that begin together."""


def sets(form: str, *, whole: bool) -> list[Set]:
    """What each queue gets; of the stretched form a tenth, rounded up."""
    return [
        Set(kind, *CLASSES[kind], count if whole else -(-count // 10))
        for kind, counts in COUNTS[form].items() for count in counts
    ]  # fmt: skip


class Workload(NamedTuple):
    """One submission: seconds from the begin on, and its queue."""

    at: int
    cohort: int
    queue: int
    what: Set
    number: int


def workloads(form: str, *, whole: bool) -> list[Workload]:
    """All of them, in time order."""
    found = [
        Workload(one * what.every, cohort, queue, what, part * 1000 + one)
        for part, what in enumerate(sets(form, whole=whole))
        for one in range(1, what.workloads + 1)
        for cohort in range(COHORTS) for queue in range(QUEUES)
    ]  # fmt: skip
    return sorted(found, key=lambda each: (each.at, each.cohort, each.queue, each.number))


def list_schedule(form: str, *, whole: bool) -> int:
    """Makespan in seconds where each cohort starts the largest that waits and fits, without a delay."""
    return max(_cohort([each for each in workloads(form, whole=whole) if each.cohort == 0]), 0)


def _cohort(mine: list[Workload]) -> int:
    free, ends, waiting, now = QUEUES * QUOTA, [(each.at, 0) for each in mine], list[Workload](), 0
    heapq.heapify(ends)
    left = list(mine)
    while ends:
        now = ends[0][0]
        while ends and ends[0][0] == now:
            free += heapq.heappop(ends)[1]
        while left and left[0].at <= now:
            waiting.append(left.pop(0))
        waiting.sort(key=lambda each: (-each.what.gpus, each.at))
        for each in list(waiting):
            if each.what.gpus <= free:
                waiting.remove(each)
                free -= each.what.gpus
                heapq.heappush(ends, (now + each.what.seconds, each.what.gpus))
    return now


def stream(form: str, *, whole: bool) -> Iterator[dict[str, Any]]:
    """The lines of the stream."""
    yield {"event": "header", "format": "jobtree-stream/1", "start": str(Time(BEGIN))}
    for each in workloads(form, whole=whole):
        what, queue = each.what, f"c{each.cohort}-q{each.queue}"
        metadata = {
            "name": f"{what.kind}-{each.number}",
            "namespace": queue,
            "labels": {"priority": str(what.priority)},
        }
        spec = {"owner": f"org:c{each.cohort}:q{each.queue}", "resources": {"gpuType": "GPU", "totalGPUs": what.gpus}}
        run = {"apiVersion": API_VERSION, "kind": "Run", "metadata": metadata, "spec": spec}
        yield {"at": str(Time(BEGIN + each.at)), "event": "submit", "run": run, "duration": what.seconds}


def base() -> dict[str, Any]:
    """Nodes of 100 GPUs in one domain, a Budget per queue, and a Policy.

    The Policy promises nothing: each workload lasts seconds, and a promise is at least a minute away.
    """
    nodes = [node(f"n{number}", "d", 100) for number in range(COHORTS * QUEUES * QUOTA // 100)]
    budgets = [budget(name := f"c{cohort}-q{queue}", f"org:c{cohort}", f"q{queue}", name, QUOTA)
               for cohort in range(COHORTS) for queue in range(QUEUES)]  # fmt: skip
    spec = {"mode": "noCuts", "reservations": {"horizon": "1m"}, "retention": {"leases": "1m", "plans": 10}}
    policy = {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": "default"}, "spec": spec}
    return {"apiVersion": "v1", "kind": "List", "items": [*nodes, *budgets, policy]}


def node(name: str, domain: str, gpus: int) -> dict[str, Any]:
    """A node that is Ready, of flavor GPU in cluster c."""
    labels = {"region": "r", "cluster": "c", "fabric.domain": domain, "gpu.flavor": "GPU"}
    status = {
        "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "1000", "memory": "4Ti", "pods": "1000"},
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def budget(name: str, parent: str, child: str, namespace: str, gpus: int) -> dict[str, Any]:
    """So many GPUs of cluster c for ``parent:child``, shared with its family."""
    envelope = {"name": "quota", "flavor": "GPU", "selector": {"cluster": "c"}, "concurrency": gpus}
    spec = {"owner": f"{parent}:{child}", "parents": [parent], "namespaces": [namespace], "envelopes": [envelope]}
    return {"apiVersion": API_VERSION, "kind": "Budget", "metadata": {"name": name}, "spec": spec}


def main() -> None:
    """Entry point: writes a stream's folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams.kueue")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", choices=tuple(COUNTS), default="baseline")
    parser.add_argument("--whole", action="store_true", help="all 15,000 workloads, not a tenth")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(line) for line in stream(given.form, whole=given.whole)]
    (given.folder / "stream.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (given.folder / "base.json").write_text(json.dumps(base()), encoding="utf-8")
    makespan = list_schedule(given.form, whole=given.whole)
    print(f"{len(lines) - 1} workloads; a list schedule, the largest first, takes {makespan} s")


if __name__ == "__main__":
    main()
