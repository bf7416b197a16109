"""Streams by hand: two nodes of four GPUs in one domain, two owners who share four GPUs each."""

import json
from collections.abc import Sequence
from typing import Any

from jobtree.api import Time
from simulator.results import Outcome
from simulator.stream import Stream, read

API = "rq.davidlangworthy.io/v1"
BEGIN = int(Time.parse("2026-01-01T00:00:00Z"))
Given = tuple[str, str, int, int, int]
"""Name, owner, GPUs, minute of its submission and minutes that it truly runs, and is expected to."""


def node(name: str, gpus: int = 4) -> dict[str, Any]:
    labels = {"region": "r", "cluster": "c", "fabric.domain": "d", "gpu.flavor": "H100"}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-01T00:00:00Z"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"},
            "conditions": conditions,
        },
    }


def budget(name: str, gpus: int) -> dict[str, Any]:
    envelope = {"name": "quota", "flavor": "H100", "selector": {"cluster": "c"}, "concurrency": gpus}
    spec = {"owner": f"org:{name}", "parents": ["org"], "namespaces": ["default"], "envelopes": [envelope]}
    return {"apiVersion": API, "kind": "Budget", "metadata": {"name": name}, "spec": spec}


def submit(job: Given, **spec: Any) -> dict[str, Any]:
    name, owner, gpus, at, minutes = job
    spec = {
        "owner": f"org:{owner}",
        "resources": {"gpuType": "H100", "totalGPUs": gpus},
        "runtime": {"expected": f"{minutes}m", "timeLimit": "4h"},
    } | spec
    run = {"apiVersion": API, "kind": "Run", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return {"at": str(Time(BEGIN + at * 60)), "event": "submit", "run": run, "duration": minutes * 60}


def base(*more: dict[str, Any]) -> bytes:
    items = [node("n1"), node("n2"), budget("a", 4), budget("b", 4), *more]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def text(lines: Sequence[dict[str, Any]], **header: Any) -> bytes:
    first = {"event": "header", "format": "jobtree-stream/1", "start": str(Time(BEGIN)), **header}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (first, *lines))


def made(lines: Sequence[dict[str, Any]], *more: dict[str, Any], **header: Any) -> Stream:
    return read("hand", text(lines, **header), base(*more))


def times(found: Outcome) -> dict[str, tuple[float | None, float | None]]:
    """Minutes of first start and end, by job."""
    rows = found.jobs.to_pylist()
    return {row["name"]: (_minute(row["started"]), _minute(row["ended"])) for row in rows}


def _minute(at: int | None) -> float | None:
    return None if at is None else (at - BEGIN) / 60


TWENTY: Sequence[Given] = (
    ("j01", "a", 4, 0, 60), ("j02", "b", 2, 0, 90), ("j03", "b", 4, 5, 60), ("j04", "a", 1, 6, 20),
    ("j05", "a", 1, 7, 120), ("j06", "b", 2, 10, 30), ("j07", "a", 8, 20, 30), ("j08", "b", 1, 25, 10),
    ("j09", "a", 2, 30, 45), ("j10", "b", 4, 40, 60), ("j11", "a", 1, 50, 15), ("j12", "b", 1, 55, 100),
    ("j13", "a", 3, 60, 20), ("j14", "b", 2, 70, 40), ("j15", "a", 4, 80, 30), ("j16", "b", 6, 90, 20),
    ("j17", "a", 1, 100, 5), ("j18", "b", 1, 110, 60), ("j19", "a", 2, 120, 30), ("j20", "b", 4, 130, 30),
)  # fmt: skip
